"""A backup's copy in object storage: pushed after each archive, pulled to restore or verify from there.

What is there is a whole backup at every instant: contents come before the manifest that names them, the base before
what was squashed into it is removed, contents before the manifests that say that some may be left over.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.archive.manifests import BASE
from tvmdash.errors import DashboardError

_FORM = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[A-Za-z0-9._/-]{1,500})?", re.ASCII)
_OBJECTS, _ARCHIVES = "objects", "archives"
_SETTINGS = {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 3, "mode": "standard"}}
_PART_BYTES = 16 << 20
REQUIREMENTS = "requirements-s3-hashes.txt"


@dataclass(frozen=True)
class Pushed:
    """What a push did: files and bytes sent, files removed."""

    files: int = 0
    sent_bytes: int = 0
    removed: int = 0


@dataclass(frozen=True)
class _There:
    """A file in the storage. etag: the MD5 of its content where it was sent in one part, else anything."""

    size_bytes: int
    etag: str


def is_remote(text: str) -> bool:
    """Whether it names object storage, well or badly written."""
    return "://" in text


def check_url(url: str) -> str:
    """The address without an end slash; DashboardError where it is none."""
    if not _FORM.fullmatch(url):
        raise DashboardError(f"{url!r:.200} is not an object storage URL.", remedy="Use s3://BUCKET/FOLDER.")
    return url.rstrip("/")


class RemoteBackup:
    """A folder of a bucket. Keys and the endpoint come from where every tool for S3 looks: AWS_* or ~/.aws."""

    def __init__(self, url: str) -> None:
        self.url = check_url(url)
        self._root = self.url.removeprefix("s3://")
        try:
            import s3fs
        except ImportError as error:
            problem = f"object storage needs s3fs, which is not installed ({error})."
            remedy = f"pip install --no-deps --require-hashes -r {REQUIREMENTS}"
            raise DashboardError(problem, place=self.url, remedy=remedy) from error
        options = {"config_kwargs": _SETTINGS, "use_listings_cache": False, "skip_instance_cache": True}
        self._files: Any = s3fs.S3FileSystem(**options)

    def push(self, backup: Path) -> Pushed:
        """Make the storage hold what `backup` holds. What a push before this one did not come to is done by this."""
        with self._naming_errors():
            there = self._list()
            here = {path: backup / path for path in _list_files(backup)}
            sent = [
                *(path for path in here if path.startswith(f"{_OBJECTS}/") and path not in there),
                *self._list_changed_manifests(here, there),
            ]
            sent_bytes = sum(self._send(here[path], path) for path in sent)
            gone = sorted((path for path in there if path not in here), key=lambda path: path.startswith(_ARCHIVES))
            for path in gone:
                self._files.rm_file(f"{self._root}/{path}")
            return Pushed(len(sent), sent_bytes, len(gone))

    def pull(self, backup: Path) -> None:
        """Bring everything into the folder `backup`; what it has already of the same size stays."""
        with self._naming_errors():
            there = self._list()
            if not any(path.startswith(f"{_ARCHIVES}/") for path in there):
                raise DashboardError("no archive found.", place=self.url, remedy="Give the URL from backup_copy.")
            for path, known in there.items():
                target = backup / path
                if not (target.is_file() and target.stat().st_size == known.size_bytes and _OBJECTS in path):
                    self._fetch(path, target)

    def _list(self) -> dict[str, _There]:
        """All files by their paths within the folder; nothing where there is no such folder yet."""
        try:
            found: Mapping[str, Mapping[str, Any]] = self._files.find(self._root, detail=True)
        except FileNotFoundError:
            bucket = self._root.partition("/")[0]
            self._files.ls(bucket)  # a bucket that is not there is an error
            return {}
        return {
            name.removeprefix(f"{self._root}/"): _There(int(facts["size"]), str(facts.get("ETag", "")).strip('"'))
            for name, facts in found.items()
            if name.startswith((f"{self._root}/{_OBJECTS}/", f"{self._root}/{_ARCHIVES}/"))
        }

    def _list_changed_manifests(self, here: Mapping[str, Path], there: Mapping[str, _There]) -> list[str]:
        """The base first where it changed, then the others, oldest first."""
        manifests = sorted(path for path in here if path.startswith(f"{_ARCHIVES}/"))
        manifests.sort(key=lambda path: path != f"{_ARCHIVES}/{BASE}.json")
        return [path for path in manifests if path not in there or _is_other(here[path], there[path])]

    def _send(self, source: Path, path: str) -> int:
        name, size_bytes = f"{self._root}/{path}", source.stat().st_size
        self._files.put_file(os.fspath(source), name, chunksize=_PART_BYTES)
        arrived = int(self._files.info(name)["size"])
        if arrived != size_bytes:
            raise DashboardError(f"{path}: incomplete transfer, {arrived} of {size_bytes} bytes.", place=self.url)
        return size_bytes

    def _fetch(self, path: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=target.parent)
        os.close(descriptor)
        try:
            self._files.get_file(f"{self._root}/{path}", name)
            os.replace(name, target)
        finally:
            Path(name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _naming_errors(self) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError

        try:
            yield
        except DashboardError:
            raise
        except (OSError, BotoCoreError) as error:  # s3fs makes OSErrors of what the storage answers
            problem = f"{type(error).__name__}: {error}"[:300].rstrip(".")
            remedy = "The backup_dir is intact; the next night uploads what is missing."
            raise DashboardError(f"{problem}.", place=self.url, remedy=remedy) from error


@contextlib.contextmanager
def pulled(url: str, scratch: Path | None = None) -> Iterator[Path]:
    """A folder that holds what is in the storage, as long as the block lasts."""
    remote = RemoteBackup(url)
    with tempfile.TemporaryDirectory(prefix="tvm-dashboard-backup-", dir=scratch) as folder:
        remote.pull(Path(folder))
        yield Path(folder)


def _list_files(backup: Path) -> Iterator[str]:
    """The finished files of a backup, by their paths in it."""
    for name in (_OBJECTS, _ARCHIVES):
        for path in sorted((backup / name).rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                yield str(path.relative_to(backup))


def _is_other(source: Path, known: _There) -> bool:
    if source.stat().st_size != known.size_bytes:
        return True
    return hashlib.md5(source.read_bytes(), usedforsecurity=False).hexdigest() != known.etag
