"""`results --history`: each series over the TVMs that `backfill` measured, and which steps between two are real."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dashboard import results
from tvmdash import common, records, series_names
from tvmdash.comparison import LEAST_ROUNDS, Difference, differences
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records import METRICS, Failure
from tvmdash.reduction import t_975
from tvmdash.store import Outline

Rounds = dict[str, float]
"""A value by its round: the n-th measurement of each TVM with the same code and config."""


@dataclass
class Course:
    """One series: its rounds on each TVM, and the steps between one TVM and the next (None: too few rounds).

    whole: the last TVM against the first. Real are steps beyond chance, the steps of all series considered.
    """

    series: Outline
    rounds: dict[str, Rounds] = field(default_factory=dict)
    name: str = ""
    steps: list[Difference | None] = field(default_factory=list)
    whole: Difference | None = None

    def level(self, version: str) -> Level | None:
        """The value on one TVM; None where there is none above 0."""
        values = list(self.rounds.get(version, {}).values())
        if not values or min(values) <= 0:
            return None
        logs = [math.log(value) for value in values]
        middle = statistics.fmean(logs)
        if len(logs) < LEAST_ROUNDS:
            return Level(math.exp(middle), None, None)
        reach = t_975(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
        return Level(*(math.exp(log) for log in (middle, middle - reach, middle + reach)))


@dataclass(frozen=True)
class Level:
    """Geometric mean of the rounds and its 95 % interval, None where they are too few."""

    value: float
    low: float | None
    high: float | None


@dataclass
class History:
    """All series over `versions`, oldest first. failures: by experiment and TVM. stamps: first and last night.

    rounds: the most that any series of an experiment has. loads: of one minute, before each point.
    """

    versions: tuple[str, ...] = ()
    are_commits: bool = False
    courses: list[Course] = field(default_factory=list)
    failures: dict[tuple[str, str], tuple[Failure, ...]] = field(default_factory=dict)
    stamps: tuple[str, str] = ("", "")
    machines: set[str] = field(default_factory=set)
    machine: Mapping[str, Any] = field(default_factory=dict)
    loads: list[float] = field(default_factory=list)
    rounds: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def pairs(self) -> list[tuple[str, str]]:
        """Each TVM with the one before it."""
        return list(zip(self.versions, self.versions[1:], strict=False))


@dataclass(frozen=True)
class _Night:
    experiment: str
    stamp: str
    round: str
    version: str
    order: tuple[str, Any]
    data: records.NightData
    machine: Mapping[str, Any]


def read(home: Home) -> History:
    """What backfill left in the home; DashboardError where it has left nothing."""
    history = History()
    nights = [night for folder in _folders(home) for night in _nights(folder, history.broken)]
    if not nights:
        raise DashboardError(
            f"{home.root}: there are no nights of backfill. Measure some: python3 -m dashboard backfill"
            f" {home.root} --artifacts pypi:0.25.0..0.27.0"
        )
    history.versions = tuple(dict.fromkeys(night.version for night in sorted(nights, key=lambda one: one.order)))
    history.are_commits = any(night.order[0] for night in nights)
    stamps = sorted(night.stamp for night in nights)
    history.stamps = (stamps[0], stamps[-1])
    courses: dict[str, Course] = {}
    for night in nights:
        _describe(history, night)
        _take(courses, night)
    order = {metric.name: at for at, metric in enumerate(METRICS)}
    history.courses = list(courses.values())
    _judge(history)
    history.courses.sort(key=lambda one: (one.series.experiment, order.get(one.series.metric, len(order)), one.name))
    return history


def _folders(home: Home) -> list[Path]:
    parent = home.backfill("x").parent
    return sorted(path for path in parent.glob("*") if path.is_dir()) if parent.is_dir() else []


def _nights(folder: Path, broken: list[str]) -> list[_Night]:
    found = []
    times: Counter[tuple[str, str]] = Counter()
    for stamp in sorted(records.data_stamps(folder)):
        path = folder / f"data_{stamp}.json"
        try:
            data = records.read_data(path, folder.name)
            value = common.read_json(path)
            night = results.object_in(value, "night")
            artifact = results.object_in(night, "artifact")
        except DashboardError as error:
            broken.append(str(error))
            continue
        version = str(artifact.get("version") or data.tvm_hash)
        committed = str(night.get("committed") or "")
        if committed:
            version = str(artifact.get("commit") or version)[:12]
        machine = results.object_in(results.object_in(value, "environment"), "machine")
        order = (committed, _number(version))
        code = str(night.get("fingerprint"))
        times[code, version] += 1
        found.append(_Night(folder.name, stamp, f"{code} {times[code, version]}", version, order, data, machine))
    return found


def _number(version: str) -> object:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version)
    except InvalidVersion:
        return Version("0")


def _describe(history: History, night: _Night) -> None:
    history.machines.add(night.data.machine)
    history.machine = history.machine or night.machine
    history.loads += [
        float(record.additional_info["load_before"]["load_1_min"])
        for record in night.data.records
        if isinstance(record.additional_info.get("load_before"), dict)
        and record.additional_info["load_before"].get("load_1_min") is not None
    ]
    if night.data.failures:
        history.failures[night.experiment, night.version] = night.data.failures


def _take(courses: dict[str, Course], night: _Night) -> None:
    for point in night.data.values():
        key = point.key
        new = Course(Outline(0, key.id, key.experiment, key.metric, point.unit, point.lower_is_better, key.labels))
        course = courses.setdefault(f"{key.id}~{point.unit}", new)
        course.rounds.setdefault(night.version, {})[night.round] = point.value


def _judge(history: History) -> None:
    """Name the series, and say which steps are real, as `compare` does: Holm over all steps of all series."""
    courses = history.courses
    for course, name in zip(courses, series_names.names([course.series for course in courses]), strict=True):
        course.name = name
        counts = [len(rounds) for rounds in course.rounds.values()]
        history.rounds[course.series.experiment] = max(history.rounds.get(course.series.experiment, 0), *counts)
    pairs = history.pairs()
    judged = iter(differences([_paired(course, *pair) for course in courses for pair in pairs]))
    ends = differences([_paired(course, history.versions[0], history.versions[-1]) for course in courses])
    for course, whole in zip(courses, ends, strict=True):
        course.steps = [next(judged) for _ in pairs]
        course.whole = whole


def _paired(course: Course, before: str, after: str) -> Sequence[tuple[float, float]]:
    """The rounds that measured both."""
    first, second = course.rounds.get(before, {}), course.rounds.get(after, {})
    return [(first[name], second[name]) for name in first if name in second]
