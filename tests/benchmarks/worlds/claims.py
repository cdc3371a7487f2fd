"""What must hold of a situation besides that nothing false is told; each claim gives its fault, or None."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.benchmarks.worlds.play import Night
from tests.benchmarks.worlds.scoring import Score
from tests.benchmarks.worlds.world import Step, World

Claim = Callable[[Score], str | None]


@dataclass(frozen=True)
class Case:
    """A world, and what must hold of what is said in it."""

    world: World
    claims: Sequence[Claim] = ()


def told_by(step: Step, within: int = 0) -> Claim:
    """It is told the same night, or so many nights later."""

    def claim(score: Score) -> str | None:
        delay = score.delay(step)
        if delay is None:
            return f"never told: {100 * step.size:+.1f} % from build {step.begin}"
        return f"told {delay} nights late, not {within}" if delay > within else None

    return claim


def one_incident(step: Step, share: float = 0.8) -> Claim:
    """It is told once, of nearly all of its series that the night measured, together."""

    def claim(score: Score) -> str | None:
        told = [match for match in score.matches if match.edge and match.edge.step is step]
        if len(told) > 1:
            return f"told as {len(told)} incidents"
        for match in told:
            seen = step.series & next(night.seen for night in score.nights if night.number == match.night)
            if len(seen.intersection(match.told.series)) < share * len(seen):
                return f"told of {len(match.told.series)} of {len(seen)} series"
        return None

    return claim


def few_series(step: Step, most: int) -> Claim:
    """What is told of it names no more series than so many."""

    def claim(score: Score) -> str | None:
        groups = [match.told.series for match in score.matches if match.edge and match.edge.step is step]
        wide = [len(group) for group in groups if len(group) > most]
        return f"told of {wide[0]} series, it moved {len(step.series)}" if wide else None

    return claim


def fixed_by(step: Step, within: int = 0) -> Claim:
    """Its end is told as fixed the same night, or so many nights later."""

    def claim(score: Score) -> str | None:
        after = score.fixed_after(step)
        return None if after is not None and after <= within else f"fixed after {after} nights, not {within}"

    return claim


def open_while_it_stands(step: Step, within: int = 0) -> Claim:
    """An incident of it is open on each night whose build has it, from so many nights after the first on."""

    def claim(score: Score) -> str | None:
        for night in _standing(score, step)[within:]:
            if not any(step.series.intersection(group) for group in night.verdict.open.values()):
                return f"not open on night {night.number}, build {night.build}"
        return None

    return claim


def not_open_without_it(step: Step) -> Claim:
    """No incident of its series is open on nights whose build lacks it."""

    def claim(score: Score) -> str | None:
        for night in score.nights_of(step, step.begin):
            if not step.is_in(night.build) and not night.is_older:
                for group in night.verdict.open.values():
                    if step.series.intersection(group):
                        return f"open on night {night.number}, whose build {night.build} does not have it"
        return None

    return claim


def never_green(step: Step) -> Claim:
    """Each night that measures it tells, suspects, leaves undecided or has open at least one of its series."""

    def claim(score: Score) -> str | None:
        for night in _standing(score, step):
            if step.series & night.seen and score.is_green(night, step):
                return f"green over it on night {night.number}"
        return None

    return claim


def _standing(score: Score, step: Step) -> list[Night]:
    return [night for night in score.nights_of(step, step.begin) if step.is_in(night.build)]


def nothing_said(first: int = 0, last: int = 10**6, series: Iterable[str] = ()) -> Claim:
    """Nothing but a suspicion is told on these nights, of these series or of any."""
    only = frozenset(series)

    def claim(score: Score) -> str | None:
        for night in score.nights:
            for told in night.verdict.told:
                concerns = not only or only.intersection(told.series)
                if first <= night.number <= last and told.decision != "suspect" and concerns:
                    return f"{told.decision} on night {night.number} of {told.series[:2]}"
        return None

    return claim


def says(decision: str, first: int, last: int) -> Claim:
    """This is told at least once on these nights."""

    def claim(score: Score) -> str | None:
        for night in score.nights:
            if first <= night.number <= last and any(told.decision == decision for told in night.verdict.told):
                return None
        return f"no word of {decision} on nights {first} to {last}"

    return claim


def ambers_at_most(most: int) -> Claim:
    """No more nights than so many suspect something."""

    def claim(score: Score) -> str | None:
        ambers = sum(any(told.decision == "suspect" for told in night.verdict.told) for night in score.nights)
        return f"{ambers} amber nights" if ambers > most else None

    return claim


def not_suspected(series: str) -> Claim:
    """Nothing at all is said of a series."""

    def claim(score: Score) -> str | None:
        for night in score.nights:
            for told in night.verdict.told:
                if series in told.series:
                    return f"{told.decision} on night {night.number} of {series}"
        return None

    return claim
