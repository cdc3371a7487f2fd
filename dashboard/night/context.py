"""The state that all steps of a night share: the plan, the TVMs, and the folder of each job."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from dashboard.night.deadlines import JobDeadline, NightDeadlines
from dashboard.plan.job import REPOSITORY, Job
from dashboard.plan.night_plan import Plan
from dashboard.process.sandbox import Guest, Sandbox
from tvmdash.common import is_stamp
from tvmdash.common.files import trees
from tvmdash.dashboard_info import Home
from tvmdash.dashboard_info.stages import Stage

_LONGEST_FINGERPRINT = 100


@dataclass(frozen=True)
class Workspace:
    """The folder of one job in one night: a copy of its code and config, and what its stages leave."""

    root: Path

    @property
    def code(self) -> Path:
        """The job's scripts as they were when the night began; stages run here."""
        return self.root / "code"

    @property
    def config(self) -> Path:
        """The job's config folder as it was when the night began."""
        return self.root / "config"

    @property
    def scratch(self) -> Path:
        """The stages' TMPDIR."""
        return self.root / "tmp"

    def of(self, stage: str) -> Path:
        """The folder that the stage writes to."""
        return self.root / stage

    @property
    def fingerprint(self) -> Path:
        """Holds the fingerprint of the code and the config as they were when the night began."""
        return self.root / "fingerprint"

    def read_fingerprint(self) -> str:
        """Return the content; empty where it cannot be read: a stage may have put something else there."""
        with contextlib.suppress(OSError), trees.open_file(self.root, self.fingerprint.name) as file:
            return file.read(_LONGEST_FINGERPRINT).decode("ascii", errors="replace")
        return ""

    @property
    def artifact(self) -> Path:
        """Holds the key of the job's artifact, for whoever saves what a killed night measured."""
        return self.root / "artifact"

    @property
    def reference(self) -> Path:
        """Names the TVM that the job's is measured against; not there where it is measured alone."""
        return self.root / "reference.json"

    @property
    def ratios(self) -> Path:
        """Holds how the numbers of an experiment that was run in turn stand to the reference's."""
        return self.root / "ratios.json"

    def log(self, stage: str) -> Path:
        """The stage's output."""
        return self.root / f"{stage}.log"


@dataclass(frozen=True)
class Context:
    """The state that all steps of a night share.

    partial: the run was ended in the middle, and only what it had committed by then counts. guest: how stages are run
    where the code of a TVM is not trusted.
    """

    home: Home
    plan: Plan
    stamp: str
    folder: Path
    repository: Mapping[str, Any]
    artifacts: dict[ArtifactSpec, Artifact] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    partial: bool = False
    guest: Guest | None = None

    @property
    def mark(self) -> str:
        """The mark in the environment of this night's processes."""
        return night_mark(self.home, self.stamp)

    def workspace(self, job: Job) -> Workspace:
        """The job's folder."""
        return Workspace(self.folder / f"{job.kind}-{job.name}")

    def find_deadline(self, job: Job, stage: Stage) -> JobDeadline:
        return self._deadlines.find(job, stage, self.workspace(job).read_fingerprint())

    @functools.cached_property
    def _deadlines(self) -> NightDeadlines:
        return NightDeadlines(self.home, self.plan.config)

    def find_guest(self, job: Job) -> Guest | None:
        """Return the sandbox settings for a job whose code is not trusted; None if it is."""
        if self.guest is None and job.is_sandboxed:
            return Guest(is_sealed=True, visible=(self.plan.config.artifacts, self.home.data(job.name)))
        return self.guest

    def make_sandbox(self, job: Job, *written: Path) -> Sandbox | None:
        """Where a stage of the job is run that writes to these folders (a reader of SQLite does); None if trusted."""
        guest, workspace = self.find_guest(job), self.workspace(job)
        if guest is None:
            return None
        visible = (REPOSITORY / "shared", workspace.root, self.plan.config.setup)
        return guest.make_sandbox(visible, (workspace.code, workspace.scratch, *written))

    def artifact(self, job: Job) -> Artifact | None:
        """The job's TVM, where it has one."""
        return self.artifacts.get(job.tvm) if job.tvm else None


def night_mark(home: Home, stamp: str) -> str:
    """The mark of one night of one home."""
    return f"{home.root}:{stamp}"


def is_mark_of(home: Home, mark: str) -> bool:
    """Return True where some night of the home started a process with this mark."""
    begin = night_mark(home, "")
    return mark.startswith(begin) and is_stamp(mark[len(begin) :].partition("/")[0])
