"""The night's verdict on TVM: made once by stat_alerts, read by whatever tells people about the night."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.structured import Stamp
from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.errors import DashboardError
from tvmdash.judge.history.cause import Cause, Reason
from tvmdash.verdict import ledger

SUBSYSTEM = "stat_alerts"
VERDICT_FILE = "verdict.json"
SCHEMA_VERSION = 1
_MAX_BYTES = 64 << 20
TELL, MATTERS = 0.01, 0.05
"""A smaller change is not told as a suspicion; a series that could not have shown the larger one is blind."""
MOST_TITLE = 60
"""Characters of what a night is called, which a phone shows in two lines."""


@dataclass(frozen=True)
class Controls:
    """The experiments, or keys of series, that the config of stat_alerts names as controls.

    Their programs are built once and never again: what moves them is the machine.
    """

    names: frozenset[str] = frozenset({"canary"})

    @classmethod
    def of(cls, home: Home) -> Controls:
        """Read those of the home; the default where the config says nothing, or cannot be read."""
        path = home.config("subsystem", SUBSYSTEM) / "config.json"
        named = None
        # `check` tells what is wrong with the config.
        with contextlib.suppress(DashboardError, AttributeError):
            named = common.read_json(path).get("controls") if path.is_file() else None
        return cls(frozenset(map(str, named))) if isinstance(named, list) else cls()

    def has(self, experiment: str, key: str) -> bool:
        """Return True where the series is a control; an experiment is named for all its hosts and TVMs."""
        return bool({experiment, experiment_of(experiment), key} & self.names)


class Level(enum.StrEnum):
    """The outcome of a night, the gravest first; none below `IMPROVED` is said while one above it holds."""

    REGRESSION = "regression"
    SUSPECT = "suspect"
    CHANGED = "changed"
    INCOMPLETE = "incomplete"
    BLIND = "blind"
    IMPROVED = "improved"
    STEADY = "steady"
    NO_DATA = "no_data"


class Standing(enum.StrEnum):
    """The standing of one series tonight.

    moved: part of an incident that is open. suspect: beyond its noise, not confirmed. missing: expected, without a
    value. gone: without a value, and not expected any more. young: too few nights to judge. blind: judged, but a
    change of MATTERS would not have been seen. unchanged: it ran what it ran when it was measured last, byte for byte,
    so that there was nothing to see.
    """

    MOVED = "moved"
    SUSPECT = "suspect"
    MISSING = "missing"
    GONE = "gone"
    YOUNG = "young"
    BLIND = "blind"
    UNCHANGED = "unchanged"
    STEADY = "steady"


class Evidence(enum.StrEnum):
    """The evidence for a series' standing.

    Pairs of processes with the reference; measured again the same night; the nights before; or its very value, in a
    number that has no noise.
    """

    PAIRED = "paired"
    MEASURED_AGAIN = "measured_again"
    HISTORY = "history"
    EXACT = "exact"


@dataclass(frozen=True)
class JudgedSeries:
    """The standing of one series tonight; `series` is its ID. Unknown fields are left out of the file.

    effect, low, high: a fraction with its 95 % interval: of what moved, how far it went; of any other, how far tonight
    is from the builds or nights before, where that was computed. relative: else in units of its scatter. visible: the
    smallest change that would have been shown. evidence: None where it has no value. incident, cause: of what moved.
    """

    series: str
    standing: Standing
    evidence: Evidence | None = None
    reason: Reason | None = None
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    relative: bool = True
    visible: float | None = None
    incident: str | None = None
    cause: Cause | None = None


class Absence(enum.StrEnum):
    """Why series of an experiment have no value tonight."""

    FAILED = "failed"
    BLOCKED = "blocked"
    NOT_RUN = "not_run"
    NO_VALUE = "no_value"


@dataclass(frozen=True)
class Missing:
    """`series` of the `expected` ones of an experiment have no value tonight."""

    experiment: str
    title: str
    series: int
    expected: int
    why: Absence


@dataclass(frozen=True)
class SeriesOf:
    """Series of an experiment: how many, and the first of them by name."""

    experiment: str
    series: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Suspect:
    """A series beyond its noise tonight, not confirmed. effect: fraction of its level; low, high: its 95 % interval.

    worse: None where its number has no better way. paired: the interval is that of its ratio to the reference; else it
    was measured again. relative: else the effect is in units of the series' scatter.
    """

    series: str
    name: str
    effect: float
    worse: bool | None
    low: float | None = None
    high: float | None = None
    paired: bool = False
    relative: bool = True


@dataclass(frozen=True)
class Difference:
    """A series' difference from the reference TVM, measured in turn. effect, low, high: a fraction, 95 %.

    worse: None where its number has no better way.
    """

    series: str
    name: str
    effect: float
    low: float
    high: float
    worse: bool | None


@dataclass(frozen=True)
class ExactDifference:
    """An exact number, in its unit, on the reference and on tonight's TVM. worse: None where it only differs."""

    series: str
    name: str
    unit: str
    reference: float
    value: float
    worse: bool | None


@dataclass(frozen=True)
class BesideReference:
    """Tonight's TVM beside the reference: of `series` that were measured on both, those that differ, the worst first.

    exact: sizes, counts and accuracies that are others on the reference, of `numbers` that both have.

    is_first: no earlier night was measured beside this reference, and it is not what the last night measured.
    is_itself: the reference is tonight's own TVM, so that whatever differs is the machine or chance.
    """

    reference: str
    series: int
    differences: tuple[Difference, ...] = ()
    is_first: bool = False
    exact: tuple[ExactDifference, ...] = ()
    is_itself: bool = False
    numbers: int = 0


@dataclass(frozen=True)
class PlantedStep:
    """Copies of so many series in which tonight's build is slower by the fraction `step`.

    told: how many would have been told at once; again: how many more would have been measured again, to be told or not.
    """

    step: float
    series: int
    told: int
    again: int


@dataclass(frozen=True)
class Sensitivity:
    """Steps put into copies of the home's own series, and how many of them would have been told.

    tonight: of the series that are judged by their ratios tonight; lately: on the last `nights` nights together, each
    night of a series counted once. Of `unchanged` series-nights whose TVM was that of the night before, and was taken
    for a new one, `false` would have been told; at_most_per_1000: the true rate is below, with 95 % confidence.
    """

    tonight: tuple[PlantedStep, ...]
    lately: tuple[PlantedStep, ...]
    nights: int
    unchanged: int
    false: int
    at_most_per_1000: float | None


@dataclass(frozen=True)
class ByChance:
    """At most how often something is told though nothing changed: of one of the `series` judged by ratios, of any.

    nulls: so many of this home's series-nights on which nothing changed say how much wider errors are than expected, by
    the factor `width`; where it is None they are too few, and the judge's rules are all that is known. least_sure: how
    often chance alone brings as much as the least sure of the points that are told tonight.
    """

    series: int
    of_one: float
    of_any: float
    nulls: int = 0
    width: float | None = None
    least_sure: float | None = None

    @property
    def source(self) -> str:
        """The grounds of the rate, as a clause."""
        if self.width is None:
            return f"by rule, as {self.nulls} series-nights without a change are too few to measure it here"
        return f"{self.nulls} series-nights without a change vary {self.width:.2g} times as much as expected"

    @property
    def sure(self) -> str:
        """The chance of the least sure point told, in words; empty where none is told."""
        if self.least_sure is None:
            return ""
        return f"chance brings as much in at most 1 of {1 / max(self.least_sure, 1e-6):,.0f} series-nights"


@dataclass(frozen=True)
class OverMachines:
    """On which machines the points of an incident moved, by the names that records have for them.

    calm: where they did not, although that would have been told; unknown: where that cannot be said. name: of the point
    without its machine, where it is one. effect, low, high: from five machines on, all of which moved, the fraction
    over them with its 95 % interval.
    """

    incident: str
    moved: tuple[str, ...]
    calm: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    name: str = ""
    effect: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class NightVerdict:
    """The night in one value. `headline` says it in words, its first clause being `lead`.

    title: the same in at most 60 characters; reasons: the clauses that it leaves out, the gravest first.

    new, open: IDs of incidents, nobody having settled them.

    new, improved, changed: with those that series joined tonight. fixed: those whose last series went back tonight.
    appeared: series that have their first value; vanished: those that are not expected from tonight on.

    Of `expected` series `seen` have a value; `blind` of these, controls left out, could not have shown a change of
    MATTERS, `unchanged` ran the same code as when they were measured last. retired: series without a value that
    somebody took out; muted: those of which nothing is told until a day that somebody named.
    """

    night: Stamp
    level: Level
    headline: str
    expected: int = 0
    seen: int = 0
    blind: int = 0
    new: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    improved: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    missing: tuple[Missing, ...] = ()
    beside: BesideReference | None = None
    sensitivity: Sensitivity | None = None
    unchanged: int = 0
    by_chance: ByChance | None = None
    appeared: tuple[SeriesOf, ...] = ()
    vanished: tuple[SeriesOf, ...] = ()
    series: tuple[JudgedSeries, ...] = ()
    machines: tuple[OverMachines, ...] = ()
    """Of incidents that are told tonight, where several machines measure the same."""
    lead: str = ""
    retired: int = 0
    muted: int = 0
    title: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def is_green(self) -> bool:
        """Return True where nothing speaks against TVM, and everything that was expected was seen."""
        return self.level in (Level.IMPROVED, Level.STEADY)

    def to_json(self) -> dict[str, Any]:
        value = structured.to_json(self)
        return {"schema_version": SCHEMA_VERSION, **value, "series": [_compact(each) for each in value["series"]]}

    @classmethod
    def from_json(cls, value: common.Json, path: Path) -> NightVerdict:
        """Parse what `to_json` wrote to `path`; DashboardError where it is anything else."""
        return structured.from_json(cls, value, path, remedy="Delete it; the next night writes it again.")


def _compact(value: dict[str, Any]) -> dict[str, Any]:
    """Drop what is not known of an object: there are thousands of series."""
    parts = ((name, _compact(part) if isinstance(part, dict) else part) for name, part in value.items())
    return {name: part for name, part in parts if part is not None}


@dataclass(frozen=True)
class KeptSeries:
    """A `JudgedSeries` in the ledger, as a row of its fields in their order; effects with four digits."""

    series: str
    standing: Standing
    evidence: Evidence | None = None
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    visible: float | None = None
    incident: str | None = None


@dataclass(frozen=True)
class KeptVerdict:
    """A verdict as the ledger keeps it for ever."""

    level: Level
    headline: str
    expected: int
    seen: int
    blind: int
    unchanged: int
    series: tuple[KeptSeries, ...]

    @classmethod
    def of(cls, verdict: NightVerdict) -> KeptVerdict:
        series = tuple(
            KeptSeries(
                each.series, each.standing, each.evidence, _round(each.effect), _round(each.low), _round(each.high),
                _round(each.visible), each.incident,
            )
            for each in verdict.series
        )  # fmt: skip
        counts = (verdict.expected, verdict.seen, verdict.blind, verdict.unchanged)
        return cls(verdict.level, verdict.headline, *counts, series)

    def to_json(self) -> dict[str, Any]:
        """Format it as a line of the ledger holds it: of a series a list without the unknown at its end."""
        value = structured.to_json(self)
        return {**value, "series": [_strip(list(each.values())) for each in value["series"]]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], path: Path) -> KeptVerdict:
        """Parse what `to_json` wrote to `path`; DashboardError where it is anything else."""
        names = [field.name for field in fields(KeptSeries)]
        rows = value.get("series")
        if isinstance(rows, list):
            rows = [dict(zip(names, row, strict=False)) if isinstance(row, list) else row for row in rows]
        return structured.from_json(cls, {**value, "series": rows}, path, at="$.data")


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _strip(row: list[Any]) -> list[Any]:
    while row and row[-1] is None:
        row.pop()
    return row


def write_verdict(home: Home, verdict: NightVerdict) -> None:
    """Leave it for the night's other readers, and in the ledger for good."""
    path = home.output(SUBSYSTEM) / VERDICT_FILE
    _keep_last(home, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    common.write_json(path, verdict.to_json())
    ledger.append(home, verdict.night, ledger.VERDICT, KeptVerdict.of(verdict).to_json())


def _keep_last(home: Home, path: Path) -> None:
    """Put into the ledger what a dashboard that had none left of its last night."""
    with contextlib.suppress(DashboardError):
        last = structured.read(NightVerdict, path, max_bytes=_MAX_BYTES)
        if last and ledger.VERDICT not in ledger.read_night(home, last.night):
            ledger.append(home, last.night, ledger.VERDICT, KeptVerdict.of(last).to_json())


def read_verdict(home: Home, stamp: str) -> NightVerdict | None:
    """The verdict on the night `stamp`, None where that night was not judged; DashboardError where it is damaged."""
    path = home.output(SUBSYSTEM) / VERDICT_FILE
    if not path.is_file():
        return None
    verdict = NightVerdict.from_json(common.read_json(path, max_bytes=_MAX_BYTES), path)
    return verdict if verdict.night == stamp else None
