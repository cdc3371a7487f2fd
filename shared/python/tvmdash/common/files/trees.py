"""Trees of files that others left: walked, read, copied, packed, removed, their links checked.

Stages, guests, hosts and backups leave what they like: folders 2,000 deep, links to themselves, pipes, sparse files of
any size, names that are no UTF-8, folders that not even their owner may read. So nothing here recurses, follows a link
or opens what is no regular file. Whatever of that lies in a tree is a `Problem` in the answer, never an exception; an
OSError is one of this machine, as a full disk. Folders are opened name by name: a path may be longer than PATH_MAX.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import logging
import os
import stat
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Self

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_OWNERS = 0o700
_PLAIN = 0o777
"""Mode bits that are copied: setuid and setgid would give away another user's rights."""
_PIECE_BYTES = 1 << 20
_SHOWN = 100
_TRIES = 4
_PAUSE_S = 0.05
_SPECIAL = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}
_log = logging.getLogger("files")


class Fault(enum.Enum):
    """Reasons to leave out a part of a tree."""

    DEEP = "deep"
    MANY = "many"
    LARGE = "large"
    SPECIAL = "special"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Problem:
    """A part of a tree that is left out, by its path there; `text` is a clause without a subject."""

    path: str
    fault: Fault
    text: str

    def __str__(self) -> str:
        return f"{show(self.path)} {self.text}"


def show(path: str) -> str:
    """Return a path for people: one line of at most 100 printable characters."""
    text = os.fsencode(path).decode("utf-8", errors="backslashreplace")
    text = "".join(character if character.isprintable() else "�" for character in text) or "."
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}…{text[-_SHOWN // 2 :]}"


@dataclass(frozen=True)
class Bounds:
    """Limits of a tree. size_bytes: of its files' apparent sizes, holes included; None: no limit."""

    depth: int = 200
    entries: int = 1_000_000
    size_bytes: int | None = None


USUAL = Bounds()
"""An installed TVM has 12 levels and 10,000 files, the deepest environments of other languages some 50 levels."""
_MOST_PATH_BYTES = 256 << 20
"""Limit for all folders' paths together: a million folders below a path of 50 kB would fill the memory."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file, folder or link in a tree: its place, its lstat(2), and a link's target."""

    folder: str
    name: str
    status: os.stat_result
    target: str = ""

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}" if self.folder else self.name

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.status.st_mode)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.status.st_mode)


@dataclass(frozen=True)
class Tree:
    """Entries below `root` in order of names, each folder before its content; `problems` are those left out."""

    root: Path
    entries: tuple[TreeEntry, ...]
    problems: tuple[Problem, ...]

    @property
    def files(self) -> list[TreeEntry]:
        return [entry for entry in self.entries if entry.is_file]

    @property
    def size_bytes(self) -> int:
        """Return the apparent size of its files."""
        return sum(entry.status.st_size for entry in self.entries if entry.is_file)


def walk(root: Path, limits: Bounds = USUAL, leaves_out: Callable[[TreeEntry], bool] | None = None) -> Tree:
    """List what lies below the folder `root`, which may be a link to one; nothing where there is none.

    Entries for which `leaves_out` is true are left out with all below them, and are no problem.
    """
    entries, problems = list[TreeEntry](), list[Problem]()
    waiting, size_bytes, path_bytes = [("", 0)], 0, 0
    with _Opener(root) as opener:
        while waiting:
            folder, depth = waiting.pop()
            path_bytes += len(folder)
            most = limits.entries - len(entries) if path_bytes < _MOST_PATH_BYTES else 0
            listed, faults, is_whole = _list(opener, folder, most)
            problems += faults
            inner = []
            for entry in listed:
                if leaves_out and leaves_out(entry):
                    continue
                fault = _find_fault(entry, depth, limits, size_bytes)
                if fault:
                    problems.append(fault)
                    continue
                entries.append(entry)
                size_bytes += entry.status.st_size if entry.is_file else 0
                if entry.is_folder:
                    inner.append((entry.path, depth + 1))
            if not is_whole:
                text = f"has more entries than can be taken, with all before it ({len(entries):,})"
                problems.append(Problem(folder, Fault.MANY, text))
                break
            # reversed, so that the stack gives them back in order of names
            waiting += reversed(inner)
    return Tree(root, tuple(entries), tuple(problems))


def _list(opener: _Opener, folder: str, most: int) -> tuple[list[TreeEntry], list[Problem], bool]:
    """List at most `most` entries of a folder in order of names, its problems, and whether that is all."""
    entries, problems, is_whole = list[TreeEntry](), list[Problem](), True
    try:
        descriptor = opener.open(folder)
        with os.scandir(descriptor) as listing:
            found = list(islice(listing, most + 1))
        if len(found) > most:
            found.pop()
            is_whole = False
        for item in sorted(found, key=lambda item: item.name):
            try:
                status = item.stat(follow_symlinks=False)
                target = os.readlink(item.name, dir_fd=descriptor) if stat.S_ISLNK(status.st_mode) else ""
                entries.append(TreeEntry(folder, item.name, status, target))
            except FileNotFoundError:
                pass  # somebody removed it meanwhile
            except OSError as error:
                path = f"{folder}/{item.name}" if folder else item.name
                problems.append(Problem(path, Fault.UNREADABLE, f"cannot be read: {error.strerror}"))
    except FileNotFoundError:
        pass
    except OSError as error:
        problems.append(Problem(folder, Fault.UNREADABLE, f"cannot be listed: {error.strerror}"))
    return entries, problems, is_whole


def _find_fault(entry: TreeEntry, depth: int, limits: Bounds, size_bytes: int) -> Problem | None:
    if not (entry.is_file or entry.is_folder or entry.is_link):
        kind = _SPECIAL.get(stat.S_IFMT(entry.status.st_mode), "of an unknown kind")
        return Problem(entry.path, Fault.SPECIAL, f"is {kind}")
    if entry.is_folder and depth >= limits.depth:
        return Problem(entry.path, Fault.DEEP, f"is nested more than {limits.depth:,} folders deep")
    if entry.is_file and limits.size_bytes is not None and size_bytes + entry.status.st_size > limits.size_bytes:
        text = f"takes more than {limits.size_bytes / 1e6:,.0f} MB together with the files before it"
        return Problem(entry.path, Fault.LARGE, text)
    return None


class _Opener:
    """Opens folders below `root`, one at a time, each from the one before where it lies below that."""

    def __init__(self, root: Path) -> None:
        self._root, self._folder, self._descriptor = root, "", -1

    def open(self, folder: str) -> int:
        """Return a descriptor of the folder at this path, valid until the next call."""
        inside = f"{self._folder}/" if self._folder else ""
        if self._descriptor < 0 or not folder.startswith(inside):
            self.close()
            self._folder, self._descriptor, inside = "", os.open(self._root, _FOLDER), ""
        # One name at a time: of a path O_NOFOLLOW guards only the last, and a stage may put a link in place of any.
        for name in folder[len(inside) :].split("/") if folder != self._folder else []:
            inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=self._descriptor)
            os.close(self._descriptor)
            self._folder, self._descriptor = f"{self._folder}/{name}" if self._folder else name, inner
        return self._descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@contextlib.contextmanager
def _opened_parent(root: Path, path: str) -> Iterator[tuple[int, str]]:
    """Open the folder that holds `path` below `root`: its descriptor, and the last name of `path`."""
    folder, _, name = path.rpartition("/")
    with _Opener(root) as opener:
        yield opener.open(folder), name


# --- what is in it ----------------------------------------------------------------------------------------------------


def open_file(root: Path, path: str) -> BinaryIO:
    """Open the regular file at this path below `root`; OSError where it cannot be read, or is not one (any more)."""
    with _opened_parent(root, path) as (folder, name):
        descriptor = os.open(name, _FILE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", show(path))
    return os.fdopen(descriptor, "rb")


def read_pieces(root: Path, path: str) -> Iterator[bytes]:
    """Yield the file's content, a mebibyte at a time."""
    with open_file(root, path) as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def find_target(root: Path, path: str) -> Path | None:
    """Return the final target of the link at this path below `root`, as the system resolves it; None: it dangles."""
    with contextlib.suppress(OSError, ValueError), _opened_parent(root, path) as (folder, name):  # a NUL in it
        return _find_target(folder, name)
    return None


def _find_target(folder: int, name: str) -> Path | None:
    with contextlib.suppress(OSError):
        descriptor = os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=folder)
        try:
            return Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        finally:
            os.close(descriptor)
    return None


def remove_doors(root: Path, within: Iterable[Path] = ()) -> None:
    """Remove each link below `root`, however deep, that leads to nothing in it or in a folder of `within`.

    Of its files remove the setuid and setgid bits.
    """
    inside = [Path(os.path.realpath(folder)) for folder in (root, *within)]

    def check(folder: int, name: str, mode: int) -> None:
        if stat.S_ISLNK(mode):
            target = _find_target(folder, name)
            if target is None or not any(map(target.is_relative_to, inside)):
                os.unlink(name, dir_fd=folder)
        elif stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
            os.chmod(name, stat.S_IMODE(mode) & _PLAIN, dir_fd=folder)

    with contextlib.suppress(FileNotFoundError), _Opener(root.parent) as opener:
        _visit(root.name, opener.open(""), check, unlocks=False)


def pack(tree: Tree, archive: tarfile.TarFile, name: str) -> None:
    """Add the tree to a tar archive as the folder `name`; OSError where a file of it cannot be read."""
    for entry in tree.entries:
        member = tarfile.TarInfo(f"{name}/{entry.path}")
        member.mode, member.mtime = stat.S_IMODE(entry.status.st_mode), entry.status.st_mtime
        if entry.is_file:
            with open_file(tree.root, entry.path) as file:
                member.size = os.fstat(file.fileno()).st_size
                archive.addfile(member, file)
        else:
            member.type, member.linkname = (tarfile.SYMTYPE, entry.target) if entry.is_link else (tarfile.DIRTYPE, "")
            archive.addfile(member)


# --- laid out elsewhere -----------------------------------------------------------------------------------------------


def copy(tree: Tree, destination: Path) -> list[Problem]:
    """Copy the tree into the folder `destination`, which is made where it is not there; return what was unreadable.

    Links stay links, holes stay holes; files keep mode and time of change. Their owner may read the copies.
    """
    destination.mkdir(parents=True, exist_ok=True)
    problems = []
    for entry in tree.entries:
        mode = stat.S_IMODE(entry.status.st_mode) & _PLAIN
        if entry.is_folder:
            make_folder(destination, entry.path, mode | _OWNERS)
        elif entry.is_link:
            make_link(destination, entry.path, entry.target)
        else:
            try:
                source = open_file(tree.root, entry.path)
            except OSError as error:
                problems.append(Problem(entry.path, Fault.UNREADABLE, f"cannot be read: {error.strerror}"))
                continue
            with source, make_file(destination, entry.path) as target:
                _copy_content(source.fileno(), target.fileno())
                finish_file(target, mode | stat.S_IRUSR, entry.status.st_mtime_ns)
    return problems


def _copy_content(source: int, target: int) -> None:
    # a sparse file that claims 20 GB is next to nothing to copy
    at, size_bytes = 0, os.fstat(source).st_size
    while at < size_bytes:
        at, end = _find_data(source, at, size_bytes)
        os.lseek(target, at, os.SEEK_SET)
        while at < end and (sent := os.sendfile(target, source, at, end - at)):
            at += sent
        if at < end:
            break  # it was cut meanwhile
    os.ftruncate(target, size_bytes)


def _find_data(descriptor: int, at: int, size_bytes: int) -> tuple[int, int]:
    """Return begin and end of the next data; both are the file's end where there is none."""
    try:
        begin = os.lseek(descriptor, at, os.SEEK_DATA)
        return begin, os.lseek(descriptor, begin, os.SEEK_HOLE)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size_bytes, size_bytes
        if error.errno == errno.EINVAL:  # a filesystem that knows no holes
            return at, size_bytes
        raise


def make_folder(root: Path, path: str, mode: int = 0o777) -> None:
    """Make the folder at this path below `root`, and those above it; one that is there stays as it is."""
    missing = []
    while path:
        try:
            with _opened_parent(root, path) as (folder, name), contextlib.suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=folder)
            break
        except FileNotFoundError:
            missing.append(path)
            path = path.rpartition("/")[0]
    for inner in reversed(missing):
        with _opened_parent(root, inner) as (folder, name):
            os.mkdir(name, mode, dir_fd=folder)


def make_file(root: Path, path: str) -> BinaryIO:
    """Create a file at this path below `root`, in an existing folder, for writing."""
    with _opened_parent(root, path) as (folder, name):
        return os.fdopen(os.open(name, _NEW, 0o666, dir_fd=folder), "wb")


def finish_file(file: BinaryIO, mode: int, mtime_ns: int) -> None:
    """Give what was written its mode and time of change."""
    file.flush()
    os.fchmod(file.fileno(), mode)
    # last, as writing what is still buffered would set it anew
    os.utime(file.fileno(), ns=(mtime_ns, mtime_ns))


def make_link(root: Path, path: str, target: str) -> None:
    """Create a link at this path below `root`, in an existing folder."""
    with _opened_parent(root, path) as (folder, name):
        os.symlink(target, name, dir_fd=folder)


def change_mode(root: Path, folder: str, mode: int) -> None:
    """Change the mode of the folder at this path below `root`."""
    with _Opener(root) as opener:
        os.fchmod(opener.open(folder), mode)


# --- and gone ---------------------------------------------------------------------------------------------------------


def remove(path: Path) -> bool:
    """Remove a file, a link, or a folder with all that is in it, however deep; return True where it is gone.

    A folder that a script locked is unlocked first. What still stays, as what belongs to another user, is mounted
    there, or is being written to, is a warning in the log.
    """
    # a program that is just being ended may still write into it
    for attempt in range(_TRIES):
        with contextlib.suppress(OSError), _Opener(path.parent) as opener:
            _visit(path.name, opener.open(""), _remove, unlocks=True)
        if not os.path.lexists(path):
            return True
        time.sleep(_PAUSE_S * attempt)
    _log.warning("%s: could not be removed. It is no longer needed; delete it by hand.", path)
    return False


def _remove(folder: int, name: str, mode: int) -> None:
    (os.rmdir if stat.S_ISDIR(mode) else os.unlink)(name, dir_fd=folder)


@dataclass(frozen=True)
class _Level:
    """A folder on the way down: its name in the one above, its status, and the names still to be visited in it."""

    name: str
    status: os.stat_result
    names: list[str]


def _visit(name: str, folder: int, visit: Callable[[int, str, int], None], *, unlocks: bool) -> None:
    """Call `visit` with the folder's descriptor, the name in it and the mode of each thing below, folders last.

    So down by names, and up again by `..`: no depth is too much. What cannot be visited is left out, and so is what is
    mounted there. unlocks: folders are made their owner's to change.
    """
    # a descriptor of our own: it is closed on the way down, and the caller keeps the other
    levels, here = [_Level("", os.fstat(folder), [name])], os.dup(folder)
    try:
        while True:
            if levels[-1].names:
                inner = _visit_or_enter(levels[-1].names.pop(), here, levels, visit, unlocks=unlocks)
                if inner is not None:
                    os.close(here)
                    here = inner
                continue
            left = levels.pop()
            if not levels:
                return
            above = os.open("..", os.O_PATH | _FOLDER, dir_fd=here)
            os.close(here)
            here = above
            if not os.path.samestat(os.fstat(here), levels[-1].status):
                return  # somebody moves folders about meanwhile
            with contextlib.suppress(OSError):
                visit(here, left.name, left.status.st_mode)
    finally:
        os.close(here)


def _visit_or_enter(
    name: str, folder: int, levels: list[_Level], visit: Callable[[int, str, int], None], *, unlocks: bool
) -> int | None:
    """Visit this name in the folder; where it is a folder of the same disk, enter it and return its descriptor."""
    with contextlib.suppress(OSError):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            visit(folder, name, status.st_mode)
            return None
        if len(levels) > 1 and status.st_dev != levels[-1].status.st_dev:
            return None  # mounted there: somebody else's
        inner = _open_unlocked(name, folder) if unlocks else os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        try:
            levels.append(_Level(name, os.fstat(inner), os.listdir(inner)))
        except OSError:
            os.close(inner)
            raise
        return inner
    return None


def _open_unlocked(name: str, folder: int) -> int:
    """Open the folder of this name and let its owner list and change it."""
    handle = os.open(name, os.O_PATH | _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if mode & _OWNERS != _OWNERS:
            with contextlib.suppress(OSError):  # another user's
                os.chmod(f"/proc/self/fd/{handle}", mode | _OWNERS)
        return os.open(".", _FOLDER, dir_fd=handle)
    finally:
        os.close(handle)


def set_aside(path: Path, folder: Path) -> Path:
    """Move `path` to a free name in `folder` and return its new place; OSError where that fails.

    One rename does that whatever lies below, as deep as it may be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number, place = 1, folder / path.name
    while os.path.lexists(place):
        number += 1
        place = folder / f"{path.name}.{number}"
    os.rename(path, place)
    return place


@contextlib.contextmanager
def scratch_folder(folder: Path | None = None, prefix: str = "tvm-dashboard-", suffix: str = "") -> Iterator[Path]:
    """Make an empty folder for programs of others; the end of the block removes it with whatever they left in it."""
    made = Path(tempfile.mkdtemp(suffix, prefix, folder))
    try:
        yield made
    finally:
        remove(made)
