"""A restore that is only tried: once a week the newest archive is brought back beside, compared and removed.

Where the archives have a copy in object storage, that is fetched and tried likewise, and mended from the backup_dir.
"""

from __future__ import annotations

import datetime
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dashboard.archive import archive
from dashboard.archive.remote import LIMIT_S, RemoteBackup
from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.files import trees
from tvmdash.common.structured import Stamp
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

EVERY = datetime.timedelta(days=7)
OF_BACKUP, OF_COPY = "restore_drill.json", "copy_drill.json"
"""The files of the last one each, in `results`."""
_PREFIX = ".restore-drill."
_SPARE = 2
"""Multiple of an archive's size that must be free before its restore is tried."""


@dataclass(frozen=True)
class Drill:
    """One try. fault: why it did not succeed, empty where it did. mended: files of a copy that were damaged there."""

    at: Stamp
    archive: str
    files: int
    elapsed_s: float
    fault: str = ""
    mended: int = 0


def read_drill(home: Home, file: str = OF_BACKUP) -> Drill | None:
    """Read the last one; None where there is none, or its file is damaged."""
    try:
        return structured.read(Drill, home.root / "results" / file, max_bytes=1 << 16)
    except DashboardError:
        return None


def is_empty(backup: Path) -> bool:
    """Return True where the folder holds no archive at all, not even a broken one."""
    return not any((backup / "archives").glob("*.json"))


def is_due(home: Home, now: datetime.datetime, file: str = OF_BACKUP) -> bool:
    """Return True where the last drill, or the first night where there was none, is over a week old."""
    last, nights = read_drill(home, file), home.night_stamps()
    since = last.at if last else nights[0] if nights else common.stamp_of(now)
    # A clock that was ahead must not put off the next one for years.
    return abs(now - common.parse_stamp(since)) >= EVERY


def run_drill(home: Home, backup: Path, scratch: Path, now: datetime.datetime) -> Drill:
    """Restore the newest archive into a folder in `scratch`, look whether it is a home, and remove it.

    Every content is checked on its way. What goes wrong is in what is returned, and kept for `doctor`.
    """
    return _try(home, OF_BACKUP, now, backup, lambda: _restore(backup, scratch, home))


def run_copy_drill(home: Home, url: str, backup: Path, scratch: Path, now: datetime.datetime) -> Drill:
    """Restore likewise from the copy at `url`, reading every file of it; damaged ones are sent again first."""

    def restore() -> int:
        scratch.mkdir(parents=True, exist_ok=True)
        remote = RemoteBackup(url, LIMIT_S)
        with trees.scratch_folder(scratch, _PREFIX, ".new") as copy:
            remote.pull(copy)
            damaged = archive.find_damaged(copy)
            if damaged:
                remote.push(backup, damaged)
                for path in damaged:
                    (copy / path).unlink(missing_ok=True)
                remote.pull(copy)
            _restore(copy, scratch, home)
        return len(damaged)

    return _try(home, OF_COPY, now, backup, restore)


def _try(home: Home, file: str, now: datetime.datetime, backup: Path, restore: Callable[[], int | None]) -> Drill:
    begun = time.monotonic()
    name, files, mended, fault = "", 0, 0, ""
    try:
        newest = archive.archives(backup)[-1]
        name, files = newest.name, newest.total_files
        mended = restore() or 0
    except DashboardError as error:
        fault = str(error)
    drill = Drill(common.stamp_of(now), name, files, round(time.monotonic() - begun, 3), fault, mended)
    common.write_json(home.root / "results" / file, {"schema_version": 1, **structured.to_json(drill)})
    return drill


def _restore(backup: Path, scratch: Path, home: Home) -> None:
    scratch.mkdir(parents=True, exist_ok=True)
    needed, free = archive.measure(backup), shutil.disk_usage(scratch).free
    if needed * _SPARE > free:
        problem = f"testing the archive needs {needed / 1e6:.0f} MB, but only {free / 1e6:.0f} MB are free."
        raise DashboardError(problem, place=scratch, remedy="Free some space there.")
    with trees.scratch_folder(scratch, _PREFIX, ".new") as folder:
        target = folder / "home"
        archive.restore(backup, None, target)
        if home.config_file.is_file() and not Home(target).config_file.is_file():
            raise DashboardError("the newest archive contains no config/config.json.", place=backup)
