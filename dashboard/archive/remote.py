"""A backup's copy in object storage: pushed after each night, pulled to restore or verify from there.

What is there is a whole backup at every instant: contents come before the manifest that names them, the base before
what was squashed into it is removed, contents before the manifests that say that some may be left over.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.archive.chain import BASE, Chain, load_chain, read_manifest
from dashboard.archive.objects import Objects, open_regular
from tvmdash.errors import DashboardError
from tvmdash.text import format_duration

LIMIT_S = 1800.0
"""The limit of a push at the end of a night, and of a drill: the next night sends the rest."""
_FORM = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[A-Za-z0-9._/-]{1,500})?", re.ASCII)
_OBJECTS, _ARCHIVES = "objects", "archives"
_FILE = re.compile(rf"{_OBJECTS}/([0-9a-f]{{2}})/\1[0-9a-f]{{62}}|{_ARCHIVES}/[A-Za-z0-9][A-Za-z0-9._-]{{0,99}}\.json")
"""The files of a backup; anything else there is neither fetched, as its path could lead astray, nor removed."""
_BASE = f"{_ARCHIVES}/{BASE}.json"
_SETTINGS = {"connect_timeout": 10, "read_timeout": 20, "retries": {"total_max_attempts": 2, "mode": "standard"}}
_TRIES = 3
"""Attempts of s3fs, each of them two of botocore: a silent server costs two minutes."""
_PART_BYTES = 16 << 20
_PATIENT_S = 7 * 86400.0
"""The limit at a terminal, where the person who waits decides."""
_NAMED = 5
REQUIREMENTS = "requirements-s3-hashes.txt"


@dataclass(frozen=True)
class Pushed:
    """The account of one push; `mended` counts the files sent that were there but damaged."""

    files: int = 0
    sent_bytes: int = 0
    mended: int = 0
    removed: int = 0


@dataclass(frozen=True)
class _There:
    """A file in the storage. Where that encrypts with keys of its own, `etag` is no checksum of the file."""

    size_bytes: int
    etag: str


def is_remote(text: str) -> bool:
    """Return True where `text` is meant as an address of object storage, even if it is misspelled."""
    return "://" in text


def check_url(url: str) -> str:
    """Return the address without an end slash; DashboardError where it is none."""
    if not _FORM.fullmatch(url):
        raise DashboardError(f"{url!r:.200} is not an object storage URL.", remedy="Use s3://BUCKET/FOLDER.")
    return url.rstrip("/")


class RemoteBackup:
    """A folder of a bucket. Keys and the endpoint come from where every tool for S3 looks: AWS_* or ~/.aws.

    limit_s: the time for all requests together, counted from now.
    """

    def __init__(self, url: str, limit_s: float = _PATIENT_S) -> None:
        self.url = check_url(url)
        self._root = self.url.removeprefix("s3://")
        self._limit_s = limit_s
        self._end = time.monotonic() + limit_s
        self._etags_tell = True
        try:
            import s3fs
        except ImportError as error:
            problem = f"object storage needs s3fs, which is not installed ({error})."
            remedy = f"pip install --no-deps --require-hashes -r {REQUIREMENTS}"
            raise DashboardError(problem, place=self.url, remedy=remedy) from error
        options = {"config_kwargs": _SETTINGS, "use_listings_cache": False, "skip_instance_cache": True}
        self._files: Any = s3fs.S3FileSystem(**options)
        self._files.retries = _TRIES

    def push(self, backup: Path, doubted: Collection[str] = ()) -> Pushed:
        """Bring the storage up to date with `backup`: send files that it lacks or has with another size or checksum.

        doubted: paths of files there that are damaged though they look well. A content that is damaged in `backup` is
        not sent over what may be better: DashboardError names it, once all else is there.
        """
        chain = load_chain(backup / _ARCHIVES)
        chain.require_sound()
        contents = {sha256: size for link in chain.links for sha256, size in link.refers_to().items()}
        manifests = [f"{_ARCHIVES}/{link.file_name}" for link in chain.links]
        with self._naming_errors():
            there = self._list()
            self._refuse_other_chain(chain, there)
            known = {path: facts for path, facts in there.items() if path not in doubted}
            sent, faults = self._send_contents(backup, contents, known)
            mended = len(sent.keys() & there.keys())
            for path in manifests:
                if path not in known or _compute_facts(backup / path) != known[path]:
                    sent[path] = self._send(backup / path, path)
            gone = there.keys() - set(map(_path_of, contents)) - set(manifests)
            # Contents first: a manifest that is still there tells the next push that some may be left over.
            for path in sorted(gone, key=lambda path: path.startswith(_ARCHIVES)):
                self._call("rm_file", f"{self._root}/{path}")
        if faults:
            more = f" And {len(faults) - _NAMED} more." if len(faults) > _NAMED else ""
            raise DashboardError(f"not copied: {' '.join(faults[:_NAMED])}{more}", place=self.url)
        return Pushed(len(sent), sum(sent.values()), mended, len(gone))

    def _send_contents(
        self, backup: Path, contents: Mapping[str, int], known: Mapping[str, _There]
    ) -> tuple[dict[str, int], list[str]]:
        """Send the contents that the storage lacks; return the bytes sent by path, and the faults found in `backup`.

        The smallest go first: one upload shows whether this storage's ETags are checksums that we can compare.
        """
        sent, faults = dict[str, int](), list[str]()
        objects = Objects(backup / _OBJECTS)
        for sha256 in sorted(contents, key=lambda sha256: contents[sha256]):
            path = _path_of(sha256)
            if not self._must_send(backup / path, known.get(path)):
                continue
            if broken := objects.find_faults([(sha256, contents[sha256])]):
                faults += broken.values()
            else:
                sent[path] = self._send(backup / path, path)
        return sent, faults

    def _must_send(self, source: Path, known: _There | None) -> bool:
        if known is None or not source.is_file():
            return known is None
        own = _compute_facts(source)
        return own.size_bytes != known.size_bytes or (self._etags_tell and own.etag != known.etag)

    def pull(self, backup: Path) -> None:
        """Bring everything into the folder `backup`; what it has already of the same size stays."""
        with self._naming_errors():
            there = self._list()
            if not any(path.startswith(f"{_ARCHIVES}/") for path in there):
                raise DashboardError("no archive found.", place=self.url, remedy="Give the URL from backup_copy.")
            needed, free = sum(facts.size_bytes for facts in there.values()), shutil.disk_usage(backup).free
            if needed > free:
                problem = f"the copy has {needed / 1e6:.0f} MB, but only {free / 1e6:.0f} MB are free."
                raise DashboardError(problem, place=backup, remedy="Free some space, or set TMPDIR to another folder.")
            for path, known in there.items():
                target = backup / path
                # A content never changes under its name; a manifest may.
                if not (target.is_file() and target.stat().st_size == known.size_bytes and _OBJECTS in path):
                    self._fetch(path, target)

    def _list(self) -> dict[str, _There]:
        """List the backup's files by their paths in it; none where there is no such folder yet."""
        try:
            found: Mapping[str, Mapping[str, Any]] = self._call("find", self._root, detail=True)
        except FileNotFoundError:
            bucket = self._root.partition("/")[0]
            self._call("ls", bucket)  # a bucket that is not there is an error
            return {}
        files = {name.removeprefix(f"{self._root}/"): _read_facts(facts) for name, facts in found.items()}
        return {path: facts for path, facts in files.items() if _FILE.fullmatch(path)}

    def _refuse_other_chain(self, chain: Chain, there: Mapping[str, _There]) -> None:
        """Refuse to replace the copy of other archives, which may be the last that there is of them."""
        names = {Path(path).stem for path in there if path.startswith(f"{_ARCHIVES}/")} - {BASE}
        own = {link.name for link in chain.links}.union(*(link.squashed for link in chain.links[:1]))
        if not names & own and _BASE in there:
            names |= self._read_base_name()
        if names and not names & own:
            problem = f"holds archives of another home, or of a backup_dir that was replaced (as {max(names)})."
            remedy = "They were left as they are. Give backup_copy another folder."
            raise DashboardError(problem, place=self.url, remedy=remedy)

    def _read_base_name(self) -> set[str]:
        """Read the name of the archive that is the base there; none where it is damaged."""
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(DashboardError):
            self._fetch(_BASE, Path(folder) / _BASE)
            return {read_manifest(Path(folder) / _BASE).name}
        return set()

    def _send(self, source: Path, path: str) -> int:
        """Send a file and return its size in bytes."""
        name, own = f"{self._root}/{path}", _compute_facts(source)
        self._call("put_file", os.fspath(source), name, chunksize=_PART_BYTES)
        arrived = _read_facts(self._call("info", name))
        if arrived.size_bytes != own.size_bytes:
            problem = f"{path}: incomplete transfer, {arrived.size_bytes} of {own.size_bytes} bytes."
            raise DashboardError(problem, place=self.url)
        # Of a storage that encrypts with keys of its own, only sizes can be compared.
        self._etags_tell = arrived.etag == own.etag
        return own.size_bytes

    def _fetch(self, path: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=target.parent)
        os.close(descriptor)
        try:
            self._call("get_file", f"{self._root}/{path}", name)
            os.replace(name, target)
        finally:
            Path(name).unlink(missing_ok=True)

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call this function of s3fs with the time that is left for all requests."""
        left_s = self._end - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return getattr(self._files, name)(*arguments, timeout=left_s, **options)

    @contextlib.contextmanager
    def _naming_errors(self) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError

        try:
            yield
        except DashboardError:
            raise
        except (OSError, BotoCoreError, ValueError) as error:  # what the storage answers; a setting of AWS that is none
            problem = f"{type(error).__name__}: {error}"[:300].rstrip(":. ")
            if isinstance(error, TimeoutError) and time.monotonic() >= self._end:
                problem = f"did not finish within {format_duration(self._limit_s)}"
            remedy = "The backup_dir is intact; the next night uploads what is missing."
            raise DashboardError(f"{problem}.", place=self.url, remedy=remedy) from error


@contextlib.contextmanager
def pulled(url: str, scratch: Path | None = None) -> Iterator[Path]:
    """Fetch the backup into a folder that lasts as long as the block."""
    remote = RemoteBackup(url)
    with tempfile.TemporaryDirectory(prefix="tvm-dashboard-backup-", dir=scratch) as folder:
        remote.pull(Path(folder))
        yield Path(folder)


def describe_mended(url: str, files: int) -> str:
    """Describe how many damaged files of the copy were replaced."""
    of = "1 damaged file of the copy was" if files == 1 else f"{files} damaged files of the copy were"
    return f"{url}: {of} replaced from backup_dir."


def _path_of(sha256: str) -> str:
    return f"{_OBJECTS}/{sha256[:2]}/{sha256}"


def _read_facts(facts: Mapping[str, Any]) -> _There:
    return _There(int(facts["size"]), str(facts.get("ETag", "")).strip('"'))


def _compute_facts(source: Path) -> _There:
    """Return size and ETag as storages report them: the MD5, or of a multipart upload the MD5 of its parts' MD5s."""
    with open_regular(source) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if size_bytes < 2 * _PART_BYTES:  # so s3fs decides
            return _There(size_bytes, _md5(file.read()).hexdigest())
        sums = [_md5(part).digest() for part in iter(lambda: file.read(_PART_BYTES), b"")]
    return _There(size_bytes, f"{_md5(b''.join(sums)).hexdigest()}-{len(sums)}")


def _md5(content: bytes) -> hashlib._Hash:
    return hashlib.md5(content, usedforsecurity=False)
