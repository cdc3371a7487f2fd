"""The verbs that measure outside the nights: again, two builds side by side, in search of a commit, in the past."""

from __future__ import annotations

import argparse
import math
import secrets
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dashboard.cli.arguments import (
    CANNOT_TELL,
    OK_CODE,
    SOME_FAILED,
    Verbs,
    absolute,
    code_of,
    duration_s,
    home_verb,
    interrupt,
)
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.stats import comparison

if TYPE_CHECKING:
    from dashboard.investigate.receipt import Receipt
    from dashboard.investigate.reproduce.pick import Drawn
    from dashboard.investigate.request import MeasuringRequest

_NAMES = "pypi:VERSION, git:REVISION of the home's tvm_remote, REMOTE@REVISION, or an artifact's key"


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add them to the command line."""
    again = home_verb(verbs, "remeasure", _remeasure, "measure points again, with artifacts of earlier nights")
    again.add_argument("request", type=absolute, metavar="REQUEST.json", help="[{experiment, stamp, points}, ...]")
    again.add_argument("result", type=absolute, metavar="RESULT.json", help="what came of each round; written anew")
    again.add_argument("--budget", type=float, metavar="SECONDS", help="no more than so long altogether")
    compare = home_verb(verbs, "compare", _compare, "measure two TVMs in turn and say which series differ")
    compare.add_argument("a", metavar="A", help=f"the TVM to compare with: {_NAMES}")
    compare.add_argument("b", metavar="B", help="the other one")
    compare.add_argument("--experiments", nargs="+", default=[], metavar="NAME", help="only these; by default all")
    compare.add_argument("--rounds", type=int, default=10, help="how often each is measured; by default 10")
    compare.add_argument("--budget", type=duration_s, metavar="TIME", help="for measuring altogether, as 90s, 10m, 3h")
    compare.add_argument("--all", action="store_true", help="print every series, not only those that differ")
    compare.add_argument("--markdown", type=absolute, metavar="FILE", help="write the table for a pull request as well")
    _no_rebuild(compare)
    bisect = home_verb(verbs, "bisect", _bisect, "find the commit or release that moved a series")
    bisect.add_argument("experiments", nargs=1, metavar="EXPERIMENT")
    bisect.add_argument(
        "series", nargs=1, metavar="SERIES", help="its ID, the beginning of it, its name or a part of that"
    )
    bisect.add_argument("--good", required=True, metavar="A", help=f"a TVM from before: {_NAMES}")
    bisect.add_argument("--bad", required=True, metavar="B", help="one from after, of the same kind")
    bisect.add_argument("--budget", type=duration_s, metavar="TIME", help="for all of it, as 90s, 10m, 3h")
    bisect.add_argument("--error", type=float, default=0.05, help="how often it may be wrong; by default 0.05")
    bisect.add_argument("--fresh", action="store_true", help="forget what earlier calls measured")
    bisect.add_argument("--incident", metavar="ID", help="write the answer to this incident")
    _no_rebuild(bisect)
    fill = home_verb(verbs, "backfill", _backfill, "measure nights of the past now, on the TVMs of then")
    fill.add_argument("--artifacts", required=True, metavar="RANGE", help="pypi:0.25.0..0.27.0, git:A..B, REMOTE@A..B")
    fill.add_argument("--experiments", nargs="+", default=[], metavar="NAME", help="only these; by default all")
    fill.add_argument("--budget", type=duration_s, metavar="TIME", help="for all of it, as 90s, 10m, 3h")
    fill.add_argument("--step", type=_count, default=1, metavar="N", help="only each Nth of the range, and its end")
    fill.add_argument("--dates", type=_count, metavar="DAYS", help="only the last commit of so many days")
    fill.add_argument("--gaps", action="store_true", help="halve the longest stretch without a measurement first")
    fill.add_argument("--rounds", type=_count, default=1, help="how often each is measured, in turn; by default once")
    fill.add_argument("--retry", action="store_true", help="try again to build what could not be built before")
    _no_rebuild(fill)
    repeat = home_verb(verbs, "reproduce", _reproduce, "measure a published number again and say whether it holds")
    repeat.add_argument(
        "receipt",
        metavar="RECEIPT",
        help="EXPERIMENT/STAMP, a data file, a receipt of the website, or random: an old one of the home, by lot",
    )
    repeat.add_argument("series", nargs="*", metavar="SERIES", help="their IDs or names; by default all")
    repeat.add_argument("--rounds", type=_count, default=5, help="how often it is measured; by default 5")
    repeat.add_argument("--budget", type=duration_s, metavar="TIME", help="for measuring altogether, as 90s, 10m, 3h")
    repeat.add_argument("--matters", type=float, default=5.0, metavar="PERCENT", help="a change to be seen; 5")
    repeat.add_argument("--sample", type=_count, default=0, metavar="N", help="with random: only N of its points")
    repeat.add_argument("--result", type=absolute, metavar="FILE.json", help="leave what came of it there as well")
    _no_rebuild(repeat)


def _no_rebuild(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-rebuild-tvm", action="store_true", help="use the TVM artifacts that are there; no network"
    )


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0.")
    return int(text)


def _request_of(
    arguments: argparse.Namespace, *, tvms: tuple[str, ...] = (), least_rounds: int = 1
) -> MeasuringRequest:
    """What the options that these verbs share ask for; DashboardError where fewer rounds than the least are asked."""
    from dashboard.investigate.request import MeasuringRequest

    given = vars(arguments)
    rounds = given.get("rounds", 1)
    if rounds < least_rounds:
        raise DashboardError(f"--rounds {rounds}: fewer than {least_rounds} rounds say nothing about noise.")
    return MeasuringRequest(
        tuple(given.get("experiments", ())),
        tuple(given.get("series", ())),
        tvms,
        rounds=rounds,
        budget_s=math.inf if arguments.budget is None else arguments.budget,
        rebuild=not given.get("no_rebuild_tvm", False),
        seed=arguments.seed,
    )


def _remeasure(arguments: argparse.Namespace) -> int:
    from dashboard.investigate.remeasure import remeasure

    signal.signal(signal.SIGTERM, interrupt)
    files, request = (arguments.request, arguments.result), _request_of(arguments)
    outcomes = remeasure.remeasure(Home(arguments.home), *files, request, code=code_of(arguments))
    print(remeasure.summarize(outcomes))
    return OK_CODE if all(outcome.is_measured for outcome in outcomes) else SOME_FAILED


def _compare(arguments: argparse.Namespace) -> int:
    from dashboard.investigate.compare import compare, text

    signal.signal(signal.SIGTERM, interrupt)
    request = _request_of(arguments, tvms=(arguments.a, arguments.b), least_rounds=comparison.LEAST_ROUNDS)
    done, path = compare.compare(Home(arguments.home), request, code=code_of(arguments))
    print(text.format_table(done, every=arguments.all))
    print(f"Every value: {path}")
    if arguments.markdown:
        common.write_text(arguments.markdown, text.format_markdown(done, every=arguments.all))
    return OK_CODE if done.well else SOME_FAILED


def _bisect(arguments: argparse.Namespace) -> int:
    from dashboard.investigate.bisect import bisect, text

    signal.signal(signal.SIGTERM, interrupt)
    if not 0 < arguments.error < 0.5:
        raise DashboardError(f"--error {arguments.error:g}: lies between 0 and 0.5, as 0.05.")
    request = _request_of(arguments, tvms=(arguments.good, arguments.bad))
    options = {"error": arguments.error, "fresh": arguments.fresh}
    result, path = bisect.bisect(Home(arguments.home), request, code=code_of(arguments), **options)
    print(f"{text.summarize(result)}\nEvery value: {result.journal}")
    if arguments.incident and result.is_answered:
        from tvmdash.incidents import command

        return command.main([str(arguments.home), "bisected", arguments.incident, str(path)])
    return OK_CODE if result.is_answered else SOME_FAILED


def _backfill(arguments: argparse.Namespace) -> int:
    from dashboard.investigate.backfill import backfill
    from dashboard.investigate.backfill.order import Choice

    signal.signal(signal.SIGTERM, interrupt)
    filled = backfill.backfill(
        Home(arguments.home),
        _request_of(arguments, tvms=(arguments.artifacts,)),
        code=code_of(arguments),
        choice=Choice(arguments.step, arguments.dates, arguments.gaps),
        retry=arguments.retry,
    )
    print(backfill.summarize(filled))
    return SOME_FAILED if filled.left or filled.failed or filled.unbuilt else OK_CODE


def _reproduce(arguments: argparse.Namespace) -> int:
    from dashboard.investigate.reproduce import reproduce, text
    from dashboard.investigate.reproduce.result import SCHEMA_VERSION

    signal.signal(signal.SIGTERM, interrupt)
    request = _request_of(arguments, least_rounds=comparison.LEAST_ROUNDS)
    if not 0 < arguments.matters < 1000:
        raise DashboardError(f"--matters {arguments.matters:g}: is no change in percent. Give one above 0, as 5.")
    home = Home(arguments.home)
    drawn: Drawn | None = None
    try:
        receipt, drawn = _receipt(home, arguments)
        done, path = reproduce.reproduce(
            home,
            replace(request, series=drawn.series) if drawn else request,
            receipt,
            code=code_of(arguments),
            matters=arguments.matters / 100,
            drawn=drawn,
        )
    except DashboardError as error:
        failure = {"verdict": comparison.CANNOT_TELL, "why": str(error), "drawn": drawn and drawn.to_json()}
        _leave(arguments.result, {"schema_version": SCHEMA_VERSION, **failure})
        raise
    _leave(arguments.result, done.to_json())
    print(f"{text.summarize(done)}\nEvery value: {path}")
    codes = {comparison.HOLDS: OK_CODE, comparison.DOES_NOT_HOLD: SOME_FAILED}
    return codes.get(done.verdict, CANNOT_TELL)


def _receipt(home: Home, arguments: argparse.Namespace) -> tuple[Receipt, Drawn | None]:
    """The receipt that is named, or one drawn by lot with the given seed or a new one."""
    from dashboard.investigate import receipt
    from dashboard.investigate.calling_night import find_calling_night
    from dashboard.investigate.reproduce import pick
    from dashboard.plan import home_config

    if arguments.receipt != pick.RANDOM:
        return receipt.read(home, arguments.receipt), None
    if arguments.series:
        raise DashboardError("random: draws its series itself. Leave SERIES out; --sample N says how many.")
    seed = secrets.randbelow(1 << 31) if arguments.seed is None else arguments.seed
    return pick.draw(
        home,
        home_config.read_home_config(home).artifacts,
        before=find_calling_night(home) or common.stamp_of(common.utc_now()),
        seed=seed,
        sample=arguments.sample,
        rebuild=not arguments.no_rebuild_tvm,
    )


def _leave(path: Path | None, value: dict[str, Any]) -> None:
    if path is not None:
        common.write_json(path, value)
