"""Whether the candidate of a try is worse by more than somebody allows."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from tvmdash.contracts.tries import TriedSeries, Try
from tvmdash.records.metrics import Direction, is_worse


class Worse(enum.Enum):
    """Whether anything is worse by more."""

    YES = enum.auto()
    MAYBE = enum.auto()
    """Nothing is for sure, but some 95 % interval reaches that far, or nothing was measured."""
    NO = enum.auto()


def judge(done: Try, most: float) -> Worse:
    """Whether a real change for the worse is larger than the fraction `most`, by its best estimate."""
    found = [*(_judge_series(item, most) for item in done.series), *_judge_numbers(done, most)]
    if Worse.YES in found:
        return Worse.YES
    return Worse.MAYBE if Worse.MAYBE in found or not done.series else Worse.NO


def _judge_series(item: TriedSeries, most: float) -> Worse:
    change = item.change
    if change is None:
        return Worse.MAYBE
    if change.real and _is_over(change.effect, item.direction, most):
        return Worse.YES
    reaches = any(_is_over(end, item.direction, most) for end in (change.low, change.high))
    return Worse.MAYBE if reaches else Worse.NO


def _is_over(effect: float, direction: Direction, most: float) -> bool:
    return abs(effect) > most and is_worse(effect, direction) is True


def _judge_numbers(done: Try, most: float) -> Iterator[Worse]:
    for number in done.numbers:
        if number.is_changed:
            effect = number.candidate / number.base - 1 if number.base else float("inf")
            yield Worse.YES if _is_over(effect, number.direction, most) else Worse.NO
