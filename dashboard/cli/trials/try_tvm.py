"""`try`: measure a TVM against another in turn until the difference is known."""

from __future__ import annotations

import argparse
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

from dashboard.cli.arguments import (
    CANNOT_TELL,
    OK_CODE,
    SOME_FAILED,
    STOPPED,
    TVM_WORSE,
    Verbs,
    add_home_verb,
    find_code,
    interrupt,
    parse_duration_s,
)
from dashboard.cli.trials.options import TVM_NAMES, add_files, add_no_rebuild, parse_percent, show_result
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

if TYPE_CHECKING:
    from tvmdash.contracts.trials import Trial, TrialRequest


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    attempt = add_home_verb(verbs, "try", _try, "measure a TVM against another in turn until the difference is known")
    attempt.add_argument("candidate", metavar="CANDIDATE", help=f"the TVM to try: {TVM_NAMES}")
    attempt.add_argument(
        "--against", metavar="BASE",
        help="the TVM to compare with (default: the commit where the candidate left the home's branch, or the TVM of "
             "the last night)",
    )  # fmt: skip
    attempt.add_argument(
        "--experiments", nargs="+", default=[], metavar="NAME", help="experiments to run (default: all)"
    )
    attempt.add_argument(
        "--until",
        type=parse_percent,
        default=0.01,
        metavar="PERCENT",
        help="target half-width of the 95%% interval (default: 1%%)",
    )
    attempt.add_argument(
        "--budget",
        type=parse_duration_s,
        default=7200.0,
        metavar="TIME",
        help="time for measuring, e.g. 90s, 10m, 3h (default: 2h)",
    )
    attempt.add_argument("--fresh", action="store_true", help="discard measurements of earlier runs")
    add_files(attempt)
    attempt.add_argument(
        "--fail-over", type=parse_percent, metavar="PERCENT",
        help=f"exit with {TVM_WORSE} if a series got worse by more than this, or with {CANNOT_TELL} if one may have",
    )  # fmt: skip
    attempt.add_argument("--queue", action="store_true", help="only queue the try; `tries HOME work` measures it")
    add_no_rebuild(attempt)


def _try(arguments: argparse.Namespace) -> int:
    from dashboard.plan.home_config import read_home_config
    from dashboard.trials import queue, tries

    read_home_config(Home(arguments.home))  # before anything is left in what is no home
    request = _make_request(arguments)
    if arguments.queue:
        name = queue.put_into_queue(Home(arguments.home), request, find_code(arguments))
        print(f"{name} is queued. `tries {arguments.home} work` runs the queue, `tries {arguments.home}` lists it.")
        return OK_CODE
    signal.signal(signal.SIGTERM, interrupt)
    done, path = tries.try_tvm(Home(arguments.home), request, code=find_code(arguments))
    show_result(done, path, arguments)
    return choose_code(done, arguments.fail_over)


def _make_request(arguments: argparse.Namespace) -> TrialRequest:
    from dashboard.trials import queue

    if arguments.queue and (arguments.markdown or arguments.json or arguments.fail_over):
        raise DashboardError(
            "--queue does not wait for the result; it cannot be combined with --markdown, --json or --fail-over."
        )
    return replace(
        queue.make_request(arguments.candidate, arguments.against),
        experiments=tuple(arguments.experiments),
        until=arguments.until,
        budget_s=arguments.budget,
        rebuild=not arguments.no_rebuild_tvm,
        seed=arguments.seed,
        fresh=arguments.fresh,
    )


def choose_code(done: Trial, most: float | None) -> int:
    """The exit code of a try; most: by how much anything may be worse, as a fraction."""
    from dashboard.trials import result
    from tvmdash.contracts.trials import TrialState

    if done.state is TrialState.INTERRUPTED:
        return STOPPED
    if done.errors:
        return SOME_FAILED
    if most is None:
        return OK_CODE
    codes = {result.Worse.YES: TVM_WORSE, result.Worse.MAYBE: CANNOT_TELL, result.Worse.NO: OK_CODE}
    return codes[result.find_worse(done, most)]
