"""The working folders of nights: whose each is, which are unfinished; and what killed nights left half-written."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dashboard.plan.night_plan import Plan
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.files import removal
from tvmdash.stages import PIPELINES

_MARK = "home"
"""In a night's folder: whose it is. Homes may share a tmp_data_dir."""
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
REMEASURE = "remeasure"
_THINGS = (*(f"{row.kind}-" for row in PIPELINES), REMEASURE, f".{_MARK}.")
"""What the names in a night's folder begin with."""


def claim(folder: Path, home: Home) -> bool:
    """Make `folder`, with the mark of its home in it, in one step; False where another night has it."""
    with removal.new_folder_beside(folder) as new:
        common.write_text(new / _MARK, str(home.root))
        try:
            os.rename(new, folder)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            return False
    return True


def make_room(plan: Plan) -> None:
    """Make the folders that a night writes to; DashboardError where one cannot be made or has too little room."""
    for folder in (*plan.config.folders, plan.home.nights):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DashboardError(
                f"{folder}: could not be created: {error.strerror}. Choose another folder in {plan.home.config_file}."
            ) from error
        free = shutil.disk_usage(folder).free
        if free < plan.config.min_free_bytes:
            raise DashboardError(
                f"{folder}: only {free / 1e6:.0f} MB free, less than min_free_mb = "
                f"{plan.config.min_free_bytes / 1e6:.0f}. Free some space, or lower min_free_mb in the top-level "
                "config."
            )


def list_unfinished(tmp_data: Path, home: Home) -> list[Path]:
    """The folders of this home's nights, oldest first."""
    return [folder for folder in _list_stamped(tmp_data) if _read_owner(folder) == str(home.root)]


def _list_stamped(tmp_data: Path) -> list[Path]:
    return [tmp_data / name for name in removal.list_names(tmp_data) if common.is_stamp(name)]


def _read_owner(folder: Path) -> str | None:
    """The home whose night this is; None where no mark says so."""
    with contextlib.suppress(OSError):
        return (folder / _MARK).read_text(encoding="utf-8", errors="surrogateescape")
    return None


def remove(folder: Path) -> None:
    """Remove a night's folder. One that is killed meanwhile leaves it under a name that the next sweep knows."""
    with contextlib.suppress(OSError):
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".new", dir=folder.parent))
        try:
            os.rename(folder, aside)
        finally:
            folder = aside if not folder.exists() else folder
            removal.remove_tree(aside)
    removal.remove_tree(folder)


def sweep(home: Home, tmp_data: Path) -> None:
    """Remove what killed nights left half-written; the home's lock is held, and none of its processes is left."""
    for folder, ours in _list_written(home.root / "results"):
        common.remove_unfinished(folder, ours=ours)
    removal.remove_abandoned(tmp_data)
    for kept in removal.list_names(tmp_data / "raw"):
        removal.remove_abandoned(tmp_data / "raw" / kept)
    for folder in _list_stamped(tmp_data):
        if _read_owner(folder) is None and _holds_only_a_nights_things(folder):
            removal.remove_tree(folder)


def _list_written(results: Path) -> Iterator[tuple[Path, bool]]:
    """Each folder in which the dashboard writes, and whether it shares it with files of other people's naming."""
    yield from ((folder, False) for folder in (results, *_folders_in(results)))
    for row in PIPELINES:
        for what in _folders_in(results / row.folder):
            shared = what.name == "output"
            yield what, False
            for own in _folders_in(what):
                yield own, shared
                yield from ((inner, True) for inner in _folders_in(own) if shared)


def _folders_in(folder: Path) -> list[Path]:
    return [
        folder / name for name in removal.list_names(folder) if not name.startswith(".") and (folder / name).is_dir()
    ]


def _holds_only_a_nights_things(folder: Path) -> bool:
    """Whether the folder is one that a night began or was removing: somebody else's may have a stamp for a name too."""
    return all(name.startswith(_THINGS) for name in removal.list_names(folder))
