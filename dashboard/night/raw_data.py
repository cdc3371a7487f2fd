"""Keep a night's raw measurements below tmp_data_dir: databases sealed as Parquet, everything else zipped."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import zipfile
from pathlib import Path

from dashboard.night.context import Context
from dashboard.night.environment import SHARED
from dashboard.plan.job import Job
from dashboard.process import process
from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.files.sync import sync_file, sync_folder

_SEAL_TIMEOUT_S = 900.0
_log = logging.getLogger("night")


def keep_raw(context: Context, job: Job, raw: Path) -> None:
    """Seal and zip what is in `raw`, once, each checked against its source; remove the oldest nights beyond the limit.

    What cannot be sealed is zipped. The sources stay where they are: they go with the night's folder.
    """
    folder = context.plan.config.tmp_data / "raw" / job.name
    name = f"raw_{context.stamp}"
    whole = folder / f"{name}.zip"
    if whole.exists() or not raw.is_dir() or not any(raw.iterdir()):
        return
    folder.mkdir(parents=True, exist_ok=True)
    common.remove_unfinished(folder)
    sealed = any(raw.rglob("raw_*.db")) and ((folder / name).is_dir() or _seal(context, job, raw, folder / name))
    _zip([path for path in _files(raw) if not (sealed and path.match("raw_*.db*"))], raw, whole)
    _prune(folder, context.plan.config.keep_raw_nights, context.stamp)


def _files(raw: Path) -> list[Path]:
    return [path for path in sorted(raw.rglob("*")) if path.is_file() and not path.is_symlink()]


def _seal(context: Context, job: Job, raw: Path, destination: Path) -> bool:
    """Whether the databases below `raw` are now a sealed run in `destination`; done by a program of its own."""
    data = context.home.data_file(job.name, context.stamp)
    inputs = [str(raw), *([str(data)] if data.exists() else [])]
    outcome = process.run(
        [sys.executable, "-m", "tvmdash.traces", "seal", str(destination), *inputs],
        cwd=raw,
        env={"PYTHONPATH": str(SHARED / "python"), "PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"},
        timeout_s=_SEAL_TIMEOUT_S,
        log=context.workspace(job).log("seal"),
    )
    if outcome.exit_code != 0:
        _log.warning("%s: could not seal its raw databases, compressing them instead: %s", job.name, outcome.tail)
    return outcome.exit_code == 0


def _zip(files: list[Path], raw: Path, whole: Path) -> None:
    part = whole.with_name(f".{whole.name}.tmp")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=6, strict_timestamps=False) as archive:
        for path in files:
            name = os.fsencode(path.relative_to(raw)).decode("utf-8", errors="backslashreplace")
            archive.write(path, name)
    with zipfile.ZipFile(part) as archive:
        broken = archive.testzip()
    if broken is not None:
        raise DashboardError(f"{part}: {broken} could not be read back. The raw measurements are kept in {raw}.")
    sync_file(part)
    os.replace(part, whole)
    sync_folder(whole.parent)


def _prune(folder: Path, nights: int, tonight: str) -> None:
    """Remove the oldest nights beyond `nights`, the zip and the sealed run of each; tonight's goes last by any clock.

    What is not named by a night is somebody else's.
    """
    names = {path.name.removeprefix("raw_").removesuffix(".zip") for path in folder.glob("raw_*")}
    stamps = sorted(filter(common.is_stamp, names), key=lambda stamp: (stamp == tonight, stamp))
    for stamp in stamps[: max(0, len(stamps) - nights)]:
        shutil.rmtree(folder / f"raw_{stamp}", ignore_errors=True)
        (folder / f"raw_{stamp}.zip").unlink(missing_ok=True)
