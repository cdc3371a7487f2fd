"""Files in a home's history that are copies, cannot be read, or are of nights to come: found, and set aside.

What was moved by hand, so that no other file is what it says it is, stays: it may be all that there is of it.

They harm nothing where they are set aside: results/set_aside/ keeps them under their old paths, with a line of why.
A night that was to come returns once the clock has passed it, unless a person said that the clock was right.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from dashboard.upkeep.indexes import list_indexed, remove_index
from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.files import lines
from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.errors import DashboardError

FOLDER = "set_aside"
_MOST_AHEAD = 3
"""The most nights ahead of the clock with which it is trusted; else only a person can say whether it was wrong then."""
_WORDS_FILE = "why.jsonl"
_STAMPED = re.compile(r"(?:data_)?([0-9]{8}T[0-9]{6}Z)\.json")
"""The name of a file that belongs to one night; nothing reads it where the stamp is no valid time."""


@dataclass(frozen=True)
class Stray:
    """A file that does not belong where it lies; why, for people."""

    path: Path
    why: str


def list_ahead(home: Home, now: datetime.datetime) -> list[str]:
    """List the stamps of nights that are dated after now, oldest first."""
    limit = common.stamp_of(now + common.CLOCK_TOLERANCE)
    of_data = {stamp for name in home.experiments_with_data() for stamp in home.data_stamps(name)}
    return sorted(stamp for stamp in {*home.night_stamps(), *of_data} if stamp > limit)


def are_too_many(ahead: Sequence[str]) -> bool:
    """Return True where so many nights are ahead of the clock that it is wrong now, or was in those nights."""
    return len(ahead) > _MOST_AHEAD


def find_strays(
    home: Home, now: datetime.datetime, *, only_new: bool = False, is_clock_right: bool = False
) -> Iterator[Stray]:
    """Yield the files that do not belong in the history.

    only_new: of what is not ahead of the clock, only what came since the last night and is not in the index. Where many
    nights are ahead of the clock, none counts as one to come unless a person says that the clock is right.
    """
    since = _find_last_change(home, now) if only_new else 0.0
    listed = list_ahead(home, now)
    ahead = frozenset[str]() if are_too_many(listed) and not is_clock_right else frozenset(listed)
    for stamp in home.night_stamps():
        path = home.night_file(stamp)
        if stamp in ahead:
            yield Stray(path, f"it is dated in the future: the clock says {common.stamp_of(now)}")
        elif _is_since(path, since):
            yield from _find_in_night(path, stamp)
    for folder in (home.nights, home.tries, home.backfills, *sorted(home.backfill("x").parent.glob("*"))):
        yield from _find_misnamed(folder, since)
    for experiment in home.experiments_with_data():
        yield from _find_misnamed(home.data(experiment), since)
        indexed = list_indexed(home, experiment) if only_new else frozenset[str]()
        for stamp in home.data_stamps(experiment):
            path = home.data_file(experiment, stamp)
            if stamp in ahead:
                yield Stray(path, f"it is dated in the future: the clock says {common.stamp_of(now)}")
            elif stamp not in indexed and _is_since(path, since):
                yield from _find_in_data(path, experiment, stamp, home)


def _find_misnamed(folder: Path, since: float) -> Iterator[Stray]:
    """Find files whose names are no valid time."""
    for path in sorted(folder.glob("*.json")):
        match = _STAMPED.fullmatch(path.name)
        if match and not common.is_stamp(match[1]) and _is_since(path, since):
            yield Stray(path, f"{match[1]} is not a valid time, so nothing reads it")


def _find_last_change(home: Home, now: datetime.datetime) -> float:
    """Find when the record of the last night was written whole."""
    past = [stamp for stamp in home.night_stamps() if stamp <= common.stamp_of(now + common.CLOCK_TOLERANCE)]
    return home.night_file(past[-1]).lstat().st_mtime if past else 0.0


def _is_since(path: Path, since: float) -> bool:
    # ctime: a copy may have kept its time of change.
    return path.lstat().st_ctime >= since


def _find_in_night(path: Path, stamp: str) -> Iterator[Stray]:
    try:
        value = common.read_json(path)
    except DashboardError as error:
        yield Stray(path, f"it is unreadable: {error.problem or error}")
        return
    own = value.get("stamp") if isinstance(value, dict) else None
    if own != stamp:
        yield Stray(path, f"it is a copy of the night {own!r:.40}" if own else "it is not a night record")


def _find_in_data(path: Path, experiment: str, stamp: str, home: Home) -> Iterator[Stray]:
    try:
        value = common.read_json(path)
    except DashboardError as error:
        yield Stray(path, f"it is unreadable: {error.problem or error}")
        return
    if not isinstance(value, dict):
        yield Stray(path, "it contains no data of a night")
        return
    night: Mapping[str, Any] = common.object_in(value, "night")
    if "imported" in night:
        return
    own, of = str(night.get("stamp") or stamp), str(night.get("experiment") or experiment)
    if not common.is_stamp(own) or "/" in of:
        yield Stray(path, "its name contains no night or experiment")
    elif own != stamp and home.data_file(experiment, own).is_file():
        yield Stray(path, f"it is a copy of the night {own}")
    elif not _is_same(home, experiment_of(of), experiment_of(experiment)) and home.data_file(of, own).is_file():
        yield Stray(path, f"it is a copy of the experiment {of:.60}")


def _is_same(home: Home, one: str, other: str) -> bool:
    """Return True where both names are of one experiment, which may have been renamed."""
    if one == other:
        return True
    try:
        machine = home.machine()
    except DashboardError:
        machine = None
    return machine is not None and machine.experiment_of_id(one) == machine.experiment_of_id(other)


@dataclass(frozen=True)
class _SetAside:
    """The note on one file that was set aside: when, its path below results, its name now.

    is_misdated: a person said that the clock was right then, so it is of no night at that time.
    """

    at: str
    path: str
    now: str
    why: str
    is_misdated: bool = False


def set_aside(home: Home, strays: list[Stray], now: datetime.datetime, *, is_clock_right: bool = False) -> list[str]:
    """Move them out of the history; a sentence for each. What had been indexed of them is forgotten."""
    results = home.root / "results"
    sentences = []
    for stray in strays:
        relative = stray.path.relative_to(results)
        target = _find_free(results / FOLDER / relative)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(stray.path, target)
        line = _SetAside(f"{now:%Y-%m-%dT%H:%M:%SZ}", str(relative), target.name, stray.why, is_clock_right)
        lines.append(results / FOLDER / _WORDS_FILE, [structured.to_json(line)])
        sentences.append(f"{relative} was moved aside to {target.parent} ({stray.why}).")
    if sentences:
        remove_index(home)
    return sentences


def _find_free(path: Path) -> Path:
    """Return the path, or one with a number behind its name where another stray lies there."""
    number = 1
    free = path
    while os.path.lexists(free):
        number += 1
        free = path.with_name(f"{path.name}.{number}")
    return free


@dataclass(frozen=True)
class Returning:
    """A file that was set aside as of a night to come, which the clock has passed: where it lies, where it belongs."""

    path: Path
    target: Path


def find_returning(home: Home, now: datetime.datetime) -> list[Returning]:
    """Find the files whose nights have come by now, and whose places in the history are free."""
    results = home.root / "results"
    found = {}
    for line in _read_lines(results / FOLDER / _WORDS_FILE):
        if _was_to_come(line) and _stamp_in(line) <= common.stamp_of(now):
            target, path = results / line.path, results / FOLDER / Path(line.path).with_name(line.now)
            if path.is_file() and not os.path.lexists(target):
                found[target] = Returning(path, target)
    return list(found.values())


def _stamp_in(line: _SetAside) -> str:
    """Return the night that the file is of; empty where its name says none."""
    match = _STAMPED.fullmatch(PurePosixPath(line.path).name)
    return match[1] if match and common.is_stamp(match[1]) else ""


def _was_to_come(line: _SetAside) -> bool:
    """Return True for a file set aside because its night was to come; a path that leaves results is never one."""
    is_below = not {"/", ".."} & set(PurePosixPath(line.path).parts) and PurePosixPath(line.now).name == line.now
    return is_below and not line.is_misdated and _stamp_in(line) > re.sub("[-:]", "", line.at)


def _read_lines(path: Path) -> Iterator[_SetAside]:
    """Read the notes, oldest first; a line that cannot be read brings nothing back."""
    try:
        raw = path.read_bytes() if path.is_file() else b""
    except OSError:
        return
    for text in raw.splitlines():
        with contextlib.suppress(DashboardError):
            yield structured.from_json(_SetAside, common.parse_json(text, str(path)), path)


def put_back(home: Home, returning: Sequence[Returning]) -> list[str]:
    """Move them back into the history; a sentence for each. The index is made anew with them."""
    for item in returning:
        item.target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(item.path, item.target)
    if returning:
        remove_index(home)
    return [
        f"{item.target.relative_to(home.root / 'results')} was moved back from {item.path.parent}: it was set aside "
        "while the clock was behind, and the clock has passed it."
        for item in returning
    ]
