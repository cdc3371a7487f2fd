"""Keep a night's raw measurements below tmp_data_dir: databases sealed as Parquet, everything else zipped."""

from __future__ import annotations

import logging
import os
import sys
import zipfile
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from dashboard.night.context import SHARED, Context
from dashboard.plan.job import Job
from dashboard.process import process
from tvmdash import common
from tvmdash.common.files import removal, trees
from tvmdash.common.files.sync import sync_file, sync_folder
from tvmdash.common.files.trees import Bounds, Fault, Problem, TreeEntry
from tvmdash.errors import DashboardError
from tvmdash.measure import prebuilt
from tvmdash.text import format_list

_SEAL_TIMEOUT_S = 900.0
_MOST = Bounds(depth=200, entries=1_000_000, size_bytes=8 << 30)
"""The limits of one night of an experiment; more would take longer to compress than most experiments run."""
_PREBUILT = f"{prebuilt.FOLDER}/"
"""The folder of compiled points, which a killed run leaves behind."""
_log = logging.getLogger("night")


def keep_raw(context: Context, job: Job, raw: Path) -> list[Problem]:
    """Seal and zip what is in `raw`, once, each checked against its source.

    What cannot be sealed is zipped. The sources stay where they are: they go with the night's folder. Returned is what
    cannot be kept though it may be data; links and pipes are none. A stage that made `raw` itself a link may have
    meant any folder of the machine.
    """
    if raw.is_symlink():
        return [Problem(raw.name, Fault.UNREADABLE, "is a link now, to a folder that is not the experiment's")]
    folder = context.plan.config.tmp_data / "raw" / job.name
    name = f"raw_{context.stamp}"
    whole = folder / f"{name}.zip"
    if whole.exists() or not removal.list_names(raw):
        return []
    folder.mkdir(parents=True, exist_ok=True)
    common.remove_unfinished(folder)
    tree = trees.walk(raw, _MOST)
    has_databases = any(fnmatch(entry.name, "raw_*.db") for entry in tree.files)
    sealed = has_databases and ((folder / name).is_dir() or _seal(context, job, raw, folder / name))
    rest = [entry for entry in tree.files if not entry.path.startswith(_PREBUILT)]
    _zip([entry for entry in rest if not (sealed and fnmatch(entry.name, "raw_*.db*"))], raw, whole)
    return [problem for problem in tree.problems if problem.fault is not Fault.SPECIAL]


def describe_left_out(experiment: str, problems: Sequence[Problem]) -> str:
    return f"Not all raw measurements of {experiment} were kept: {format_list([*map(str, problems)], 3)}."


def _seal(context: Context, job: Job, raw: Path, destination: Path) -> bool:
    """Seal the databases below `raw` in `destination`, by a program of its own; return True where it succeeded."""
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


def _zip(files: list[TreeEntry], raw: Path, whole: Path) -> None:
    part = whole.with_name(f".{whole.name}.tmp")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=6, strict_timestamps=False) as archive:
        # Sources may have names that are not UTF-8, which zip cannot store.
        for entry in files:
            name = os.fsencode(entry.path).decode("utf-8", errors="backslashreplace")
            with trees.open_file(raw, entry.path) as file:
                archive.write(f"/proc/self/fd/{file.fileno()}", name)  # its path may be too long for that
    with zipfile.ZipFile(part) as archive:
        broken = archive.testzip()
    if broken is not None:
        raise DashboardError(f"{part}: {broken} could not be read back. The raw measurements are kept in {raw}.")
    sync_file(part)
    os.replace(part, whole)
    sync_folder(whole.parent)


def prune(context: Context) -> None:
    """Remove the oldest nights beyond the config's limits, the zip and the sealed run of each.

    By bytes tonight's are never removed, and by nights they go last, by any clock. What is not named by a night is
    somebody else's.
    """
    config, kept = context.plan.config, list[tuple[bool, str, Path]]()
    for folder in (config.tmp_data / "raw").glob("*"):
        names = {path.name.removeprefix("raw_").removesuffix(".zip") for path in folder.glob("raw_*")}
        nights = sorted((stamp == context.stamp, stamp, folder) for stamp in filter(common.is_stamp, names))
        most = len(nights) if config.keep_raw_nights is None else config.keep_raw_nights
        beyond = max(0, len(nights) - most)
        for _, stamp, _ in nights[:beyond]:
            _remove(folder, stamp)
        kept += nights[beyond:]
    sizes_bytes = {night: sum(map(_size_bytes, _list_parts(night[2], night[1]))) for night in sorted(kept)}
    left_bytes = sum(sizes_bytes.values())
    for (is_tonights, stamp, folder), size_bytes in sizes_bytes.items():
        if left_bytes > config.max_raw_bytes and not is_tonights:
            _remove(folder, stamp)
            left_bytes -= size_bytes


def _list_parts(folder: Path, stamp: str) -> list[Path]:
    return [path for path in (folder / f"raw_{stamp}", folder / f"raw_{stamp}.zip") if path.exists()]


def _size_bytes(path: Path) -> int:
    return trees.walk(path).size_bytes if path.is_dir() else path.stat().st_size


def _remove(folder: Path, stamp: str) -> None:
    for path in _list_parts(folder, stamp):
        trees.remove(path)
