"""The archives of one home: a base, and a chain of manifests of what changed since."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dashboard.archive.objects import open_regular
from tvmdash.common import Json
from tvmdash.common.files.sync import sync_folder
from tvmdash.errors import DashboardError

FORMAT = 1
BASE = "base"
NAME = re.compile(r"(?!base$)[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_STRAYING = re.compile(r"(?:^|/)(?:\.\.?)?(?:/|\Z)")
"""A part of a path that is empty, `.` or `..`."""
_BEFORE_SUM, _AFTER_SUM = b'{"checksum": "', b'", '


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file: the content stored for it, and the mode and time it had when it was read."""

    sha256: str
    size_bytes: int
    mode: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link and what it says."""

    target: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder; it stands here for its mode, and so that an empty one comes back."""

    mode: int


Entry = StoredFile | Link | Folder


@dataclass(frozen=True)
class Manifest:
    """One archive as it is written. `entries` is everything in a base, what was added or changed in a delta."""

    name: str
    entries: Mapping[str, Entry]
    removed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    complete: bool = True
    parent: str | None = None
    """The archive this one is the difference to; None makes it a base."""
    parent_identity: str | None = None
    squashed: tuple[str, ...] = ()
    """The archives that a base replaces; their files may still lie about."""
    identity: str = ""
    """The checksum of this archive's manifest when it was new, by which a child names its parent."""

    @property
    def file_name(self) -> str:
        return f"{self.name if self.parent else BASE}.json"

    def refers_to(self) -> dict[str, int]:
        """Return the size in bytes of each content it names, by hash."""
        files = (entry for entry in self.entries.values() if isinstance(entry, StoredFile))
        return {entry.sha256: entry.size_bytes for entry in files}

    def apply(self, state: dict[str, Entry]) -> None:
        """Turn the parent's `state` into this archive's."""
        for path in self.removed:
            state.pop(path, None)
        state.update(self.entries)


def write_manifest(folder: Path, manifest: Manifest) -> int:
    """Write `manifest` beside, read it back, rename it in; its size in bytes. Durable on return."""
    raw = _dump(manifest)
    path = folder / manifest.file_name
    descriptor, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
            # Out of the page cache, so that what is read back comes from the disk.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if Path(name).read_bytes() != raw:
            raise DashboardError(f"{path}: reading it back gave different data. Check this disk for errors.")
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
    sync_folder(folder)
    return len(raw)


def read_manifest(path: Path) -> Manifest:
    """Read the manifest in `path`; DashboardError where anything in it is not as it was written."""
    try:
        with open_regular(path) as file:
            raw = file.read()
    except OSError as error:
        raise DashboardError(f"{path}: cannot be read: {error.strerror}.") from error
    body, checksum = _split(raw)
    if hashlib.sha256(body).hexdigest() != checksum:
        raise DashboardError(f"{path}: damaged: the checksum does not match the content.")
    try:
        # Not common.parse_json: what it would find, a wrong checksum has said, and a base has a line for each file.
        return _parse(json.loads(body), checksum)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise DashboardError(f"{path}: not a manifest of format {FORMAT}: {error!r}.") from error


def _split(raw: bytes) -> tuple[bytes, str]:
    """Split off the checksum, which is taken over exactly the bytes that remain."""
    start = len(_BEFORE_SUM)
    end = start + 64 + len(_AFTER_SUM)
    if not raw.startswith(_BEFORE_SUM) or raw[end - len(_AFTER_SUM) : end] != _AFTER_SUM:
        return raw, ""
    return b"{" + raw[end:], raw[start : start + 64].decode("latin-1")


def _dump(manifest: Manifest) -> bytes:
    # Plain ASCII: a name that is not UTF-8 is written with the escapes that bring its bytes back.
    body = json.dumps(
        {
            "format": FORMAT,
            "name": manifest.name,
            "parent": manifest.parent,
            "parent_identity": manifest.parent_identity,
            "identity": manifest.identity or None,
            "squashed": manifest.squashed,
            "complete": manifest.complete,
            "skipped": manifest.skipped,
            "removed": manifest.removed,
            "entries": {path: _dump_entry(entry) for path, entry in manifest.entries.items()},
        }
    ).encode("ascii")
    return _BEFORE_SUM + hashlib.sha256(body).hexdigest().encode("ascii") + _AFTER_SUM + body[1:]


def _dump_entry(entry: Entry) -> Json:
    if isinstance(entry, StoredFile):
        return {
            "sha256": entry.sha256,
            "size_bytes": entry.size_bytes,
            "mode": entry.mode,
            "mtime_ns": entry.mtime_ns,
        }
    return {"link": entry.target} if isinstance(entry, Link) else {"folder_mode": entry.mode}


def _parse(value: Json, checksum: str) -> Manifest:
    if value["format"] != FORMAT:
        raise ValueError(f"format {value['format']!r}")
    if not NAME.fullmatch(value["name"]):
        raise ValueError(f"name {value['name']!r}")
    return Manifest(
        name=value["name"],
        entries={_path(path): _parse_entry(path, raw) for path, raw in value["entries"].items()},
        removed=tuple(_path(path) for path in value["removed"]),
        skipped=tuple(map(str, value["skipped"])),
        complete=value["complete"] is True,
        parent=_text(value["parent"]),
        parent_identity=_text(value["parent_identity"]),
        squashed=tuple(map(str, value["squashed"])),
        identity=_text(value["identity"]) or checksum,
    )


def _text(value: Json) -> str | None:
    if value is not None and type(value) is not str:
        raise ValueError(f"{value!r} is not a text")
    return value


def _path(path: str) -> str:
    """Return `path`, if it can be a name and stays inside the home."""
    if _STRAYING.search(_name(path)) and path != ".":
        raise ValueError(f"path {path!r} points outside the home")
    return path


def _name(text: str) -> str:
    """Return `text`, if a filesystem can take it."""
    if b"\0" in text.encode("utf-8", errors="surrogateescape"):
        raise ValueError(f"{text!r} contains a NUL character")
    return text


def _parse_entry(path: str, raw: Json) -> Entry:
    if "folder_mode" in raw:
        return Folder(_mode(raw["folder_mode"]))
    if path == ".":
        raise ValueError("the home itself is not a folder")
    if "link" in raw:
        return Link(_name(raw["link"]))
    if not _SHA256.fullmatch(raw["sha256"]):
        raise ValueError(f"{path!r}: sha256 {raw['sha256']!r}")
    return StoredFile(raw["sha256"], _whole(raw["size_bytes"]), _mode(raw["mode"]), _time(raw["mtime_ns"]))


def _whole(value: Json) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a whole number of 0 or more")
    return value


def _time(value: Json) -> int:
    if type(value) is not int or abs(value) >= 1 << 63:
        raise ValueError(f"{value!r} is not a time in nanoseconds")
    return value


def _mode(value: Json) -> int:
    if _whole(value) > 0o7777:
        raise ValueError(f"{value!r} is not a file mode")
    return int(value)


State = dict[str, Entry]


@dataclass(frozen=True)
class Chain:
    """`links`: the base and its deltas, each the next one's parent, as far as they hold together.

    `broken`: the archives beyond that, by name, with the reason. `leftover`: files of archives that went into
    the base and that a killed `prune` did not come to remove.
    """

    folder: Path
    links: tuple[Manifest, ...]
    broken: dict[str, str]
    leftover: tuple[Path, ...]

    def states(self) -> Iterator[tuple[Manifest, State]]:
        """Yield each archive with its state, oldest first. The state is changed in place from one to the next."""
        state: State = {}
        for link in self.links:
            link.apply(state)
            yield link, state

    def state(self, name: str | None = None) -> State:
        """Return the entries of the archive `name` by path; raise DashboardError where there is no such archive.

        None: of the newest, provided that no archive is broken; empty where there is none yet.
        """
        if name is None:
            self.require_sound()
        last = self._link(name) if name is not None else None
        state: State = {}
        for link, so_far in self.states():
            state = so_far
            if link is last:
                break
        return state

    def _link(self, name: str) -> Manifest:
        manifest = next((link for link in self.links if link.name == name), None)
        if manifest is None:
            known = ", ".join(link.name for link in self.links[-3:]) or "none"
            why = self.broken.get(name, f"no such archive. The newest are: {known}.")
            raise DashboardError(f"{self.folder}: {name}: {why}")
        return manifest

    def require_sound(self) -> None:
        """Raise DashboardError where an archive is broken; it says what still stands and what to do."""
        if not self.broken:
            return
        name, why = next(iter(self.broken.items()))
        others = f" (and {len(self.broken) - 1} more)" if len(self.broken) > 1 else ""
        last = f"Archives up to {self.links[-1].name} can still be restored. " if self.links else ""
        raise DashboardError(
            f"{self.folder}: {name}{others} cannot be restored: {why} {last}"
            f"Rename {self.folder.parent}; the next archive then starts a new chain."
        )

    def refuse_name(self, name: str) -> None:
        """Raise DashboardError where a new archive cannot be called `name`."""
        if not NAME.fullmatch(name):
            raise DashboardError(f"{name!r} is not a valid archive name (expected e.g. 20261121T031500Z-before).")
        taken = {link.name for link in self.links} | self.broken.keys()
        if name in taken or any(name in link.squashed for link in self.links[:1]):
            raise DashboardError(f"{self.folder}: {name}: this archive name has already been used. Choose another.")


def load_chain(folder: Path) -> Chain:
    """Load the chain in `folder` (empty where there is none yet). Broken archives are listed in it, not raised."""
    deltas = {path.stem: path for path in sorted(folder.glob("[A-Za-z0-9]*.json")) if path.stem != BASE}
    base_path = folder / f"{BASE}.json"
    if not base_path.exists():
        why = f"{base_path} is missing."
        return Chain(folder, (), dict.fromkeys(deltas, why), ())
    try:
        base = read_manifest(base_path)
        if base.parent is not None:
            raise DashboardError(f"{base_path}: is not a base: it has a parent, {base.parent!r}.")
    except DashboardError as error:
        return Chain(folder, (), dict.fromkeys((BASE, *deltas), str(error)), ())
    leftover = tuple(deltas.pop(name) for name in base.squashed if name in deltas)
    children, broken = _read_deltas(deltas)
    links = _follow(base, children)
    for parent, child in children.items():
        broken.setdefault(child.name, f"its parent, {parent}, is missing, damaged or was replaced.")
    return Chain(folder, tuple(links), broken, leftover)


def _read_deltas(deltas: dict[str, Path]) -> tuple[dict[str, Manifest], dict[str, str]]:
    """Read the deltas by their parents' names, and collect the faults of those that are broken."""
    children: dict[str, Manifest] = {}
    broken: dict[str, str] = {}
    for name, path in deltas.items():
        try:
            delta = read_manifest(path)
        except DashboardError as error:
            broken[name] = str(error)
            continue
        if delta.name != name or delta.parent is None:
            broken[name] = f"{path}: was originally written as another file ({delta.name})."
        elif delta.parent in children:
            broken[name] = f"{path}: has the parent {delta.parent}, which {children[delta.parent].name} also has."
        else:
            children[delta.parent] = delta
    return children, broken


def _follow(base: Manifest, children: dict[str, Manifest]) -> list[Manifest]:
    """Follow the chain from `base` on, taking its deltas out of `children`."""
    links = [base]
    while True:
        child = children.get(links[-1].name)
        # A squashed base keeps its name: only the identity tells whether this delta was made on that content.
        if child is None or child.parent_identity != links[-1].identity:
            return links
        links.append(children.pop(links[-1].name))
