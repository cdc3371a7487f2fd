"""One raw database being read: its process, its trials, its names."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvmtraces.batches import NULL_INT, Texts, WantedRows, WrongValue, ints
from tvmtraces.readers.sqlite_input import list_tables, read_columns, read_typed_rows
from tvmtraces.tables import INT

if TYPE_CHECKING:
    from tvmtraces.batches import Ints

NODE, PROCESS = 1, 1
"""The numbers of a raw database's only node and only process."""
_MOST_NAMES = 10**8
_MOST_NS = 2**61
"""No time is so far from 1970, so that the sum of two is a number of 64 bits."""
_TEXTS = ("guid", "night", "experiment", "command")


def processes_of(database: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the rows of the table of processes, of which there should be one; WrongValue where one is broken."""
    known = {**dict.fromkeys(_TEXTS, str), **dict.fromkeys(("ppid", "ended_ns"), int)}
    return read_typed_rows(database, "process", {"pid": int, "started_ns": int, "facts": str}, known)


def _trials_of(database: sqlite3.Connection) -> list[dict[str, Any]]:
    known = {"ended_ns": int, "error": str, "facts": str}
    rows = read_typed_rows(database, "trials", {"id": int, "point": str, "started_ns": int}, known)
    return sorted(({**dict.fromkeys(known), **row} for row in rows), key=lambda row: int(row["id"]))


def check_ns(location: str, *columns: Ints) -> None:
    """Raise WrongValue where a number is no time since 1970, and no length of time, in ns."""
    for column in columns:
        wrong = column[((column > _MOST_NS) | (column < 0)) & (column != NULL_INT)]
        if len(wrong):
            raise WrongValue(f"{location}: {wrong[0]} is not a time in nanoseconds")


def guid_of(process: Mapping[str, Any]) -> str:
    """Return the process's guid; for a format 1 process a hash of its facts."""
    if process.get("guid"):
        return str(process["guid"])
    known = json.dumps([process["pid"], process["started_ns"], process["facts"]])
    return hashlib.sha256(known.encode()).hexdigest()[:32]


def distinct(codes: Ints) -> list[int]:
    """Return the distinct numbers in `codes`, in order; ValueError where they are no numbers of names."""
    import numpy

    if not len(codes):
        return []
    if codes.min() < 0 or codes.max() > _MOST_NAMES:
        raise ValueError(f"names are numbered from {codes.min()} to {codes.max()}")
    return [int(code) for code in numpy.flatnonzero(numpy.bincount(codes))]


class RawReading:
    """One database being read."""

    def __init__(self, database: sqlite3.Connection, path: Path, wanted: WantedRows) -> None:
        self.database, self.path, self.wanted = database, path, wanted
        self.tables = list_tables(database)
        self.process = processes_of(database)[0]
        self.facts = mapping(self.process["facts"], "process.facts")
        self.machine = mapping(self.facts.get("machine"), "process.facts")
        self.engine = mapping(self.facts.get("engine"), "process.facts")
        self.pid = int(self.process["pid"])
        self.place = {"guid": guid_of(self.process), "process": PROCESS, "nid": NODE, "pid": self.pid}
        self.trials = _trials_of(database) if "trials" in self.tables else []

    def names(self, codes: Ints) -> Texts:
        """Return the names that `codes` number."""
        import numpy

        rows = read_typed_rows(self.database, "names", {"id": int, "name": str}, {})
        pool = {int(row["id"]): str(row["name"]) for row in rows}
        known = distinct(codes)
        missing = [code for code in known if code not in pool]
        if missing:
            raise WrongValue(f"names.id: no name has number {missing[0]}")
        position = numpy.zeros(max(known, default=0) + 1, dtype=numpy.int64)
        position[known] = numpy.arange(len(known))
        return Texts(position[codes], [pool[code] for code in known])

    def in_window(self, arrays: dict[str, Ints]) -> dict[str, Ints]:
        """Return the rows of `arrays`, with start and duration, that may touch the requested window."""
        begin, end = self.wanted.begin_ns, self.wanted.end_ns
        if begin is None or end is None:
            return arrays
        start, ends = arrays["start"], arrays["start"] + arrays["duration"]
        chosen = (start < end) & ((start >= begin) | (ends >= begin))
        return {name: column[chosen] for name, column in arrays.items()}

    def at_trial(self, trials: Ints, column: str) -> Ints:
        """Return a column of `trials` for each number in `trials`, NULL_INT where there is none."""
        return self._known({row["id"]: row[column] for row in self.trials}, trials)

    def phases(self, name: str, trials: Ints, *, at_end: bool = False) -> Ints:
        """Return begin or end of the last phase of that name in each trial in `trials`; NULL_INT where none was."""
        if "regions" not in self.tables:
            return self._known({}, trials)
        number, kind = (f"(SELECT id FROM names WHERE name = '{word}')" for word in (name, "phase"))  # noqa: S608 - ours
        source = f"regions WHERE name = {number} AND category = {kind} ORDER BY start_ns"
        columns = dict.fromkeys(("trial", "start_ns", "duration_ns"), INT)
        trial, start, duration = read_columns(self.database, columns, source)
        check_ns("regions", start, duration)
        moments = start + duration if at_end else start
        return self._known(dict(zip(trial.tolist(), moments.tolist(), strict=True)), trials)

    def _known(self, times: Mapping[Any, int | None], trials: Ints) -> Ints:
        import numpy

        known, places = numpy.unique(trials, return_inverse=True)
        stored = (times.get(code) for code in known.tolist())
        return ints(NULL_INT if value is None else value for value in stored)[places]


def mapping(value: object, location: str) -> Mapping[str, Any]:
    """Return the object that a value is, or that its text is as JSON, at `place`; an empty one for anything else."""
    try:
        loaded = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        raise WrongValue(f"{location}: {value!r:.60} is not JSON") from None
    return loaded if isinstance(loaded, dict) else {}
