"""A parcel: all that one night of a host measured, as a tar archive under the hash of its bytes.

The host keeps each until the home has acknowledged it. What the home already has it never takes in again.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tvmdash import common, records
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED, Home, Night, host_of
from tvmdash.errors import DashboardError
from tvmdash.files import removal, sync
from tvmdash.machine import identity
from tvmdash.stages import EXPERIMENT

_NIGHT, _MACHINE = "night.json", identity.FILE
_DATA, _TELEMETRY, _STATUS, _RAW = "data", "telemetry", "status", "raw"
_MOST_FILES = 100_000
_NAME = re.compile(r"[^./\x00-\x1f\x7f][^/\x00-\x1f\x7f]*")


@dataclass(frozen=True)
class Parcel:
    """A parcel that was taken in: the host's record of the night, and where its logs lie until `folder` is removed.

    taken: the experiments whose data came home now; kept: those whose data was here before, and is left as it was.
    """

    night: Night
    folder: Path
    taken: tuple[str, ...]
    kept: tuple[str, ...] = ()

    def log(self, job: str, stage: str) -> Path:
        """The output of a stage."""
        return self.folder / _STATUS / job / f"{stage}.log"


# --- on the host ------------------------------------------------------------------------------------------------------


def list_unacknowledged(home: Home, acknowledged: Path, unfinished: Collection[str] = ()) -> list[str]:
    """The stamps of the nights that were not handed over yet, the oldest first.

    unfinished: those with a folder left; where such a night was interrupted, something of it is still to be saved, and
    it is handed over once it is.
    """
    return [
        stamp
        for stamp in home.night_stamps()
        if not (acknowledged / stamp).exists()
        and home.read_night(stamp).state in ({COMPLETE} if stamp in unfinished else {COMPLETE, INTERRUPTED})
    ]


def pack(home: Home, tmp_data: Path, stamp: str, file: Path) -> str:
    """Write the parcel of one night of this host's home to `file`; its ID."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in _list_files(home, tmp_data, stamp):
            archive.add(path, name, recursive=False)
    return hash_file(file)


def _list_files(home: Home, tmp_data: Path, stamp: str) -> Iterator[tuple[str, Path]]:
    yield _NIGHT, home.night_file(stamp)
    if home.machine_file.is_file():
        yield _MACHINE, home.machine_file
    for name in home.experiments_with_data():
        if home.data_file(name, stamp).is_file():
            yield f"{_DATA}/{name}/data_{stamp}.json", home.data_file(name, stamp)
    for path in sorted((home.root / "results" / "experiments" / _TELEMETRY).glob(f"*/telemetry_{stamp}.json")):
        yield f"{_TELEMETRY}/{path.parent.name}/{path.name}", path
    for job in home.read_night(stamp).experiments:
        for step in job.steps:
            log = home.status(EXPERIMENT.kind, job.name) / f"{step.stage}.log"
            if log.is_file():
                yield f"{_STATUS}/{job.name}/{log.name}", log
    yield from ((path.relative_to(tmp_data).as_posix(), path) for path in _list_raw(tmp_data, stamp))


def _list_raw(tmp_data: Path, stamp: str) -> Iterator[Path]:
    for folder in sorted((tmp_data / _RAW).glob("*/")):
        found = (folder / f"raw_{stamp}.zip", *sorted((folder / f"raw_{stamp}").rglob("*")))
        yield from (path for path in found if path.is_file() and not path.is_symlink())


def hash_file(path: Path) -> str:
    """The SHA-256 of its bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- at home ----------------------------------------------------------------------------------------------------------


def take_in(file: Path, host: str, stamp: str, home: Home, tmp_data: Path) -> Parcel:
    """Take what a parcel of `host` holds of the night `stamp` into the home. DashboardError where it is not that.

    Then nothing of it is taken in. The caller removes `Parcel.folder`.
    """
    folder = tmp_data / "hosts" / f"{host}-{file.stem}"
    removal.remove_tree(folder)
    try:
        _unpack(file, host, folder)
        night = Night.from_json(common.read_json(folder / _NIGHT), folder / _NIGHT)
        if night.stamp != stamp or not common.is_stamp(stamp):
            raise DashboardError(f"{_NIGHT}: belongs to the night {night.stamp}, not {stamp}.")
        data = sorted(folder.glob(f"{_DATA}/*/*"))
        for path in data:
            records.check_data(common.read_json(path))
            if path.name != f"data_{night.stamp}.json":
                raise DashboardError(f"{path.name}: does not belong to the night {night.stamp}.")
        return _place(folder, night, data, host, home, tmp_data)
    except (DashboardError, OSError, tarfile.TarError) as error:
        removal.remove_tree(folder)
        raise DashboardError(f"{host}: could not import the result archive {file.name}: {error}") from error


def _unpack(file: Path, host: str, folder: Path) -> None:
    with tarfile.open(file, "r:") as archive:
        for count, member in enumerate(archive):
            if count >= _MOST_FILES:
                raise DashboardError(f"it contains more than {_MOST_FILES} files.")
            _check_member(member, host)
            target = folder / member.name
            target.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            assert content is not None  # a regular file
            with content, target.open("xb") as copy:
                shutil.copyfileobj(content, copy)


def _check_member(member: tarfile.TarInfo, host: str) -> None:
    """DashboardError where it is no file of that host's: what a host says must not reach what is another's."""
    parts = PurePosixPath(member.name).parts
    known = member.name in (_NIGHT, _MACHINE) or (
        len(parts) >= 3
        and parts[0] in (_DATA, _TELEMETRY, _STATUS, _RAW)
        and (len(parts) == 3 or parts[0] == _RAW)
        and host_of(parts[1]) == host
        and all(_NAME.fullmatch(part) for part in parts)
    )
    if not member.isreg() or not known:
        raise DashboardError(f"it contains an unexpected entry, {member.name!r:.120}.")


def _place(folder: Path, night: Night, data: list[Path], host: str, home: Home, tmp_data: Path) -> Parcel:
    sync.sync_tree(folder)
    taken, kept = [], []
    for path in data:
        target = home.data_file(path.parent.name, night.stamp)
        if target.exists():
            kept += [path.parent.name] if target.read_bytes() != path.read_bytes() else []
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        common.write_bytes(target, path.read_bytes())
        taken.append(path.parent.name)
    for path in folder.glob(f"{_TELEMETRY}/*/*"):
        target = home.root / "results" / "experiments" / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        common.write_bytes(target, path.read_bytes())
    for path in folder.glob(f"{_RAW}/*/*"):
        target = tmp_data / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            os.rename(path, target)
            sync.sync_folder(target.parent)
    own = home.hosts / host
    (own / "nights").mkdir(parents=True, exist_ok=True)
    common.write_bytes(own / "nights" / f"{night.stamp}.json", (folder / _NIGHT).read_bytes())
    if (folder / _MACHINE).is_file():
        common.write_bytes(own / _MACHINE, (folder / _MACHINE).read_bytes())
    return Parcel(night, folder, tuple(taken), tuple(kept))
