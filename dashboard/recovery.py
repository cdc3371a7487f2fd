"""What a killed night left: end its processes, save what it measured, close its record."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import re
import shutil
from pathlib import Path

from dashboard import engine, guardian, publish
from dashboard.engine import Context
from dashboard.plan import Job, Plan
from tvmdash import common
from tvmdash.dashboard_info import INTERRUPTED, Home, Night
from tvmdash.errors import DashboardError
from tvmdash.stages import PIPELINES, pipeline

_STAMP = re.compile(r"\d{8}T\d{6}Z")
_log = logging.getLogger("night")


def recover(plan: Plan) -> list[str]:
    """Save what unfinished nights of this home measured; sentences about it for the next night's readers.

    The caller holds the home's lock, so whatever lies in the night folders is of a night that is dead.
    """
    sweep(plan.home)
    folders = sorted(plan.config.tmp_data.glob("*")) if plan.config.tmp_data.is_dir() else []
    unfinished = [folder for folder in folders if _STAMP.fullmatch(folder.name) and _is_of(folder, plan.home)]
    return [sentence for folder in unfinished for sentence in _recover(plan, folder)]


def claim(folder: Path, home: Home) -> None:
    """Write down whose night this folder is: homes may share a tmp_data_dir."""
    common.write_text(folder / "home", str(home.root))


def _is_of(folder: Path, home: Home) -> bool:
    owner = folder / "home"
    return owner.is_file() and owner.read_text(encoding="utf-8", errors="surrogateescape") == str(home.root)


def sweep(home: Home) -> None:
    """Remove the half-written files of killed nights."""
    common.remove_unfinished(home.root)
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
    context = Context(plan.home, plan, stamp, folder, repository={"recovered": True})
    saved = [path.name.partition("-")[2] for path in sorted(folder.glob("experiment-*")) if _save(context, path)]
    words = f"Night {stamp} was interrupted; " + (f"saved its measurements of {', '.join(saved)}." if saved else "nothing new was measured.")
    _log.warning("%s", words)
    _close(plan.home, stamp, words)
    shutil.rmtree(folder)
    return [words]


def _save(context: Context, folder: Path) -> bool:
    """Analyze the raw measurements that the dead night had not come to; whether there is a new data file."""
    name = folder.name.partition("-")[2]
    raw = folder / "run"
    if not raw.is_dir() or not any(raw.iterdir()):
        return False
    job = Job("experiment", name, folder / "code", folder / "config", _config(folder), tvm=None)
    published = context.home.data_file(name, context.stamp).exists()
    if not published:
        context.home.data(name).mkdir(parents=True, exist_ok=True)
        result = engine.perform(context, job, pipeline("experiment").stage("analyze"))
        _log.warning("interrupted night %s, experiment %s: %s", context.stamp, name, result.message)
        published = result.success
    publish.keep_raw(context, job, raw)
    if published:
        publish.index(context, job)
    return published


def _config(folder: Path) -> dict[str, object]:
    with contextlib.suppress(DashboardError):  # it was checked when the night began; without it, defaults serve
        value = common.read_json(folder / "config" / "config.json")
        if isinstance(value, dict):
            return value
    return {}


def _close(home: Home, stamp: str, words: str) -> None:
    try:
        night = home.read_night(stamp)
    except DashboardError:
        night = Night(stamp, INTERRUPTED)
    closed = dataclasses.replace(night, state=INTERRUPTED, notes=(*night.notes, words))
    common.write_json(home.night_file(stamp), closed.to_json())
