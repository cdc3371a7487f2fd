"""`compare`: measure two TVMs so many times, on this machine, and say what differs."""

from __future__ import annotations

import argparse
import signal
from dataclasses import replace

from dashboard.cli.arguments import (
    OK_CODE,
    SOME_FAILED,
    STOPPED,
    Verbs,
    add_home_verb,
    find_code,
    interrupt,
    parse_duration_s,
)
from dashboard.cli.trials.options import TVM_NAMES, add_files, add_no_rebuild, show_result
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    compare = add_home_verb(verbs, "compare", _compare, "measure two TVMs so many times and report what differs")
    compare.add_argument("a", metavar="A", help=f"the TVM to compare with: {TVM_NAMES}")
    compare.add_argument("b", metavar="B", help="the TVM to judge")
    compare.add_argument(
        "--experiments", nargs="+", default=[], metavar="NAME", help="experiments to run (default: all)"
    )
    compare.add_argument("--rounds", type=int, default=10, help="number of times to measure each TVM (default: 10)")
    compare.add_argument(
        "--budget", type=parse_duration_s, default=86400.0, metavar="TIME",
        help="time for measuring, e.g. 90s, 10m, 3h (default: 24h)",
    )  # fmt: skip
    compare.add_argument("--fresh", action="store_true", help="discard measurements of earlier runs")
    compare.add_argument("--all", action="store_true", help="print every series, not only those that differ")
    add_files(compare)
    add_no_rebuild(compare)


def _compare(arguments: argparse.Namespace) -> int:
    from dashboard.plan.home_config import read_home_config
    from dashboard.trials import queue, tries
    from tvmdash.contracts.trials import TrialState
    from tvmdash.judge.rules import RULES

    if arguments.rounds < RULES.fewest_pairs:
        raise DashboardError(f"--rounds {arguments.rounds}: of fewer than {RULES.fewest_pairs} rounds nothing is told.")
    home = Home(arguments.home)
    read_home_config(home)  # before anything is left in what is no home
    signal.signal(signal.SIGTERM, interrupt)
    request = replace(
        queue.make_request(arguments.b, arguments.a),
        experiments=tuple(arguments.experiments),
        budget_s=arguments.budget,
        rebuild=not arguments.no_rebuild_tvm,
        seed=arguments.seed,
        fresh=arguments.fresh,
        rounds=arguments.rounds,
    )
    done, path = tries.try_tvm(home, request, code=find_code(arguments), isolates=False)
    show_result(done, path, arguments, every=arguments.all)
    if done.state is TrialState.INTERRUPTED:
        return STOPPED
    unknown = {item.experiment for item in done.series} - {item.experiment for item in done.series if item.change}
    return SOME_FAILED if done.errors or unknown else OK_CODE
