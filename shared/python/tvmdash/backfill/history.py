"""What `backfill` measured: each series over the TVMs of the past, and which steps from one to the next are told."""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvmdash import common, records
from tvmdash.backfill import calls as backfill_calls
from tvmdash.backfill.calls import Failed
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.judge import RULES
from tvmdash.judge.means import combine_ratios
from tvmdash.records import Failure, PointValue
from tvmdash.records.metrics import METRICS
from tvmdash.series import naming
from tvmdash.series.naming import key_of
from tvmdash.series.store import Outline
from tvmdash.verdict import Controls

if TYPE_CHECKING:
    from tvmdash.judge.two import Difference, RoundSeries

Rounds = dict[str, float]
"""A value by its round: the n-th measurement of each TVM with the same code and config."""
_LEAST_TVMS = 2


@dataclass
class BackfillCourse:
    """One series: its rounds on each TVM, and the steps between one TVM and the next (None: too few rounds).

    short_name: without the experiment. whole: the last TVM against the first.
    """

    series: Outline
    rounds: dict[str, Rounds] = field(default_factory=dict)
    name: str = ""
    short_name: str = ""
    steps: list[Difference | None] = field(default_factory=list)
    whole: Difference | None = None

    def level(self, version: str) -> BackfillLevel | None:
        """The value on one TVM; None where there is none above 0."""
        values = list(self.rounds.get(version, {}).values())
        if not values or min(values) <= 0:
            return None
        mean = combine_ratios(values)
        is_known = len(values) >= RULES.fewest_pairs
        return BackfillLevel(mean.value, mean.low, mean.high) if is_known else BackfillLevel(mean.value, None, None)


@dataclass(frozen=True)
class BackfillLevel:
    """Geometric mean of the rounds and its 95 % interval, None where they are too few."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class BackfillStep:
    """From one TVM to the next, as far as that could be judged."""

    course: BackfillCourse
    before: str
    after: str
    found: Difference


@dataclass
class BackfillHistory:
    """All series over `versions`, oldest first; no versions where backfill has measured nothing.

    committed: of TVMs that are commits, when (UTC). nights: the stamps under which a TVM was measured, in order.
    failures: by experiment and TVM. unmeasured: what could not be had or measured, and was not since.
    rounds: the most that any series of an experiment has. machines: each in words; machine: the facts of one.
    loads: of one minute, before each point. controls: what the config names as such. broken: files that cannot be read.
    """

    versions: tuple[str, ...] = ()
    committed: dict[str, datetime.datetime] = field(default_factory=dict)
    courses: list[BackfillCourse] = field(default_factory=list)
    failures: dict[tuple[str, str], tuple[Failure, ...]] = field(default_factory=dict)
    unmeasured: list[Failed] = field(default_factory=list)
    nights: dict[str, list[str]] = field(default_factory=dict)
    machines: set[str] = field(default_factory=set)
    machine: Mapping[str, Any] = field(default_factory=dict)
    loads: list[float] = field(default_factory=list)
    rounds: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    controls: Controls = field(default_factory=Controls)

    @property
    def stamps(self) -> tuple[str, str]:
        """The first and the last night."""
        stamps = [stamp for stamps_of_version in self.nights.values() for stamp in stamps_of_version]
        return min(stamps), max(stamps)

    @property
    def experiments(self) -> list[str]:
        """Those that have a value of any TVM."""
        return list(dict.fromkeys(course.series.experiment for course in self.courses))

    def of(self, experiment: str) -> list[BackfillCourse]:
        """The series of one experiment."""
        return [course for course in self.courses if course.series.experiment == experiment]

    def pairs(self) -> list[tuple[str, str]]:
        """Each TVM with the one before it."""
        return list(zip(self.versions, self.versions[1:], strict=False))

    def is_control(self, course: BackfillCourse) -> bool:
        """Whether the series is of a program that TVM cannot have changed."""
        return self.controls.has(course.series.experiment, course.series.id)

    def steps(self) -> list[BackfillStep]:
        """All that could be judged, series by series."""
        pairs = self.pairs()
        return [
            BackfillStep(course, *pair, difference)
            for course in self.courses
            for pair, difference in zip(pairs, course.steps, strict=True)
            if difference is not None
        ]


def read(home: Home) -> BackfillHistory:
    """What backfill left in the home."""
    history = BackfillHistory(controls=Controls.of(home))
    nights, history.broken = read_nights(home)
    history.versions = tuple(dict.fromkeys(night.version for night in sorted(nights, key=lambda night: night.order)))
    courses: dict[str, BackfillCourse] = {}
    for night in nights:
        _describe(history, night)
        _take(courses, night)
    order = {metric.name: at for at, metric in enumerate(METRICS)}
    history.courses = list(courses.values())
    _judge(history)
    history.unmeasured = _list_unmeasured(home, nights, history.broken)
    history.courses.sort(
        key=lambda course: (course.series.experiment, order.get(course.series.metric, len(order)), course.name)
    )
    for stamps in history.nights.values():
        stamps.sort()
    return history


def files(home: Home) -> list[Path]:
    """All that `read` reads."""
    return night_files(home) + backfill_calls.files(home)


def _list_unmeasured(home: Home, nights: Sequence[BackfillNight], broken: list[str]) -> list[Failed]:
    calls = backfill_calls.read(home)
    broken += calls.broken
    last: dict[tuple[str, str], str] = {}
    for night in nights:
        for experiment in (night.experiment, ""):
            last[experiment, night.version] = max(night.stamp, last.get((experiment, night.version), ""))
    failures: dict[tuple[str, str], Failed] = {}
    for failure in calls.failed:
        tvm = name_of(failure.tvm)
        if failure.stamp > last.get((failure.experiment, tvm), ""):  # no night since the call ended
            failures[failure.experiment, tvm] = replace(failure, tvm=tvm)
    return list(failures.values())


def _describe(history: BackfillHistory, night: BackfillNight) -> None:
    history.nights.setdefault(night.version, []).append(night.stamp)
    if night.committed:
        known = history.committed.get(night.version, night.committed)
        history.committed[night.version] = min(known, night.committed)
    if night.data.machine:
        history.machines.add(night.data.machine)
    history.machine = history.machine or night.machine
    loads = [common.object_in(record.additional_info, "load_before").get("load_1_min") for record in night.data.records]
    history.loads += [float(load) for load in loads if isinstance(load, (int, float))]
    if night.data.failures:
        history.failures[night.experiment, night.version] = night.data.failures


def _take(courses: dict[str, BackfillCourse], night: BackfillNight) -> None:
    for point in night.data.values():
        key = point.key
        new = BackfillCourse(_make_outline(point))
        course = courses.setdefault(key_of(key.id, point.unit), new)
        course.rounds.setdefault(night.version, {})[night.round] = point.value


def _make_outline(point: PointValue) -> Outline:
    key = point.key
    return Outline(
        0, key.id, key.experiment, key.metric, point.unit, point.direction, key.labels, point.kind, point.title
    )


def _judge(history: BackfillHistory) -> None:
    """Name the series, and say which steps are told, as `compare` does, all series considered."""
    courses = history.courses
    for course, name in zip(courses, naming.short_names([course.series for course in courses]), strict=True):
        course.name, course.short_name = f"{course.series.experiment} {name}", name
        counts = [len(rounds) for rounds in course.rounds.values()]
        history.rounds[course.series.experiment] = max(history.rounds.get(course.series.experiment, 0), *counts)
    if len(history.versions) < _LEAST_TVMS:
        return
    for pair in history.pairs():
        for course, found in zip(courses, _compare(courses, *pair), strict=True):
            course.steps.append(found)
    for course, found in zip(courses, _compare(courses, history.versions[0], history.versions[-1]), strict=True):
        course.whole = found


def _compare(courses: Sequence[BackfillCourse], before: str, after: str) -> list[Difference | None]:
    """By series, how one TVM differs from another; None where too few rounds measured both."""
    from tvmdash.judge import two  # who forks has no numpy loaded

    series = {str(at): rounds for at, course in enumerate(courses) if (rounds := _pair_rounds(course, before, after))}
    found = two.compare_rounds(series)
    return [each if (each := found.get(str(at))) and each.is_bounded else None for at in range(len(courses))]


def _pair_rounds(course: BackfillCourse, before: str, after: str) -> RoundSeries | None:
    """The rounds that measured both; None where a value is not positive."""
    from tvmdash.judge.two import RoundSeries

    first, second = course.rounds.get(before, {}), course.rounds.get(after, {})
    both = {name: (first[name], second[name]) for name in first if name in second}
    return RoundSeries.of(course.series.experiment, both, course.series.direction)


_COMMIT = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True)
class BackfillNight:
    """One experiment on one TVM. round: the code that measured it, and the how-manieth time it measured this TVM.

    version: a commit's first digits, else a version's number. committed: when (UTC), None for a release.
    """

    experiment: str
    stamp: str
    round: str
    version: str
    committed: datetime.datetime | None
    data: records.NightData
    machine: Mapping[str, Any]

    @property
    def order(self) -> tuple[float, Any]:
        """Releases by number, then commits by date."""
        return self.committed.timestamp() if self.committed else -math.inf, _number(self.version)


def read_nights(home: Home) -> tuple[list[BackfillNight], list[str]]:
    """All of them, experiment by experiment, oldest first; and what is wrong with each file that cannot be read."""
    broken: list[str] = []
    return [night for folder in _list_folders(home) for night in _read_nights(folder, broken)], broken


def night_files(home: Home) -> list[Path]:
    """What `read_nights` reads."""
    return [path for folder in _list_folders(home) for path in sorted(folder.glob("data_*.json"))]


def name_of(tvm: str) -> str:
    """What a TVM is called: the first digits of a commit, else its version as it is."""
    return _shorten(tvm) if _COMMIT.fullmatch(tvm) else tvm


def _list_folders(home: Home) -> list[Path]:
    parent = home.backfill("x").parent
    return sorted(path for path in parent.glob("*") if path.is_dir()) if parent.is_dir() else []


def _read_nights(folder: Path, broken: list[str]) -> list[BackfillNight]:
    nights = []
    times: Counter[tuple[str, str]] = Counter()
    for stamp in records.data_stamps(folder):
        path = folder / f"data_{stamp}.json"
        try:
            common.parse_stamp(stamp)
            data = records.read_data(path, folder.name)
            value = common.read_json(path)
            night = common.object_in(value, "night")
            committed = _parse_moment(path, night.get("committed"))
        except DashboardError as error:
            broken.append(str(error))
            continue
        artifact = common.object_in(night, "artifact")
        version = str(artifact.get("version") or data.tvm_hash)
        if committed:
            version = _shorten(str(artifact.get("commit") or version))
        machine = common.object_in(common.object_in(value, "environment"), "machine")
        code = str(night.get("fingerprint"))
        times[code, version] += 1
        nights.append(
            BackfillNight(folder.name, stamp, f"{code} {times[code, version]}", version, committed, data, machine)
        )
    return nights


def _shorten(commit: str) -> str:
    return commit[:12]


def _parse_moment(path: Path, committed: object) -> datetime.datetime | None:
    """When a commit was made, in UTC; None for what is none."""
    if not committed:
        return None
    try:
        moment = datetime.datetime.fromisoformat(str(committed))
        aware = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        return aware.astimezone(datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise DashboardError(f"{path}: $.night.committed: {error}. Write a date as in 2026-11-21T03:15:00Z.") from error


def _number(version: str) -> object:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version)
    except InvalidVersion:
        return Version("0")
