"""JSON files, atomic writes, and stamps."""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import errno
import hashlib
import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tvmdash.common.files import removal, sync, trees
from tvmdash.common.files.trees import Bounds, Problem, Tree, TreeEntry
from tvmdash.errors import DashboardError

STAMP_FORMAT = "%Y%m%dT%H%M%SZ"
_STAMP = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_YEARS = range(1900, 9900)
"""Years of stamps: days can be added and subtracted without overflow, and no clock was ever set beyond."""
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_MAX_DEPTH = 100
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")
_MAX_DIGITS = 300
_SHOWN_KEY = 60
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_UNFINISHED = re.compile(r"\.(?:(.+)\.)?[a-z0-9_]+\.(?:new|old|tmp)")
_OUR_UNFINISHED = re.compile(r"\.(.+)\.[a-z0-9_]{8}\.(?:new|old|tmp)")

Json = Any
"""A value as `json.loads` returns it. It stays at the edges: parse it into a dataclass."""


def utc_now() -> datetime.datetime:
    """Return the present moment in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


CLOCK_TOLERANCE = datetime.timedelta(minutes=10)
"""A stamp further in the future is wrong; the clocks of two machines differ by less."""


def stamp_of(moment: datetime.datetime) -> str:
    """Return the stamp of an aware `moment`, as in 20261121T031500Z."""
    return moment.astimezone(datetime.UTC).strftime(STAMP_FORMAT)


def format_day(stamp: str) -> str:
    """Return the day of a stamp for people, as in 2026-11-21."""
    return f"{parse_stamp(stamp):%Y-%m-%d}"


def data_stamps(folder: Path) -> list[str]:
    """Return the stamps of the data_<stamp>.json files in `folder`, oldest first."""
    if not folder.is_dir():
        return []
    names = (path.name[5:-5] for path in folder.glob("data_*.json"))
    return sorted(name for name in names if is_stamp(name))


def format_moment(stamp: str) -> str:
    """Return the moment of a stamp for people, as in "2026-11-21 03:15 UTC"."""
    return f"{parse_stamp(stamp):%Y-%m-%d %H:%M} UTC"


def safe_name(text: str) -> str:
    """Return a file name for any text: its ASCII letters and digits, and a hash that makes it unique."""
    # a file's name that is no UTF-8 comes with surrogates
    digest = hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:10]
    slug = _NOT_PLAIN.sub("-", text.lower())[:40].strip("-")
    return f"{slug}-{digest}" if slug else digest


def is_stamp(text: str) -> bool:
    """Return True where `text` is a well-formed stamp of a moment that exists."""
    if _STAMP.fullmatch(text) is None:
        return False
    try:
        _make_moment(text)
    except ValueError:
        return False
    return True


def parse_stamp(stamp: str) -> datetime.datetime:
    """Return the aware UTC moment of a stamp."""
    if _STAMP.fullmatch(stamp) is None:
        raise DashboardError(f"{stamp!r} is not a stamp (expected e.g. 20261121T031500Z, UTC).")
    try:
        return _make_moment(stamp)
    except ValueError as error:
        raise DashboardError(f"{stamp!r} is not a stamp: {error} (expected e.g. 20261121T031500Z, UTC).") from error


def _make_moment(stamp: str) -> datetime.datetime:
    """Parse a well-formed stamp; ValueError where there is no such moment."""
    year, month, day = int(stamp[:4]), int(stamp[4:6]), int(stamp[6:8])
    if year not in _YEARS:
        raise ValueError(f"year must be in {_YEARS[0]}..{_YEARS[-1]}")
    hour, minute, second = int(stamp[9:11]), int(stamp[11:13]), int(stamp[13:15])
    return datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.UTC)


def read_json(path: Path, *, max_bytes: int = 256 << 20) -> Json:
    """Read the strict JSON value in the regular file `path`, of at most `max_bytes`: see `parse_json`."""
    try:
        with open(path, "rb", buffering=0, opener=_open_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise DashboardError("not a regular file.", place=path)
            raw = file.readall() if status.st_size <= max_bytes else b""
    except FileNotFoundError:
        raise DashboardError("no such file.", place=path) from None
    except OSError as error:
        raise DashboardError(f"cannot be read: {error.strerror}.", place=path) from error
    if max(len(raw), status.st_size) > max_bytes:
        raise DashboardError(f"larger than the limit of {max_bytes} bytes.", place=path)
    return parse_json(raw, str(path))


def object_in(value: Json, name: str) -> Mapping[str, Json]:
    """Return the object of that name inside another, or an empty one."""
    item = value.get(name) if isinstance(value, Mapping) else None
    return item if isinstance(item, Mapping) else {}


def _open_without_waiting(path: str, flags: int) -> int:
    # without O_NONBLOCK, opening a named pipe waits for a writer for ever
    return os.open(path, flags | os.O_NONBLOCK)


def parse_json(raw: bytes, where: str, *, has_gaps: bool = False) -> Json:
    """Parse strict JSON; `where` names its origin in errors. has_gaps: NaN and Infinity become null.

    UTF-8, no key twice, no half of a surrogate pair, no NaN or Infinity (also not as 1e999), no number beyond a
    float's range, at most 100 levels deep: whoever reads it on needs no check of their own.
    """
    try:
        value = json.loads(
            raw.decode("utf-8"),
            parse_constant=(lambda _: None) if has_gaps else _refuse_constant,
            parse_float=_parse_known if has_gaps else _parse_finite,
            parse_int=_parse_whole,
            object_pairs_hook=_check_unique_keys,
        )
        # json.loads lets half a surrogate pair through, which no file or page can be written with
        if _SURROGATE.search(raw):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        if raw.count(b"{") + raw.count(b"[") >= _MAX_DEPTH:  # with fewer it cannot be so deep
            _refuse_depth(value)
    except UnicodeDecodeError as error:
        raise DashboardError(f"not UTF-8 at byte {error.start}.", place=where) from error
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        problem = f"{half} is an unpaired surrogate."
        raise DashboardError(problem, place=where, remedy="Use the character itself.") from error
    except json.JSONDecodeError as error:
        fault = "empty" if not raw.strip() else f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        raise DashboardError(f"{fault}.", place=where) from error
    except RecursionError:
        raise DashboardError(f"nested more than {_MAX_DEPTH} levels deep.", place=where) from None
    except _NotFiniteError as error:
        raise DashboardError(f"{_place_of_non_finite(raw)}{error}.", place=where) from error
    except ValueError as error:
        raise DashboardError(f"{error}.", place=where) from error
    return value


class _NotFiniteError(ValueError):
    """A number that JSON or a float cannot hold."""


def _place_of_non_finite(raw: bytes) -> str:
    """Return the JSON path of the first such number and ": "; empty where it cannot be told."""
    try:
        json_path = first_non_finite(json.loads(raw))
    except (ValueError, RecursionError):  # it is no JSON behind that number
        return ""
    return f"{json_path}: " if json_path else ""


def _refuse_constant(name: str) -> NoReturn:
    raise _NotFiniteError(f"{name} is not valid JSON; omit values that could not be measured")


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _NotFiniteError(f"{text:.40} is out of range for a number; omit values that could not be measured")
    return number


def _parse_known(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _parse_whole(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"{text:.40}... has {len(text)} digits, more than {_MAX_DIGITS}")
    return int(text)


def _refuse_depth(value: Json) -> None:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(_MAX_DEPTH):
        if not level:
            return
        level = [
            part
            for item in level
            for part in (item.values() if isinstance(item, dict) else item)
            if isinstance(part, (dict, list))
        ]
    raise ValueError(f"nested more than {_MAX_DEPTH} levels deep")


def _check_unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen = set[str]()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"duplicate key {twice!r:.60} in an object")
    return value


def format_key(key: object) -> str:
    """Return a key as part of a JSON path: short, and without control characters that a terminal would obey."""
    text = str(key)
    return text if text.isprintable() and len(text) <= _SHOWN_KEY else f"{text!r:.{_SHOWN_KEY}}"


def first_non_finite(value: Json, json_path: str = "$") -> str | None:
    """Return the JSON path of the first NaN or Infinity in `value`, or None."""
    if isinstance(value, float):
        return None if math.isfinite(value) else json_path
    if isinstance(value, dict):
        json_paths = (first_non_finite(item, f"{json_path}.{format_key(key)}") for key, item in value.items())
    elif isinstance(value, (list, tuple)):
        json_paths = (first_non_finite(item, f"{json_path}[{index}]") for index, item in enumerate(value))
    else:
        return None
    return next((where for where in json_paths if where), None)


def dump_json(value: Json) -> str:
    """Return `value` as indented JSON text; NaN and Infinity are refused with their place."""
    try:
        return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError as error:
        json_path = first_non_finite(value) or "$"
        raise DashboardError(f"{json_path}: NaN and Infinity are not valid JSON. Omit the value.") from error


def write_json(path: Path, value: Json, *, durable: bool = True) -> None:
    """Write `value` to `path` as `write_bytes` does; bytes of a name that are not UTF-8 become question marks."""
    write_bytes(path, dump_json(value).encode("utf-8", errors="replace"), durable=durable)


def write_text(path: Path, text: str, *, durable: bool = True) -> None:
    """Write `text` to `path` as UTF-8, as `write_bytes` does."""
    write_bytes(path, text.encode("utf-8", errors="surrogateescape"), durable=durable)


def write_bytes(path: Path, content: bytes, *, mode: int = 0o644, durable: bool = True) -> None:
    """Write `content` to `path` whole or not at all.

    Where it is `durable`, it survives a power cut on return, and a cut before leaves what was there; that costs
    milliseconds. Otherwise a cut may leave it empty: for what nobody misses.
    """
    # cut, as a name has at most 255 bytes and this one is longer than the file's own
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        # mkstemp makes a file for its owner alone
        os.chmod(name, mode)
        os.replace(name, path)
        if durable:
            sync.sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def swap_in(new: Path, target: Path) -> None:
    """Make the folder `new` be `target` in one step; what was there before is removed afterwards.

    Both lie on one filesystem. Killed at any instant, or without power, `target` is either the old folder or the new
    one, whole; on return it is the new one for good.
    """
    sync.sync_tree(new)
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        os.rename(new, target)
        sync.sync_folder(target.parent)
        return
    _exchange(new, target)
    sync.sync_folder(target.parent)
    trees.remove(new)


def walk_whole(
    folder: Path, limits: Bounds = trees.USUAL, leaves_out: Callable[[TreeEntry], bool] | None = None
) -> Tree:
    """Walk the tree below `folder` as `trees.walk` does; DashboardError where a part of it cannot be handled."""
    tree = trees.walk(folder, limits, leaves_out)
    _refuse(folder, tree.problems)
    return tree


def copy_tree(
    folder: Path,
    destination: Path,
    limits: Bounds = trees.USUAL,
    leaves_out: Callable[[TreeEntry], bool] | None = None,
) -> None:
    """Copy the tree below `folder` as `trees.copy` does; DashboardError where a part of it cannot be copied."""
    _refuse(folder, trees.copy(walk_whole(folder, limits, leaves_out), destination))


def _refuse(folder: Path, problems: Sequence[Problem]) -> None:
    if problems:
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise DashboardError(f"{problems[0]}{more}. It cannot be copied; remove it.", place=folder)


def _exchange(left: Path, right: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_FDCWD, os.fsencode(left), _AT_FDCWD, os.fsencode(right), _RENAME_EXCHANGE) == 0:
        return
    code = ctypes.get_errno()
    if code not in (errno.EINVAL, errno.ENOSYS):
        raise OSError(code, os.strerror(code), str(right))
    # A filesystem without the exchange (some network mounts): two renames, and a moment between them.
    aside = Path(tempfile.mkdtemp(prefix=f".{right.name}.", suffix=".old", dir=right.parent))
    os.rename(right, aside)
    os.rename(left, right)
    os.rename(aside, left)


@contextlib.contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """Make a new folder on the filesystem of `target` that becomes `target` when the block ends without an error.

    What a killed process left of the same is removed first.
    """
    with removal.new_folder_beside(target) as new:
        yield new
        swap_in(new, target)


def remove_unfinished(parent: Path, *, ours: bool = False) -> None:
    """Remove what a killed `folder_beside`, `swap_in` or `write_*` left directly in `parent`; never raises.

    ours: only what these named, for a folder in which strangers may name files as they like.
    """
    for name in removal.list_names(parent):
        match = (_OUR_UNFINISHED if ours else _UNFINISHED).fullmatch(name)
        if match is None:
            continue
        path, original = parent / name, parent / (match.group(1) or "")
        # killed between the renames of `_exchange`: this is the only copy
        if path.suffix == ".old" and not os.path.lexists(original):
            with contextlib.suppress(OSError):
                os.rename(path, original)
        elif os.path.isdir(path) == (path.suffix in {".new", ".old"}):
            trees.remove(path)
