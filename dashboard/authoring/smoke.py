"""One experiment or subsystem tried through all its stages, small, in a scratch home: a night of this job alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.artifacts import artifact_store
from dashboard.artifacts.provide import PROVIDERS
from dashboard.artifacts.spec import provider_of
from dashboard.night import lock
from dashboard.plan.home_config import read_home_config
from dashboard.plan.job import CodeFolders, Plan
from dashboard.plan.plan import make_plan
from dashboard.plan.settings import HomeConfig
from tvmdash import common
from tvmdash.config_util import CONFIG_FILE
from tvmdash.config_util.fields import SMOKE
from tvmdash.dashboard_info import Home
from tvmdash.dashboard_info.stages import PIPELINES, Pipeline
from tvmdash.errors import DashboardError

ARTIFACTS = "TVMDASH_ARTIFACTS"
"""The variable that names the folder of TVM artifacts, where that is not the home's."""
_SHARED_SETUPS = (".engines", ".tuning")
"""Parts of a home's setup_dir that all experiments share: a try uses them instead of installing them again."""
_QUIET = {"tvms": {}, "reference": "none", "min_free_mb": 0, "max_artifacts_gb": 1e6, "telemetry_rate": 0}
_SILENT = {"heartbeat_url": "", "website_url": ""}
"""A try measures on one TVM, removes no artifact, and tells nobody."""


@dataclass(frozen=True)
class SmokeTrial:
    """The job to be tried: `name`, of the kind `row` with its code in `code`, and this config."""

    row: Pipeline
    name: str
    code: CodeFolders
    config: Mapping[str, Any]


def find_job(named: str, code: CodeFolders) -> tuple[Pipeline, str, CodeFolders]:
    """Find the kind, name and place of a job, named or given by its folder; DashboardError where there is none."""
    path = Path(named).expanduser()
    if "/" in named:
        path = path.absolute()
        if not path.is_dir():
            raise DashboardError(
                f"{path}: no such folder. Give an experiment or subsystem by name, or the path of its folder."
            )
        row = max(PIPELINES, key=lambda row: (_count_scripts(path, row), -len(row.stages)))
        return row, path.name, CodeFolders(of_home={row.kind: (path.parent,)})
    for row in PIPELINES:
        if code.of(row, named).is_dir():
            return row, named, code
    looked = ", ".join(str(code.of(row, named)) for row in PIPELINES)
    raise DashboardError(
        f"{named}: no such experiment or subsystem ({looked}). Give an existing name, or the path of its folder."
    )


def _count_scripts(folder: Path, row: Pipeline) -> int:
    return sum((folder / stage.script).is_file() for stage in row.stages)


def trial_of(named: str, base: Home, code: CodeFolders, config_file: Path | None) -> SmokeTrial:
    """Find the job to try, with the config in `config_file`, else that of the base home, else the defaults."""
    row, name, code = find_job(named, code)
    path = config_file or base.config(row.kind, name) / CONFIG_FILE
    given: common.Json = common.read_json(path) if config_file or path.is_file() else {}
    if not isinstance(given, dict):
        raise DashboardError(f"{path}: $: is not an object. Write {{...}} with the fields in it.")
    sized = {"size": SMOKE} if row.measures else {}
    config = {**given, "active": True, "notify": [], **sized}
    config.pop("tvms", None)
    return SmokeTrial(row, name, code, config)


def make_scratch_home(trial: SmokeTrial, base: Home, root: Path | None) -> Home:
    """Make a home with this job alone, in `root` or a temporary folder, with the TVM of the base home."""
    config = read_home_config(base)
    if lock.is_held(base):
        raise lock.HeldError(
            f"{base.root}: a night is running in this home and would be disturbed. Wait for it to finish."
        )
    if root and root.exists():
        raise DashboardError(f"{root}: already exists. Give a folder that does not exist yet.")
    home = Home(root or Path(tempfile.mkdtemp(prefix=f"smoke-{trial.name}-")))
    common.write_json(_make_parent(home.config_file), _make_home_config(base, config))
    common.write_json(_make_parent(home.config(trial.row.kind, trial.name) / CONFIG_FILE), dict(trial.config))
    for name in _SHARED_SETUPS:
        if (config.setup / name).is_dir():
            link = _make_parent(home.root / "setup" / name)
            link.symlink_to(config.setup / name)
    return home


def _make_parent(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _make_home_config(base: Home, config: HomeConfig) -> dict[str, Any]:
    own = common.read_json(base.config_file)
    artifacts = os.environ.get(ARTIFACTS) or str(config.artifacts)
    folders = {"tmp_data_dir": "tmp", "backup_dir": "backup", "setup_dir": "setup"}
    names: dict[str, Any] = {f"{row.kind}_dirs": [] for row in PIPELINES}  # the code is named by the plan's CodeFolders
    return {**dict(own), **folders, **names, **_QUIET, **_SILENT, "artifact_dir": artifacts}


def plan_of(trial: SmokeTrial, home: Home) -> Plan:
    return make_plan(home, trial.code, seed=int(os.environ.get("TVMDASH_SEED", "0")))


def needs_fetching(plan: Plan) -> bool:
    """Return True where a TVM of the plan is not among the artifacts. A newer one does not count."""
    there = artifact_store.artifacts_in(plan.config.artifacts)
    return any(
        not any(PROVIDERS[provider_of(spec)].satisfies(artifact, spec) for artifact in there) for spec in plan.artifacts
    )
