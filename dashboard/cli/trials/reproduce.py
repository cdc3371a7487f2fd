"""`reproduce`: remeasure a published number."""

from __future__ import annotations

import argparse
import secrets
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

from dashboard.cli.arguments import (
    CANNOT_TELL,
    OK_CODE,
    SOME_FAILED,
    STOPPED,
    Verbs,
    add_home_verb,
    find_code,
    interrupt,
)
from dashboard.cli.trials.options import add_measuring, count, make_request, show_result
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.judge import repeated
from tvmdash.trials.trial import Reproduced, TrialState

if TYPE_CHECKING:
    from dashboard.trials.receipt import Receipt
    from tvmdash.trials.trial import Drawn


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    repeat = add_home_verb(verbs, "reproduce", _reproduce, "remeasure a published number and report whether it holds")
    repeat.add_argument(
        "receipt",
        metavar="RECEIPT",
        help="EXPERIMENT/STAMP, a data file, a receipt from the website, a file from `records export`, or `random`"
        " for a random old receipt of the home",
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
    repeat.add_argument(
        "--sample", type=count, default=0, metavar="N", help="with `random`: measure only N of its points"
    )
    add_measuring(repeat, experiments=False, fresh=False, other_json="--result")


def _reproduce(arguments: argparse.Namespace) -> int:
    from dashboard.trials import reproduce

    signal.signal(signal.SIGTERM, interrupt)
    request = make_request(arguments, least_rounds=repeated.LEAST_ROUNDS)
    if not 0 < arguments.matters < 1000:
        raise DashboardError(f"--matters {arguments.matters:g}: must be a percentage above 0, e.g. 5.")
    home = Home(arguments.home)
    drawn: Drawn | None = None
    try:
        receipt, drawn = _receipt(home, arguments)
        done, path = reproduce.reproduce(
            home,
            replace(request, series=drawn.series) if drawn else request,
            receipt,
            code=find_code(arguments),
            matters=arguments.matters / 100,
            drawn=drawn,
        )
    except DashboardError as error:
        if arguments.json:
            common.write_json(arguments.json, reproduce.describe_failure(str(error), drawn).to_json())
        raise
    show_result(done, path, arguments)
    if done.state is TrialState.INTERRUPTED:
        return STOPPED
    codes = {Reproduced.HOLDS: OK_CODE, Reproduced.DOES_NOT_HOLD: SOME_FAILED}
    return CANNOT_TELL if done.reproduction is None else codes.get(done.reproduction.verdict, CANNOT_TELL)


def _receipt(home: Home, arguments: argparse.Namespace) -> tuple[Receipt, Drawn | None]:
    """The given receipt, or a random one drawn with the given or a new seed."""
    from dashboard.plan import home_config
    from dashboard.trials import receipt
    from dashboard.trials.workspace import find_calling_night

    if arguments.receipt != receipt.RANDOM:
        return receipt.read(home, arguments.receipt), None
    if arguments.series:
        raise DashboardError("`random` selects the series itself. Leave SERIES out; --sample N limits how many.")
    seed = secrets.randbelow(1 << 31) if arguments.seed is None else arguments.seed
    return receipt.draw(
        home,
        home_config.read_home_config(home).artifacts,
        before=find_calling_night(home) or common.stamp_of(common.utc_now()),
        seed=seed,
        sample=arguments.sample,
        rebuild=not arguments.no_rebuild_tvm,
    )
