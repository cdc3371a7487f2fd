"""Raw measurements: each measuring process writes one SQLite database of its own.

Times are integer nanoseconds. A trial is committed when it ends, so a killed process loses the trial it was in.
Nothing here is called between two clock reads.
`capture_format` describes the tables; `tvmdash.traces` asks them in SQL.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tvmdash import phases
from tvmdash.capture_format import FORMAT_VERSION, NAME_TYPE, READABLE_VERSIONS, SCHEMA, TIME_TYPE, packed
from tvmdash.errors import DashboardError


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
    """One operator in one profiled run; `start_ns` counts from the run's begin, which is of time.time_ns()."""

    repetition: int
    name: str
    start_ns: int
    duration_ns: int
    run_began_ns: int | None = None


@dataclass(frozen=True)
class Region:
    """A named span of this process; `start_ns` is of time.time_ns()."""

    name: str
    category: str
    start_ns: int
    duration_ns: int


@dataclass(frozen=True)
class Reading:
    """What a sensor said between two trials, as in ("cpu_frequency", "MHz", 2450.0)."""

    name: str
    unit: str
    value: float


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
        self._names: dict[str, int] = {}
        self._database = sqlite3.connect(folder / f"raw_{os.getpid()}_{time.time_ns()}.db")
        self._database.execute("PRAGMA journal_mode = WAL")
        # A killed process loses nothing committed; a power cut may, and then the night is repeated anyway.
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {FORMAT_VERSION}; COMMIT;")
        with self._database:
            row = {
                "guid": str(uuid.uuid4()),
                "pid": os.getpid(),
                "ppid": os.getppid(),
                "started_ns": time.time_ns(),
                "night": os.environ.get("TVMDASH_NIGHT"),
                "experiment": os.environ.get("TVMDASH_JOB"),
                "command": " ".join(sys.argv).encode(errors="replace").decode(),
                "facts": json.dumps(facts, allow_nan=False),
            }
            self._database.execute(
                "INSERT INTO process VALUES "
                "(:guid, :pid, :ppid, :started_ns, NULL, :night, :experiment, :command, :facts)",
                row,
            )

    def __enter__(self) -> Capture:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._database:
            self._database.execute("UPDATE process SET ended_ns = ?", (time.time_ns(),))
        self._database.close()

    def begin(self, point: Mapping[str, Any]) -> int:
        """The number of a new trial, known from now on even if this process dies in it."""
        with self._database:
            row = (json.dumps(point, allow_nan=False), time.time_ns())
            cursor = self._database.execute("INSERT INTO trials (point, started_ns) VALUES (?, ?)", row)
        phases.record()
        return int(cursor.lastrowid or 0)

    def end(
        self,
        trial: int,
        *,
        samples: Sequence[Sample] = (),
        facts: Mapping[str, Any] | None = None,
        passes: Sequence[tuple[str, int]] = (),
        operators: Sequence[OperatorSpan] = (),
        run_starts_ns: Sequence[int] = (),
        regions: Sequence[Region] = (),
        telemetry: Sequence[Reading] = (),
        error: str | None = None,
    ) -> None:
        """Commit what the trial gave.

        `passes` are names with nanoseconds; `run_starts_ns`: when each repetition of `operators` began, by
        time.time_ns(), where they do not say so themselves. The phases (see `phases`) since `begin` are regions too.
        """
        now = time.time_ns()
        spans = [*regions, *(Region(one.name, "phase", one.start_ns, one.duration_ns) for one in phases.taken())]
        with self._transaction() as database:
            many = database.executemany
            many(
                "INSERT INTO samples VALUES (?, ?, ?, ?)",
                [(trial, position, sample.elapsed_ns, sample.number) for position, sample in enumerate(samples)],
            )
            many(
                "INSERT INTO passes VALUES (?, ?, ?, ?)",
                [(trial, position, self._name(name), duration) for position, (name, duration) in enumerate(passes)],
            )
            many("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", self._runs(trial, operators, run_starts_ns))
            many(
                "INSERT INTO regions VALUES (?, ?, ?, ?, ?)",
                [(trial, self._name(r.name), self._name(r.category), r.start_ns, r.duration_ns) for r in spans],
            )
            self._insert_readings(now, telemetry)
            database.execute(
                "UPDATE trials SET ended_ns = ?, error = ?, facts = ? WHERE id = ?",
                (now, error, json.dumps(facts or {}, allow_nan=False), trial),
            )

    def telemetry(self, readings: Sequence[Reading]) -> None:
        """Commit what sensors say now. Call it between trials."""
        with self._transaction():
            self._insert_readings(time.time_ns(), readings)

    def _insert_readings(self, now_ns: int, readings: Sequence[Reading]) -> None:
        rows = [(now_ns, self._name(r.name), self._name(r.unit), float(r.value)) for r in readings]
        self._database.executemany("INSERT INTO telemetry VALUES (?, ?, ?, ?)", rows)

    def _runs(
        self, trial: int, operators: Sequence[OperatorSpan], starts_ns: Sequence[int]
    ) -> Iterator[tuple[int, int, int | None, bytes, bytes, bytes]]:
        """One row for each repetition."""
        by_repetition: dict[int, list[OperatorSpan]] = {}
        for span in operators:
            by_repetition.setdefault(span.repetition, []).append(span)
        for position, (repetition, spans) in enumerate(by_repetition.items()):
            begun = starts_ns[position] if position < len(starts_ns) else spans[0].run_began_ns
            names = packed(NAME_TYPE, [self._name(span.name) for span in spans])
            starts = packed(TIME_TYPE, [span.start_ns for span in spans])
            yield trial, repetition, begun, names, starts, packed(TIME_TYPE, [span.duration_ns for span in spans])

    def _name(self, name: str) -> int:
        """The number of a name; the caller's transaction stores a new one."""
        if name not in self._names:
            self._database.execute("INSERT OR IGNORE INTO names (name) VALUES (?)", (name,))
            row = self._database.execute("SELECT id FROM names WHERE name = ?", (name,)).fetchone()
            self._names[name] = int(row[0])
        return self._names[name]

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Committed at its end; where it fails, the names that it stored are forgotten with it."""
        try:
            with self._database:
                yield self._database
        except BaseException:
            self._names.clear()
            raise


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
        if version not in READABLE_VERSIONS:
            raise DashboardError(f"{path}: format version {version} is not 1 or 2. Update the dashboard.")
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
