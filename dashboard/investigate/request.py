"""What is to be measured again, and what came of it: the two files of `remeasure`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tvmdash import common, records
from tvmdash.errors import DashboardError

SCHEMA_VERSION = 1
IDENTITY = tuple(name for name in records.IDENTITY if name not in {"env_name", "hw_model"})
"""The columns that name a point in TVMDASH_POINTS: a record's identity without the machine."""
PATH = "path"
"""What names a number of a foreign experiment."""

MEASURED, GONE, UNKNOWN = "measured", "gone", "unknown"
"""How a round went: it gave values; its artifact was removed; no artifact is known for its night."""
INACTIVE, FAILED, BUDGET = "inactive", "failed", "budget"
"""Why a round gave no values: the home does not run the experiment; a stage of it failed; the time was over."""


@dataclass(frozen=True)
class Round:
    """One measurement: the points of one experiment, with the artifact of the night `stamp`. No points: all of them."""

    experiment: str
    stamp: str
    points: tuple[Mapping[str, Any], ...] = ()

    def asks_for(self, labels: Mapping[str, Any]) -> bool:
        """Whether a series with these labels was asked for."""
        return not self.points or text_of(point_of(labels)) in {text_of(point) for point in self.points}


@dataclass(frozen=True)
class Answer:
    """What came of the round number `round`. values: by the ID of the series; seconds: run and analyze together."""

    experiment: str
    stamp: str
    round: int
    state: str
    artifact: str | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""


def point_of(labels: Mapping[str, Any]) -> dict[str, Any]:
    """What names the point of a series with these labels."""
    return {PATH: labels[PATH]} if PATH in labels else {name: labels.get(name) for name in IDENTITY}


def text_of(point: Mapping[str, Any]) -> str:
    """One text for a point, the same for equal points."""
    return json.dumps(point, sort_keys=True)


def read(path: Path) -> list[Round]:
    """The rounds in a request; DashboardError names the place of what is wrong."""
    value = common.read_json(path)
    if not isinstance(value, list):
        raise DashboardError(f"{path}: $: not a list of rounds. Write [{{experiment, stamp, points}}, ...].")
    return [_round(item, f"{path}: $[{number}]") for number, item in enumerate(value)]


def _round(value: common.Json, place: str) -> Round:
    if not isinstance(value, dict) or set(value) - {"experiment", "stamp", "points"}:
        raise DashboardError(f"{place}: not an object with experiment, stamp and points.")
    experiment, stamp, points = value.get("experiment"), value.get("stamp"), value.get("points", [])
    if not isinstance(experiment, str) or not experiment or "/" in experiment:
        raise DashboardError(f"{place}.experiment: {experiment!r:.80} is not an experiment's name.")
    if not isinstance(stamp, str) or not common.is_stamp(stamp):
        raise DashboardError(f"{place}.stamp: {stamp!r:.80} is not a night's stamp, as 20261121T031500Z.")
    if not isinstance(points, list) or not all(isinstance(point, dict) for point in points):
        raise DashboardError(f"{place}.points: not a list of objects.")
    return Round(experiment, stamp, tuple(points))


def write(path: Path, stamp: str, answers: list[Answer]) -> None:
    """Leave the answers so far; whoever is killed later loses none of them."""
    rounds = [{**asdict(answer), "values": dict(answer.values)} for answer in answers]
    common.write_json(path, {"schema_version": SCHEMA_VERSION, "night": stamp, "rounds": rounds}, durable=False)
