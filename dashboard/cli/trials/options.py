"""Options shared by the commands that measure outside the nights."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.cli.arguments import make_absolute, parse_duration_s
from dashboard.trials.rounds import MeasuringRequest
from tvmdash import common
from tvmdash.errors import DashboardError

if TYPE_CHECKING:
    from tvmdash.trials.trial import Trial

TVM_NAMES = (
    "pypi:VERSION, wheel:VERSION or git:REVISION of the home's tvm_remote, wheel:PACKAGE@VERSION, REMOTE@REVISION, or "
    "an artifact's key"
)


def add_measuring(
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
        "--budget", type=parse_duration_s, default=budget_s, metavar="TIME",
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


def count(text: str) -> int:
    """A whole number above 0, as the type of an option."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0.")
    return int(text)


def parse_percent(text: str) -> float:
    """A fraction in a text like `1%`, `0.5 %` or `1`, which is a percentage as well."""
    number = text.removesuffix("%").strip()
    try:
        percent = float(number)
    except ValueError:
        percent = 0.0
    if not 0 < percent < 1000:
        raise argparse.ArgumentTypeError(f"invalid percentage {text!r} (use a value above 0, e.g. 1% or 0.5%)")
    return percent / 100


def make_request(
    arguments: argparse.Namespace, *, tvms: tuple[str, ...] = (), least_rounds: int = 1
) -> MeasuringRequest:
    """The request described by the shared options; DashboardError if fewer than `least_rounds` rounds are requested."""
    given = vars(arguments)
    rounds = given.get("rounds", 1)
    if rounds < least_rounds:
        raise DashboardError(f"--rounds {rounds}: at least {least_rounds} rounds are needed to estimate the noise.")
    return MeasuringRequest(
        tuple(given.get("experiments", ())),
        tuple(given.get("series", ())),
        tvms,
        rounds=rounds,
        budget_s=math.inf if arguments.budget is None else arguments.budget,
        rebuild=not given.get("no_rebuild_tvm", False),
        seed=arguments.seed,
    )


def show_result(done: Trial, path: Path, arguments: argparse.Namespace, *, every: bool = False) -> None:
    """Print what came of a trial, and write it to the files that --markdown and --json name; path: where it is kept."""
    from tvmdash.trials import text

    print(text.format_table(done, every=every))
    print(f"All values: {path}")
    if arguments.markdown:
        common.write_text(arguments.markdown, text.format_markdown(done, every=every))
    if arguments.json:
        common.write_json(arguments.json, done.to_json())
