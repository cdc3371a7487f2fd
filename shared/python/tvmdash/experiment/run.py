"""The run stage: rounds of measuring processes, each round in an order of its own.

Every group has a process of its own in every round, so that engines and points take turns over the whole run: what the
machine does meanwhile falls on all of them.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic

from tvmdash import common
from tvmdash.config_util import Config
from tvmdash.dashboard_info.stages import POINTS_FILE
from tvmdash.errors import DashboardError
from tvmdash.experiment import engine_store
from tvmdash.experiment.config import MeasuringConfig
from tvmdash.experiment.info import Clock, Measurable, Point
from tvmdash.experiment.paired.pairs import CPU, Pair, combine, match_pairs
from tvmdash.experiment.paired.reference import read_reference
from tvmdash.experiment.per_operator import is_asked
from tvmdash.experiment.points import MeasuringJob, PointGroup, group_points, key, name_values, plan_points
from tvmdash.experiment.processes import Jobs, Processes
from tvmdash.experiment.rounds import (
    count_samples_of_next,
    count_turns_of_next,
    find_seconds_of_next,
    is_affordable,
    is_pair_wanted,
    is_wanted,
)
from tvmdash.machine.devices import CPU as CPU_DEVICE
from tvmdash.machine.devices import find_device
from tvmdash.measure.capture import Trial, read_trials
from tvmdash.measure.reduction import PairedRatio
from tvmdash.records.metrics import COMPILE_TIME

PLAN_FILE, ENDED_FILE = "plan.json", "ended.json"


@dataclass
class _Run(Generic[Config]):
    """A run under way: each point's trials, and why each group's last process failed.

    lone: the points that the reference could not measure. took_s, times: of each group's processes, the seconds
    that the next one is expected to take and how many there were; compile_s: the seconds of those that only compiled.
    compiled_now: the points that were compiled ahead in this round.
    """

    experiment: Measurable[Config]
    config: Config
    measuring: MeasuringConfig
    processes: Processes
    trials: dict[str, list[Trial]] = field(default_factory=dict)
    of_reference: dict[str, list[Trial]] = field(default_factory=dict)
    lone: dict[str, str] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    took_s: dict[str, float] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)
    compile_s: dict[str, float] = field(default_factory=dict)
    compiled_now: set[str] = field(default_factory=set)
    begun: float = field(default_factory=time.monotonic)

    @property
    def rounds(self) -> int:
        precision = self.measuring.precision
        return max(precision.rounds, precision.pair_rounds if self.processes.reference else 0)

    @property
    def measured(self) -> Mapping[str, int]:
        """Return the pairs of earlier nights beside the reference; see `Reference`."""
        return self.processes.reference.measured if self.processes.reference else {}

    def jobs(self, group: PointGroup, number: int) -> Jobs:
        """Return the group's remaining jobs of this round, in an order of this round's."""
        jobs = [job for point in group.points if (job := self._job(group, point, number)) is not None]
        _draw(group.name, number).shuffle(jobs)
        return tuple(jobs)

    def _job(self, group: PointGroup, point: Point, number: int) -> MeasuringJob | None:
        name = name_values(self.experiment.axes, point)
        trials, repeat = self.trials.get(key(name), []), self.measuring.repeat
        one_core = self.clock(point) == CPU
        profile = not trials or is_asked(self.config)
        if self.is_paired(group, point):
            if not is_pair_wanted(trials, self.ratio(point), self.measuring.precision, self.measured):
                return None
            alone, known = number in self.compiling_rounds, self.pairs(point)
            turns = count_turns_of_next(known, self.clock(point), repeat)
            return MeasuringJob(name, turns, profile=profile, one_core=one_core, alone=alone)
        if not is_wanted(trials, self.measuring.precision) or (point.once and trials):
            return None
        samples = 1 if point.once else count_samples_of_next(trials, repeat)
        return MeasuringJob(name, samples, profile=profile)

    @property
    def compiling_rounds(self) -> set[int]:
        """Return the rounds that compile: the first, to measure the code, and one more for a second compile time.

        Where these are asked for by name, in each round.
        """
        precision = self.measuring.precision
        if COMPILE_TIME in os.environ.get("TVMDASH_METRICS", "").split():
            return set(range(self.rounds))
        return {0, (precision.pairs if self.processes.reference else precision.processes) - 1}

    def compile(self, groups: Sequence[PointGroup], number: int) -> None:
        """Compile ahead the points of this round, where that is possible and this is a round for it.

        Groups of one engine and environment share a process of each TVM, which imports it once.
        """
        self.compiled_now.clear()
        if number not in self.compiling_rounds:
            return
        shares: dict[str, list[PointGroup]] = {}
        for group in filter(lambda group: group.engine.pairable, groups):
            shares.setdefault(key({**group.environment, "": group.engine.name}), []).append(group)
        for name, share in shares.items():
            parts = [(group, jobs) for group in share if (jobs := self._jobs_ahead(group, number))]
            left_s = self._left_s() - sum(self.took_s.get(group.name, 0.0) for group in share)
            if not parts or (number and left_s < self.compile_s.get(name, 0.0)):
                continue
            begun, asked = time.monotonic(), {key(job.point) for _, jobs in parts for job in jobs}
            beside = asked - self.lone.keys() if self.processes.reference else ()
            self.processes.compile(parts, frozenset(beside), number)
            self.compile_s[name] = time.monotonic() - begun
            self.compiled_now |= asked

    def _jobs_ahead(self, group: PointGroup, number: int) -> Jobs:
        """Return the jobs to compile for the group in this round: in a later one only those compiled before."""
        ahead = {key(name_values(self.experiment.axes, point)) for point in filter(self._can_compile, group.points)}
        ahead &= self.processes.built if number else ahead
        return tuple(job for job in self.jobs(group, number) if key(job.point) in ahead)

    def _can_compile(self, point: Point) -> bool:
        """Return False for what only tonight's TVM can run, as a tuned point, or what is linked on another machine."""
        is_here = point.device == CPU_DEVICE or find_device(point.device).tracker is None
        return self.experiment.compiles_ahead and is_here and self.experiment.is_paired(point, self.config)

    def is_paired(self, group: PointGroup, point: Point) -> bool:
        """Return True where the point is measured beside the reference."""
        possible = self.processes.reference is not None and group.engine.pairable
        known = key(name_values(self.experiment.axes, point)) not in self.lone
        return possible and known and self.experiment.is_paired(point, self.config)

    def ratio(self, point: Point) -> PairedRatio | None:
        """Return the ratio to the reference, as far as it was measured."""
        return combine(self.pairs(point), self.clock(point))

    def pairs(self, point: Point) -> list[Pair]:
        """Return the pairs measured so far."""
        name = key(name_values(self.experiment.axes, point))
        return match_pairs(self.trials.get(name, []), self.of_reference.get(name, [])).get(name, [])

    def clock(self, point: Point) -> Clock:
        return self.experiment.clock(point, self.config)

    def affordable(self, group: PointGroup, others: Sequence[PointGroup], number: int) -> bool:
        """Return True where another process of the group would end within `max_minutes`; the first always may begin.

        Where a reference is measured, `others` that take less time have all the pairs that they need at least first.
        """
        precision = self.measuring.precision
        least = precision.pairs if self.processes.reference else 0
        finished = [other.name for other in others if not self.jobs(other, number)]
        return is_affordable(group.name, self.took_s, self.times, least, self._left_s(), finished)

    def _left_s(self) -> float:
        minutes = min(self.measuring.precision.max_minutes, float(os.environ.get("TVMDASH_MINUTES", "inf")))
        return minutes * 60 - (time.monotonic() - self.begun)

    def measure(self, group: PointGroup, jobs: Jobs, number: int) -> int:
        """Run one process, or a pair of them; return how many trials of tonight's it began."""
        points = {key(name_values(self.experiment.axes, point)): point for point in group.points}
        beside = frozenset(key(job.point) for job in jobs if self.is_paired(group, points[key(job.point)]))
        built = [job for job in jobs if key(job.point) in self.processes.built]
        jobs = tuple(
            replace(job, built=True, alone=key(job.point) in self.compiled_now) if job in built else job for job in jobs
        )
        begun, of_reference = time.monotonic(), list[Trial]()
        if beside:
            order = _draw(group.name, number, "turns")
            folder, reason, other = self.processes.measure_pair(group, jobs, beside, number, order)
            of_reference = list(read_trials(other))
            self._take_reference(of_reference, beside)
        else:
            folder, reason = self.processes.measure(group, jobs)
        took_s = time.monotonic() - begun
        trials = list(read_trials(folder))
        self.took_s[group.name] = find_seconds_of_next(took_s, [*trials, *of_reference])
        self.times[group.name] += 1
        for trial in trials:
            self.trials.setdefault(key(trial.point), []).append(trial)
        if reason:
            self.ended[group.name] = reason
        return len(trials)

    def _take_reference(self, trials: Sequence[Trial], beside: AbstractSet[str]) -> None:
        """Add the reference's trials; a point that failed, or was not begun, is not asked of it again."""
        for trial in trials:
            self.of_reference.setdefault(key(trial.point), []).append(trial)
            if trial.error:
                self.lone[key(trial.point)] = trial.error
        if not trials:
            self.lone |= dict.fromkeys(beside, "its process ended before it measured anything")


def run(
    experiment: Measurable[Config],
    config: Config,
    measuring: MeasuringConfig,
    config_dir: Path,
    script: Path,
    raw: Path,
) -> str:
    """Measure every point, each in several processes, and return the status.

    `script` is the experiment's file, which each measuring process executes. DashboardError where nothing could be
    measured. Raw databases, the plan and the reasons of those that did not end well are left in `raw`.
    """
    points = plan_points(experiment, config)
    groups = group_points(experiment, points, config)
    names = {key(name): group.name for group in groups for name in _name_points(experiment, group)}
    listed, reference = [name_values(experiment.axes, point) for point in points], read_reference()
    plan = {
        "points": listed,
        "groups": [names[key(name)] for name in listed],
        "once": [point.once for point in points],
        "clocks": [experiment.clock(point, config) for point in points],
        "seed": _read_seed(),
        "measured": dict(reference.measured) if reference else {},
    }
    common.write_json(raw / PLAN_FILE, plan)
    processes = Processes(
        experiment.folder / "setup", script, config_dir, raw, measuring.process_minutes, measuring.timing, reference
    )
    going = _Run(experiment, config, measuring, processes)
    try:
        _run_rounds(going, groups, raw / POINTS_FILE)
    finally:
        (raw / POINTS_FILE).unlink(missing_ok=True)
        processes.clean()
    common.write_json(raw / ENDED_FILE, going.ended)
    return _format_status(going, points=len(points))


def _run_rounds(going: _Run[Config], groups: Sequence[PointGroup], progress: Path) -> None:
    """Run the rounds; the file `progress` says meanwhile how many points were measured."""
    points = sum(len(group.points) for group in groups)
    left = [group for group in groups if _is_there(going, group)]
    for number in range(going.rounds):
        random.Random(f"{_read_seed()} {number}").shuffle(left)
        going.compile(left, number)
        for group in tuple(left):
            jobs = going.jobs(group, number)
            if not jobs or not going.affordable(group, left, number):
                continue
            begun = going.measure(group, jobs, number)
            common.write_json(progress, {"measured": len(going.trials), "points": points}, durable=False)
            if not begun:
                left.remove(group)  # a process that begins no point at all would do so again


def _is_there(going: _Run[Config], group: PointGroup) -> bool:
    engine = engine_store.find(going.experiment.folder / "setup", group.engine)
    if engine.reason:
        going.ended[group.name] = f"the engine {group.engine.name} is not installed: {engine.reason}"
    return not engine.reason


def _name_points(experiment: Measurable[Config], group: PointGroup) -> list[dict[str, Any]]:
    return [name_values(experiment.axes, point) for point in group.points]


def _draw(*of: object) -> random.Random:
    """Return a random generator of the night's seed and these keys."""
    return random.Random(" ".join(map(str, (_read_seed(), *of))))


def _read_seed() -> int:
    return int(os.environ.get("TVMDASH_SEED", "0"))


def _format_status(going: _Run[Config], *, points: int) -> str:
    """Describe points, processes and failures; DashboardError where nothing was measured."""
    measured = {name for name, trials in going.trials.items() if not any(trial.error for trial in trials)}
    reasons = [trial.error for trials in going.trials.values() for trial in trials if trial.error]
    reasons += going.ended.values()
    if not measured:
        raise DashboardError(
            f"None of {points} points could be measured: {next(iter(reasons), 'the config selects no points')}"
        )
    count = going.processes.count
    text = f"{len(measured)} of {points} points measured in {count} process{'' if count == 1 else 'es'}"
    reference = going.processes.reference
    if reference:
        pairs = match_pairs(itertools.chain(*going.trials.values()), itertools.chain(*going.of_reference.values()))
        text += f", {len(pairs)} beside TVM {reference.version}"
        text += f"; measuring the reference failed: {next(iter(going.lone.values()))}" if going.lone else ""
    again = [reason for name, reason in going.processes.unbuilt.items() if name in measured]
    text += f"; {len(again)} compiled by each process that measured them: {again[0]}" if again else ""
    return text + (f"; the first failure: {reasons[0]}" if reasons else "")
