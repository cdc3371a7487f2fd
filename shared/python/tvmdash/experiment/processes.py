"""The measuring processes of a run: one alone, or two that take turns."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tvmdash.experiment import engine_store
from tvmdash.experiment.measure import MeasuringJob, MeasuringTask
from tvmdash.experiment.paired.pairs import REFERENCE, TONIGHT
from tvmdash.experiment.paired.partners import Conductor, describe_end, describe_limit, started
from tvmdash.experiment.paired.reference import Reference
from tvmdash.experiment.points import PointGroup, key
from tvmdash.files import trees
from tvmdash.measure.prebuilt import FOLDER
from tvmdash.trial_util import Timing

MEASURE = "measure"
"""The verb of the experiment's script that `experiment.measure` stands behind."""
MOST_PADDING = 4096
"""The environment's size moves the stack, so it is another one in every process (Mytkowicz et al. 2009)."""
_log = logging.getLogger("experiment")


@dataclass
class Processes:
    """How they are started: with the experiment's file `script`, in folders of `raw`.

    numbers: by point, how many calls a sample has in turns. built: the points that are compiled already, on both sides
    where they are measured on both; unbuilt: why others could not be.
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
    built: set[str] = field(default_factory=set)
    unbuilt: dict[str, str] = field(default_factory=dict)

    def compile(self, group: PointGroup, jobs: tuple[MeasuringJob, ...], beside: frozenset[str], number: int) -> None:
        """Have tonight's TVM compile the points of the jobs, the reference those `beside`, each while the other waits.

        What both could compile is `built`; why the rest was not, `unbuilt` says. That is compiled where it is measured.
        """
        folders = [self._make_folder(f"compile_{number}_{self.count}_{side}") for side in self._sides(beside)]
        parts = [jobs, tuple(job for job in jobs if key(job.point) in beside)]
        self.built -= {key(job.point) for job in jobs}
        with contextlib.ExitStack() as stack:
            sides = []
            for side, folder, part in zip(self._sides(beside), folders, parts, strict=False):
                MeasuringTask(group.engine.name, group.environment, part, side, compiles=True).write(folder)
                environment = self._environment(group, side)
                sides.append(stack.enter_context(started(self._argv(folder), environment, folder, part, self.minutes)))
            failed = Conductor(self.timing, random.Random(number)).compile(sides, jobs)
            reasons = [reason for side in sides if (reason := side.close())]
        failed |= {key(job.point): reasons[0] for job in jobs if reasons}
        self.unbuilt |= failed
        self.built |= {key(job.point) for job in jobs} - failed.keys()

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
        tonight, folder = self._make_folder(f"process_{self.count}"), self._make_folder(f"reference_{self.count}")
        self.count += 1
        shared = tuple(job for job in jobs if key(job.point) in beside)
        MeasuringTask(group.engine.name, group.environment, jobs, TONIGHT, pair).write(tonight)
        MeasuringTask(group.engine.name, group.environment, shared, REFERENCE, pair).write(folder)
        padding = [{"TVMDASH_PADDING": "x" * order.randrange(MOST_PADDING)} for _ in range(2)]
        ours, theirs = self._environment(group), self._environment(group, REFERENCE)
        conductor = Conductor(self.timing, order, numbers=self.numbers)
        with (
            started(self._argv(tonight), {**ours, **padding[0]}, tonight, jobs, self.minutes) as new,
            started(self._argv(folder), {**theirs, **padding[1]}, folder, shared, self.minutes) as old,
        ):
            conductor.conduct([new, old], jobs)
            reasons = [side.close() for side in (new, old)]
        if reasons[1]:
            _log.warning("%s on the reference: %s", group.name, reasons[1])
        return tonight, reasons[0], folder

    def clean(self) -> None:
        """Remove what was compiled."""
        trees.remove(self.raw / FOLDER)

    @staticmethod
    def _sides(beside: frozenset[str]) -> tuple[str, ...]:
        return (TONIGHT, REFERENCE) if beside else (TONIGHT,)

    def _make_folder(self, name: str) -> Path:
        folder = self.raw / name
        folder.mkdir()
        return folder

    def _argv(self, folder: Path) -> list[str]:
        return [sys.executable, str(self.script), MEASURE, str(self.config_dir), str(folder)]

    def _environment(self, group: PointGroup, side: str = TONIGHT) -> Mapping[str, str]:
        engine = engine_store.find(self.setup, group.engine)
        path = [*filter(None, [engine.path, os.environ.get("PYTHONPATH", "")])]
        own = {**os.environ, "PYTHONPATH": os.pathsep.join(path), **group.environment}
        return self.reference.environment(own) if self.reference and side == REFERENCE else own
