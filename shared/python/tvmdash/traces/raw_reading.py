"""One raw database being read: its process, its trials, its names."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvmdash.errors import DashboardError
from tvmdash.traces.batches import NULL_INT, Texts, Wanted, ints
from tvmdash.traces.sqlite_input import rows_of, tables_of

if TYPE_CHECKING:
    from tvmdash.traces.batches import Ints

NODE, PROCESS = 1, 1
"""The numbers of a raw database's only node and only process."""
_MOST_NAMES = 10**8


def guid_of(process: Mapping[str, Any]) -> str:
    """The process's name; a format 1 process is named by what is known of it."""
    if process.get("guid"):
        return str(process["guid"])
    known = json.dumps([process["pid"], process["started_ns"], process["facts"]])
    return hashlib.sha256(known.encode()).hexdigest()[:32]


def distinct(codes: Ints) -> list[int]:
    """The distinct numbers in `codes`, in order; ValueError where they are no numbers of names."""
    import numpy

    if not len(codes):
        return []
    if codes.min() < 0 or codes.max() > _MOST_NAMES:
        raise ValueError(f"names are numbered from {codes.min()} to {codes.max()}")
    return [int(code) for code in numpy.flatnonzero(numpy.bincount(codes))]


class Reading:
    """One database being read."""

    def __init__(self, database: sqlite3.Connection, path: Path, wanted: Wanted) -> None:
        self.database, self.path, self.wanted = database, path, wanted
        self.tables = tables_of(database)
        self.process = rows_of(database, "SELECT * FROM process LIMIT 1")[0]
        self.facts = mapping(self.process["facts"])
        self.machine = mapping(self.facts.get("machine"))
        self.engine = mapping(self.facts.get("engine"))
        self.pid = int(self.process["pid"])
        self.place = {"guid": guid_of(self.process), "process": PROCESS, "nid": NODE, "pid": self.pid}
        self.trials = rows_of(database, "SELECT * FROM trials ORDER BY id") if "trials" in self.tables else []

    def names(self, codes: Ints) -> Texts:
        """The names that `codes` number."""
        import numpy

        pool = {int(number): str(name) for number, name in self.database.execute("SELECT id, name FROM names")}
        known = distinct(codes)
        missing = [code for code in known if code not in pool]
        if missing:
            raise DashboardError(f"{self.path}: no name has number {missing[0]}. It is broken; leave it out.")
        place = numpy.zeros(max(known, default=0) + 1, dtype=numpy.int64)
        place[known] = numpy.arange(len(known))
        return Texts(place[codes], [pool[code] for code in known])

    def in_window(self, arrays: dict[str, Ints]) -> dict[str, Ints]:
        """The rows of `arrays`, with start and duration, that may touch the window asked for."""
        begin, end = self.wanted.begin_ns, self.wanted.end_ns
        if begin is None or end is None:
            return arrays
        start, ends = arrays["start"], arrays["start"] + arrays["duration"]
        chosen = (start < end) & ((start >= begin) | (ends >= begin))
        return {name: column[chosen] for name, column in arrays.items()}

    def at_trial(self, trials: Ints, column: str) -> Ints:
        """A column of `trials` for each number in `trials`, NULL_INT where there is none."""
        return self._known({row["id"]: row[column] for row in self.trials}, trials)

    def phases(self, name: str, trials: Ints, *, at_end: bool = False) -> Ints:
        """When the last phase of that name began, or ended, in each trial in `trials`; NULL_INT where none did."""
        if "regions" not in self.tables:
            return self._known({}, trials)
        query = """SELECT trial, start_ns, start_ns + duration_ns FROM regions
            WHERE name = (SELECT id FROM names WHERE name = ?)
            AND category = (SELECT id FROM names WHERE name = 'phase') ORDER BY start_ns"""
        found = self.database.execute(query, (name,))
        return self._known({trial: end if at_end else start for trial, start, end in found}, trials)

    def _known(self, found: Mapping[Any, int | None], trials: Ints) -> Ints:
        import numpy

        known, places = numpy.unique(trials, return_inverse=True)
        stored = (found.get(code) for code in known.tolist())
        return ints(NULL_INT if one is None else one for one in stored)[places]


def mapping(value: object) -> Mapping[str, Any]:
    loaded = json.loads(value) if isinstance(value, str) else value
    return loaded if isinstance(loaded, dict) else {}
