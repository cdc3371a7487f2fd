"""`bisect`: find the commit or release that moved a series."""

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
from dashboard.cli.trials.options import TVM_NAMES, add_measuring, make_request, show_result
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.trials.trial import TrialState


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    bisect = add_home_verb(verbs, "bisect", _bisect, "find the commit or release that moved a series")
    bisect.add_argument("experiments", nargs=1, metavar="EXPERIMENT")
    bisect.add_argument(
        "series", nargs=1, metavar="SERIES", help="series ID or a prefix of it, or the series name or a part of it"
    )
    bisect.add_argument("--good", required=True, metavar="A", help=f"a TVM from before the change: {TVM_NAMES}")
    bisect.add_argument("--bad", required=True, metavar="B", help="a TVM from after the change, of the same kind")
    bisect.add_argument(
        "--error", type=float, default=0.05, help="acceptable probability of a wrong answer (default: 0.05)"
    )
    bisect.add_argument("--incident", metavar="ID", help="record the result with this incident")
    add_measuring(bisect, experiments=False)


def _bisect(arguments: argparse.Namespace) -> int:
    from dashboard.trials import bisect

    signal.signal(signal.SIGTERM, interrupt)
    if not 0 < arguments.error < 0.5:
        raise DashboardError(f"--error {arguments.error:g}: must be between 0 and 0.5 (use e.g. 0.05).")
    request = make_request(arguments, tvms=(arguments.good, arguments.bad))
    options = {"error": arguments.error, "fresh": arguments.fresh}
    done, path = bisect.bisect(Home(arguments.home), request, code=find_code(arguments), **options)
    show_result(done, path, arguments)
    if done.state is TrialState.INTERRUPTED:
        return STOPPED
    is_answered = done.bisection is not None and done.bisection.is_answered
    if arguments.incident and is_answered:
        from tvmdash.incidents import command

        return command.main([str(arguments.home), "bisected", arguments.incident, str(path)])
    return OK_CODE if is_answered else SOME_FAILED
