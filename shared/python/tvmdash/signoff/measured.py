"""Every series with all that was ever measured of it, whatever TVM it was measured on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tvmdash.dashboard_info import VARIANT_SIGN, variant_of
from tvmdash.machine.identity import ENV_NAME
from tvmdash.records import Build
from tvmdash.records.metrics import MAY_BE_EXACT, RATIOS
from tvmdash.series import naming
from tvmdash.series.store import Outline, Series
from tvmdash.signoff.sources import ExperimentNights, Sources

Point = tuple[str, str, str]
"""An experiment, without the TVM it is measured on; a metric; the labels of a point, as JSON."""


@dataclass(frozen=True)
class NightValue:
    """What a night measured of one TVM alone. content: of all that ran while it was timed, 0 where unknown."""

    stamp: str
    tvm: str
    fingerprint: str | None
    value: float
    alike: int | None = None
    content: int = 0


@dataclass(frozen=True)
class RatioOfTwo:
    """`tvm` against `reference`, pairs of processes in turn: the mean of their log ratios, how one scatters."""

    stamp: str
    tvm: str
    reference: str
    log: float
    std: float | None
    pairs: int


@dataclass(frozen=True)
class OnBoth:
    """An exact number of two TVMs, measured with the same code at the same time."""

    tvm: str
    reference: str
    value: float
    of_reference: float


@dataclass
class MeasuredSeries:
    """One series. rounds: what each round of `compare` gave, as (first, second), by the two TVMs."""

    outline: Outline
    key: str = ""
    name: str = ""
    values: list[NightValue] = field(default_factory=list)
    ratios: list[RatioOfTwo] = field(default_factory=list)
    on_both: list[OnBoth] = field(default_factory=list)
    rounds: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)

    @property
    def experiment(self) -> str:
        """With its host, and without the TVM it is measured on."""
        return _without_tvm(self.outline.experiment)

    @property
    def machine(self) -> str:
        """The name of the machine that it is measured on; empty where it is unknown."""
        return str(self.outline.labels.get(ENV_NAME) or "")

    @property
    def may_be_exact(self) -> bool:
        """Whether it is a size, a count or an accuracy, of which processes agreed."""
        known = [value.alike for value in self.values if value.alike is not None]
        return self.outline.kind in MAY_BE_EXACT and (any(known) or bool(self.on_both))

    def list_values(self, tvm: str) -> list[NightValue]:
        """Those of one TVM."""
        return [value for value in self.values if value.tvm == tvm]

    def knows(self, tvm: str) -> bool:
        """Whether anything was measured of it on that TVM."""
        names = {value.tvm for value in self.values}
        names.update(*((each.tvm, each.reference) for each in self.ratios), *self.rounds)
        names.update(*((each.tvm, each.reference) for each in self.on_both))
        return tvm in names


@dataclass
class _SeriesReading:
    ids: Mapping[str, str]
    series: dict[tuple[Point, str], MeasuredSeries] = field(default_factory=dict)
    points: dict[str, tuple[Point, str]] = field(default_factory=dict)
    newest: dict[Point, MeasuredSeries] = field(default_factory=dict)
    """Of a metric whose unit changed, the series with the last one."""

    def of(self, outline: Outline) -> MeasuredSeries:
        """The series of that point, metric and unit; one name for all TVMs that it is measured on."""
        place = (_point_of(outline), outline.unit)
        known = self.series.setdefault(place, MeasuredSeries(outline))
        if variant_of(known.outline.experiment) and not variant_of(outline.experiment):
            known.outline = outline
        self.points[outline.id] = place
        self.newest[place[0]] = known
        return known

    def tvm(self, key: str | None) -> str:
        return self.ids.get(key or "", key or "")


def read_series(found: Sources, a: str, b: str) -> list[MeasuredSeries]:
    """All of the home, named as everywhere; with what is known of exact numbers of these two TVMs by their pairs."""
    reading = _SeriesReading({key: tvm.id for tvm in found.tvms.tvms.values() for key in tvm.artifacts})
    for experiment in found.experiments:
        for item in experiment.series:
            if item.metric not in RATIOS:
                _take_values(reading, experiment, item)
        for item in experiment.series:
            if item.metric in RATIOS:
                _take_ratios(reading, experiment, item)
    _take_references(reading, found, a, b)
    _take_trials(reading, found)
    every = list(reading.series.values())
    outlines = [each.outline for each in every]
    for each, key, name in zip(every, naming.keys(outlines), naming.names(outlines), strict=True):
        each.key, each.name = key, name
    return every


def _point_of(outline: Outline) -> Point:
    labels = json.dumps(outline.labels, sort_keys=True)
    return _without_tvm(outline.experiment), RATIOS.get(outline.metric, outline.metric), labels


def _without_tvm(name: str) -> str:
    return name.partition(VARIANT_SIGN)[0]


def _outline_of(item: Series) -> Outline:
    facts = (item.id, item.experiment, item.metric, item.unit, item.direction, item.labels)
    return Outline(0, *facts, item.kind, item.title, item.tolerance)


def _take_values(reading: _SeriesReading, experiment: ExperimentNights, item: Series) -> None:
    if not item.stamps:
        return
    target = reading.of(_outline_of(item))
    for at, stamp in enumerate(item.stamps):
        build = experiment.builds.get(stamp, Build())
        tvm = reading.tvm(build.artifact or experiment.versions.get(stamp))
        alike, content = (column[at] if column else None for column in (item.alike, item.content))
        value = NightValue(stamp, tvm, build.fingerprint, float(item.values[at]), alike, content or 0)
        target.values.append(value)


def _take_ratios(reading: _SeriesReading, experiment: ExperimentNights, item: Series) -> None:
    target = reading.newest.get(_point_of(_outline_of(item)))
    for at, stamp in enumerate(item.stamps):
        build = experiment.builds.get(stamp, Build())
        pairs = (item.samples[at] if item.samples else None) or 1
        if target is not None and build.artifact and build.reference:
            names = (reading.tvm(build.artifact), reading.tvm(build.reference))
            target.ratios.append(RatioOfTwo(stamp, *names, math.log(item.values[at]), item.std[at], pairs))


def _take_trials(reading: _SeriesReading, found: Sources) -> None:
    for done in found.trials:
        names = (reading.tvm(done.candidate.key), reading.tvm(done.base.key))
        for item in (each for each in done.series if each.pairs):
            target = _find(reading, item, "time")
            runs = (
                RatioOfTwo(done.stamp, *names, run.log, run.std if run.pairs > 1 else None, run.pairs)
                for run in item.runs
            )
            target.ratios.extend(runs)
            if item.rounds:
                target.rounds.setdefault((names[1], names[0]), []).extend(item.rounds)
        for number in done.numbers:
            if not number.varies:
                _find(reading, number, "exact").on_both.append(OnBoth(*names, number.candidate, number.base))


def _find(reading: _SeriesReading, item: Any, kind: Any) -> MeasuredSeries:
    """The series that a try measured, a new one where no night did."""
    if item.id in reading.points:
        return reading.series[reading.points[item.id]]
    outline = Outline(
        0, item.id, item.experiment, item.metric, item.unit, item.direction, item.labels, kind, item.title
    )
    return reading.newest.get(_point_of(outline)) or reading.of(outline)


def _take_references(reading: _SeriesReading, found: Sources, a: str, b: str) -> None:
    """The exact numbers of the reference, of the newest night that measured one of the two beside the other."""
    for experiment in found.experiments:
        beside = {
            stamp: (reading.tvm(build.artifact), reading.tvm(build.reference))
            for stamp, build in experiment.builds.items()
            if {reading.tvm(build.artifact), reading.tvm(build.reference)} == {a, b}
        }
        if beside:
            stamp = max(beside)
            for point in found.read_points(experiment.name, stamp):
                place = reading.points.get(point.key.id)
                if place is not None and point.reference is not None and point.alike:
                    reading.series[place].on_both.append(OnBoth(*beside[stamp], point.value, point.reference))
