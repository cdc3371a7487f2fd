"""Databases in other files: in the zip of a night's raw measurements, and in AMD's packages (`.rpdb`).

A database in a zip has the path of the zip and, below it, of the member, as if the zip were a folder.
"""

from __future__ import annotations

import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tvmdash.common.files import trees
from tvmdash.errors import DashboardError

LOGS = ("-wal", "-journal")
INDEX = "index.yaml"
_PACKAGE_VERSION = 1
_LARGEST_INDEX = 1 << 20
_BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError)


def is_night_archive(path: Path) -> bool:
    """Return True where a file is named like the zip of a night's raw measurements."""
    return path.name.startswith("raw_") and path.suffix == ".zip"


def find_archive(path: Path) -> Path | None:
    """Return the zip that a path leads into; None for the path of a file."""
    if ".zip" not in str(path) or path.exists():
        return None
    return next((parent for parent in path.parents if parent.suffix == ".zip" and parent.is_file()), None)


def list_databases(archive: Path) -> list[Path]:
    """Return the paths of the databases in a zip; DashboardError where it is broken."""
    with _opened(archive) as opened:
        names = [name for name in opened.namelist() if name.endswith(".db")]
    if len(names) != len(set(names)):
        raise DashboardError(f"{archive}: contains two files with the same name. Unpack it by hand.")
    return [archive / name for name in sorted(names)]


def unpack(path: Path, archive: Path, folder: Path) -> Path:
    """Unpack the database at `path` in a zip, with its log, to a file of `folder`; its name in the zip is not used."""
    name, place = path.relative_to(archive).as_posix(), folder / "unpacked.db"
    with _opened(archive) as opened:
        present = set(opened.namelist())
        for member in (name, *(name + log for log in LOGS if name + log in present)):
            size = _find_member(opened, archive, member).file_size
            free = shutil.disk_usage(folder).free
            if size > free:
                room = f"{folder} has only {free} bytes free"
                raise DashboardError(f"{path}: has {size} bytes, but {room}. Free some space, or set TMPDIR.")
            copied = folder / f"unpacked.db{member.removeprefix(name)}"
            with opened.open(member) as source, copied.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
    return place


def _find_member(opened: zipfile.ZipFile, archive: Path, member: str) -> zipfile.ZipInfo:
    try:
        return opened.getinfo(member)
    except KeyError:
        raise DashboardError(f"{archive}: does not contain {member}. Give the zip file itself.") from None


@contextmanager
def _opened(archive: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(archive) as opened:
            yield opened
    except _BROKEN as error:
        raise DashboardError(f"{archive}: could not be unpacked: {error}. Restore it or leave it out.") from error


def count_bytes(path: Path) -> int:
    """Return the size of a file with those that extend its name (a log), or of a database in a zip, unpacked."""
    archive = find_archive(path)
    if archive is None:
        return sum(file.stat().st_size for file in path.parent.glob(path.name + "*") if file.is_file())
    with _opened(archive) as opened:
        return _find_member(opened, archive, path.relative_to(archive).as_posix()).file_size


def is_package(folder: Path) -> bool:
    """Return True for one of AMD's packages with an index; without one it is a folder like any other."""
    return folder.suffix == ".rpdb" and (folder / INDEX).is_file()


def list_packaged(folder: Path) -> list[Path]:
    """Return the databases that a package's index names; DashboardError where it is newer or leads elsewhere."""
    index = folder / INDEX
    described = _read_index(index)
    version = str(described.get("rocpd_package_version", ""))
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) > _PACKAGE_VERSION:
        raise DashboardError(
            f"{index}: version {version!r:.40} of AMD's packages is not one that can be read; {_PACKAGE_VERSION}.0 is. "
            "Give the databases in it by their names."
        )
    files = described.get("files") or []
    names = [files] if isinstance(files, str) else files
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DashboardError(f"{index}: files: {files!r:.60} is not a list of names. Give the databases themselves.")
    root = os.path.realpath(folder)
    for name in names:
        leads_to = trees.find_target(folder, name) or Path(os.path.normpath(os.path.join(root, name)))
        if not leads_to.is_relative_to(root):
            raise DashboardError(f"{index}: files: {name!r:.80} lies outside of the package. Give that file itself.")
        if not leads_to.is_file():
            raise DashboardError(
                f"{index}: files: {name!r:.80} does not exist. Restore it, or give the other files directly."
            )
    return [folder / name for name in names]


def _read_index(index: Path) -> dict[str, Any]:
    import yaml  # type: ignore[import-untyped]

    if index.stat().st_size > _LARGEST_INDEX:
        raise DashboardError(f"{index}: has more than {_LARGEST_INDEX} bytes; no index has. Leave it out.")
    try:
        value = yaml.safe_load(index.read_text(encoding="utf-8"))
        described = value["rocprofiler-sdk"]["rocpd"]
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise DashboardError(f"{index}: not the index of a package: {type(error).__name__}. Leave it out.") from error
    return described if isinstance(described, dict) else {}
