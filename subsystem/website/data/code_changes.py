"""code/: for each night whose generated code was another one, the functions that changed and how, as differences."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from files.code_changes import FOLDER, KEPT, file_of, id_of, kept_file
from files.files import fault_of
from files.incremental import IncrementalSite, fingerprint, mark
from views.context import SiteContext

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.structured import Stamp
from tvmdash.errors import DashboardError
from tvmdash.records.code_changes import (
    FILE,
    ChangedFunction,
    ChangedPoint,
    CodeChanges,
    FunctionSide,
    bound_texts,
)
from tvmdash.series.naming import label_of

SCHEMA_VERSION = 1
MOST_LINES = 250
MOST_READ = 4000
"""Lines of a text that are compared; what is behind them is left out, and that is said."""
MOST_LINE = 400
"""Characters of a line that are shown."""


@dataclass(frozen=True)
class CodeDifference:
    """Lines of a unified difference, each with its sign in front; more: how many are left out."""

    lines: tuple[str, ...] = ()
    more: int = 0


@dataclass(frozen=True)
class NumberOnBothSides:
    """A number of a function; None where a side has no such function."""

    metric: str
    before: int | None
    after: int | None


@dataclass(frozen=True)
class FunctionDifference:
    """The change of one function. tir, code: None where its texts were left out or are the same.

    first_pass: whose output differs first, or why_not.
    """

    name: str
    is_new: bool
    is_gone: bool
    first_pass: str
    why_not: str
    numbers: tuple[NumberOnBothSides, ...]
    tir: CodeDifference | None
    code: CodeDifference | None


@dataclass(frozen=True)
class PointDifference:
    """A point whose functions changed since the TVM `version`; id: its place in the site."""

    id: str
    label: str
    version: str
    functions: tuple[FunctionDifference, ...]


@dataclass(frozen=True)
class NightDifferences:
    """The changes of one night in the code of one experiment; fault: why they cannot be read."""

    experiment: str
    stamp: Stamp
    points: tuple[PointDifference, ...]
    fault: str = ""


def write_code_changes(context: SiteContext, carrier: IncrementalSite) -> None:
    """Bring code/ up to date, and what the home keeps of it: once an experiment has drawn anew, nobody else has it."""
    for (experiment, stamp), source in context.code_nights.items():
        name = file_of(experiment, stamp)
        carrier.folder(FOLDER)
        if source.name != FILE:
            if not carrier.carry(name, carrier.made_from(name)):
                carrier.write(name, source.read_bytes(), mark(source))
        elif not carrier.carry(name, made_from := fingerprint(experiment, mark(source))):
            value = {"schema_version": SCHEMA_VERSION, **structured.to_json(_read(experiment, stamp, source))}
            carrier.write(name, json.dumps(value, separators=(",", ":")).encode("ascii"), made_from)
        kept = kept_file(context.home, experiment, stamp)
        if source != kept:
            kept.parent.mkdir(exist_ok=True)
            common.write_bytes(kept, (carrier.new / name).read_bytes())
    for path in (context.home.root / "results" / KEPT).glob("*.json"):
        if path.name[: len(context.tonight.stamp)] not in context.shown_stamps:
            path.unlink()


def _read(experiment: str, stamp: str, source: Path) -> NightDifferences:
    try:
        changes = structured.read(CodeChanges, source)
    except DashboardError as error:
        return NightDifferences(experiment, stamp, (), fault_of(source, error))
    return describe(experiment, stamp, changes.points if changes else ())


def describe(experiment: str, stamp: str, points: Sequence[ChangedPoint]) -> NightDifferences:
    """Describe the differences; in a stranger's file no more functions have them than in our own."""
    return NightDifferences(experiment, stamp, tuple(map(_describe_point, bound_texts(points))))


def _describe_point(point: ChangedPoint) -> PointDifference:
    values = {name: value for name, value in point.values.items() if value is not None}
    return PointDifference(
        id_of(point.workload, point.values),
        label_of(point.workload, values),
        point.since.version,
        tuple(map(_describe_function, point.functions)),
    )


def _describe_function(function: ChangedFunction) -> FunctionDifference:
    before, after = function.before, function.after
    return FunctionDifference(
        function.name,
        before is None,
        after is None,
        function.first_pass,
        function.why_not,
        tuple(_numbers(before, after)),
        _compare(before.tir if before else "", after.tir if after else ""),
        _compare(before.code if before else "", after.code if after else ""),
    )


def _numbers(before: FunctionSide | None, after: FunctionSide | None) -> Iterator[NumberOnBothSides]:
    then, now = (dict(side.numbers) if side else {} for side in (before, after))
    for metric in dict.fromkeys([*then, *now]):
        if then.get(metric) != now.get(metric):
            yield NumberOnBothSides(metric, then.get(metric), now.get(metric))


def _compare(before: str, after: str) -> CodeDifference | None:
    if before == after:
        return None
    sides = [text.splitlines() for text in (before, after)]
    read = [side[:MOST_READ] for side in sides]
    every = itertools.islice(difflib.unified_diff(read[0], read[1], lineterm=""), 2, None)  # without the names of files
    lines = [line if len(line) <= MOST_LINE else line[:MOST_LINE] + "…" for line in every]
    unread = sum(map(len, sides)) - sum(map(len, read))
    return CodeDifference(tuple(lines[:MOST_LINES]), max(0, len(lines) - MOST_LINES) + unread)
