"""Raw databases of `tvmdash.measure.capture`, of every format, as batches of the tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tvmdash.errors import DashboardError
from tvmdash.measure.capture_format import READABLE_VERSIONS
from tvmdash.measure.phases import COMPILE, TIMING
from tvmtraces.batches import NULL_INT, Batch, WantedRows, WrongValue, batch_of_rows, ints
from tvmtraces.readers import raw_runs
from tvmtraces.readers.raw_reading import NODE, RawReading, check_ns, guid_of, mapping, processes_of
from tvmtraces.readers.sqlite_input import list_tables, open_database, read_columns
from tvmtraces.tables import INT, REAL

if TYPE_CHECKING:
    from tvmtraces.batches import Ints

_LOST = "its process was killed during the measurement"


@dataclass(frozen=True)
class RawSource:
    """One raw database; `guid` names its process."""

    path: Path
    guids: tuple[str, ...]
    kind: str = "raw"

    def read(self, wanted: WantedRows) -> Iterator[Batch]:
        """Yield the wanted batches."""
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
