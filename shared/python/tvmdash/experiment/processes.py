"""The measuring processes of a run: one alone, or two that take turns."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tvmdash.common.files import trees
from tvmdash.experiment import engine_store
from tvmdash.experiment.measure import MeasuringTask
from tvmdash.experiment.paired.pairs import REFERENCE, TONIGHT
from tvmdash.experiment.paired.partners import Conductor, describe_end, describe_limit, started
from tvmdash.experiment.paired.reference import Reference
from tvmdash.experiment.points import MeasuringJob, PointGroup, key
from tvmdash.measure.prebuilt import FOLDER
from tvmdash.trial_util import Timing

MEASURE = "measure"
"""Verb of the experiment's script that runs `experiment.measure`."""
MOST_PADDING = 4096
"""The environment's size moves the stack, so it is another one in every process (Mytkowicz et al. 2009)."""
Jobs = tuple[MeasuringJob, ...]
_log = logging.getLogger("experiment")


@dataclass
class Processes:
    """Starts measuring processes with the experiment's file `script`, in folders of `raw`.

    count: of processes that measure, a pair as one; compilations: of those that compile. numbers: by point, how many
    calls a sample has in turns. built: the points that are compiled already, on both sides where they are measured on
    both; unbuilt: why others could not be.
    """

    setup: Path
    script: Path
    config_dir: Path
    raw: Path
    minutes: float
    timing: Timing
    reference: Reference | None = None
    count: int = 0
    compilations: int = 0
    numbers: dict[str, int] = field(default_factory=dict)
    built: set[str] = field(default_factory=set)
    unbuilt: dict[str, str] = field(default_factory=dict)

    def compile(self, parts: Sequence[tuple[PointGroup, Jobs]], beside: frozenset[str], number: int) -> None:
        """Have tonight's TVM compile the points of the jobs, the reference those `beside`, each while the other waits.

        The groups are of one engine and environment. One process a side does it, and where one is lost, others what
        the groups after it have. What both could compile is `built`; why the rest was not, `unbuilt` says. That is
        compiled where it is measured.
        """
        self.built -= {key(job.point) for _, jobs in parts for job in jobs}
        while parts:
            parts = self._compile(parts, beside, number)

    def _compile(
        self, parts: Sequence[tuple[PointGroup, Jobs]], beside: frozenset[str], number: int
    ) -> Sequence[tuple[PointGroup, Jobs]]:
        """Compile with one process a side; return the groups that none came to, as one was lost."""
        group, every = parts[0][0], tuple(job for _, jobs in parts for job in jobs)
        sides_of = self._sides(beside & {key(job.point) for job in every})
        shares, self.compilations = (
            (every, tuple(job for job in every if key(job.point) in beside)),
            self.compilations + 1,
        )
        with contextlib.ExitStack() as stack:
            sides = []
            for side, share in zip(sides_of, shares, strict=False):
                folder = self._make_folder(f"compile_{self.compilations}_{side}")
                MeasuringTask(group.engine.name, group.environment, share, side, compiles=True).write(folder)
                own, minutes = self._environment(group, side), self.minutes * len(parts)
                sides.append(stack.enter_context(started(self._argv(folder), own, folder, share, minutes)))
            conductor = Conductor(self.timing, random.Random(number))
            for at, (_, jobs) in enumerate(parts):
                failed = conductor.compile(sides, jobs)
                self.unbuilt |= failed
                self.built |= {key(job.point) for job in jobs} - failed.keys()
                if any(side.lost for side in sides):
                    return parts[at + 1 :]
            for partner in sides:
                partner.close()
        return ()

    def measure(self, group: PointGroup, jobs: Jobs) -> tuple[Path, str | None]:
        """Run one process of tonight's alone; return its folder, and why it failed."""
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
        self, group: PointGroup, jobs: Jobs, beside: frozenset[str], pair: int, order: random.Random
    ) -> tuple[Path, str | None, Path]:
        """Run two processes in turn, the reference's with the points `beside`; also return the reference's folder."""
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
        """Remove the compiled code."""
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
