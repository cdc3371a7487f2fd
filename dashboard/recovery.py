"""What a killed night left: end its processes, save what it measured, close its record."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from pathlib import Path

from dashboard import engine, guardian, night_folders, publish, raw_keeping
from dashboard.artifacts.artifact import ArtifactSpec, read_artifact
from dashboard.engine import Context
from dashboard.plan import Job, Plan
from tvmdash import common, removal
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED, OK, Home, Night
from tvmdash.errors import DashboardError
from tvmdash.stages import pipeline

_log = logging.getLogger("night")


def recover(plan: Plan) -> list[str]:
    """Save what unfinished nights of this home measured; sentences about it for the next night's readers.

    The caller holds the home's lock, so whatever lies in the night folders is of a night that is dead. Its processes
    are ended first: as long as they write, nothing can be swept or saved.
    """
    ended = guardian.end_all(lambda mark: engine.is_mark_of(plan.home, mark))
    if ended:
        _log.warning("ended %d processes of interrupted nights", ended)
    night_folders.sweep(plan.home, plan.config.tmp_data)
    return [
        sentence
        for folder in night_folders.unfinished(plan.config.tmp_data, plan.home)
        for sentence in _recover(plan, folder)
    ]


def _recover(plan: Plan, folder: Path) -> list[str]:
    stamp = folder.name
    night = _night(plan.home, stamp)
    if night.state == COMPLETE:  # it was killed while it tidied up
        night_folders.remove(folder)
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
    night_folders.remove(folder)
    return [words]


def _night(home: Home, stamp: str) -> Night:
    try:
        return home.read_night(stamp)
    except DashboardError:
        return Night(stamp, INTERRUPTED)


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
        removal.remove_tree(folder / "analyze")  # what the killed one left there must not count as this one's
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
