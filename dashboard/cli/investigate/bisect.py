"""`bisect`: find the commit or release that moved a series."""

from __future__ import annotations

import argparse
import signal

from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb, find_code, interrupt, parse_duration_s
from dashboard.cli.investigate.options import TVM_NAMES, add_no_rebuild, make_request
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    bisect = add_home_verb(verbs, "bisect", _bisect, "find the commit or release that moved a series")
    bisect.add_argument("experiments", nargs=1, metavar="EXPERIMENT")
    bisect.add_argument(
        "series", nargs=1, metavar="SERIES", help="its ID, the beginning of it, its name or a part of that"
    )
    bisect.add_argument("--good", required=True, metavar="A", help=f"a TVM from before: {TVM_NAMES}")
    bisect.add_argument("--bad", required=True, metavar="B", help="one from after, of the same kind")
    bisect.add_argument("--budget", type=parse_duration_s, metavar="TIME", help="for all of it, as 90s, 10m, 3h")
    bisect.add_argument("--error", type=float, default=0.05, help="how often it may be wrong; by default 0.05")
    bisect.add_argument("--fresh", action="store_true", help="forget what earlier calls measured")
    bisect.add_argument("--incident", metavar="ID", help="write the answer to this incident")
    add_no_rebuild(bisect)


def _bisect(arguments: argparse.Namespace) -> int:
    from dashboard.investigate.bisect import bisect, text

    signal.signal(signal.SIGTERM, interrupt)
    if not 0 < arguments.error < 0.5:
        raise DashboardError(f"--error {arguments.error:g}: lies between 0 and 0.5, as 0.05.")
    request = make_request(arguments, tvms=(arguments.good, arguments.bad))
    options = {"error": arguments.error, "fresh": arguments.fresh}
    result, path = bisect.bisect(Home(arguments.home), request, code=find_code(arguments), **options)
    print(f"{text.summarize(result)}\nEvery value: {result.journal}")
    if arguments.incident and result.is_answered:
        from tvmdash.incidents import command

        return command.main([str(arguments.home), "bisected", arguments.incident, str(path)])
    return OK_CODE if result.is_answered else SOME_FAILED
