"""Series that were measured in turn: how B stands to A by all pairs of processes that join the two, as the judge says.

The nights are a graph: each pair of processes is an edge between the two TVMs that took turns. Where A was measured
beside B, these edges say nearly all; else the ratios of the nights between are a chain. Scatter and luck are learned
from all nights of all series.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tvmdash.judge import two
from tvmdash.judge.evidence import Evidence, Pairs
from tvmdash.judge.noise import learn
from tvmdash.judge.rules import RULES
from tvmdash.machine.devices import CPU, device_of
from tvmdash.signoff.measured import MeasuredSeries, TwoTvms
from tvmdash.trials.signoff import SignoffEvidence


@dataclass(frozen=True)
class SeriesChange:
    """B against A, what says so, and on how many pairs and nights that rests."""

    evidence: SignoffEvidence
    difference: two.Difference
    pairs: int = 0
    nights: int = 0


SAME_CODE = SeriesChange(SignoffEvidence.SAME_CODE, two.Difference(two.PairStanding.UNCHANGED, 0.0, 0.0, 0.0))


def compare_ratios(series: Sequence[MeasuredSeries], both: TwoTvms) -> dict[str, SeriesChange]:
    """Compare the series that pairs join, by key."""
    every = [_Joined.of(each, both) for each in series if each.pairs]
    found = {each.series.key: SAME_CODE for each in every if each.a == each.b}
    asked = {each.series.key: each for each in every if each.a != each.b}
    noise = learn({each.series.key: each.make_history() for each in every}) if asked else None
    for key, difference in two.compare({key: each.make_evidence() for key, each in asked.items()}, noise).items():
        if asked[key].is_joined:
            found[key] = asked[key].conclude(difference)
    return found


@dataclass(frozen=True)
class _Joined:
    """The pairs of one series. a, b: what the two are called in them, the same where both ran the same code."""

    series: MeasuredSeries
    pairs: Sequence[Pairs]
    a: str
    b: str

    @classmethod
    def of(cls, series: MeasuredSeries, both: TwoTvms) -> _Joined:
        names = _merge_equal(series)
        pairs = (
            replace(each, build=names.get(each.build, each.build), base=names.get(each.base, each.base))
            for each in series.pairs
        )
        ends = (names.get(name, name) for name in (both.a, both.b))
        return cls(series, [each for each in pairs if each.build != each.base], *ends)

    @property
    def is_joined(self) -> bool:
        return self.b in _reach(self.a, self.pairs)

    def make_history(self) -> Evidence:
        """All TVMs in the order of their first nights, to learn noise from."""
        names = itertools.chain.from_iterable((each.base, each.build) for each in self.pairs)
        places = {name: at for at, name in enumerate(dict.fromkeys([*names, self.a, self.b]))}
        return replace(self.make_evidence(), pairs=self.pairs, places=places, tonight=self.b)

    def make_evidence(self) -> Evidence:
        """Make the evidence on A and B, and what joins them."""
        pairs = [self._turn(each) for each in self.pairs]
        outline = self.series.outline
        is_of_device = device_of(outline.labels) != CPU
        return two.make_evidence(
            self.series.experiment, pairs, outline.direction, is_of_device=is_of_device, metric=outline.metric
        )

    def _turn(self, pairs: Pairs) -> Pairs:
        """Turn it to have B as its build, and A as its base or build, by the names that the judge knows them by."""
        names = {self.a: two.A, self.b: two.B}
        build, base, log = pairs.build, pairs.base, pairs.log
        if base == self.b or (base == self.a and build != self.b):
            build, base, log = base, build, -log
        return replace(pairs, build=names.get(build, build), base=names.get(base, base), log=log)

    def conclude(self, difference: two.Difference) -> SeriesChange:
        """Call it paired where the pairs of A and B are enough, or all."""
        direct = [each for each in self.pairs if {each.build, each.base} == {self.a, self.b}]
        count = sum(each.count for each in direct)
        if count >= RULES.fewest_pairs or len(direct) == len(self.pairs):
            return SeriesChange(SignoffEvidence.PAIRED, difference, count, len({each.night for each in direct}))
        return SeriesChange(SignoffEvidence.CHAIN, difference, 0, len({each.night for each in self.pairs}))


def _merge_equal(series: MeasuredSeries) -> Mapping[str, str]:
    """By TVM, one name for all that ran the same, byte for byte; a TVM stays one, whatever else its content held."""
    of_tvm: dict[str, str] = {}
    of_content: dict[int, str] = {}
    for value in sorted(series.values, key=lambda value: value.stamp):
        if value.content:
            name = of_tvm.setdefault(value.tvm, of_content.get(value.content, value.tvm))
            of_content.setdefault(value.content, name)
    return of_tvm


def _reach(start: str, pairs: Iterable[Pairs]) -> set[str]:
    """Return all TVMs that pairs join with `start`."""
    beside: dict[str, set[str]] = {}
    for each in pairs:
        beside.setdefault(each.build, set()).add(each.base)
        beside.setdefault(each.base, set()).add(each.build)
    reached, todo = {start}, [start]
    while todo:
        new = beside.get(todo.pop(), set()) - reached
        reached |= new
        todo += new
    return reached
