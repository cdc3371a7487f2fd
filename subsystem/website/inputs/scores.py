"""What the score subsystem left: tonight's scores with their parts, and their points over all nights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from inputs import parsing
from tvmdash import structured
from tvmdash.contracts import scores as contracts
from tvmdash.contracts.scores import Graph, LeftOut
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

SUBSYSTEM = "score"
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Part:
    """A workload's part of a score."""

    workload: str
    value: float | None
    low: float | None
    high: float | None
    reason: str = ""


@dataclass(frozen=True)
class Point:
    """A score on one night; an incomplete one is compared with nothing."""

    stamp: str
    value: float | None
    low: float | None
    high: float | None
    complete: bool


@dataclass(frozen=True)
class Score:
    """One score tonight; `before` is the value of the last night that it may be compared with.

    headline: the value as words tell it, details: the rest of the words; both empty in files of long ago.
    """

    id: str
    title: str
    kind: str
    unit: str
    lower_is_better: bool
    value: float | None
    low: float | None
    high: float | None
    complete: bool
    words: str
    before: tuple[str, float] | None
    parts: tuple[Part, ...]
    pictures: tuple[Graph, ...]
    points: tuple[Point, ...]
    headline: str = ""
    details: str = ""


@dataclass(frozen=True)
class Scores:
    """All of them; `stamp` is the night that they are of ("" where there are none).

    `told` are the faults of the config that the subsystem told, `faults` what of its files cannot be read.
    points: of every score that ever was, by ID, with its title and unit.
    """

    stamp: str = ""
    scores: tuple[Score, ...] = ()
    told: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    faults: tuple[str, ...] = ()
    history: tuple[tuple[str, str, str, tuple[Point, ...]], ...] = ()


def read_scores(home: Home) -> Scores:
    """What stands there; a file that is missing or damaged costs its own part only."""
    folder = home.output(SUBSYSTEM)
    faults: list[str] = []
    found = _guarded(contracts.Scores, folder / contracts.SCORES_FILE, faults)
    told = found.scores if found else ()
    history = tuple((one.id, one.title, one.unit, tuple(map(_point, one.points))) for one in told)
    page = _guarded(contracts.ScorePage, folder / contracts.PAGE_FILE, faults)
    if page is None:
        return Scores(faults=tuple(faults), history=history)
    points = {name: nights for name, _, _, nights in history}
    scores = tuple(_score(one, points.get(one.id, ())) for one in page.scores)
    return Scores(page.stamp, scores, page.faults, page.left_out, tuple(faults), history)


def _guarded(kind: type[_Kind], path: Path, faults: list[str]) -> _Kind | None:
    """What the file holds, None where there is none or where it is damaged, which `faults` tells."""
    try:
        return structured.read(kind, path)
    except DashboardError as error:
        faults.append(parsing.fault_of(path, error))
        return None


def _score(tonight: contracts.ScoreTonight, points: tuple[Point, ...]) -> Score:
    before = tonight.before
    parts = [Part(one.workload, one.value, one.low, one.high) for one in tonight.workloads]
    parts += [Part(one.workload, None, None, None, one.reason) for one in tonight.missing]
    same = {name: getattr(tonight, name) for name in Score.__dataclass_fields__ if hasattr(tonight, name)}
    return Score(
        **{
            **same,
            "before": (before.stamp, before.value) if before is not None and before.value is not None else None,
            "parts": tuple(parts),
            "pictures": tonight.graphs,
            "points": points,
        }
    )


def _point(night: contracts.ScoredNight) -> Point:
    complete = night.value is not None and bool(night.expected) and not night.missing
    return Point(night.stamp, night.value, night.low, night.high, complete)
