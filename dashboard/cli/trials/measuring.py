"""The commands that measure two TVMs: each asks for a trial, prints what came of it, and ends with a code for that."""

from __future__ import annotations

import argparse
import math
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dashboard.cli.arguments import (
    CANNOT_TELL,
    OK_CODE,
    SOME_FAILED,
    STOPPED,
    TVM_WORSE,
    Verbs,
    add_home_verb,
    count,
    find_code,
    interrupt,
    make_absolute,
    parse_duration_s,
    parse_percent,
)
from dashboard.plan.home_config import read_home_config
from dashboard.trials.rounds import MeasuringRequest
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.trials.trial import Reproduced, Trial, TrialRequest, TrialState

_TVM_NAMES = (
    "pypi:VERSION, wheel:VERSION or git:REVISION of the home's tvm_remote, wheel:PACKAGE@VERSION, REMOTE@REVISION, or "
    "an artifact's key"
)


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    for add in (_add_remeasure, _add_try, _add_compare, _add_bisect, _add_backfill, _add_reproduce):
        add(verbs)


def _add_measuring(
    parser: argparse.ArgumentParser,
    *,
    budget_s: float | None = None,
    experiments: bool = True,
    fresh: bool = True,
    other_json: str = "--json",
) -> None:
    """Add the options of commands that make a trial, as far as this one has them; other_json: also names --json."""
    if experiments:
        parser.add_argument(
            "--experiments", nargs="+", default=[], metavar="NAME", help="experiments to run (default: all)"
        )
    default = f"{budget_s / 3600:g}h" if budget_s else "no limit"
    parser.add_argument(
        "--budget", type=parse_duration_s, default=budget_s or math.inf, metavar="TIME",
        help=f"time for measuring, e.g. 90s, 10m, 3h (default: {default})",
    )  # fmt: skip
    if fresh:
        parser.add_argument("--fresh", action="store_true", help="discard measurements of earlier runs")
    parser.add_argument(
        "--markdown", type=make_absolute, metavar="FILE",
        help="also write the table as Markdown, e.g. for a pull request",
    )  # fmt: skip
    names = dict.fromkeys(("--json", other_json))
    parser.add_argument(*names, type=make_absolute, metavar="FILE", help="also write all values to this file")
    parser.add_argument(
        "--no-rebuild-tvm",
        action="store_true",
        help="use only TVM artifacts already on this machine; no network access",
    )


def _make_request(arguments: argparse.Namespace, *tvms: str) -> MeasuringRequest:
    """Make the request from the options that this command has."""
    given = vars(arguments)
    return MeasuringRequest(
        tuple(given.get("experiments", ())),
        tuple(given.get("series", ())),
        tvms,
        rounds=given.get("rounds", 1),
        budget_s=math.inf if arguments.budget is None else arguments.budget,
        rebuild=not given.get("no_rebuild_tvm", False),
        seed=arguments.seed,
    )


def _find_home(arguments: argparse.Namespace) -> Home:
    """Return the home; DashboardError before anything is written into a folder that is none."""
    home = Home(arguments.home)
    read_home_config(home)
    return home


def _perform(
    arguments: argparse.Namespace,
    measure: Callable[[], tuple[Trial, Path]],
    *,
    every: bool = False,
    most: float | None = None,
) -> tuple[int, Path]:
    """Measure, print what came of it, and write it to the files of --markdown and --json; the exit code and its file.

    most: as in `choose_code`.
    """
    from tvmdash.trials import text

    signal.signal(signal.SIGTERM, interrupt)
    done, path = measure()
    print(text.format_table(done, every=every))
    print(f"All values: {path}")
    if arguments.markdown:
        common.write_text(arguments.markdown, text.format_markdown(done, every=every))
    if arguments.json:
        common.write_json(arguments.json, done.to_json())
    return choose_code(done, most), path


def choose_code(done: Trial, most: float | None = None) -> int:
    """Choose the exit code of a trial; most: the fraction by which anything may be worse."""
    from dashboard.trials import result

    if done.state is TrialState.INTERRUPTED:
        return STOPPED
    if done.is_wanting:
        return SOME_FAILED
    if done.reproduction:
        codes = {Reproduced.HOLDS: OK_CODE, Reproduced.DOES_NOT_HOLD: SOME_FAILED}
        return codes.get(done.reproduction.verdict, CANNOT_TELL)
    if most is None:
        return OK_CODE
    return {result.Worse.YES: TVM_WORSE, result.Worse.MAYBE: CANNOT_TELL}.get(result.find_worse(done, most), OK_CODE)


def _add_try(verbs: Verbs[argparse.ArgumentParser]) -> None:
    attempt = add_home_verb(verbs, "try", _try, "measure a TVM against another in turn until the difference is known")
    attempt.add_argument("candidate", metavar="CANDIDATE", help=f"the TVM to try: {_TVM_NAMES}")
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
    _add_measuring(attempt, budget_s=7200.0)


def _try(arguments: argparse.Namespace) -> int:
    from dashboard.trials import queue, tries

    if arguments.queue and (arguments.markdown or arguments.json or arguments.fail_over):
        raise DashboardError(
            "--queue does not wait for the result; it cannot be combined with --markdown, --json or --fail-over."
        )
    home, code = _find_home(arguments), find_code(arguments)
    request = replace(_ask(arguments, arguments.candidate, arguments.against), until=arguments.until)
    if arguments.queue:
        name = queue.put_into_queue(home, request, code)
        print(f"{name} is queued. `tries {arguments.home} work` runs the queue, `tries {arguments.home}` lists it.")
        return OK_CODE
    return _perform(arguments, lambda: tries.try_tvm(home, request, code=code), most=arguments.fail_over)[0]


def _ask(arguments: argparse.Namespace, candidate: str, base: str | None) -> TrialRequest:
    from dashboard.trials import queue

    return replace(
        queue.make_request(candidate, base),
        experiments=tuple(arguments.experiments),
        budget_s=arguments.budget,
        rebuild=not arguments.no_rebuild_tvm,
        seed=arguments.seed,
        fresh=arguments.fresh,
    )


def _add_compare(verbs: Verbs[argparse.ArgumentParser]) -> None:
    compare = add_home_verb(verbs, "compare", _compare, "measure two TVMs so many times and report what differs")
    compare.add_argument("a", metavar="A", help=f"the TVM to compare with: {_TVM_NAMES}")
    compare.add_argument("b", metavar="B", help="the TVM to judge")
    compare.add_argument("--rounds", type=int, default=10, help="number of times to measure each TVM (default: 10)")
    compare.add_argument("--all", action="store_true", help="print every series, not only those that differ")
    _add_measuring(compare, budget_s=86400.0)


def _compare(arguments: argparse.Namespace) -> int:
    from dashboard.trials import tries
    from tvmdash.judge.rules import RULES

    if arguments.rounds < RULES.fewest_pairs:
        raise DashboardError(f"--rounds {arguments.rounds}: of fewer than {RULES.fewest_pairs} rounds nothing is told.")
    home = _find_home(arguments)
    request = replace(_ask(arguments, arguments.b, arguments.a), rounds=arguments.rounds)
    code = find_code(arguments)
    return _perform(
        arguments, lambda: tries.try_tvm(home, request, code=code, isolates=False), every=arguments.all
    )[0]  # fmt: skip


def _add_bisect(verbs: Verbs[argparse.ArgumentParser]) -> None:
    bisect = add_home_verb(verbs, "bisect", _bisect, "find the commit or release that moved a series")
    bisect.add_argument("experiments", nargs=1, metavar="EXPERIMENT")
    bisect.add_argument(
        "series", nargs=1, metavar="SERIES", help="series ID or a prefix of it, or the series name or a part of it"
    )
    bisect.add_argument("--good", required=True, metavar="A", help=f"a TVM from before the change: {_TVM_NAMES}")
    bisect.add_argument("--bad", required=True, metavar="B", help="a TVM from after the change, of the same kind")
    bisect.add_argument(
        "--error", type=float, default=0.05, help="acceptable probability of a wrong answer (default: 0.05)"
    )
    bisect.add_argument("--incident", metavar="ID", help="record the result with this incident")
    _add_measuring(bisect, experiments=False)


def _bisect(arguments: argparse.Namespace) -> int:
    from dashboard.trials import bisect

    if not 0 < arguments.error < 0.5:
        raise DashboardError(f"--error {arguments.error:g}: must be between 0 and 0.5 (use e.g. 0.05).")
    request = _make_request(arguments, arguments.good, arguments.bad)
    options = {"code": find_code(arguments), "error": arguments.error, "fresh": arguments.fresh}
    code, path = _perform(arguments, lambda: bisect.bisect(Home(arguments.home), request, **options))
    if arguments.incident and code == OK_CODE:
        from tvmdash.incidents import command

        return command.main([str(arguments.home), "bisected", arguments.incident, str(path)])
    return code


def _add_backfill(verbs: Verbs[argparse.ArgumentParser]) -> None:
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
    _add_measuring(fill, fresh=False)


def _backfill(arguments: argparse.Namespace) -> int:
    from dashboard.trials import backfill
    from dashboard.trials.tvms import Choice

    home, request = Home(arguments.home), _make_request(arguments, arguments.artifacts)
    code, choice = find_code(arguments), Choice(arguments.step, arguments.dates, arguments.gaps)
    return _perform(
        arguments, lambda: backfill.backfill(home, request, code=code, choice=choice, retry=arguments.retry)
    )[0]  # fmt: skip


def _add_reproduce(verbs: Verbs[argparse.ArgumentParser]) -> None:
    repeat = add_home_verb(verbs, "reproduce", _reproduce, "remeasure a published number and report whether it holds")
    repeat.add_argument(
        "receipt",
        metavar="RECEIPT",
        help="EXPERIMENT/STAMP, a data file, a receipt from the website, or a file from `records export`",
    )
    repeat.add_argument(
        "series", nargs="*", metavar="SERIES", help="IDs or names of the series to measure (default: all)"
    )
    repeat.add_argument("--rounds", type=count, default=5, help="number of measurements (default: 5)")
    repeat.add_argument(
        "--matters",
        type=float,
        default=5.0,
        metavar="PERCENT",
        help="smallest change that matters, in percent (default: 5)",
    )
    _add_measuring(repeat, experiments=False, fresh=False, other_json="--result")


def _reproduce(arguments: argparse.Namespace) -> int:
    from dashboard.trials import receipt as receipts
    from dashboard.trials import reproduce
    from tvmdash.judge import repeated

    if arguments.rounds < repeated.LEAST_ROUNDS:
        least = repeated.LEAST_ROUNDS
        raise DashboardError(f"--rounds {arguments.rounds}: at least {least} rounds are needed to estimate the noise.")
    if not 0 < arguments.matters < 1000:
        raise DashboardError(f"--matters {arguments.matters:g}: must be a percentage above 0, e.g. 5.")
    home, request = Home(arguments.home), _make_request(arguments)
    options = {"code": find_code(arguments), "matters": arguments.matters / 100}
    try:
        receipt = receipts.read(home, arguments.receipt)
        return _perform(arguments, lambda: reproduce.reproduce(home, request, receipt, **options))[0]
    except DashboardError as error:
        if arguments.json:
            common.write_json(arguments.json, reproduce.describe_failure(str(error)).to_json())
        raise


def _add_remeasure(verbs: Verbs[argparse.ArgumentParser]) -> None:
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
    files, request = (arguments.request, arguments.result), _make_request(arguments)
    outcomes = remeasure.remeasure(Home(arguments.home), *files, request, code=find_code(arguments))
    return OK_CODE if all(outcome.is_measured for outcome in outcomes) else SOME_FAILED
