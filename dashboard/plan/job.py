"""Jobs of a night, each an experiment or a subsystem with its code, its config and its TVM; and the plan of them."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.plan.settings import HomeConfig
from tvmdash.config_util import Beside
from tvmdash.dashboard_info import Home, experiment_of, host_of, make_title, variant_of
from tvmdash.dashboard_info.stages import EXPERIMENT, SUBSYSTEM, Pipeline, Stage, pipeline

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLE_HOME = REPOSITORY / "sample-dashboard-home"
OF_THE_JOB = ("tvms", "hosts", "sandbox")
"""Fields of an experiment's config that say nothing of how its points are measured: they stand in the job instead."""


@dataclass(frozen=True)
class CodeFolders:
    """The folders of scripts: first these two, then the home's folders, then this repository.

    of_home: by kind of job what the home's config names.
    """

    experiment: Path | None = None
    subsystem: Path | None = None
    of_home: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)

    def of(self, row: Pipeline, name: str) -> Path:
        """Find the folder of one job; where there is none, the first place that it was looked for in."""
        name = experiment_of(name) if row.measures else name
        first = {EXPERIMENT.kind: self.experiment, SUBSYSTEM.kind: self.subsystem}[row.kind]
        every = [*([first] if first else []), *self.of_home.get(row.kind, ()), REPOSITORY / row.folder]
        return next((folder / name for folder in every if (folder / name).exists()), every[0] / name)


class Alone(enum.Enum):
    """The reason why an experiment is not measured against the night's reference."""

    NO_TVM = enum.auto()
    """It needs no TVM."""
    OWN_TVM = enum.auto()
    """Its config asks for a TVM of its own."""
    NOT_PAIRED = enum.auto()
    """Its config says `"paired": false`."""
    UNDECLARED = enum.auto()
    """It is not of the template, and does not declare that it can be."""


@dataclass(frozen=True)
class Job:
    """An experiment or a subsystem that takes part, or, with `faults`, one that is rejected for them.

    tvm: what it is measured on. others: the TVMs on which it is measured as well, each as a job of its own.
    Without needs_tvm the night does not get that TVM for it; where another job does, its results name it.
    beside: how it can be measured beside a reference, where it says so.
    hosts: the machines that measure it, each in a job of its own; the home's own is the empty name.
    is_sandboxed: its scripts see little of this machine, as its config asks.
    """

    kind: str
    name: str
    folder: Path
    config_folder: Path
    config: Mapping[str, Any]
    tvm: ArtifactSpec | None
    faults: tuple[str, ...] = ()
    others: tuple[tuple[str, ArtifactSpec], ...] = ()
    needs_tvm: bool = True
    beside: Beside | None = None
    hosts: tuple[str, ...] = ("",)
    is_sandboxed: bool = False

    @property
    def experiment(self) -> str:
        """The name of its code and config, whatever TVM it is measured on, and by whichever host."""
        return experiment_of(self.name)

    @property
    def measures(self) -> bool:
        return pipeline(self.kind).measures

    @property
    def variant(self) -> str:
        """The name of the TVM beside the home's own that it is measured on; empty for the own one."""
        return variant_of(self.name)

    @property
    def host(self) -> str:
        """The host that measures it; empty for the home's own machine."""
        return host_of(self.name)

    @property
    def alone(self) -> Alone | None:
        """The reason why it is not measured against the night's reference; None where it is."""
        if not self.needs_tvm or self.tvm is None:
            return Alone.NO_TVM
        if self.config.get("tvm_remote") or self.config.get("tvm_branch"):
            return Alone.OWN_TVM
        paired = self.config.get("paired", True if self.beside else None)
        if paired is None:
            return Alone.UNDECLARED
        return None if paired else Alone.NOT_PAIRED

    @property
    def title(self) -> str:
        return make_title(self.name, str(self.config.get("title") or self.experiment))

    @property
    def description(self) -> str:
        """The question that it answers."""
        return str(self.config.get("description", ""))

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that will run: an optional one only where its script is there."""
        return tuple(stage for stage in pipeline(self.kind).stages if not stage.optional or self.has(stage))

    def has(self, stage: Stage) -> bool:
        return (self.folder / stage.script).exists()

    def timeout_s(self, stage: Stage, home: HomeConfig) -> int:
        """Return the seconds allowed: the job's own, else the home's, else the protocol's."""
        return self.find_stated_timeout_s(stage, home) or stage.timeout_s

    def find_stated_timeout_s(self, stage: Stage, home: HomeConfig) -> int | None:
        """Return the seconds that the job's own config allows, else the home's; None where neither says."""
        own: Mapping[str, int] = self.config.get("timeouts", {})
        return own.get(stage.name) or home.timeouts.get(stage.name)


@dataclass(frozen=True)
class Plan:
    """The plan of one night. `experiments` and `subsystems` are in the order in which they run.

    away: the experiments that other hosts measure, in that order on each of them.
    drawn: nobody gave the seed, so that another night has another one.
    retired: a sentence for each field or job that its configs go on to have, and which does nothing any more.
    """

    home: Home
    config: HomeConfig
    seed: int
    experiments: tuple[Job, ...]
    subsystems: tuple[Job, ...]
    rejected: tuple[Job, ...]
    inactive: tuple[str, ...]
    drawn: bool = False
    away: tuple[Job, ...] = ()
    retired: tuple[str, ...] = ()

    @property
    def artifacts(self) -> tuple[ArtifactSpec, ...]:
        """Each TVM that an experiment wants, once; those beside the home's own come last."""
        return wanted_by((*self.experiments, *self.away))


def wanted_by(jobs: Sequence[Job]) -> tuple[ArtifactSpec, ...]:
    """List each TVM that these jobs need, once; those beside the home's own come last."""
    needing = [job for job in jobs if job.needs_tvm]
    return tuple(dict.fromkeys(job.tvm for job in sorted(needing, key=lambda job: bool(job.variant)) if job.tvm))
