"""The environment of a stage: clean and stated, so that cron and a terminal behave alike."""

from __future__ import annotations

import json
import os
import pwd
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact
from dashboard.plan.job import REPOSITORY, Job
from tvmdash import common
from tvmdash.redaction import known_secrets, redact

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
    """The TVM that `write_reference` named at `path`, as stages need it."""
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
    """The environment of a stage for code that is not trusted: a home of its own, and nothing of the operator's.

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
    """The whole environment of one stage; `added` is what the home's config adds, the job's own comes last."""
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
