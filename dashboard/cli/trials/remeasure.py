"""`remeasure`: measure points again with artifacts of earlier nights."""

from __future__ import annotations

import argparse
import signal

from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb, find_code, interrupt, make_absolute
from dashboard.cli.trials.options import make_request
from tvmdash.dashboard_info import Home


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    again = add_home_verb(verbs, "remeasure", _remeasure, "remeasure points with the artifacts of earlier nights")
    again.add_argument("request", type=make_absolute, metavar="REQUEST.json", help="[{experiment, stamp, points}, ...]")
    again.add_argument(
        "result",
        type=make_absolute,
        metavar="RESULT.json",
        help="file to write the outcome of each round to; overwritten if it exists",
    )
    again.add_argument("--budget", type=float, metavar="SECONDS", help="total time limit in seconds")


def _remeasure(arguments: argparse.Namespace) -> int:
    from dashboard.trials import remeasure

    signal.signal(signal.SIGTERM, interrupt)
    files, request = (arguments.request, arguments.result), make_request(arguments)
    outcomes = remeasure.remeasure(Home(arguments.home), *files, request, code=find_code(arguments))
    print(remeasure.summarize(outcomes))
    return OK_CODE if all(outcome.is_measured for outcome in outcomes) else SOME_FAILED
