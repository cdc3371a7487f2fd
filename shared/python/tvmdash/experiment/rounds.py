"""The choice of points and sample counts of a round, by the rounds before it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence

from tvmdash.experiment.config import Precision
from tvmdash.experiment.info import Clock
from tvmdash.experiment.paired.pairs import Pair
from tvmdash.measure import content
from tvmdash.measure.capture import Trial
from tvmdash.measure.reduction import PairedRatio, Reduced, reduce_processes
from tvmdash.measure.under_load import LEAST_S, was_watched
from tvmdash.trial_util import MIN_SAMPLES

MOST_TIMES = 4
"""Limit of a later process's samples, as a multiple of `repeat`."""
KNOWN_WITHIN, LONG_S = 0.01, 0.5
"""Half the 95 % interval of a pair's ratio by its own turns, and the seconds a side; either one is enough."""
FEWEST_TURNS = 5
"""Turns of a pair at least, so that one turn that the machine disturbed is outvoted."""


def is_wanted(trials: Sequence[Trial], precision: Precision) -> bool:
    """Return True where a point with these trials is measured in the next round: not once it failed."""
    if any(trial.error for trial in trials):
        return False
    return len(trials) < precision.rounds and (not trials or not precision.reached(_reduce(trials)))


def find_content(trials: Sequence[Trial]) -> str | None:
    """Return the hash of all that a point ran in these trials; None where they differ, or it is not known."""
    hashes = {trial.facts.get(content.FACT) for trial in trials}
    return hashes.pop() if len(hashes) == 1 else None


def is_unchanged(trials: Sequence[Trial], measured: Mapping[str, int], precision: Precision) -> bool:
    """Return True where the trials ran, byte for byte, a program that earlier nights measured often enough.

    measured: how many pairs these had, by the hash of what they ran.
    """
    return measured.get(find_content(trials) or "", 0) >= precision.pairs


def is_pair_wanted(
    trials: Sequence[Trial], ratio: PairedRatio | None, precision: Precision, measured: Mapping[str, int]
) -> bool:
    """Return True where a point with tonight's trials and that ratio has another pair: not once it failed.

    One pair is enough of what is unchanged; `measured` as in `is_unchanged`.
    """
    if any(trial.error for trial in trials):
        return False
    if ratio is not None and is_unchanged(trials, measured, precision):
        return False
    return len(trials) < precision.pair_rounds and not precision.pairs_reached(ratio)


def is_affordable(
    group: str,
    took_s: Mapping[str, float],
    times: Mapping[str, int],
    least: int,
    left_s: float,
    finished: Collection[str] = (),
) -> bool:
    """Return True where another process of the group fits in the time left; its first one always may begin.

    took_s, times: of each group's processes, how long the last one took and how many there were. Groups that take less
    time have `least` processes each first, but those that are finished.
    """
    if group not in took_s:
        return True
    cheaper = [name for name, cost_s in took_s.items() if cost_s < took_s[group] and name not in finished]
    needed_s = sum(took_s[name] * max(0, least - times[name]) for name in cheaper)
    return took_s[group] + needed_s <= left_s


def find_seconds_of_next(took_s: float, trials: Sequence[Trial]) -> float:
    """Return the seconds expected of a group's next process, from its last: cards are watched in the first only."""
    return took_s - LEAST_S * sum(was_watched(trial.facts) for trial in trials)


def count_samples_of_next(trials: Sequence[Trial], repeat: int) -> int:
    """Return the samples of the point's next process: the number that makes the whole cheapest.

    Kalibera & Jones 2013, equation 2: the root of (cost of a process / cost of a sample) times (variance within /
    variance between). The processes before this one tell it, so that no sample can end its own process. With fewer
    than three of them it is `repeat`.
    """
    if len(trials) < 3:
        return repeat
    timed_ms = [sum(sample.elapsed_ns for sample in trial.samples) / 1e6 for trial in trials]
    whole_ms = [(trial.ended_ns - trial.started_ns) / 1e6 for trial in trials]
    count = statistics.fmean(len(trial.samples) for trial in trials)
    sample_ms = statistics.fmean(timed_ms) / count
    process_ms = max(0.0, statistics.fmean(whole_ms) - statistics.fmean(timed_ms))
    reduced = _reduce(trials)
    within = (reduced.within or 0.0) ** 2
    # less what the samples explain: a median of normal samples has π/2 times the variance of their mean
    between = max(0.0, (reduced.between or 0.0) ** 2 - within * math.pi / 2 / count)
    if not sample_ms or not within:
        return repeat
    best = math.sqrt(process_ms / sample_ms * within / between) if between else math.inf
    return int(max(min(repeat, MIN_SAMPLES), min(MOST_TIMES * repeat, best)))


def count_turns_of_next(pairs: Sequence[Pair], clock: Clock, repeat: int) -> int:
    """Return the turns of the point's next pair: until known to ±1 % within itself, or half a second long.

    Beyond that a process's own luck, about 1 %, is all that is left, which only another pair averages out. The pairs
    before this one tell the scatter of a turn, so that no sample can end its own process; the first takes `repeat`.
    """
    scatters, lengths_s = [], []
    for pair in pairs:
        ratios = [math.log(new / old) for new, old in pair.turns(clock)]
        scatters += [statistics.variance(ratios)] if len(ratios) > 1 else []
        lengths_s += [sample.elapsed_ns / 1e9 for sample in pair.tonight.samples]
    if not scatters or not lengths_s:
        return repeat
    known = statistics.fmean(scatters) * (1.96 / KNOWN_WITHIN) ** 2
    wanted = math.ceil(min(known, LONG_S / max(1e-9, statistics.median(lengths_s))))
    return max(min(repeat, FEWEST_TURNS), min(MOST_TIMES * repeat, wanted))


def _reduce(trials: Sequence[Trial]) -> Reduced:
    return reduce_processes([[sample.ms for sample in trial.samples] for trial in trials])
