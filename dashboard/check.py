"""Every fault of a home at once, before a night finds them one by one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.plan import CodeFolders, Plan, find_jobs, make_plan
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError


def faults_of(home: Home, code: CodeFolders) -> list[str]:
    """One sentence for each fault: configs, scripts, folders, disk space, tools."""
    try:
        plan = make_plan(home, code)
    except DashboardError as error:
        found = find_jobs(home, code, ArtifactSpec("pypi", "latest"))
        return [*str(error).splitlines(), *(fault for job in found for fault in job.faults)]
    rejected = [fault for job in plan.rejected for fault in job.faults]
    return [*rejected, *_folder_faults(plan), *_tool_faults(), *_empty(plan)]


def _folder_faults(plan: Plan) -> Iterator[str]:
    for folder in (plan.home.root, *plan.config.folders):
        existing = _first_existing(folder)
        if not os.access(existing, os.W_OK | os.X_OK):
            yield f"{existing}: cannot be written by this user. Change its owner, or choose another folder."
            continue
        free = shutil.disk_usage(existing).free
        if free < plan.config.min_free_bytes:
            yield f"{folder}: only {free / 1e6:.0f} MB free, less than min_free_mb. Make room there."


def _first_existing(path: Path) -> Path:
    """The nearest folder above `path` that is there; one that this user may not look into counts."""
    return next(candidate for candidate in (path, *path.parents) if os.path.lexists(candidate))


def _tool_faults() -> Iterator[str]:
    if shutil.which("bash", path="/usr/local/bin:/usr/bin:/bin") is None:
        yield "bash: not found in /usr/bin or /bin. Install it: the stage scripts are written for it."
    if not Path("/proc/self/environ").exists():
        yield "/proc: not there. The dashboard needs Linux with /proc mounted."


def _empty(plan: Plan) -> Iterator[str]:
    if not plan.experiments and not plan.rejected:
        yield f"{plan.home.configs('experiment')}: no experiment is active. Set active to true in one's config.json."
