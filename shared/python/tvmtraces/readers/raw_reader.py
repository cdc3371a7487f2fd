"""Raw databases of `tvmdash.measure.capture`, of every format, as batches of the tables."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvmdash.errors import DashboardError
from tvmdash.measure.capture_format import READABLE_VERSIONS
from tvmdash.measure.phases import COMPILE, TIMING
from tvmtraces.batches import NULL_INT, Batch, Texts, WantedRows, WrongValue, batch_of_rows, ints
from tvmtraces.readers import raw_runs
from tvmtraces.readers.sqlite_input import list_tables, open_database, read_columns, read_typed_rows
from tvmtraces.tables import INT, REAL

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


_LOST = "its process was killed during the measurement"


@dataclass(frozen=True)
class RawSource:
    """One raw database; `guid` names its process."""

    path: Path
    guids: tuple[str, ...]
    kind: str = "raw"

    def read(self, wanted: WantedRows) -> Iterator[Batch]:
        with open_database(self.path) as database:
            try:
                reading = RawReading(database, self.path, wanted)
                for table in sorted(wanted.tables.keys() & _READERS.keys()):
                    yield from _READERS[table](reading)
            except WrongValue:
                raise
            except (ValueError, IndexError, KeyError, AttributeError) as error:
                raise DashboardError(f"{self.path}: not a raw database: {error}. Leave it out.") from error

    def counts(self) -> dict[str, int]:
        """Count the rows that the tables must get from here, by SQLite alone."""
        with open_database(self.path) as database:
            present = list_tables(database)
            return {
                table: int(database.execute(f"SELECT {count} FROM {stored}").fetchone()[0])  # noqa: S608 - our words
                for table, stored, count in _COUNTED
                if stored in present
            }


_COUNTED = (
    ("trial", "trials", "count(*)"),
    ("timing", "samples", "count(*)"),
    ("pass", "passes", "count(*)"),
    ("region", "regions", "count(*)"),
    ("telemetry", "telemetry", "count(*)"),
    ("operator", "operators", "count(*)"),
    ("operator", "runs", "coalesce(sum(length(names)), 0) / 4"),
)


_IN_TURN = ("started_ns", "cpu_ns", "waited")
"""Columns of samples that two processes took in turn; databases before format 3 lack them."""


def is_raw(tables: Mapping[str, Sequence[str]]) -> bool:
    """Return True where a database with these tables is one of ours."""
    return {"process", "names", "trials", "samples"} <= tables.keys()


def raw_source(path: Path, database: sqlite3.Connection) -> RawSource:
    """Return the opened raw database at `path`; DashboardError where its format is newer or it has no process."""
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version not in READABLE_VERSIONS:
        newest = READABLE_VERSIONS[-1]
        raise DashboardError(f"{path}: format version {version} is newer than {newest}. Update the dashboard.")
    try:
        row = processes_of(database)
    except WrongValue as error:
        raise DashboardError(f"{path}: {error}. It is broken; restore it or leave it out.") from error
    if not row:
        raise DashboardError(f"{path}: contains no process; it was killed before it measured anything. Leave it out.")
    return RawSource(path, (guid_of(row[0]),))


def _process(reading: RawReading) -> Iterator[Batch]:
    process, machine = reading.process, reading.machine
    row = {
        **reading.place,
        "ppid": process.get("ppid"),
        "hostname": machine.get("host"),
        "system_name": machine.get("system"),
        "system_version": machine.get("distribution"),
        "start": process["started_ns"],
        "end": process.get("ended_ns"),
        "command": process.get("command"),
        "night": process.get("night"),
        "experiment": process.get("experiment"),
        "engine": reading.engine.get("version"),
        "tvm_hash": reading.engine.get("tvm_hash"),
        "facts": process["facts"],
        "source": reading.path.name,
    }
    yield batch_of_rows("process", [row])


def _node(reading: RawReading) -> Iterator[Batch]:
    machine = reading.machine
    row = {
        "guid": reading.place["guid"],
        "id": NODE,
        "hostname": machine.get("host"),
        "system_name": machine.get("system"),
        "version": machine.get("distribution"),
        "hardware_name": machine.get("cpu_model"),
    }
    yield batch_of_rows("node", [row])


def _agent(reading: RawReading) -> Iterator[Batch]:
    row = {**reading.place, "id": 0, "type": "CPU", "absolute_index": 0, "logical_index": 0, "type_index": 0}
    yield batch_of_rows("agent", [{**row, "name": reading.machine.get("cpu_model")}])


def _thread(reading: RawReading) -> Iterator[Batch]:
    process = reading.process
    times = {"start": process["started_ns"], "end": process.get("ended_ns")}
    row = {**reading.place, "ppid": process.get("ppid"), "tid": reading.pid, "name": "main", **times}
    yield batch_of_rows("thread", [row])


def _trial(reading: RawReading) -> Iterator[Batch]:
    rows = []
    for trial in reading.trials:
        identity, ended = mapping(trial["point"], "trials.point"), trial["ended_ns"]
        values = identity.get("values", identity)
        row = {
            **reading.place,
            "id": trial["id"],
            "tid": reading.pid,
            "workload": identity.get("workload"),
            "point": json.dumps(values, sort_keys=True, ensure_ascii=False),
            "identity": trial["point"],
            "engine": identity.get("engine"),
            "target": identity.get("target"),
            "start": trial["started_ns"],
            "duration": ended - trial["started_ns"] if ended else None,
            "error": trial["error"] or (None if ended else _LOST),
            "facts": trial["facts"],
        }
        rows.append(row)
    yield batch_of_rows("trial", rows)


def _timing(reading: RawReading) -> Iterator[Batch]:
    import numpy

    stored = "started_ns" in reading.tables["samples"]
    columns = ("trial", "position", "elapsed_ns", "number", *(_IN_TURN if stored else ()))
    arrays = dict(zip(columns, read_columns(reading.database, dict.fromkeys(columns, INT), "samples"), strict=True))
    check_ns("samples.elapsed_ns", arrays["elapsed_ns"])
    count = len(arrays["trial"])
    begins = _begins(reading, arrays["trial"], arrays["elapsed_ns"])
    started = arrays.pop("started_ns", None)
    if started is not None:
        check_ns("samples.started_ns", started)
        begins = numpy.where(started == NULL_INT, begins, started)
    moments = {"id": ints(range(1, count + 1)), "timestamp": begins}
    yield Batch("timing", count, {**reading.place, "tid": reading.pid, **moments, **arrays})


def _begins(reading: RawReading, trial: Ints, elapsed_ns: Ints) -> Ints:
    """Return the begins of samples, for those without one from the end of the trial's phase of timing backwards."""
    import numpy

    ends = reading.phases(TIMING, trial, at_end=True)
    last = numpy.flatnonzero(numpy.append(numpy.diff(trial) != 0, numpy.ones(min(1, len(trial)), dtype=bool)))
    done = numpy.cumsum(elapsed_ns)
    rest = numpy.repeat(done[last], numpy.diff(last, prepend=-1)) - done
    placed = ends - rest - elapsed_ns
    return numpy.where(ends == NULL_INT, reading.at_trial(trial, "started_ns"), placed)


def _pass(reading: RawReading) -> Iterator[Batch]:
    import numpy

    columns = dict.fromkeys(("trial", "position", "name", "duration_ns"), INT)
    trial, position, name, duration = read_columns(reading.database, columns, "passes ORDER BY rowid")
    check_ns("passes.duration_ns", duration)
    begun = reading.phases(COMPILE, trial)
    begun = numpy.where(begun == NULL_INT, reading.at_trial(trial, "started_ns"), begun)
    timed = {"timestamp": begun, "duration": duration}
    named = {**reading.place, "trial": trial, "position": position, "name": reading.names(name)}
    yield Batch("pass", len(trial), {**named, **timed})


def _operator(reading: RawReading) -> Iterator[Batch]:
    for arrays in raw_runs.operators(reading.database, reading.tables, reading.trials):
        check_ns("the times of runs or operators", arrays["start"], arrays["duration"])
        inside = reading.in_window(arrays)
        codes = inside.pop("name")
        columns = {**reading.place, "tid": reading.pid, **inside, "name": reading.names(codes)}
        yield Batch("operator", len(codes), columns)


def _region(reading: RawReading) -> Iterator[Batch]:
    if "regions" not in reading.tables:
        return
    columns = dict.fromkeys(("trial", "name", "category", "start_ns", "duration_ns"), INT)
    trial, name, category, start, duration = read_columns(reading.database, columns, "regions ORDER BY rowid")
    check_ns("regions", start, duration)
    texts = {"name": reading.names(name), "category": reading.names(category)}
    numbers = {"id": ints(range(1, len(trial) + 1)), "trial": trial, "start": start, "duration": duration}
    yield Batch("region", len(trial), {**reading.place, "tid": reading.pid, **numbers, **texts})


def _telemetry(reading: RawReading) -> Iterator[Batch]:
    if "telemetry" not in reading.tables:
        return
    columns = {**dict.fromkeys(("timestamp_ns", "name", "unit"), INT), "value": REAL}
    timestamp, name, unit, value = read_columns(reading.database, columns, "telemetry ORDER BY rowid")
    texts = {"name": reading.names(name), "unit": reading.names(unit)}
    yield Batch("telemetry", len(timestamp), {**reading.place, "timestamp": timestamp, "value": value, **texts})


_READERS: dict[str, Callable[[RawReading], Iterator[Batch]]] = {
    "process": _process,
    "node": _node,
    "agent": _agent,
    "thread": _thread,
    "trial": _trial,
    "timing": _timing,
    "pass": _pass,
    "operator": _operator,
    "region": _region,
    "telemetry": _telemetry,
}
