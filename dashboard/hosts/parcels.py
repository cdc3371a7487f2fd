"""A parcel: all that one night of a host measured, as a tar archive under the hash of its bytes.

The host keeps each until the home has acknowledged it. What the home already has it never takes in again.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import tarfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tvmdash import common, records
from tvmdash.common.files import sync, trees
from tvmdash.dashboard_info import BLOCKED, COMPLETE, FAILED, INTERRUPTED, OK, SKIPPED, Home, Night, StepResult
from tvmdash.dashboard_info.stages import EXPERIMENT, PRECHECK
from tvmdash.errors import DashboardError
from tvmdash.machine import identity

_NIGHT, _MACHINE = "night.json", identity.FILE
_DATA, _TELEMETRY, _STATUS, _RAW = "data", "telemetry", "status", "raw"
_MOST_FILES = 100_000
_DEEPEST = 20
_LONGEST_READ = 1 << 20
_MOST_BYTES = {
    _NIGHT: 32 << 20, _MACHINE: 1 << 20, _DATA: 256 << 20, _TELEMETRY: 64 << 20, _STATUS: 4 << 20, _RAW: 16 << 30
}  # fmt: skip
"""The limit of one file of each kind: far more than a night leaves."""
_NAME = re.compile(r"[^./\x00-\x1f\x7f][^/\x00-\x1f\x7f]*")
_LOGS = frozenset(f"{stage}.log" for stage in (PRECHECK, *(stage.name for stage in EXPERIMENT.stages)))
_STATES = frozenset((OK, FAILED, BLOCKED, SKIPPED))


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
        return self.folder / _STATUS / job / f"{stage}.log"


# --- on the host ------------------------------------------------------------------------------------------------------


def list_unacknowledged(home: Home, acknowledged: Path, unfinished: Collection[str] = ()) -> list[str]:
    """List the stamps of the nights that were not handed over yet, oldest first.

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
        zipped, sealed = folder / f"raw_{stamp}.zip", folder / f"raw_{stamp}"
        yield from [zipped] if zipped.is_file() and not zipped.is_symlink() else []
        yield from (sealed / entry.path for entry in trees.walk(sealed).files)


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- at home ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AskedOfHost:
    """The experiments `jobs`, named as at home, that the home asked a host for in the night `stamp`."""

    host: str
    stamp: str
    jobs: Collection[str]


def take_in(file: Path, asked: AskedOfHost, home: Home, tmp_data: Path) -> Parcel:
    """Take what a parcel holds into the home. DashboardError where it holds anything that its host was not asked for.

    Then nothing of it is taken in. The caller removes `Parcel.folder`.
    """
    folder = tmp_data / "hosts" / f"{asked.host}-{file.stem}"
    trees.remove(folder)
    try:
        if not asked.jobs:
            raise DashboardError(f"this home did not ask this host for the night {asked.stamp}.")
        _unpack(file, asked, folder)
        return _place(folder, _check(folder, asked), asked.host, home, tmp_data)
    except Exception as error:  # a host can put anything into an archive, and tarfile raises anything
        trees.remove(folder)
        why = str(error) if isinstance(error, (DashboardError, OSError, tarfile.TarError)) else repr(error)
        raise DashboardError(f"{asked.host}: could not import the result archive {file.name}: {why:.1000}") from error


class _Bounded(io.FileIO):
    """A file as tarfile may read it: it takes a header of any length into the memory at once."""

    def read(self, size: int | None = -1) -> bytes:
        """Read no more than a copy takes at once."""
        if size is None or not 0 <= size <= _LONGEST_READ:
            raise tarfile.ReadError(f"it contains a header of {size} bytes.")
        return super().read(size)


def _unpack(file: Path, asked: AskedOfHost, folder: Path) -> None:
    with _Bounded(file) as opened, tarfile.open(fileobj=opened, mode="r:") as archive:
        for count, member in enumerate(archive):
            if count >= _MOST_FILES:
                raise DashboardError(f"it contains more than {_MOST_FILES} files.")
            _check_member(member, asked)
            target = folder / member.name
            target.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            assert content is not None  # a regular file
            # A second member of the same name is an error.
            with content, target.open("xb") as copy:
                shutil.copyfileobj(content, copy)


def _check_member(member: tarfile.TarInfo, asked: AskedOfHost) -> None:
    """Refuse any file that was not asked for: a host must not reach what belongs to another."""
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse() or not _is_expected(member, asked):
        raise DashboardError(f"it contains an unexpected entry, {member.name!r:.120}.")
    most = _MOST_BYTES[member.name.partition("/")[0]]
    if not 0 <= member.size <= most:
        raise DashboardError(f"{member.name!r:.120} has {member.size} bytes, more than {most}.")


def _is_expected(member: tarfile.TarInfo, asked: AskedOfHost) -> bool:
    if member.name in (_NIGHT, _MACHINE):
        return True
    parts = PurePosixPath(member.name).parts
    if not 3 <= len(parts) <= _DEEPEST or parts[1] not in asked.jobs or member.name != "/".join(parts):
        return False
    kind, name, stamp = parts[0], parts[2], asked.stamp
    if kind == _RAW and name == f"raw_{stamp}":
        return len(parts) > 3 and all(_NAME.fullmatch(part) for part in parts)
    names = {
        _DATA: {f"data_{stamp}.json"}, _TELEMETRY: {f"telemetry_{stamp}.json"}, _STATUS: _LOGS,
        _RAW: {f"raw_{stamp}.zip"},
    }  # fmt: skip
    return len(parts) == 3 and name in names.get(kind, ())


def _check(folder: Path, asked: AskedOfHost) -> Night:
    """Check the night's record and its data; DashboardError where they are not as a host's night leaves them."""
    night = Night.from_json(common.read_json(folder / _NIGHT), folder / _NIGHT)
    if night.stamp != asked.stamp or not common.is_stamp(asked.stamp):
        raise DashboardError(f"{_NIGHT}: belongs to the night {night.stamp!r:.40}, not {asked.stamp}.")
    for job in night.jobs:
        if job.name not in asked.jobs or job.kind != EXPERIMENT.kind:
            raise DashboardError(f"{_NIGHT}: this home did not ask for {job.name!r:.120}.")
        for step in job.steps:
            if not _is_sound(step):
                raise DashboardError(f"{_NIGHT}: {job.name}, {step.stage!r:.40}: has an invalid state, time or count.")
    identity.read(folder / _MACHINE)
    for path in folder.glob(f"{_DATA}/*/*"):
        records.check_data(common.read_json(path))
    for path in folder.glob(f"{_TELEMETRY}/*/*"):
        common.read_json(path)
    return night


def _is_sound(step: StepResult) -> bool:
    return (
        step.state in _STATES
        and step.elapsed_s >= 0
        and step.failed_points >= 0
        and (step.started_ns or 0) >= 0
        and common.is_stamp(step.stamp)
    )


def _place(folder: Path, night: Night, host: str, home: Home, tmp_data: Path) -> Parcel:
    # Before anything comes into the home: a power cut must not leave a name there without its content.
    sync.sync_tree(folder)
    taken, kept = [], []
    for path in sorted(folder.glob(f"{_DATA}/*/*")):
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
