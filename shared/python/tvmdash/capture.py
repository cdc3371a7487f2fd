"""Raw measurements: each measuring process writes one SQLite database of its own.

Times are integer nanoseconds. A trial is committed when it ends, so a killed process loses the trial it was in.
Nothing here is called between two clock reads.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tvmdash.errors import DashboardError

FORMAT_VERSION = 1
_SCHEMA = """
CREATE TABLE process (pid INTEGER, started_ns INTEGER, facts TEXT);
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE trials (id INTEGER PRIMARY KEY, point TEXT, started_ns INTEGER, ended_ns INTEGER, error TEXT, facts TEXT);
CREATE TABLE samples (trial INTEGER, position INTEGER, elapsed_ns INTEGER, number INTEGER,
    PRIMARY KEY (trial, position)) WITHOUT ROWID;
CREATE TABLE operators (trial INTEGER, repetition INTEGER, name INTEGER, start_ns INTEGER, duration_ns INTEGER);
CREATE TABLE passes (trial INTEGER, position INTEGER, name INTEGER, duration_ns INTEGER);
"""


@dataclass(frozen=True)
class Sample:
    """`number` calls that took `elapsed_ns` together."""

    elapsed_ns: int
    number: int

    @property
    def ms(self) -> float:
        """Milliseconds of one call."""
        return self.elapsed_ns / self.number / 1e6


@dataclass(frozen=True)
class OperatorSpan:
    """One operator in one profiled run; `start_ns` counts from the run's begin."""

    repetition: int
    name: str
    start_ns: int
    duration_ns: int


@dataclass(frozen=True)
class Trial:
    """One point measured once. `error` says why there is no answer to trust."""

    point: Mapping[str, Any]
    started_ns: int
    ended_ns: int
    error: str | None
    facts: Mapping[str, Any]
    samples: tuple[Sample, ...]
    process: Mapping[str, Any]


class Capture:
    """The database of this process in `folder`; use it as a context."""

    def __init__(self, folder: Path, facts: Mapping[str, Any]) -> None:
        self._database = sqlite3.connect(folder / f"raw_{os.getpid()}_{time.time_ns()}.db")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {FORMAT_VERSION}; COMMIT;")
        with self._database:
            row = (os.getpid(), time.time_ns(), json.dumps(facts, allow_nan=False))
            self._database.execute("INSERT INTO process VALUES (?, ?, ?)", row)

    def __enter__(self) -> Capture:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def begin(self, point: Mapping[str, Any]) -> int:
        """The number of a new trial, known from now on even if this process dies in it."""
        with self._database:
            row = (json.dumps(point, allow_nan=False), time.time_ns())
            cursor = self._database.execute("INSERT INTO trials (point, started_ns) VALUES (?, ?)", row)
        return int(cursor.lastrowid or 0)

    def end(
        self,
        trial: int,
        *,
        samples: Sequence[Sample] = (),
        facts: Mapping[str, Any] | None = None,
        passes: Sequence[tuple[str, int]] = (),
        operators: Sequence[OperatorSpan] = (),
        error: str | None = None,
    ) -> None:
        """Commit what the trial gave; `passes` are names with nanoseconds."""
        names = {name: self._name(name) for name in {name for name, _ in passes} | {span.name for span in operators}}
        with self._database:
            self._database.executemany(
                "INSERT INTO samples VALUES (?, ?, ?, ?)",
                [(trial, position, sample.elapsed_ns, sample.number) for position, sample in enumerate(samples)],
            )
            self._database.executemany(
                "INSERT INTO passes VALUES (?, ?, ?, ?)",
                [(trial, position, names[name], duration) for position, (name, duration) in enumerate(passes)],
            )
            self._database.executemany(
                "INSERT INTO operators VALUES (?, ?, ?, ?, ?)",
                [(trial, span.repetition, names[span.name], span.start_ns, span.duration_ns) for span in operators],
            )
            self._database.execute(
                "UPDATE trials SET ended_ns = ?, error = ?, facts = ? WHERE id = ?",
                (time.time_ns(), error, json.dumps(facts or {}, allow_nan=False), trial),
            )

    def _name(self, name: str) -> int:
        self._database.execute("INSERT OR IGNORE INTO names (name) VALUES (?)", (name,))
        return int(self._database.execute("SELECT id FROM names WHERE name = ?", (name,)).fetchone()[0])


def read_trials(folder: Path) -> Iterator[Trial]:
    """The ended trials of every raw database below `folder`, and the one that a killed process was in, as failed."""
    for path in sorted(folder.rglob("raw_*.db")):
        try:
            yield from _read(path)
        except (sqlite3.DatabaseError, ValueError) as error:
            raise DashboardError(f"{path}: not a raw database: {error}. Move it away to use the others.") from error


def _read(path: Path) -> Iterator[Trial]:
    database = sqlite3.connect(path)
    try:
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version != FORMAT_VERSION:
            raise DashboardError(f"{path}: format version {version} is not {FORMAT_VERSION}. Update the dashboard.")
        process = json.loads(database.execute("SELECT facts FROM process").fetchone()[0])
        rows = database.execute(
            "SELECT id, point, started_ns, ended_ns, error, facts FROM trials ORDER BY id"
        ).fetchall()
        for number, point, started, ended, error, facts in rows:
            samples = database.execute(
                "SELECT elapsed_ns, number FROM samples WHERE trial = ? ORDER BY position", (number,)
            )
            lost = None if ended else "its process was ended while it was being measured"
            yield Trial(
                point=json.loads(point),
                started_ns=started,
                ended_ns=ended or started,
                error=error or lost,
                facts=json.loads(facts or "{}"),
                samples=tuple(Sample(*row) for row in samples),
                process=process,
            )
    finally:
        database.close()
