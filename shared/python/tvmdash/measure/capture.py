"""Raw measurements: each measuring process writes one SQLite database of its own.

Times are integer nanoseconds. A trial is committed when it ends, so a killed process loses the trial it was in.
Nothing here is called between two clock reads.
`capture_format` describes the tables; `tvmtraces` asks them in SQL.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from fnmatch import fnmatch
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tvmdash.common.files import trees
from tvmdash.errors import DashboardError
from tvmdash.measure import phases
from tvmdash.measure.capture_format import (
    FORMAT_VERSION,
    NAME_TYPE,
    READABLE_VERSIONS,
    SCHEMA,
    TIME_TYPE,
    NameNumbers,
    Row,
    insert,
    packed,
)

_PAGE_BYTES = 1024
"""Small, as a commit after each trial rewrites every page that it touched, each with few rows."""
_CHECKPOINT_PAGES = 40_000
"""Pages in the log before SQLite waits for the disk: so many that it rarely does between trials."""
CAPTURED = "raw_*.db"
_SAMPLES = {
    version: f"SELECT elapsed_ns, number{', started_ns, cpu_ns, waited' if version > 2 else ''} FROM samples"  # noqa: S608
    " WHERE trial = ? ORDER BY position"
    for version in READABLE_VERSIONS
}
_json = json.JSONEncoder(allow_nan=False).encode


@dataclass(frozen=True)
class Sample:
    """`number` calls that took `elapsed_ns` together.

    Known of a sample that was taken in turn with another process: started_ns of time.time_ns(); cpu_ns: the CPU time of
    the thread for all that was done for it, calls that are not timed included; waited: the kernel took the core away.
    """

    elapsed_ns: int
    number: int
    started_ns: int | None = None
    cpu_ns: int | None = None
    waited: bool | None = None

    @property
    def ms(self) -> float:
        """Return the milliseconds of one call."""
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
    """A sensor's reading between two trials, as in ("cpu_frequency", "MHz", 2450.0)."""

    name: str
    unit: str
    value: float


@dataclass(frozen=True)
class Trial:
    """One point measured once. `error` says why there is no answer to trust.

    Not `finished`: its process was killed in it.
    """

    point: Mapping[str, Any]
    started_ns: int
    ended_ns: int
    error: str | None
    facts: Mapping[str, Any]
    samples: tuple[Sample, ...]
    process: Mapping[str, Any]
    finished: bool = True


class Capture:
    """The database of this process in `folder`; use it as a context."""

    def __init__(self, folder: Path, facts: Mapping[str, Any]) -> None:
        path = folder / f"raw_{os.getpid()}_{time.time_ns()}.db"
        self._database = sqlite3.connect(path, isolation_level=None)
        self._names = NameNumbers(self._database)
        self._database.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        self._database.execute("PRAGMA journal_mode = WAL")
        # A killed process loses nothing committed; a power cut may, and then the night is repeated anyway.
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        self._database.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {FORMAT_VERSION}; COMMIT;")
        row = {
            "guid": str(uuid.uuid4()),
            "pid": os.getpid(),
            "ppid": os.getppid(),
            "started_ns": time.time_ns(),
            "night": os.environ.get("TVMDASH_NIGHT"),
            "experiment": os.environ.get("TVMDASH_JOB"),
            # arguments may hold bytes that are no UTF-8, which SQLite refuses
            "command": " ".join(sys.argv).encode(errors="replace").decode(),
            "facts": _json(facts),
        }
        self._database.execute(
            "INSERT INTO process VALUES (:guid, :pid, :ppid, :started_ns, NULL, :night, :experiment, :command, :facts)",
            row,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.execute("UPDATE process SET ended_ns = ?", (time.time_ns(),))
        self._database.close()

    def begin(self, point: Mapping[str, Any]) -> int:
        """Start a trial and return its number; it is on record even if this process dies in it."""
        row = (_json(point), time.time_ns())
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
        """Commit the trial's results.

        `passes` are names with nanoseconds; `run_starts_ns`: when each repetition of `operators` began, by
        time.time_ns(), where they do not say so themselves. The phases (see `phases`) since `begin` are regions too.
        """
        now, spent = time.time_ns(), phases.take()
        with self._transaction() as (names, database):
            insert(
                database,
                "samples",
                [(trial, position, *astuple(sample)) for position, sample in enumerate(samples)],
            )
            insert(
                database,
                "passes",
                [(trial, position, names[name], duration) for position, (name, duration) in enumerate(passes)],
            )
            insert(database, "runs", list(_make_run_rows(trial, names, operators, run_starts_ns)))
            spans = [(trial, names[r.name], names[r.category], r.start_ns, r.duration_ns) for r in regions]
            spans += [(trial, names[name], names["phase"], start, duration) for name, start, duration in spent]
            insert(database, "regions", spans)
            insert(database, "telemetry", _make_reading_rows(now, names, telemetry))
            database.execute(
                "UPDATE trials SET ended_ns = ?, error = ?, facts = ? WHERE id = ?",
                (now, error, _json(facts or {}), trial),
            )

    def telemetry(self, readings: Sequence[Reading]) -> None:
        """Commit readings of sensors. Call it between trials."""
        with self._transaction() as (names, database):
            insert(database, "telemetry", _make_reading_rows(time.time_ns(), names, readings))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[tuple[NameNumbers, sqlite3.Connection]]:
        """Commit at the end of the block; where it fails, forget the names that it stored."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self._names, self._database
            self._database.execute("COMMIT")
        except BaseException:
            self._database.rollback()
            self._names.clear()
            raise


def _make_reading_rows(now_ns: int, names: NameNumbers, readings: Sequence[Reading]) -> list[Row]:
    return [(now_ns, names[r.name], names[r.unit], float(r.value)) for r in readings]


def _make_run_rows(
    trial: int, names: NameNumbers, operators: Sequence[OperatorSpan], starts_ns: Sequence[int]
) -> Iterator[Row]:
    by_repetition = defaultdict[int, list[OperatorSpan]](list)
    for span in operators:
        by_repetition[span.repetition].append(span)
    for position, (repetition, spans) in enumerate(by_repetition.items()):
        begun = starts_ns[position] if position < len(starts_ns) else spans[0].run_began_ns
        numbers = packed(NAME_TYPE, [names[span.name] for span in spans])
        starts = packed(TIME_TYPE, [span.start_ns for span in spans])
        yield trial, repetition, begun, numbers, starts, packed(TIME_TYPE, [span.duration_ns for span in spans])


def read_trials(folder: Path) -> Iterator[Trial]:
    """Yield the ended trials of every raw database below `folder`, and the one that a kill ended, as failed."""
    files = trees.walk(folder).files
    for path in sorted(folder / entry.path for entry in files if fnmatch(entry.name, CAPTURED)):
        try:
            yield from _read(path)
        except (sqlite3.DatabaseError, ValueError) as error:
            raise DashboardError(f"{path}: not a raw database: {error}. Move it away to read the others.") from error


def _read(path: Path) -> Iterator[Trial]:
    database = sqlite3.connect(path)
    try:
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version not in READABLE_VERSIONS:
            raise DashboardError(f"{path}: format version {version} is not 1, 2 or 3. Update the dashboard.")
        process = json.loads(database.execute("SELECT facts FROM process").fetchone()[0])
        rows = database.execute(
            "SELECT id, point, started_ns, ended_ns, error, facts FROM trials ORDER BY id"
        ).fetchall()
        for number, point, started, ended, error, facts in rows:
            samples = database.execute(_SAMPLES[version], (number,))
            lost = None if ended else "its process was killed during the measurement"
            yield Trial(
                point=json.loads(point),
                started_ns=started,
                ended_ns=ended or started,
                error=error or lost,
                facts=json.loads(facts or "{}"),
                samples=tuple(Sample(*row) for row in samples),
                process=process,
                finished=ended is not None,
            )
    finally:
        database.close()
