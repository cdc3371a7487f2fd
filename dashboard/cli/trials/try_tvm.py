"""`try` and `compare`: measure two TVMs in turn, until the difference is known or so many times."""

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
)
from dashboard.cli.trials.options import TVM_NAMES, add_measuring, parse_percent, show_result
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

if TYPE_CHECKING:
    from tvmdash.trials.trial import Trial, TrialRequest


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add them to the command line."""
    attempt = add_home_verb(verbs, "try", _try, "measure a TVM against another in turn until the difference is known")
    attempt.add_argument("candidate", metavar="CANDIDATE", help=f"the TVM to try: {TVM_NAMES}")
    attempt.add_argument(
        "--against", metavar="BASE",
        help="the TVM to compare with (default: the commit where the candidate left the home's branch, or the TVM of "
             "the last night)",
    )  # fmt: skip
    attempt.add_argument(
        "--until",
        type=parse_percent,
        default=0.01,
        metavar="PERCENT",
        help="target half-width of the 95%% interval (default: 1%%)",
    )
    attempt.add_argument(
        "--fail-over", type=parse_percent, metavar="PERCENT",
        help=f"exit with {TVM_WORSE} if a series got worse by more than this, or with {CANNOT_TELL} if one may have",
    )  # fmt: skip
    attempt.add_argument("--queue", action="store_true", help="only queue the try; `tries HOME work` measures it")
    add_measuring(attempt, budget_s=7200.0)
    compare = add_home_verb(verbs, "compare", _compare, "measure two TVMs so many times and report what differs")
    compare.add_argument("a", metavar="A", help=f"the TVM to compare with: {TVM_NAMES}")
    compare.add_argument("b", metavar="B", help="the TVM to judge")
    compare.add_argument("--rounds", type=int, default=10, help="number of times to measure each TVM (default: 10)")
    compare.add_argument("--all", action="store_true", help="print every series, not only those that differ")
    add_measuring(compare, budget_s=86400.0)


def _try(arguments: argparse.Namespace) -> int:
    from dashboard.trials import queue, tries

    if arguments.queue and (arguments.markdown or arguments.json or arguments.fail_over):
        raise DashboardError(
            "--queue does not wait for the result; it cannot be combined with --markdown, --json or --fail-over."
        )
    home, code = _find_home(arguments), find_code(arguments)
    request = replace(_make_request(arguments, arguments.candidate, arguments.against), until=arguments.until)
    if arguments.queue:
        name = queue.put_into_queue(home, request, code)
        print(f"{name} is queued. `tries {arguments.home} work` runs the queue, `tries {arguments.home}` lists it.")
        return OK_CODE
    signal.signal(signal.SIGTERM, interrupt)
    done, path = tries.try_tvm(home, request, code=code)
    show_result(done, path, arguments)
    return choose_code(done, arguments.fail_over)


def _compare(arguments: argparse.Namespace) -> int:
    from dashboard.trials import tries
    from tvmdash.judge.rules import RULES
    from tvmdash.trials.trial import TrialState

    if arguments.rounds < RULES.fewest_pairs:
        raise DashboardError(f"--rounds {arguments.rounds}: of fewer than {RULES.fewest_pairs} rounds nothing is told.")
    home = _find_home(arguments)
    request = replace(_make_request(arguments, arguments.b, arguments.a), rounds=arguments.rounds)
    signal.signal(signal.SIGTERM, interrupt)
    done, path = tries.try_tvm(home, request, code=find_code(arguments), isolates=False)
    show_result(done, path, arguments, every=arguments.all)
    if done.state is TrialState.INTERRUPTED:
        return STOPPED
    unknown = {item.experiment for item in done.series} - {item.experiment for item in done.series if item.change}
    return SOME_FAILED if done.errors or unknown else OK_CODE


def _find_home(arguments: argparse.Namespace) -> Home:
    """The home; DashboardError before anything is left in what is none."""
    from dashboard.plan.home_config import read_home_config

    home = Home(arguments.home)
    read_home_config(home)
    return home


def _make_request(arguments: argparse.Namespace, candidate: str, base: str | None) -> TrialRequest:
    from dashboard.trials import queue

    return replace(
        queue.make_request(candidate, base),
        experiments=tuple(arguments.experiments),
        budget_s=arguments.budget,
        rebuild=not arguments.no_rebuild_tvm,
        seed=arguments.seed,
        fresh=arguments.fresh,
    )


def choose_code(done: Trial, most: float | None) -> int:
    """The exit code of a try; most: by how much anything may be worse, as a fraction."""
    from dashboard.trials import result
    from tvmdash.trials.trial import TrialState

    if done.state is TrialState.INTERRUPTED:
        return STOPPED
    if done.errors:
        return SOME_FAILED
    if most is None:
        return OK_CODE
    codes = {result.Worse.YES: TVM_WORSE, result.Worse.MAYBE: CANNOT_TELL, result.Worse.NO: OK_CODE}
    return codes[result.find_worse(done, most)]
