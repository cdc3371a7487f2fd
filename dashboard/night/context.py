"""The state that all steps of a night share: the plan, the TVMs, each job's folder, and the environment of stages.

That environment is clean and stated, so that cron and a terminal behave alike.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import pwd
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from dashboard.night.deadlines import JobDeadline, NightDeadlines
from dashboard.plan.job import REPOSITORY, Job, Plan
from dashboard.process.sandbox import Guest, Sandbox
from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.dashboard_info import Home
from tvmdash.dashboard_info.stages import Stage
from tvmdash.redaction import known_secrets, redact

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
        """Make the sandbox of a stage that writes to these folders (a reader of SQLite does); None if trusted."""
        guest, workspace = self.find_guest(job), self.workspace(job)
        if guest is None:
            return None
        visible = (REPOSITORY / "shared", workspace.root, self.plan.config.setup)
        return guest.make_sandbox(visible, (workspace.code, workspace.scratch, *written))

    def artifact(self, job: Job) -> Artifact | None:
        return self.artifacts.get(job.tvm) if job.tvm else None


def night_mark(home: Home, stamp: str) -> str:
    return f"{home.root}:{stamp}"


def is_mark_of(home: Home, mark: str) -> bool:
    """Return True where some night of the home started a process with this mark."""
    begin = night_mark(home, "")
    return mark.startswith(begin) and common.is_stamp(mark[len(begin) :].partition("/")[0])


SHARED = REPOSITORY / "shared"
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PASSED_ON = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "http_proxy", "https_proxy", "no_proxy", "CUDA_VISIBLE_DEVICES")
_PASSED_PREFIXES = ("PIP_", "TVMDASH_DOCKER_")
_OF_BUILD = frozenset(("toolchain", "options"))
"""The facts about an artifact's build that stages are told."""
_FOR_GUESTS = frozenset(("CUDA_VISIBLE_DEVICES",))

REFERENCE = "TVMDASH_REFERENCE"
"""The variable that names the file of a job's reference to its `run` stage."""


def write_reference(path: Path, reference: Artifact, measured: Mapping[str, int] | None = None) -> None:
    """Name the TVM that a job's is measured against, as docs/reference/protocol.md says.

    measured: how many pairs of processes were measured beside it, by the hash of all that a point ran.
    """
    value = {
        "schema_version": 1,
        **reference.identity(),
        "pythonpath": [str(folder) for folder in reference.import_path],
        "library_path": [str(folder) for folder in reference.loader_path],
        "measured": dict(measured or {}),
    }
    common.write_json(path, value)


def read_reference_artifact(path: Path) -> Artifact:
    """Read the TVM that `write_reference` named at `path`, as stages need it."""
    value = common.read_json(path, max_bytes=1 << 20)
    python_path, library_path = (tuple(map(Path, value[name])) for name in ("pythonpath", "library_path"))
    named = (value["key"], value["provider"], value["version"], value["commit"])
    return Artifact(*named, path.parent, python_path, library_path, value["facts"], {}, {})


def read_reference(path: Path) -> dict[str, Any] | None:
    """Return the fields of a record for the TVM that `write_reference` named at `path`; None where it named none."""
    if not path.is_file():
        return None
    value = common.read_json(path)
    return {name: value[name] for name in ("key", "provider", "version", "commit", "facts")}


def make_guests_environment(environment: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Make an environment for untrusted code: a home of its own, and nothing of the operator's.

    What this process was started with goes, but for the devices; what configs add stays unless it looks like a secret.
    """
    passed = {name for name in os.environ if name in _PASSED_ON or name.startswith(_PASSED_PREFIXES)} - _FOR_GUESTS
    kept = {name: value for name, value in environment.items() if name not in passed}
    secrets = known_secrets(kept)
    shown = {name: value for name, value in kept.items() if redact(value, secrets) == value}
    return {**shown, "HOME": str(scratch), "MPLCONFIGDIR": str(scratch)}


def stage_environment(
    job: Job,
    *,
    home_root: Path,
    stamp: str,
    seed: int,
    env_name: str,
    scratch: Path,
    cache: Path,
    artifact: Artifact | None,
    added: Mapping[str, str],
) -> dict[str, str]:
    """Make the whole environment of one stage; `added` is from the home's config, the job's own comes last."""
    passed = {
        name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(_PASSED_PREFIXES)
    }
    python_path = [SHARED / "python", *(artifact.import_path if artifact else ())]
    environment = {
        **passed,
        "PATH": f"{Path(sys.executable).parent}:{_SYSTEM_PATH}",
        "HOME": os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": str(scratch),
        "MPLCONFIGDIR": str(cache),
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": ":".join(map(str, python_path)),
        "BENCHMARK_DEPS": str(SHARED),
        "TVMDASH_HOME": str(home_root),
        "TVMDASH_NIGHT": stamp,
        "TVMDASH_JOB": job.name,
        "TVMDASH_SEED": str(seed),
        "TVMDASH_ENV_NAME": env_name,
    }
    if artifact:
        environment["TVMDASH_ARTIFACT"] = artifact.key
        environment["TVMDASH_BUILD"] = json.dumps(
            {name: artifact.facts[name] for name in _OF_BUILD & artifact.facts.keys()}
        )
        environment["LD_LIBRARY_PATH"] = ":".join(map(str, artifact.loader_path))
        environment |= artifact.variables
    return {**environment, **added, **job.config.get("env", {})}
