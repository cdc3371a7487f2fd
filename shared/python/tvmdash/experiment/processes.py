"""The measuring processes of a run: one alone, or two that take turns."""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tvmdash.experiment import engine_store
from tvmdash.experiment.measure import MeasuringJob, MeasuringTask
from tvmdash.experiment.paired.pairs import REFERENCE, TONIGHT
from tvmdash.experiment.paired.partners import Conductor, describe_end, describe_limit, started
from tvmdash.experiment.paired.reference import Reference
from tvmdash.experiment.points import PointGroup, key
from tvmdash.trial_util import Timing

MEASURE = "measure"
"""The verb of the experiment's script that `experiment.measure` stands behind."""
COMPILED_ALONE = 2
"""In so many pairs each side compiles while the other sleeps, so that compile times are right; then both at once."""
MOST_PADDING = 4096
"""The environment's size moves the stack, so it is another one in every process (Mytkowicz et al. 2009)."""
_log = logging.getLogger("experiment")


@dataclass
class Processes:
    """How they are started: with the experiment's file `script`, in folders of `raw`.

    numbers: by point, how many calls a sample has in turns.
    """

    setup: Path
    script: Path
    config_dir: Path
    raw: Path
    minutes: float
    timing: Timing
    reference: Reference | None = None
    count: int = 0
    numbers: dict[str, int] = field(default_factory=dict)

    def measure(self, group: PointGroup, jobs: tuple[MeasuringJob, ...]) -> tuple[Path, str | None]:
        """One process of tonight's alone: the folder that it left, and words where it did not come to its end."""
        folder = self._make_folder(f"process_{self.count}")
        self.count += 1
        MeasuringTask(group.engine.name, group.environment, jobs).write(folder)
        try:
            code = subprocess.run(
                self._argv(folder), env=self._environment(group), check=False, timeout=self.minutes * 60
            ).returncode
        except subprocess.TimeoutExpired:
            return folder, describe_limit(self.minutes)
        return folder, describe_end(code, folder)

    def measure_pair(
        self, group: PointGroup, jobs: tuple[MeasuringJob, ...], beside: frozenset[str], pair: int, order: random.Random
    ) -> tuple[Path, str | None, Path]:
        """Two processes in turn, the reference's with the points `beside`: as `measure`, and the reference's folder."""
        assert self.reference is not None
        tonight, folder = self._make_folder(f"process_{self.count}"), self._make_folder(f"reference_{self.count}")
        self.count += 1
        shared = tuple(job for job in jobs if key(job.point) in beside)
        alone = pair < COMPILED_ALONE
        MeasuringTask(group.engine.name, group.environment, jobs, TONIGHT, pair, alone).write(tonight)
        MeasuringTask(group.engine.name, group.environment, shared, REFERENCE, pair, alone).write(folder)
        environment = self._environment(group)
        other = self.reference.environment(environment)
        padding = [{"TVMDASH_PADDING": "x" * order.randrange(MOST_PADDING)} for _ in range(2)]
        timing = replace(self.timing, repeat=max(job.repeat for job in jobs))
        conductor = Conductor(timing, order, alone, numbers=self.numbers)
        with (
            started(self._argv(tonight), {**environment, **padding[0]}, tonight, jobs, self.minutes) as ours,
            started(self._argv(folder), {**other, **padding[1]}, folder, shared, self.minutes) as theirs,
        ):
            conductor.conduct([ours, theirs], jobs)
            reasons = [side.close() for side in (ours, theirs)]
        if reasons[1]:
            _log.warning("%s on the reference: %s", group.name, reasons[1])
        return tonight, reasons[0], folder

    def _make_folder(self, name: str) -> Path:
        folder = self.raw / name
        folder.mkdir()
        return folder

    def _argv(self, folder: Path) -> list[str]:
        return [sys.executable, str(self.script), MEASURE, str(self.config_dir), str(folder)]

    def _environment(self, group: PointGroup) -> Mapping[str, str]:
        engine = engine_store.find(self.setup, group.engine)
        path = [*filter(None, [engine.path, os.environ.get("PYTHONPATH", "")])]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(path), **group.environment}
