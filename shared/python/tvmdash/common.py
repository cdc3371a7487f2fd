"""Files and stamps: what everything else is written with."""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import errno
import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from tvmdash.errors import DashboardError

STAMP_FORMAT = "%Y%m%dT%H%M%SZ"
_STAMP = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2

Json = Any
"""A value as `json.loads` returns it. It stays at the edges: parse it into a dataclass."""


def utc_now() -> datetime.datetime:
    """The present moment in UTC, to the second."""
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)


def stamp_of(moment: datetime.datetime) -> str:
    """The stamp of an aware `moment`, as in 20261121T031500Z."""
    return moment.astimezone(datetime.timezone.utc).strftime(STAMP_FORMAT)


def parse_stamp(stamp: str) -> datetime.datetime:
    """The aware UTC moment of a stamp."""
    if not _STAMP.fullmatch(stamp):
        raise DashboardError(f"{stamp!r} is not a stamp. Write it like 20261121T031500Z (UTC).")
    try:
        parts = (stamp[:4], stamp[4:6], stamp[6:8], stamp[9:11], stamp[11:13], stamp[13:15])
        return datetime.datetime(*map(int, parts), tzinfo=datetime.timezone.utc)  # type: ignore[misc,arg-type]
    except ValueError as error:
        raise DashboardError(f"{stamp!r} is not a stamp: {error}. Write it like 20261121T031500Z (UTC).") from error


def read_json(path: Path, *, max_bytes: int = 256 << 20) -> Json:
    """The strict JSON value in `path`: UTF-8, no NaN or Infinity, no key twice, at most `max_bytes`."""
    try:
        with path.open("rb") as file:
            raw = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise DashboardError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise DashboardError(f"{path}: cannot be read: {error.strerror}.") from error
    if len(raw) > max_bytes:
        raise DashboardError(f"{path}: larger than {max_bytes} bytes, which is more than is read here.")
    return parse_json(raw, str(path))


def parse_json(raw: bytes, where: str) -> Json:
    """The strict JSON value in `raw`; `where` names its origin in errors."""
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except UnicodeDecodeError as error:
        raise DashboardError(f"{where}: not UTF-8 at byte {error.start}.") from error
    except json.JSONDecodeError as error:
        place = "empty" if not raw.strip() else f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        raise DashboardError(f"{where}: {place}.") from error
    except (ValueError, RecursionError) as error:
        raise DashboardError(f"{where}: {error}.") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON; leave out what could not be measured")


def _unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return value


def first_non_finite(value: Json, place: str = "$") -> str | None:
    """The JSON path of the first NaN or Infinity in `value`, or None."""
    if isinstance(value, float):
        return None if math.isfinite(value) else place
    if isinstance(value, dict):
        found = (first_non_finite(item, f"{place}.{key}") for key, item in value.items())
    elif isinstance(value, (list, tuple)):
        found = (first_non_finite(item, f"{place}[{index}]") for index, item in enumerate(value))
    else:
        return None
    return next((where for where in found if where), None)


def dump_json(value: Json) -> str:
    """`value` as indented JSON text; NaN and Infinity are refused with their place."""
    try:
        return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError as error:
        place = first_non_finite(value) or "$"
        raise DashboardError(f"{place}: NaN or Infinity cannot be written. Leave the value out.") from error


def write_json(path: Path, value: Json) -> None:
    """Write `value` to `path` whole or not at all."""
    write_text(path, dump_json(value))


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` as UTF-8, whole or not at all, surviving a power cut."""
    write_bytes(path, text.encode("utf-8", errors="surrogateescape"))


def write_bytes(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write `content` to `path` whole or not at all, surviving a power cut."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def swap_in(new: Path, place: Path) -> None:
    """Make the folder `new` be `place` in one step; what was there before is removed afterwards.

    Both lie on one filesystem. Killed at any instant, `place` is either the old folder or the new one.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        os.rename(new, place)
        return
    _exchange(new, place)
    shutil.rmtree(new)


def _exchange(one: Path, other: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return
    code = ctypes.get_errno()
    if code not in (errno.EINVAL, errno.ENOSYS):
        raise OSError(code, os.strerror(code), str(other))
    # A filesystem without the exchange (some network mounts): two renames, and a moment between them.
    aside = Path(tempfile.mkdtemp(prefix=f".{other.name}.", suffix=".old", dir=other.parent))
    os.rename(other, aside)
    os.rename(one, other)
    os.rename(aside, one)


@contextlib.contextmanager
def folder_beside(place: Path) -> Iterator[Path]:
    """A new folder on the filesystem of `place` that becomes `place` when the block ends well."""
    place.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{place.name[:100]}.", suffix=".new", dir=place.parent))
    new.chmod(0o755)
    try:
        yield new
        swap_in(new, place)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def remove_unfinished(parent: Path) -> None:
    """Remove what a killed `folder_beside`, `swap_in` or `write_*` left directly in `parent`."""
    if not parent.is_dir():
        return
    for path in parent.glob(".*"):
        original = parent / path.name[1:].rpartition(".")[0].rpartition(".")[0]
        if path.suffix == ".old" and not original.exists():
            os.rename(path, original)
        elif path.suffix in {".new", ".old"} and path.is_dir():
            shutil.rmtree(path)
        elif path.suffix == ".tmp" and path.is_file():
            path.unlink()
