"""`backfill`: measure nights of the past now."""

from __future__ import annotations

import argparse
import signal

from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb, find_code, interrupt, parse_duration_s
from dashboard.cli.investigate.options import add_no_rebuild, count, make_request
from tvmdash.dashboard_info import Home


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    fill = add_home_verb(verbs, "backfill", _backfill, "measure nights of the past now, on the TVMs of then")
    fill.add_argument("--artifacts", required=True, metavar="RANGE", help="pypi:0.25.0..0.27.0, git:A..B, REMOTE@A..B")
    fill.add_argument("--experiments", nargs="+", default=[], metavar="NAME", help="only these; by default all")
    fill.add_argument("--budget", type=parse_duration_s, metavar="TIME", help="for all of it, as 90s, 10m, 3h")
    fill.add_argument("--step", type=count, default=1, metavar="N", help="only each Nth of the range, and its end")
    fill.add_argument("--dates", type=count, metavar="DAYS", help="only the last commit of so many days")
    fill.add_argument("--gaps", action="store_true", help="halve the longest stretch without a measurement first")
    fill.add_argument("--rounds", type=count, default=1, help="how often each is measured, in turn; by default once")
    fill.add_argument("--retry", action="store_true", help="try again to build what could not be built before")
    add_no_rebuild(fill)


def _backfill(arguments: argparse.Namespace) -> int:
    from dashboard.investigate.backfill import backfill
    from dashboard.investigate.backfill.order import Choice

    signal.signal(signal.SIGTERM, interrupt)
    filled = backfill.backfill(
        Home(arguments.home),
        make_request(arguments, tvms=(arguments.artifacts,)),
        code=find_code(arguments),
        choice=Choice(arguments.step, arguments.dates, arguments.gaps),
        retry=arguments.retry,
    )
    print(backfill.summarize(filled))
    return SOME_FAILED if filled.left or filled.failed or filled.unbuilt else OK_CODE
