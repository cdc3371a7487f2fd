"""Recovery of a killed night: end its processes, save its measurements, close its record."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from dashboard.artifacts.artifact import ArtifactSpec, read_artifact
from dashboard.night import engine, folders, raw_data
from dashboard.night.context import Context, is_mark_of
from dashboard.plan.job import OF_THE_JOB, Job, Plan
from dashboard.process import orphans, watchdog
from dashboard.upkeep.indexes import update_index
from tvmdash import common
from tvmdash.common.files import removal, trees
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED, OK, Home, Night, PartialData
from tvmdash.dashboard_info.stages import pipeline, read_status
from tvmdash.errors import DashboardError
from tvmdash.measure.capture import CAPTURED
from tvmdash.text import format_list

_LONGEST_KEY = 1 << 10
_log = logging.getLogger("night")


class RunEnd(enum.Enum):
    """The end of a dead night's run stage: well, as a failure, or in the middle."""

    WELL = "well"
    FAILED = "failed"
    KILLED = "killed"


def recover(plan: Plan) -> list[str]:
    """Save what unfinished nights of this home measured; sentences about it for the next night's readers.

    The caller holds the home's lock, so whatever lies in the night folders is of a night that is dead. Its processes
    are ended first: as long as they write, nothing can be swept or saved.
    """
    ended = watchdog.end_all(lambda mark: is_mark_of(plan.home, mark))
    if ended:
        _log.warning("killed %d leftover processes of interrupted nights", ended)
    told = folders.sweep(plan.home, plan.config.tmp_data)
    for folder in folders.list_unfinished(plan.config.tmp_data, plan.home):
        try:
            told += _recover(plan, folder)
        except Exception as error:  # noqa: BLE001 - what a dead night left must not end each night after it
            told.append(_give_up(plan.config.tmp_data, folder, error))
    return told


def _give_up(tmp_data: Path, folder: Path, error: Exception) -> str:
    """Move aside what is left of a night that cannot be dealt with, and what is in the way; the sentence of it."""
    _log.warning("%s", folder, exc_info=error)
    why = f"was left by an interrupted night and could not be dealt with ({error!s:.300})"
    return folders.set_aside(tmp_data, folder, why)


def _recover(plan: Plan, folder: Path) -> list[str]:
    stamp = folder.name
    night = _night(plan.home, stamp)
    if night.state == COMPLETE:  # it was killed while it tidied up
        return folders.remove(folder)
    context = Context(
        plan.home,
        plan if night.seed is None else dataclasses.replace(plan, seed=night.seed),
        stamp,
        folder,
        repository={**night.repository, "recovered": True},
    )
    try:
        with orphans.watch(context.mark):
            saved, told = _save_all(context, night)
        note = describe_night(stamp, saved)
        partial = tuple(kept.partial for kept in saved if kept.partial)
        closed = dataclasses.replace(night, state=INTERRUPTED, notes=(*night.notes, note, *told), partial=partial)
        common.write_json(plan.home.night_file(stamp), closed.to_json())
        plan.home.night_journal(stamp).unlink(missing_ok=True)
    except (DashboardError, OSError) as error:
        note = describe_not_saved(stamp, error)
        _log.warning("%s", note)
        return [note]
    _log.warning("%s", note)
    return [note, *told, *folders.remove(folder)]


def _save_all(context: Context, night: Night) -> tuple[list[Saved], list[str]]:
    """Save what there is of each experiment; what was saved, and what to tell of that which could not be.

    DashboardError or OSError where the next night may do better, as with a disk that is full now.
    """
    saved, told = list[Saved](), list[str]()
    again: DashboardError | OSError | None = None
    for path in _experiments(context.folder):
        try:
            saved += filter(None, [_save(context, path, night)])
            left_out = raw_data.keep_raw(context, _job(context, path), path / "run")
            told += [raw_data.describe_left_out(_name(path), left_out)] if left_out else []
        except (DashboardError, OSError) as error:  # of this machine: what an experiment left raises none (`trees`)
            again = error
        except Exception as error:  # noqa: BLE001 - what one experiment left must not cost the others theirs
            told.append(_give_up(context.plan.config.tmp_data, path, error))
    if again is not None:
        raise again
    return saved, told


def _night(home: Home, stamp: str) -> Night:
    try:
        return home.read_night(stamp)
    except DashboardError:
        return Night(stamp, INTERRUPTED)


def _experiments(folder: Path) -> list[Path]:
    return sorted(folder.glob("experiment-*"))


def _name(folder: Path) -> str:
    return folder.name.partition("-")[2]


def _save(context: Context, folder: Path, night: Night) -> Saved | None:
    """Analyze the raw measurements that the dead night had not come to; None where there is nothing that counts."""
    name, raw = _name(folder), folder / "run"
    if not removal.list_names(raw) or _failed(night, name):
        return None
    job = _job(context, folder)
    if not context.home.data_file(name, context.stamp).exists():
        end = _end_of_run(night, name, raw)
        if end is RunEnd.FAILED:
            return None
        if end is RunEnd.KILLED and not any(fnmatch(entry.name, CAPTURED) for entry in trees.walk(raw).files):
            return Saved(name, published=False)
        trees.remove(folder / "analyze")  # what the killed one left there must not count as this one's
        context = dataclasses.replace(context, partial=end is RunEnd.KILLED)
        result = engine.perform(context, job, pipeline("experiment").stage("analyze"))
        _log.warning("interrupted night %s, experiment %s: %s", context.stamp, name, result.message)
        if not result.success:
            return Saved(name, published=False) if context.partial else None
    update_index(context.home)
    return Saved(name, published=True, partial=_partial(context, name))


def _failed(night: Night, name: str) -> bool:
    return any(job.name == name and job.state != OK for job in night.experiments)


def _end_of_run(night: Night, name: str, raw: Path) -> RunEnd:
    """Find out how the run stage ended.

    The night's record says so, or, where the night was killed before it was written, the status that the run left.
    """
    steps = [step for job in night.experiments if job.name == name for step in job.steps]
    if any(step.stage == "run" for step in steps):
        return RunEnd.WELL  # one that failed is not asked about
    try:
        return RunEnd.WELL if read_status(raw).success else RunEnd.FAILED
    except DashboardError:
        return RunEnd.KILLED


def _partial(context: Context, name: str) -> PartialData | None:
    """Return the experiment's share in the night's data, where that is partial."""
    value = common.read_json(context.home.data_file(name, context.stamp))
    if common.object_in(value, "night").get("partial") is not True:
        return None
    lists = (value.get("records"), value.get("failures"))
    measured, failed = (len(part) if isinstance(part, list) else 0 for part in lists)
    return PartialData(name, measured, measured + failed)


def _job(context: Context, folder: Path) -> Job:
    """Rebuild the experiment of that night, on the artifact that it was measured with if that is still there."""
    config, is_sandboxed = _read_config(folder)
    code, name = folder / "code", _name(folder)
    job = Job("experiment", name, code, folder / "config", config, tvm=None, is_sandboxed=is_sandboxed)
    with contextlib.suppress(OSError, DashboardError):
        with trees.open_file(folder, context.workspace(job).artifact.name) as file:
            key = file.read(_LONGEST_KEY).decode()
        spec = ArtifactSpec("recovered", key)
        context.artifacts[spec] = read_artifact(context.plan.config.artifacts / key)
        return dataclasses.replace(job, tvm=spec)
    return job


def _read_config(folder: Path) -> tuple[dict[str, object], bool]:
    """Read the experiment's config without what the plan takes out of it, and whether it asks for a sandbox."""
    with contextlib.suppress(DashboardError):  # it was checked when the night began; without it, defaults serve
        value = common.read_json(folder / "config" / "config.json")
        if isinstance(value, dict):
            kept = {field: item for field, item in value.items() if field not in OF_THE_JOB}
            return kept, value.get("sandbox") is True
    return {}, False


_NAMED = 20


@dataclass(frozen=True)
class Saved:
    """An experiment of the night that had measured something; not `published` where its run was ended in the middle."""

    name: str
    published: bool
    partial: PartialData | None = None


def describe_night(stamp: str, saved: Sequence[Saved]) -> str:
    """Describe the recovery, for the night's record and the next night's."""
    whole = [experiment.name for experiment in saved if experiment.published and not experiment.partial]
    halves = [f"{experiment.name} ({_count(experiment.partial)})" for experiment in saved if experiment.partial]
    lost = [experiment.name for experiment in saved if not experiment.published]
    parts = [f"saved its measurements of {format_list(whole, _NAMED)}"] if whole else []
    parts += [f"saved partial measurements of {format_list(halves, _NAMED)}"] if halves else []
    parts += [f"published nothing of {format_list(lost, _NAMED)}, interrupted during the run"] if lost else []
    return f"Night {stamp} was interrupted; {'; '.join(parts) or 'nothing new was measured'}."


def _count(partial: PartialData) -> str:
    return f"{partial.measured} of {partial.planned} points"


def describe_not_saved(stamp: str, error: Exception) -> str:
    return f"Night {stamp} was interrupted, and its measurements are not saved yet: {error} The next night tries again."
