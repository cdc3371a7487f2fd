"""What a killed night left: end its processes, save what it measured, close its record."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import shutil
from pathlib import Path

from dashboard import engine, guardian, publish, raw_keeping
from dashboard.artifacts.artifact import ArtifactSpec, read_artifact
from dashboard.engine import Context
from dashboard.plan import Job, Plan
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED, OK, Home, Night
from tvmdash.errors import DashboardError
from tvmdash.stages import PIPELINES, pipeline

_log = logging.getLogger("night")


def recover(plan: Plan) -> list[str]:
    """Save what unfinished nights of this home measured; sentences about it for the next night's readers.

    The caller holds the home's lock, so whatever lies in the night folders is of a night that is dead.
    """
    sweep(plan.home)
    folders = sorted(plan.config.tmp_data.glob("*")) if plan.config.tmp_data.is_dir() else []
    unfinished = [folder for folder in folders if common.is_stamp(folder.name) and _is_of(folder, plan.home)]
    return [sentence for folder in unfinished for sentence in _recover(plan, folder)]


def claim(folder: Path, home: Home) -> None:
    """Write down whose night this folder is: homes may share a tmp_data_dir."""
    common.write_text(folder / "home", str(home.root))


def _is_of(folder: Path, home: Home) -> bool:
    owner = folder / "home"
    return owner.is_file() and owner.read_text(encoding="utf-8", errors="surrogateescape") == str(home.root)


def sweep(home: Home) -> None:
    """Remove the half-written files of killed nights."""
    common.remove_unfinished(home.nights.parent)
    common.remove_unfinished(home.nights)
    for row in PIPELINES:
        for what in ("status", "data", "summary", "graph", "output"):
            folder = home.root / "results" / row.folder / what
            common.remove_unfinished(folder)
            for path in folder.iterdir() if what in {"status", "data"} and folder.is_dir() else ():
                common.remove_unfinished(path)


def _recover(plan: Plan, folder: Path) -> list[str]:
    stamp = folder.name
    ended = guardian.end_marked(engine.night_mark(plan.home, stamp))
    if ended:
        _log.warning("ended %d processes of the interrupted night %s", ended, stamp)
    night = _night(plan.home, stamp)
    if night.state == COMPLETE:  # it was killed while it tidied up
        remove(folder)
        return []
    context = Context(
        plan.home,
        plan if night.seed is None else dataclasses.replace(plan, seed=night.seed),
        stamp,
        folder,
        repository={**night.repository, "recovered": True},
    )
    failed = {(job.kind, job.name) for job in night.jobs if job.state != OK}
    good = [path for path in _experiments(folder) if ("experiment", _name(path)) not in failed]
    try:
        with guardian.watch(context.mark):
            saved = [_name(path) for path in good if _save(context, path)]
        for path in _experiments(folder):
            raw_keeping.keep_raw(context, _job(context, path), path / "run")
    except (DashboardError, OSError) as error:
        words = (
            f"Night {stamp} was interrupted, and what it measured is not saved yet: {error} The next start tries again."
        )
        _log.warning("%s", words)
        return [words]
    words = f"Night {stamp} was interrupted; " + (
        f"saved its measurements of {', '.join(saved)}." if saved else "nothing new was measured."
    )
    _log.warning("%s", words)
    closed = dataclasses.replace(night, state=INTERRUPTED, notes=(*night.notes, words))
    common.write_json(plan.home.night_file(stamp), closed.to_json())
    remove(folder)
    return [words]


def _night(home: Home, stamp: str) -> Night:
    try:
        return home.read_night(stamp)
    except DashboardError:
        return Night(stamp, INTERRUPTED)


def remove(folder: Path) -> None:
    """Remove a night's folder, also where a stage took away its own right to do so."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for root, _, _ in os.walk(folder):
            os.chmod(root, 0o700)
        shutil.rmtree(folder, ignore_errors=True)


def _experiments(folder: Path) -> list[Path]:
    return sorted(folder.glob("experiment-*"))


def _name(folder: Path) -> str:
    return folder.name.partition("-")[2]


def _save(context: Context, folder: Path) -> bool:
    """Analyze the raw measurements that the dead night had not come to; whether there is a new data file."""
    raw = folder / "run"
    if not raw.is_dir() or not any(raw.iterdir()):
        return False
    job = _job(context, folder)
    published = context.home.data_file(job.name, context.stamp).exists()
    if not published:
        remove(folder / "analyze")  # what the killed one left there must not count as this one's
        result = engine.perform(context, job, pipeline("experiment").stage("analyze"))
        _log.warning("interrupted night %s, experiment %s: %s", context.stamp, job.name, result.message)
        published = result.success
    if published:
        publish.index(context, job)
    return published


def _job(context: Context, folder: Path) -> Job:
    """The experiment of that night, on the artifact that it was measured with where that is still there."""
    job = Job("experiment", _name(folder), folder / "code", folder / "config", _config(folder), tvm=None)
    with contextlib.suppress(OSError, DashboardError):
        key = context.workspace(job).artifact.read_text(encoding="utf-8")
        spec = ArtifactSpec("recovered", key)
        context.artifacts[spec] = read_artifact(context.plan.config.artifacts / key)
        return dataclasses.replace(job, tvm=spec)
    return job


def _config(folder: Path) -> dict[str, object]:
    with contextlib.suppress(DashboardError):  # it was checked when the night began; without it, defaults serve
        value = common.read_json(folder / "config" / "config.json")
        if isinstance(value, dict):
            return {field: item for field, item in value.items() if field != "tvms"}  # as the plan leaves it out
    return {}
