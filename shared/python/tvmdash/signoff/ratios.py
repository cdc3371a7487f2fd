"""Series that were measured in turn: how B stands to A by all pairs of processes that join the two.

The nights are a graph: each pair of processes is an edge between the two TVMs that took turns. Where A was measured
beside B, these edges say nearly all; else the ratios of the nights between are a chain. The best estimate from all of
them is a sum of ratios (generalised least squares), and its error what is left of theirs: the scatter of pairs, what a
night does beyond them, and the luck of two builds, where code and data come to lie. The luck of the builds between is
on both sides of the chain, and cancels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tvmdash.contracts.signoff import SignoffEvidence
from tvmdash.detect.beside.builds import ODD_TIMES, RatioHistory
from tvmdash.detect.beside.contrasts import NIGHT_VARIANCE
from tvmdash.detect.beside.luck import FEWEST_OTHERS, LUCK_FREEDOM, LUCK_PRIOR, Learned
from tvmdash.detect.beside.rarity import points, whole_freedom
from tvmdash.detect.noise import MAD_TO_SD, FloatArray, IntArray
from tvmdash.devices import device_of
from tvmdash.series.store import code_number
from tvmdash.signoff.comparing import SAME_CODE, SeriesChange
from tvmdash.signoff.measured import MeasuredSeries, RatioOfTwo
from tvmdash.stats.spread import NOTHING, Spread, add, pool
from tvmdash.stats.student import two_sided

_MOST_BY_CHAIN = 0.5
"""ToldBetween as measured in turn where the pairs of A and B themselves say at least so much of the difference."""


@dataclass(frozen=True)
class _Joined:
    """The difference of two TVMs (log). pairs, nights: its variance, in those of one pair and of one night."""

    log: float
    pairs: float
    nights: float
    direct: float
    direct_pairs: int
    nights_used: int

    def error(self, pair: Spread) -> float:
        """The variance without luck."""
        return self.pairs * pair.variance + self.nights * NIGHT_VARIANCE


def compare_ratios(series: Sequence[MeasuredSeries], a: str, b: str) -> dict[str, SeriesChange]:
    """By key, those of one experiment that pairs join; luck is learned from its nights and from its other series."""
    having = {each.key: sorted(each.ratios, key=lambda ratio: ratio.stamp) for each in series if each.ratios}
    names = {each.key: _merge_equal(each) for each in series if each.ratios}
    devices = {each.key: device_of(each.outline.labels) for each in series}
    learned = Learned.of({key: _make_history(ratios, names[key], devices[key]) for key, ratios in having.items()})
    same = {key for key in having if names[key].get(a, a) == names[key].get(b, b)}
    asked = {key: ratios for key, ratios in having.items() if key not in same}
    every = {key: _join(ratios, names[key], (a, b), learned.pairs[key]) for key, ratios in asked.items()}
    joined = {key: each for key, each in every.items() if each is not None}
    kin = _learn_from_kin(joined, learned)
    known = pool(learned.jumps[key] for key in having).limited(LUCK_FREEDOM)
    found = dict.fromkeys(same, SAME_CODE)
    for key, each in joined.items():
        luck = pool([pool([learned.jumps[key], known, kin]).above_zero(), LUCK_PRIOR])
        found[key] = _conclude(each, learned.pairs[key], luck)
    return found


def _merge_equal(series: MeasuredSeries) -> Mapping[str, str]:
    """By TVM, one name for all that ran the same, byte for byte; a TVM stays one, whatever else its content held."""
    of_tvm: dict[str, str] = {}
    of_content: dict[int, str] = {}
    for value in sorted(series.values, key=lambda value: value.stamp):
        if value.content:
            name = of_tvm.setdefault(value.tvm, of_content.get(value.content, value.tvm))
            of_content.setdefault(value.content, name)
    return of_tvm


def _make_history(ratios: Sequence[RatioOfTwo], names: Mapping[str, str], device: str) -> RatioHistory:
    """As the nights' own judgement knows it."""
    return RatioHistory(
        np.array([ratio.log for ratio in ratios]),
        np.array([math.nan if ratio.std is None else ratio.std for ratio in ratios]),
        np.array([ratio.pairs for ratio in ratios], float),
        _number([names.get(ratio.tvm, ratio.tvm) for ratio in ratios]),
        _number([names.get(ratio.reference, ratio.reference) for ratio in ratios]),
        np.zeros(len(ratios), np.int64),
        device=device,
    )


def _number(names: Sequence[str]) -> IntArray:
    return np.array([code_number(name) for name in names], np.int64)


def _join(
    ratios: Sequence[RatioOfTwo], names: Mapping[str, str], both: tuple[str, str], pair: Spread
) -> _Joined | None:
    """The best estimate from all ratios; None where they do not join the two."""
    a, b = (names.get(name, name) for name in both)
    ends = [(names.get(ratio.tvm, ratio.tvm), names.get(ratio.reference, ratio.reference)) for ratio in ratios]
    used = [(ratio, end) for ratio, end in zip(ratios, ends, strict=True) if end[0] != end[1]]
    reached = _reach(a, [end for _, end in used])
    used = [(ratio, end) for ratio, end in used if end[0] in reached]
    if b not in reached:
        return None
    pairs = np.array([_count_pairs(ratio, pair) for ratio, _ in used])
    shares = _share([end for _, end in used], 1 / (pair.variance / pairs + NIGHT_VARIANCE), a, b)
    direct = np.array([set(end) == {a, b} for _, end in used])
    weighing = np.abs(shares) > 1e-6
    return _Joined(
        log=float(shares @ np.array([ratio.log for ratio, _ in used])),
        pairs=float((shares**2 / pairs).sum()),
        nights=float((shares**2).sum()),
        direct=float(np.abs(shares[direct]).sum()),
        direct_pairs=sum(ratio.pairs for (ratio, _), is_direct in zip(used, direct, strict=True) if is_direct),
        nights_used=len({ratio.stamp for (ratio, _), counts in zip(used, weighing, strict=True) if counts}),
    )


def _count_pairs(ratio: RatioOfTwo, pair: Spread) -> float:
    """For how many pairs a run counts: one odd process makes its mean doubtful."""
    own = (ratio.std or 0.0) ** 2
    return max(1, ratio.pairs) * (pair.variance / own if own > ODD_TIMES * pair.variance else 1.0)


def _reach(start: str, ends: Sequence[tuple[str, str]]) -> set[str]:
    """What is joined with the TVM `start`."""
    beside: dict[str, set[str]] = {}
    for one, other in ends:
        beside.setdefault(one, set()).add(other)
        beside.setdefault(other, set()).add(one)
    reached, todo = {start}, [start]
    while todo:
        new = beside.get(todo.pop(), set()) - reached
        reached |= new
        todo += new
    return reached


def _share(ends: Sequence[tuple[str, str]], weights: FloatArray, a: str, b: str) -> FloatArray:
    """What each ratio counts, with its sign, in the difference of b and a: the flow through a net of conductances."""
    places = {name: at for at, name in enumerate(sorted({name for end in ends for name in end}))}
    new, old = (np.array([places[end[side]] for end in ends]) for side in (0, 1))
    net = np.zeros((len(places), len(places)))
    np.add.at(net, (new, new), weights)
    np.add.at(net, (old, old), weights)
    np.add.at(net, (new, old), -weights)
    np.add.at(net, (old, new), -weights)
    asked = np.zeros(len(places))
    asked[places[b]], asked[places[a]] = 1.0, -1.0
    kept = np.arange(len(places)) != places[a]
    level = np.zeros(len(places))
    level[kept] = np.linalg.solve(net[np.ix_(kept, kept)], asked[kept])
    return np.asarray(weights * (level[new] - level[old]))


def _learn_from_kin(joined: Mapping[str, _Joined], learned: Learned) -> Spread:
    """How two builds differ by luck, from what all series do from A to B; robust against those that moved."""
    if len(joined) < FEWEST_OTHERS:
        return NOTHING
    logs = np.array([each.log for each in joined.values()])
    scatter = (MAD_TO_SD * float(np.median(np.abs(logs - np.median(logs))))) ** 2
    error = float(np.mean([each.error(learned.pairs[key]) for key, each in joined.items()]))
    return Spread((scatter - error) / 2, 0.4 * len(logs)).limited(LUCK_FREEDOM)


def _conclude(each: _Joined, pair: Spread, luck: Spread) -> SeriesChange:
    parts = (each.pairs, pair), (each.nights, Spread(NIGHT_VARIANCE))
    error, without_luck = add(*parts, (2.0, luck)), add(*parts)
    reach = points(error.freedom) * error.sd
    is_direct = each.direct >= _MOST_BY_CHAIN
    return SeriesChange(
        SignoffEvidence.PAIRED if is_direct else SignoffEvidence.CHAIN,
        each.log,
        each.log - reach,
        each.log + reach,
        p=two_sided(each.log / error.sd, whole_freedom(error.freedom)),
        pairs=each.direct_pairs if is_direct else 0,
        nights=each.nights_used,
        measured=points(without_luck.freedom) * without_luck.sd,
    )
