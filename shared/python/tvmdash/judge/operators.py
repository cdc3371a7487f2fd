"""Which operators got slower from one side to the other: for the command line and for the pages of incidents.

An operator of one side is that operator of the other which computes the same (its structural hash), else the one with
its name, without the compiler's numbers, and its shapes. What only one side has is new or gone.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tvmdash.judge.repeated import Apart, compare_apart
from tvmdash.judge.two import PairStanding

_NUMBER = re.compile(r"_?\d+(?=_|$)")


@dataclass(frozen=True)
class OperatorSide:
    """One side: by operator the ms of a run, a value for each process; the same of the whole; what operators are."""

    operators: Mapping[str, Sequence[float]]
    whole: Sequence[float] = ()
    known: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class OperatorChange:
    """One operator. before_ms, after_ms: medians of the processes, None where that side has it not.

    low_ms, high_ms: the change with 95 % confidence, None where fewer than three processes were measured on a side.
    processes: how many on each side. flop, bytes: of one call, where known.
    """

    name: str
    before_ms: float | None
    after_ms: float | None
    low_ms: float | None = None
    high_ms: float | None = None
    processes: tuple[int, int] = (0, 0)
    standing: PairStanding = PairStanding.BLIND
    known: Mapping[str, Any] = field(default_factory=dict)

    @property
    def change_ms(self) -> float:
        return (self.after_ms or 0.0) - (self.before_ms or 0.0)

    @property
    def is_new(self) -> bool:
        return self.before_ms is None

    @property
    def is_gone(self) -> bool:
        return self.after_ms is None

    @property
    def words(self) -> str:
        """The verdict on it in a word: new, gone, or its standing."""
        standing = "unclear" if self.standing is PairStanding.BLIND else self.standing.value
        return "new" if self.is_new else "gone" if self.is_gone else standing


@dataclass(frozen=True)
class OperatorComparison:
    """The operators, those that surely changed first, each kind by its size; whole: that of a run, timed without them.

    renumbered: some operators have other names than before.
    """

    changes: tuple[OperatorChange, ...]
    whole: OperatorChange | None
    renumbered: bool

    @property
    def unexplained_ms(self) -> float | None:
        """The change of the whole that the operators leave; None where that was not timed."""
        whole = self.whole
        return None if whole is None else whole.change_ms - sum(change.change_ms for change in self.changes)


def compare_operators(before: OperatorSide, after: OperatorSide, *, in_turn: bool = False) -> OperatorComparison:
    """Compare the operators. in_turn: both sides were measured at once, in turn, and not on two nights."""
    pairs = _match(before, after)
    sides = {
        str(place): Apart(first, last)
        for place, (_, first, last) in enumerate(pairs)
        if first is not None and last is not None
    }
    differences = compare_apart(sides, in_turn=in_turn)
    changes = []
    for place, (name, first, last) in enumerate(pairs):
        known = after.known.get(name) or before.known.get(name) or {}
        changes.append(_describe(name, first, last, differences.get(str(place)), known))
    is_sure = {PairStanding.WORSE, PairStanding.BETTER}
    changes.sort(key=lambda each: (each.standing not in is_sure and not each.is_new and not each.is_gone,
                                   -abs(each.change_ms), each.name))  # fmt: skip
    whole = None
    if before.whole and after.whole:
        difference = compare_apart({"": Apart(before.whole, after.whole)}, in_turn=in_turn).get("")
        whole = _describe("", before.whole, after.whole, difference, {})
    return OperatorComparison(tuple(changes), whole, before.operators.keys() != after.operators.keys())


_Pair = tuple[str, Sequence[float] | None, Sequence[float] | None]


def _match(before: OperatorSide, after: OperatorSide) -> list[_Pair]:
    """Each operator's name with its times on both sides."""
    left, right = _group(before, _find_hash), _group(after, _find_hash)
    alike = [key for key in left if key in right]
    pairs: list[_Pair] = [(right[key][0], left.pop(key)[1], right.pop(key)[1]) for key in alike]
    rest = [_regroup(side, groups) for side, groups in ((before, left), (after, right))]
    for key in dict.fromkeys([*rest[0], *rest[1]]):
        first, last = rest[0].get(key), rest[1].get(key)
        name = last[0] if last is not None else first[0] if first is not None else ""
        pairs.append((name, first and first[1], last and last[1]))
    return pairs


_Groups = dict[Hashable, tuple[str, list[float]]]


def _group(side: OperatorSide, find_key: Any) -> _Groups:
    """The operators by a key, those that share one added up; each with a name of it."""
    groups: _Groups = {}
    for name, times in side.operators.items():
        key = find_key(side, name)
        first, sums = groups.get(key, (name, [0.0] * len(times)))
        groups[key] = first, [total + time for total, time in zip(sums, times, strict=True)]
    return groups


def _regroup(side: OperatorSide, groups: _Groups) -> _Groups:
    """Group the rest by name without numbers and by shapes."""
    left = dict(groups.values())
    return _group(OperatorSide(left, known=side.known), _find_stem)


def _find_hash(side: OperatorSide, name: str) -> Hashable:
    known = side.known.get(name, {})
    return known.get("hash") or name


def _find_stem(side: OperatorSide, name: str) -> Hashable:
    return _NUMBER.sub("", name), side.known.get(name, {}).get("shapes", "")


def _describe(
    name: str, first: Sequence[float] | None, last: Sequence[float] | None, difference: Any, known: Mapping[str, Any]
) -> OperatorChange:
    before, after = (None if times is None else median(times) for times in (first, last))
    counted = len(first or ()), len(last or ())
    if difference is None or before is None:
        return OperatorChange(name, before, after, processes=counted, known=known)
    low, high = (None if bound is None else before * bound for bound in (difference.low, difference.high))
    return OperatorChange(name, before, after, low, high, counted, difference.standing, known)
