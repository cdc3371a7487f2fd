"""The run stage: rounds of measuring processes, each round in an order of its own.

Every group has a process of its own in every round, so that engines and points take turns over the whole run: what the
machine does meanwhile falls on all of them.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

from tvmdash import common
from tvmdash.config_util import Config
from tvmdash.errors import DashboardError
from tvmdash.experiment import engine_store
from tvmdash.experiment.config import MeasuringConfig
from tvmdash.experiment.info import Measurable
from tvmdash.experiment.measure import Job, Task
from tvmdash.experiment.points import Group, group_points, key, name_values, plan_points
from tvmdash.experiment.rounds import count_samples_of_next, is_wanted
from tvmdash.measure.capture import Trial, read_trials
from tvmdash.stages import read_status

PLAN_FILE, ENDED_FILE = "plan.json", "ended.json"
MEASURE = "measure"
"""The verb of the experiment's script that `experiment_measure.measure` stands behind."""
_log = logging.getLogger("experiment")


@dataclass
class _Run(Generic[Config]):
    """A run under way: what each point has so far, and how each group's last process ended where not well."""

    experiment: Measurable[Config]
    measuring: MeasuringConfig
    config_dir: Path
    script: Path
    raw: Path
    trials: dict[str, list[Trial]] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    took_s: dict[str, float] = field(default_factory=dict)
    processes: int = 0
    begun: float = field(default_factory=time.monotonic)

    def jobs(self, group: Group, number: int) -> tuple[Job, ...]:
        """What is still to be measured of the group in this round, in an order of this round's."""
        repeat, jobs = self.measuring.repeat, []
        for point in group.points:
            name = name_values(self.experiment.axes, point)
            trials = self.trials.get(key(name), [])
            if is_wanted(trials, self.measuring.precision) and not (point.once and trials):
                samples = 1 if point.once else count_samples_of_next(trials, repeat)
                jobs.append(Job(name, samples, profile=not trials))
        random.Random(f"{_read_seed()} {group.name} {number}").shuffle(jobs)
        return tuple(jobs)

    def affordable(self, group: Group) -> bool:
        """Whether another process of the group would end within `max_minutes`; the first one always may begin."""
        age_s = time.monotonic() - self.begun
        took_s = self.took_s.get(group.name)
        return took_s is None or age_s + took_s <= self.measuring.precision.max_minutes * 60

    def measure(self, group: Group, jobs: tuple[Job, ...]) -> None:
        """One process."""
        folder = self.raw / f"process_{self.processes}"
        self.processes += 1
        folder.mkdir()
        Task(group.engine.name, group.environment, jobs).write(folder)
        begun = time.monotonic()
        reason = self._start(group, folder)
        self.took_s[group.name] = time.monotonic() - begun
        for trial in read_trials(folder):
            self.trials.setdefault(key(trial.point), []).append(trial)
        if reason:
            self.ended[group.name] = reason

    def _start(self, group: Group, folder: Path) -> str | None:
        """Words where the process did not come to its end."""
        engine = engine_store.find(self.experiment.folder / "setup", group.engine)
        path = [*filter(None, [engine.path, os.environ.get("PYTHONPATH", "")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), **group.environment}
        argv = [sys.executable, str(self.script), MEASURE, str(self.config_dir), str(folder)]
        minutes = self.measuring.process_minutes
        try:
            code = subprocess.run(argv, env=environment, check=False, timeout=minutes * 60).returncode
        except subprocess.TimeoutExpired:
            return f"its process did not end within {minutes:g} min (process_minutes) and was ended"
        if code < 0:
            return f"its process was ended by {signal.Signals(-code).name}"
        try:
            status = read_status(folder)
        except DashboardError as error:
            return f"its process exited with {code}. {error}"
        return None if status.success else status.message


def run(
    experiment: Measurable[Config],
    config: Config,
    measuring: MeasuringConfig,
    config_dir: Path,
    script: Path,
    raw: Path,
) -> str:
    """Measure every point, each in several processes; how it went in words.

    `script` is the experiment's file, which each measuring process executes. DashboardError where nothing could be
    measured. Raw databases, the plan and the reasons of those that did not end well are left in `raw`.
    """
    points = plan_points(experiment, config)
    groups = group_points(experiment, points, config)
    names = {key(name): group.name for group in groups for name in _name_points(experiment, group)}
    listed = [name_values(experiment.axes, point) for point in points]
    plan = {
        "points": listed,
        "groups": [names[key(name)] for name in listed],
        "once": [point.once for point in points],
        "seed": _read_seed(),
    }
    common.write_json(raw / PLAN_FILE, plan)
    going = _Run(experiment, measuring, config_dir, script, raw)
    _run_rounds(going, groups)
    common.write_json(raw / ENDED_FILE, going.ended)
    return _format_status(going, points=len(points))


def _run_rounds(going: _Run[Config], groups: Sequence[Group]) -> None:
    left = [group for group in groups if _is_there(going, group)]
    for number in range(going.measuring.precision.rounds):
        random.Random(f"{_read_seed()} {number}").shuffle(left)
        for group in tuple(left):
            jobs = going.jobs(group, number)
            if not jobs or not going.affordable(group):
                continue
            before = sum(map(len, going.trials.values()))
            going.measure(group, jobs)
            if sum(map(len, going.trials.values())) == before:
                left.remove(group)  # a process that begins no point at all would do so again


def _is_there(going: _Run[Config], group: Group) -> bool:
    engine = engine_store.find(going.experiment.folder / "setup", group.engine)
    if engine.reason:
        going.ended[group.name] = f"the engine {group.engine.name} is not here: {engine.reason}"
    return not engine.reason


def _name_points(experiment: Measurable[Config], group: Group) -> list[dict[str, Any]]:
    return [name_values(experiment.axes, point) for point in group.points]


def _read_seed() -> int:
    return int(os.environ.get("TVMDASH_SEED", "0"))


def _format_status(going: _Run[Config], *, points: int) -> str:
    """How many points were measured, in how many processes, and why others were not; DashboardError where none was."""
    good = [trials for trials in going.trials.values() if not any(trial.error for trial in trials)]
    reasons = [trial.error for trials in going.trials.values() for trial in trials if trial.error]
    reasons += going.ended.values()
    if not good:
        raise DashboardError(f"None of {points} points could be measured: {next(iter(reasons), 'there are no points')}")
    text = f"{len(good)} of {points} points measured in {going.processes} processes"
    return text + (f"; the first failure: {reasons[0]}" if reasons else "")
