"""What the score subsystem left: tonight's scores with their parts, and their points over all nights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inputs import parsing
from inputs.parsing import number, objects, stamp, text
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

SUBSYSTEM = "score"
PAGE_FILE, HISTORY_FILE = "page.json", "scores.json"


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
class Picture:
    """A graph below the subsystem's output folder, with its content in words."""

    file: str
    alt: str


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
    pictures: tuple[Picture, ...]
    points: tuple[Point, ...]
    headline: str = ""
    details: str = ""


@dataclass(frozen=True)
class LeftOut:
    """A score that is not made while these experiments are switched off."""

    id: str
    title: str
    experiments: tuple[str, ...]


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
    history = (
        _guarded(folder / HISTORY_FILE, faults, lambda value: tuple(map(_history, objects(value["scores"])))) or ()
    )
    points = {name: found for name, _, _, found in history}
    read = _guarded(folder / PAGE_FILE, faults, lambda value: _parse(value, points)) or Scores()
    return replace(read, faults=tuple(faults), history=history)


def _guarded(path: Path, faults: list[str], parse: Any) -> Any:
    try:
        value = parsing.read_object(path)
        return None if value is None else parse(value)
    except (*parsing.WRONG, DashboardError) as error:
        faults.append(parsing.fault_of(path, error))
        return None


def _parse(page: Mapping[str, Any], points: Mapping[str, tuple[Point, ...]]) -> Scores:
    scores = tuple(_score(one, points) for one in objects(page["scores"]))
    left_out = tuple(
        LeftOut(text(one["id"]), text(one["title"]), parsing.texts(one["experiments"]))
        for one in objects(page.get("left_out", []))
    )
    return Scores(stamp(page["stamp"]), scores, parsing.texts(page["faults"]), left_out)


def _score(one: Mapping[str, Any], points: Mapping[str, tuple[Point, ...]]) -> Score:
    before = one["before"]
    earlier = number(before["value"]) if before else None
    parts = [
        Part(text(item["workload"]), number(item["value"]), number(item["low"]), number(item["high"]))
        for item in objects(one["workloads"])
    ]
    parts += [Part(text(item["workload"]), None, None, None, text(item["reason"])) for item in objects(one["missing"])]
    return Score(
        id=text(one["id"]),
        title=text(one["title"]),
        kind=text(one["kind"]),
        unit=text(one["unit"]),
        lower_is_better=bool(one["lower_is_better"]),
        value=number(one["value"]),
        low=number(one["low"]),
        high=number(one["high"]),
        complete=bool(one["complete"]),
        words=text(one["words"]),
        before=(stamp(before["stamp"]), earlier) if before and earlier is not None else None,
        parts=tuple(parts),
        pictures=tuple(Picture(text(item["file"]), text(item["alt"])) for item in objects(one["graphs"])),
        points=points.get(one["id"], ()),
        headline=text(one.get("headline", "")),
        details=text(one.get("details", "")),
    )


def _history(one: Mapping[str, Any]) -> tuple[str, str, str, tuple[Point, ...]]:
    return text(one["id"]), text(one["title"]), text(one["unit"]), tuple(map(_point, objects(one["points"])))


def _point(one: Mapping[str, Any]) -> Point:
    value = number(one["value"])
    complete = value is not None and bool(one["expected"]) and not one["missing"]
    return Point(text(one["stamp"]), value, number(one["low"]), number(one["high"]), complete)
