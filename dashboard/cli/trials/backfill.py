"""`backfill`: measure past nights now."""

from __future__ import annotations

import argparse
import signal

from dashboard.cli.arguments import (
    OK_CODE,
    SOME_FAILED,
    STOPPED,
    Verbs,
    add_home_verb,
    find_code,
    interrupt,
)
from dashboard.cli.trials.options import add_measuring, count, make_request, show_result
from tvmdash.dashboard_info import Home
from tvmdash.trials.trial import TrialState


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    fill = add_home_verb(verbs, "backfill", _backfill, "measure past nights now, with the TVM versions of that time")
    fill.add_argument(
        "--artifacts", required=True, metavar="RANGE", help="pypi:0.25.0..0.27.0, wheel:A..B, git:A..B, REMOTE@A..B"
    )
    fill.add_argument(
        "--step", type=count, default=1, metavar="N", help="measure only every Nth TVM of the range, and the last one"
    )
    fill.add_argument("--dates", type=count, metavar="DAYS", help="measure only the last commit of every DAYS days")
    fill.add_argument("--gaps", action="store_true", help="bisect the longest unmeasured stretch first")
    fill.add_argument(
        "--rounds", type=count, default=1, help="number of times to measure each TVM, in turn (default: 1)"
    )
    fill.add_argument("--retry", action="store_true", help="retry builds that failed before")
    add_measuring(fill, fresh=False)


def _backfill(arguments: argparse.Namespace) -> int:
    from dashboard.trials import backfill
    from dashboard.trials.tvms import Choice

    signal.signal(signal.SIGTERM, interrupt)
    done, path = backfill.backfill(
        Home(arguments.home),
        make_request(arguments, tvms=(arguments.artifacts,)),
        code=find_code(arguments),
        choice=Choice(arguments.step, arguments.dates, arguments.gaps),
        retry=arguments.retry,
    )
    show_result(done, path, arguments)
    filled = done.backfill
    if done.state is TrialState.INTERRUPTED:
        return STOPPED
    return SOME_FAILED if filled is None or filled.left or filled.failed or filled.unbuilt else OK_CODE
