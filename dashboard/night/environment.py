"""The environment of a stage: clean and stated, so that cron and a terminal behave alike."""

from __future__ import annotations

import os
import pwd
import sqlite3
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact
from dashboard.plan.job import REPOSITORY, Job
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records import data_stamps
from tvmdash.records.metrics import ENOUGH_RATIOS, FEWEST_ALONE
from tvmdash.series import store

SHARED = REPOSITORY / "shared"
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PASSED_ON = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "http_proxy", "https_proxy", "no_proxy", "CUDA_VISIBLE_DEVICES")
_PASSED_PREFIXES = ("PIP_", "TVMDASH_DOCKER_")

REFERENCE = "TVMDASH_REFERENCE"
"""The variable that names the file of a job's reference to its `run` stage."""


def write_reference(path: Path, reference: Artifact, measured: Mapping[str, int] | None = None) -> None:
    """Name the TVM that a job's is measured against, as docs/protocol.md says.

    measured: how many pairs of processes were measured beside it, by the hash of all that a point ran.
    """
    value = {
        "schema_version": 1,
        **reference.identity(),
        "pythonpath": [str(folder) for folder in reference.pythonpath],
        "library_path": [str(folder) for folder in reference.library_path],
        "measured": dict(measured or {}),
    }
    common.write_json(path, value)


def read_reference_artifact(path: Path) -> Artifact:
    """The TVM that `write_reference` named at `path`, as stages need it."""
    value = common.read_json(path, max_bytes=1 << 20)
    python_path, library_path = (tuple(map(Path, value[name])) for name in ("pythonpath", "library_path"))
    named = (value["key"], value["provider"], value["version"], value["commit"])
    return Artifact(*named, path.parent, python_path, library_path, value["facts"], {}, {})


def read_reference(path: Path) -> dict[str, Any] | None:
    """What records say of the TVM that `write_reference` named at `path`; None where it named none."""
    if not path.is_file():
        return None
    value = common.read_json(path)
    return {name: value[name] for name in ("key", "provider", "version", "commit", "facts")}


def count_measured(home: Home, experiment: str, reference: Artifact) -> dict[str, int]:
    """How many pairs the experiment's last night had beside this reference, by the hash of all that a point ran.

    With those of the nights before that ran the same. What that night measured as its own TVM is now the reference
    itself, which needs no other reference. Nothing is told where times are still judged: they need all their processes.
    """
    stamps = data_stamps(home.data(experiment))
    try:
        value = common.read_json(home.data_file(experiment, stamps[-1])) if stamps else {}
        if stamps and _is_judged_by_times(home, experiment):
            return {}
    except (DashboardError, sqlite3.Error):  # whoever reads that night's data, or the index, says so
        return {}
    night = common.object_in(value, "night")
    keys = {common.object_in(night, name).get("key") for name in ("artifact", "reference")}
    records = value.get("records") if isinstance(value, dict) and reference.key in keys else None
    counts: dict[str, int] = {}
    for record in records if isinstance(records, list) else ():
        content = common.object_in(common.object_in(record, "additional_info"), "content")
        name, pairs = content.get("hash"), content.get("pairs")
        if isinstance(name, str) and isinstance(pairs, int):
            counts[name] = pairs
    return counts


def _is_judged_by_times(home: Home, experiment: str) -> bool:
    """Whether the experiment's nights beside a reference are too few yet to take the place of those before them."""
    with store.open_for_reading(home.store_file, home.data(experiment), experiment) as index:
        beside = [build.reference is not None for build in index.builds(experiment).values()]
    return beside.count(False) >= FEWEST_ALONE and beside.count(True) < ENOUGH_RATIOS


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
    """The whole environment of one stage; `added` is what the home's config adds, the job's own comes last."""
    passed = {
        name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(_PASSED_PREFIXES)
    }
    python_path = [SHARED / "python", *(artifact.pythonpath if artifact else ())]
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
        environment["LD_LIBRARY_PATH"] = ":".join(map(str, artifact.library_path))
    return {**environment, **added, **job.config.get("env", {})}
