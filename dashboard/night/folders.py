"""The working folders of nights: whose each is, which are unfinished; and what killed nights left half-written."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dashboard.plan.job import Plan
from tvmdash import common
from tvmdash.common.files import removal, trees
from tvmdash.dashboard_info import Home
from tvmdash.dashboard_info.stages import PIPELINES
from tvmdash.errors import DashboardError

_MARK = "home"
"""The file in a night's folder that names its home. Homes may share a tmp_data_dir."""
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
REMEASURE = "remeasure"
SET_ASIDE = "set_aside"
"""Beside the nights' folders: what could not be tidied."""
_LONGEST_PATH = 1 << 16
_THINGS = (*(f"{row.kind}-" for row in PIPELINES), REMEASURE, f".{_MARK}.")
"""The beginnings of all names in a night's folder."""


def claim(folder: Path, home: Home) -> bool:
    """Make `folder`, with the mark of its home in it, in one step; False where another night has it."""
    with removal.new_folder_beside(folder) as new:
        # Marked before it has its name: a folder without a mark belongs to no home.
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
    """List the folders of this home's nights, oldest first."""
    return [folder for folder in _list_stamped(tmp_data) if _read_owner(folder) == str(home.root)]


def _list_stamped(tmp_data: Path) -> list[Path]:
    return [tmp_data / name for name in removal.list_names(tmp_data) if common.is_stamp(name)]


def _read_owner(folder: Path) -> str | None:
    """Read which home's night this is; None where no mark says so."""
    with contextlib.suppress(OSError), trees.open_file(folder, _MARK) as file:
        return file.read(_LONGEST_PATH).decode("utf-8", errors="surrogateescape")
    return None


def remove(folder: Path) -> list[str]:
    """Remove a night's folder; what later nights should tell of it, where something in it cannot be removed.

    One that is killed meanwhile leaves it under a name that the next sweep knows.
    """
    with contextlib.suppress(OSError):
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".new", dir=folder.parent))
        try:
            os.rename(folder, aside)
        except OSError:
            trees.remove(aside)
            raise
        folder = aside
    return _remove_or_set_aside(folder)


def _remove_or_set_aside(folder: Path) -> list[str]:
    return [] if trees.remove(folder) else [set_aside(folder.parent, folder, "could not be removed")]


def set_aside(tmp_data: Path, folder: Path, why: str) -> str:
    """Move what lies in `tmp_data` out of the way of later nights; the sentence for their readers."""
    try:
        place = trees.set_aside(folder, tmp_data / SET_ASIDE / folder.parent.relative_to(tmp_data))
    except OSError as error:
        return f"{folder} {why}, and could not be moved aside: {error.strerror}. Move it away by hand."
    return f"{folder} {why}. It was moved aside to {place}; delete it once nobody needs it."


def list_set_aside(tmp_data: Path) -> list[Path]:
    """List the paths that nights moved aside, for all homes that share the folder."""
    return [tmp_data / SET_ASIDE / name for name in removal.list_names(tmp_data / SET_ASIDE)]


def sweep(home: Home, tmp_data: Path) -> list[str]:
    """Remove what killed nights left half-written; what to tell of that which cannot be removed.

    The home's lock is held, and none of its processes is left.
    """
    for folder, ours in _list_written(home.root / "results"):
        common.remove_unfinished(folder, ours=ours)
    stuck = removal.remove_abandoned(tmp_data)
    for kept in removal.list_names(tmp_data / "raw"):
        stuck += removal.remove_abandoned(tmp_data / "raw" / kept)
    told = [set_aside(tmp_data, folder, "could not be removed") for folder in stuck]
    for folder in _list_stamped(tmp_data):
        if _read_owner(folder) is None and _holds_only_a_nights_things(folder):
            told += _remove_or_set_aside(folder)
    return told


def _list_written(results: Path) -> Iterator[tuple[Path, bool]]:
    """Yield each folder that the dashboard writes to; True where it shares it with other people's names."""
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
        folder / name
        for name in removal.list_names(folder)
        if not name.startswith(".") and os.path.isdir(folder / name)  # unlike pathlib's, in any folder
    ]


def _holds_only_a_nights_things(folder: Path) -> bool:
    """Return True for a folder that a night began or was removing: other programs may name theirs by a stamp too."""
    return all(name.startswith(_THINGS) for name in removal.list_names(folder))
