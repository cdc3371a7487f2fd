"""Every series with all that was ever measured of it, whatever TVM it was measured on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tvmdash.dashboard_info import VARIANT_SIGN, variant_of
from tvmdash.judge.evidence import Pairs
from tvmdash.records import Build
from tvmdash.records.metrics import MAY_BE_EXACT, RATIOS, Kind
from tvmdash.series import naming
from tvmdash.series.store import Outline, Series
from tvmdash.signoff.sources import ExperimentNights, Sources
from tvmdash.trials.trial import Trial, TrialNumber, TrialSeries

Point = tuple[str, str, str]
"""An experiment, without the TVM it is measured on; a metric; the labels of a point, as JSON."""
Both = tuple[float, float]
"""Of A and of B."""


@dataclass(frozen=True)
class TwoTvms:
    """The IDs of A and B."""

    a: str
    b: str

    def turn(self, first: str, second: str, values: Both) -> Both | None:
        """Turn two values measured at once into those of A and of B; None where they are of other TVMs."""
        turned = {(self.a, self.b): values, (self.b, self.a): values[::-1]}
        return turned.get((first, second))


@dataclass(frozen=True)
class NightValue:
    """One night's value of one TVM alone. content: of all that ran while it was timed, 0 where unknown."""

    stamp: str
    tvm: str
    fingerprint: str | None
    value: float
    alike: int | None = None
    content: int = 0


@dataclass
class MeasuredSeries:
    """One series. tvms: all that it was measured on. pairs: of any two of them, measured in turn.

    rounds: what each round of `compare` gave of A and of B; at_once: the last numbers without noise that the same code
    gave of the two.
    """

    outline: Outline
    key: str = ""
    name: str = ""
    values: list[NightValue] = field(default_factory=list)
    tvms: set[str] = field(default_factory=set)
    pairs: list[Pairs] = field(default_factory=list)
    rounds: list[Both] = field(default_factory=list)
    at_once: Both | None = None

    @property
    def experiment(self) -> str:
        """With its host, and without the TVM it is measured on."""
        return _without_tvm(self.outline.experiment)

    @property
    def may_be_exact(self) -> bool:
        """Return True for a size, a count or an accuracy on which processes agreed."""
        is_alike = any(value.alike for value in self.values) or self.at_once is not None
        return self.outline.kind in MAY_BE_EXACT and is_alike

    def list_values(self, tvm: str) -> list[NightValue]:
        return [value for value in self.values if value.tvm == tvm]


def read_series(found: Sources, both: TwoTvms) -> list[MeasuredSeries]:
    """Read all series of the home, with the names that they have everywhere."""
    reading = _Reading(both, {key: tvm.id for tvm in found.tvms.tvms.values() for key in tvm.artifacts})
    stamps = {stamp for experiment in found.experiments for stamp in experiment.builds}
    every = sorted({*stamps, *(done.stamp for done in found.trials)})
    reading.nights = {stamp: at for at, stamp in enumerate(every)}
    for experiment in found.experiments:
        measured = [item for item in experiment.series if item.stamps]
        for item in (each for each in measured if each.metric not in RATIOS):
            reading.take_values(experiment, item)
        for item in (each for each in measured if each.metric in RATIOS):
            reading.take_ratios(experiment, item)
    for experiment in found.experiments:
        reading.take_references(found, experiment)
    for done in found.trials:
        reading.take_trial(done)
    series = list(reading.series.values())
    outlines = [each.outline for each in series]
    for each, key, name in zip(series, naming.keys(outlines), naming.names(outlines), strict=True):
        each.key, each.name = key, name
        each.pairs.sort(key=lambda pairs: pairs.night)
    return series


@dataclass
class _Reading:
    """ids: the TVM of each artifact. nights: the place of each stamp in time."""

    both: TwoTvms
    ids: Mapping[str, str]
    nights: Mapping[str, int] = field(default_factory=dict)
    series: dict[tuple[Point, str], MeasuredSeries] = field(default_factory=dict)
    of_id: dict[str, MeasuredSeries] = field(default_factory=dict)
    newest: dict[Point, MeasuredSeries] = field(default_factory=dict)
    """Of a metric whose unit changed, the series with the last one."""

    def of(self, outline: Outline) -> MeasuredSeries:
        """The series of that point, metric and unit; one name for all TVMs that it is measured on."""
        point = _point_of(outline)
        known = self.series.setdefault((point, outline.unit), MeasuredSeries(outline))
        if variant_of(known.outline.experiment) and not variant_of(outline.experiment):
            known.outline = outline
        self.of_id[outline.id] = self.newest[point] = known
        return known

    def find(self, item: TrialSeries | TrialNumber) -> MeasuredSeries:
        """The series that a trial measured, a new one where no night did."""
        kind: Kind = "time" if isinstance(item, TrialSeries) else "exact"
        facts = (item.id, item.experiment, item.metric, item.unit, item.direction, item.labels)
        outline = Outline(0, *facts, kind, item.title)
        return self.of_id.get(item.id) or self.newest.get(_point_of(outline)) or self.of(outline)

    def tvm(self, key: str | None) -> str:
        """Return the ID of the TVM that the artifact is."""
        return self.ids.get(key or "", key or "")

    def take_values(self, experiment: ExperimentNights, item: Series) -> None:
        """Add the values of the nights' own TVMs."""
        target = self.of(_outline_of(item))
        for at, stamp in enumerate(item.stamps):
            build = experiment.builds.get(stamp, Build())
            tvm = self.tvm(build.artifact or experiment.versions.get(stamp))
            alike, content = (column[at] if column else None for column in (item.alike, item.content))
            value = NightValue(stamp, tvm, build.fingerprint, float(item.values[at]), alike, content or 0)
            target.values.append(value)
            target.tvms.add(tvm)

    def take_ratios(self, experiment: ExperimentNights, item: Series) -> None:
        """Add the ratios of the nights' own TVMs to the reference."""
        target = self.newest.get(_point_of(_outline_of(item)))
        for at, stamp in enumerate(item.stamps):
            build = experiment.builds.get(stamp, Build())
            if target is not None and build.artifact and build.reference:
                names = (self.tvm(build.artifact), self.tvm(build.reference))
                std, count = item.std[at], (item.samples[at] if item.samples else None) or 1
                scatter = math.nan if std is None else std
                target.pairs.append(Pairs(self.nights[stamp], *names, math.log(item.values[at]), scatter, count))
                target.tvms.update(names)

    def take_references(self, found: Sources, experiment: ExperimentNights) -> None:
        """The exact numbers of the reference, of the newest night that measured one of the two beside the other."""
        names = {
            stamp: (self.tvm(build.reference), self.tvm(build.artifact)) for stamp, build in experiment.builds.items()
        }
        stamp = max((stamp for stamp, sides in names.items() if set(sides) == {self.both.a, self.both.b}), default="")
        for point in found.read_data(experiment.name, stamp).values() if stamp else ():
            target = self.of_id.get(point.key.id)
            if target is not None and point.reference is not None and point.alike:
                self.take_at_once(target, names[stamp], (point.reference, point.value))

    def take_at_once(self, target: MeasuredSeries, names: tuple[str, str], values: Both) -> None:
        """Add two numbers without noise."""
        target.tvms.update(names)
        target.at_once = self.both.turn(*names, values) or target.at_once

    def take_trial(self, done: Trial) -> None:
        """Add the pairs, rounds and exact numbers that a trial measured of its two TVMs."""
        base, candidate = names = (self.tvm(done.base.key), self.tvm(done.candidate.key))
        for item in (each for each in done.series if each.pairs):
            target = self.find(item)
            target.tvms.update(names)
            for run in item.runs:
                std = run.std if run.pairs > 1 else math.nan
                target.pairs.append(Pairs(self.nights[done.stamp], candidate, base, run.log, std, run.pairs))
            target.rounds += filter(None, (self.both.turn(*names, values) for values in item.rounds))
        for number in (each for each in done.numbers if not each.varies):
            self.take_at_once(self.find(number), names, (number.base, number.candidate))


def _point_of(outline: Outline) -> Point:
    labels = json.dumps(outline.labels, sort_keys=True)
    return _without_tvm(outline.experiment), RATIOS.get(outline.metric, outline.metric), labels


def _without_tvm(name: str) -> str:
    return name.partition(VARIANT_SIGN)[0]


def _outline_of(item: Series) -> Outline:
    facts = (item.id, item.experiment, item.metric, item.unit, item.direction, item.labels)
    return Outline(0, *facts, item.kind, item.title, item.tolerance)
