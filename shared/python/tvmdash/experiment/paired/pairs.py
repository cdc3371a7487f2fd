"""Pairs of trials measured in turn, tonight's and the reference's, and their ratio."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvmdash.experiment.info import Clock
from tvmdash.experiment.points import key
from tvmdash.machine import devices
from tvmdash.measure.capture import Sample, Trial
from tvmdash.measure.reduction import PairedRatio, combine_pairs, log_ratio_of_turns, reduce_processes
from tvmdash.records.metrics import COMPILE_CPU_TIME, COMPILE_TIME, IN_TURN, METRICS, RUN_TIME, read_own

TONIGHT, REFERENCE = ("tonight", "reference")
OF_PAIR = frozenset({"side", "pair"})
"""A process's facts about its place in a pair."""
CODE_LAYOUT = "code_layout"
"""Condition of a trial whose library was linked in another layout than its own: the number of that layout."""
CPU: Clock = "cpu"
WALL: Clock = "wall"


@dataclass(frozen=True)
class Pair:
    """One point measured in turn by two processes; a half without its other half is no pair."""

    tonight: Trial
    reference: Trial

    def log_ratio(self, clock: Clock) -> float | None:
        """Return the natural logarithm of tonight / reference by that clock; None where it did not run."""
        turns = self.turns(clock)
        return log_ratio_of_turns(*zip(*turns, strict=True)) if turns else None

    def turns(self, clock: Clock) -> list[tuple[float, float]]:
        """Return the times of a call in each turn, tonight's and the reference's, in nanoseconds."""
        times = [[_time(sample, clock) for sample in trial.samples] for trial in (self.tonight, self.reference)]
        return [(new, old) for new, old in zip(*times, strict=False) if new and old]


def _time(sample: Sample, clock: Clock) -> float | None:
    taken_ns = sample.elapsed_ns if clock == WALL else sample.cpu_ns
    return taken_ns / sample.number if taken_ns else None


def is_of_reference(trial: Trial) -> bool:
    """Return True where a process of the reference took the trial."""
    return bool(trial.process.get("side") == REFERENCE)


def match_pairs(tonight: Iterable[Trial], reference: Iterable[Trial]) -> dict[str, list[Pair]]:
    """Return, by the key of the point, the pairs of trials that ended well on both sides, in order."""
    other = {(trial.process.get("pair"), key(trial.point)): trial for trial in reference if not trial.error}
    pairs: dict[str, list[Pair]] = {}
    for trial in tonight:
        name = key(trial.point)
        half = other.get((trial.process.get("pair"), name))
        if half is not None and trial.process.get("side") == TONIGHT and not trial.error:
            pairs.setdefault(name, []).append(Pair(trial, half))
    return pairs


def combine(pairs: Sequence[Pair], clock: Clock) -> PairedRatio | None:
    """Return the ratio over all pairs; None where none has a time by that clock."""
    log_ratios = [ratio for pair in pairs if (ratio := pair.log_ratio(clock)) is not None]
    return combine_pairs(log_ratios) if log_ratios else None


def describe(pairs: Sequence[Pair], clock: Clock) -> dict[str, Any] | None:
    """Return the record's `additional_info.paired`; None where there is no ratio."""
    ratio = combine(pairs, clock)
    if ratio is None:
        return None
    wall = combine(pairs, WALL) if clock == CPU else None
    others = {name: _describe_ratio(*found) for name in IN_TURN if (found := _combine_facts(pairs, name))}
    ratios = {RUN_TIME: _describe_ratio(ratio, clock, wall) | _find_layout(pairs), **others}
    timed_ns = sum(
        sample.elapsed_ns for pair in pairs for half in (pair.tonight, pair.reference) for sample in half.samples
    )
    reference = _describe_reference([pair.reference for pair in pairs])
    return {"ratios": ratios, "reference": reference, "timed_s": timed_ns / 1e9}


def _describe_ratio(ratio: PairedRatio, clock: Clock, wall: PairedRatio | None = None) -> dict[str, Any]:
    said = {
        "clock": clock,
        "log_ratios": list(ratio.log_ratios),
        "wall_log_ratios": list(wall.log_ratios) if wall else None,
        "ratio": ratio.ratio,
        "low": ratio.low,
        "high": ratio.high,
    }
    return {name: value for name, value in said.items() if value is not None}


def _find_layout(pairs: Sequence[Pair]) -> dict[str, int]:
    """Return the code layout that all processes share; empty where it is the default, or there is no library.

    The code of another device lies where its driver loads it.
    """
    halves = [half for pair in pairs for half in (pair.tonight, pair.reference)]
    found = {half.facts.get("conditions", {}).get(CODE_LAYOUT) for half in halves if devices.FACT not in half.facts}
    layout = found.pop() if len(found) == 1 else None
    return {"layout": layout} if layout else {}


def _combine_facts(pairs: Sequence[Pair], name: str) -> tuple[PairedRatio, Clock] | None:
    """Return the ratio of a time that both processes of some pairs report, by the CPU clock where they know it."""
    clocks: dict[str, Clock] = {COMPILE_CPU_TIME: CPU} if name == COMPILE_TIME else {}
    for fact, clock in {**clocks, name: WALL}.items():
        both = [(pair.tonight.facts.get(fact), pair.reference.facts.get(fact)) for pair in pairs]
        logs = [math.log(new / old) for new, old in both if new and old]
        if logs:
            return combine_pairs(logs), clock
    return None


def _describe_reference(trials: Sequence[Trial]) -> Mapping[str, Any]:
    """Return the reference's own numbers, by the names of a record's metrics, and the hash of its generated code."""
    facts = [trial.facts for trial in trials]
    own = {RUN_TIME: reduce_processes([[sample.ms for sample in trial.samples] for trial in trials]).median}
    for metric in (*METRICS, *read_own(facts[0])):
        values = [known[metric.place[-1]] for known in facts if known.get(metric.place[-1]) is not None]
        if not values or metric.name in own:
            continue
        if metric.kind == "time":
            own[metric.name] = statistics.median(values)
        elif len(set(values)) == 1:  # its processes agree, or it is no exact number
            own[metric.name] = values[0]
    return {**own, **{name: facts[0][name] for name in ("module_hash",) if name in facts[0]}}
