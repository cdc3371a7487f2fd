"""Databases of tuned schedules: kept per TVM build by tuning, found and applied by measuring.

    $TVMDASH_TUNING/ARTIFACT_KEY/NETWORK-HASH/{database_workload.json, database_tuning_record.json, tuning.json}

The hash is of all that a schedule is made for beside the network: batch, target, pipeline. Importing this module
imports no TVM.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.errors import DashboardError
from tvmdash.relax_util import build
from tvmdash.relax_util.passes import pipeline_steps
from tvmdash.relax_util.targets import make_target

VARIABLE = "TVMDASH_TUNING"
FILES = WORKLOADS, RECORDS = "database_workload.json", "database_tuning_record.json"
FACTS = "tuning.json"
BUILDS_KEPT = 30
FAILED_S = 1e9
"""Bound above which meta_schedule's run time marks a failed trial."""


@dataclass(frozen=True)
class Subject:
    """The key of schedules."""

    network: str
    batch: int
    target: Mapping[str, Any]
    pipeline: str

    @property
    def folder(self) -> str:
        """Return the name of its folder."""
        identity = json.dumps([self.batch, self.target, self.pipeline], sort_keys=True)
        return f"{self.network}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"


def build_folder() -> Path:
    """Return the folder of this process's TVM build. Its databases load only in the version that wrote them."""
    root = os.environ.get(VARIABLE)
    if not root:
        raise DashboardError(f"not tuned: {VARIABLE}, the folder of tuning databases, is not set. Nights set it.")
    return Path(root) / (os.environ.get("TVMDASH_ARTIFACT") or _running())


def _running() -> str:
    facts = build.tvm_facts()
    return f"by-hand-{facts.version}-{facts.commit or 'unknown'}"


def find(subject: Subject) -> tuple[Path, Mapping[str, Any]]:
    """Find the subject's database and its facts; DashboardError where this build has none."""
    folder = build_folder() / subject.folder
    if not (folder / FACTS).exists():
        what = f"{subject.network} with batch {subject.batch}, pipeline {subject.pipeline}, {dict(subject.target)}"
        raise DashboardError(
            f"not tuned: no tuning database for {what} with this TVM build. Run the experiment `tuning`."
        )
    return folder, common.read_json(folder / FACTS)


def keep(subject: Subject, search: Path, trials: int, facts: Mapping[str, Any]) -> bool:
    """Keep the good ones of a search's first `trials` records as the subject's database; return True where kept.

    The first database of a build stays, so that later nights of the same build measure the same code, until one from
    more trials comes. Whether this one was kept.
    """
    folder = build_folder() / subject.folder
    before = common.read_json(folder / FACTS)["trials"] if (folder / FACTS).exists() else -1
    if trials <= before:
        return False
    # beside its place, as folders trade places on one filesystem only
    made = folder.with_name(f".{folder.name}-{os.getpid()}")
    copy_good(search, made, trials)
    common.write_json(made / FACTS, {**asdict(subject), "trials": trials, **facts})
    common.swap_in(made, folder)
    _prune(folder.parent)
    return True


def _prune(current: Path) -> None:
    """Remove the databases of all builds but the last `BUILDS_KEPT` that were tuned, and `current`."""
    # the time of change is that of the last tuning, by which the oldest are found
    current.touch()
    builds = sorted(
        (build for build in current.parent.iterdir() if build.is_dir()), key=lambda build: build.stat().st_mtime_ns
    )
    for old in builds[:-BUILDS_KEPT]:
        trees.remove(old)


def copy_good(search: Path, destination: Path, trials: int) -> None:
    """Copy those of the first `trials` records whose trial did not fail to a database."""
    trees.remove(destination)
    destination.mkdir(parents=True)
    lines = (search / RECORDS).read_text(encoding="utf-8").splitlines()[:trials]
    good = [line for line in lines if not failed(line)]
    (destination / RECORDS).write_text("".join(f"{line}\n" for line in good), encoding="utf-8")
    shutil.copy(search / WORKLOADS, destination / WORKLOADS)


def failed(line: str) -> bool:
    """Return True where a line of a database's records is of a trial that could not be built or run."""
    _workload, (_trace, run_s, *_) = json.loads(line)
    return not run_s or min(run_s) >= FAILED_S


def lowered(module: Any, pipeline: str, target: Mapping[str, Any]) -> Any:
    """Return the module as it is tuned: through the pipeline, its kernels not scheduled yet."""
    import tvm

    with make_target(target):
        return tvm.transform.Sequential(pipeline_steps(pipeline))(module)


def schedule(module: Any, database: Path, target: Mapping[str, Any]) -> Any:
    """Apply the database's best schedule to each kernel of a `lowered` module that it knows."""
    from tvm import relax
    from tvm.s_tir import meta_schedule

    files = (str(database / name) for name in FILES)
    opened = meta_schedule.database.JSONDatabase(*files, allow_missing=False)
    with make_target(target), opened:
        return relax.transform.MetaScheduleApplyDatabase()(module)


def scheduled(module: Any) -> Sequence[str]:
    """Return the names of the kernels that carry a schedule."""
    return [
        name.name_hint
        for name, function in module.functions.items()
        if function.attrs and function.attrs.get("tirx.is_scheduled", False)
    ]
