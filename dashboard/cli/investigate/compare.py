"""`compare`: measure two TVMs in turn."""

from __future__ import annotations

import argparse
import signal

from dashboard.cli.arguments import (
    OK_CODE,
    SOME_FAILED,
    Verbs,
    add_home_verb,
    find_code,
    interrupt,
    make_absolute,
    parse_duration_s,
)
from dashboard.cli.investigate.options import TVM_NAMES, add_no_rebuild, make_request
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.stats import comparison


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    compare = add_home_verb(verbs, "compare", _compare, "measure two TVMs in turn and report which series differ")
    compare.add_argument("a", metavar="A", help=f"the TVM to compare with: {TVM_NAMES}")
    compare.add_argument("b", metavar="B", help="the TVM to judge")
    compare.add_argument(
        "--experiments", nargs="+", default=[], metavar="NAME", help="experiments to run (default: all)"
    )
    compare.add_argument("--rounds", type=int, default=10, help="number of times to measure each TVM (default: 10)")
    compare.add_argument(
        "--budget", type=parse_duration_s, metavar="TIME", help="total time for measuring, e.g. 90s, 10m, 3h"
    )
    compare.add_argument("--all", action="store_true", help="print every series, not only those that differ")
    compare.add_argument(
        "--markdown",
        type=make_absolute,
        metavar="FILE",
        help="also write the table as Markdown, e.g. for a pull request",
    )
    add_no_rebuild(compare)


def _compare(arguments: argparse.Namespace) -> int:
    from dashboard.investigate.compare import compare, text

    signal.signal(signal.SIGTERM, interrupt)
    request = make_request(arguments, tvms=(arguments.a, arguments.b), least_rounds=comparison.LEAST_ROUNDS)
    done, path = compare.compare(Home(arguments.home), request, code=find_code(arguments))
    print(text.format_table(done, every=arguments.all))
    print(f"All values: {path}")
    if arguments.markdown:
        common.write_text(arguments.markdown, text.format_markdown(done, every=arguments.all))
    return OK_CODE if done.well else SOME_FAILED
