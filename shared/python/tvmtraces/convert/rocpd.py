"""RocPD databases, as rocprofv3 writes them and AMD's rocpd package reads them.

Operators become kernel dispatches, other slices regions, counters samples with a performance counter's value. Rows of
other writers stay as they are, in tables of their own. What RocPD has no place for is left out: flows.
"""

from __future__ import annotations

import functools
import json
import platform
import re
import sqlite3
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash.errors import DashboardError
from tvmtraces.convert.events import Counters, Event, Slices, batches, format_json
from tvmtraces.convert.parts import Files, Written
from tvmtraces.rocpd_schema import SCHEMA_VERSION, make_tables
from tvmtraces.views import make_views

KERNELS = frozenset({"operator", "kernel", "KERNEL_DISPATCH"})
"""The categories of slices that become kernel dispatches."""


@dataclass(frozen=True)
class RocpdProcess:
    """Facts of a process beyond its name; 0 and empty where unknown."""

    pid: int = 0
    ppid: int = 0
    host: str = ""
    command: str = ""
    start_ns: int = 0
    end_ns: int = 0


@dataclass(frozen=True)
class RocpdRows:
    """Rows of one of RocPD's tables, as the writer of that guid made them; an event may come several times."""

    guid: str
    table: str
    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]


def write_rocpd(
    destination: Path,
    events: Iterable[Event],
    *,
    processes: Mapping[str, RocpdProcess] | None = None,
    kernels: frozenset[str] = KERNELS,
    others: Iterable[RocpdRows] = (),
) -> Written:
    """Write a database to `place`, which is not there yet; DashboardError leaves nothing behind.

    It has a set of tables for the events, and one for each other writer. One batch of events is held at a time, beside
    each distinct name, lane and process.
    """
    counted = {Slices: 0, Counters: 0}
    with Files(destination) as files:
        try:
            with closing(sqlite3.connect(files.temporary(), isolation_level=None)) as database:
                sets = _Sets(database)
                for rows in others:
                    sets.insert(rows)
                writing: _Writing | None = None
                for batch in batches(events):
                    counted[type(batch)] += len(batch)
                    writing = writing or _Writing(sets, processes or {}, kernels)
                    writing.add(batch)
                sets.finish()
        except (sqlite3.OperationalError, sqlite3.IntegrityError) as error:
            raise DashboardError(f"{destination}: cannot be written: {error}.") from error
        paths = files.finish()
    return Written(paths, counted[Slices], counted[Counters])


class _Sets:
    """The sets of tables of one database, by the guids of their writers."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._suffixes: dict[str, str] = {}
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF"):  # the file is beside its place
            database.execute(f"PRAGMA {pragma}")
        database.execute("BEGIN")

    def add(self, guid: str) -> None:
        """Make the tables of another writer."""
        if not re.fullmatch(r"[\w-]+", guid):
            raise DashboardError(f"{guid!r:.60} is not a guid that RocPD writers use. Leave its traces out.")
        suffix = self._suffixes[guid] = "_" + guid.replace("-", "_")
        for statement in make_tables(suffix, guid):
            self._database.execute(statement)
        facts = [("schema_version", SCHEMA_VERSION), ("uuid", suffix), ("guid", guid)]
        self.insert(RocpdRows(guid, "metadata", ["tag", "value"], facts))

    def insert(self, rows: RocpdRows) -> None:
        """Write rows, after the tables that they need."""
        if rows.guid not in self._suffixes:
            self.add(rows.guid)
        names, marks = ", ".join(f'"{name}"' for name in rows.columns), ", ".join("?" * len(rows.columns))
        table = f'"rocpd_{rows.table}{self._suffixes[rows.guid]}"'
        kind = "INSERT OR IGNORE" if rows.table == "event" else "INSERT"
        self._database.executemany(f"{kind} INTO {table} ({names}) VALUES ({marks})", rows.rows)

    def finish(self) -> None:
        """Make the views over all of them; commit everything."""
        if not self._suffixes:
            self.add(str(uuid.uuid4()))
        for statement in make_views(list(self._suffixes.values())):
            self._database.execute(statement)
        self._database.execute("COMMIT")


class _Writing:
    """The set of tables of the events; ids are counted here, so that rows of many tables can be written at once."""

    def __init__(self, sets: _Sets, known: Mapping[str, RocpdProcess], kernels: frozenset[str]) -> None:
        self._sets, self._known, self._kernels = sets, known, kernels
        self._guid = str(uuid.uuid4())
        self._ids: dict[tuple[str, object], int] = {}
        self._counts: dict[str, int] = {}

    def add(self, batch: Slices | Counters) -> None:
        """Write a batch."""
        if isinstance(batch, Slices):
            self._add_slices(batch)
        else:
            self._add_counters(batch)

    def _insert(self, table: str, columns: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._sets.insert(RocpdRows(self._guid, table, columns.split(), rows))

    def _id(self, table: str, key: object, columns: str, *row: object) -> int:
        """The id of the table's row for `key`, written the first time."""
        known = self._ids.get((table, key))
        if known is None:
            known = self._ids[table, key] = self._next(table)
            self._insert(table, f"id {columns}", [(known, *row)])
        return known

    def _next(self, table: str, count: int = 1) -> int:
        """The first of `count` new ids."""
        first = self._counts.get(table, 0) + 1
        self._counts[table] = first + count - 1
        return first

    def _string(self, text: str) -> int:
        return self._id("string", text, "string", text)

    def _process(self, name: str) -> tuple[int, int]:
        """The ids of a process and of its node."""
        known = self._known.get(name, RocpdProcess())
        host = known.host or "unknown"
        node = self._id(
            "info_node",
            host,
            "hash machine_id system_name hostname",
            # counted as well, as hashes must differ where two names have one checksum
            zlib.crc32(host.encode("utf-8", errors="replace")) + (self._counts.get("info_node", 0) << 32),
            host,
            platform.system(),
            host,
        )
        number = known.pid or self._counts.get("info_process", 0) + 1
        times = (known.start_ns or None, known.end_ns or None)
        row = (node, known.ppid, number, *times, *times, known.command or name, json.dumps({"name": name}))
        columns = "nid ppid pid init fini start end command extdata"
        return self._id("info_process", name, columns, *row), node

    def _thread(self, process: str, lane: str) -> tuple[int, int, int]:
        """Node, process and thread of a lane."""
        number, node = self._process(process)
        tid = self._counts.get("info_thread", 0) + 1
        thread = self._id("info_thread", (process, lane), "nid pid tid name", node, number, tid, lane)
        return node, number, thread

    def _machinery(self, process: str) -> tuple[int, int, int, int]:
        """Agent, queue, stream and code object of a process: what a dispatch refers to."""
        number, node = self._process(process)
        key = (node, number)
        index = self._counts.get("info_agent", 0)
        agent = self._id(
            "info_agent",
            process,
            "nid pid type absolute_index logical_index type_index name",
            *(*key, "CPU", index, index, index, "CPU"),
        )
        queue = self._id("info_queue", process, "nid pid name", *key, "Queue 0")
        stream = self._id("info_stream", process, "nid pid name", *key, "Stream 0")
        code = self._id("info_code_object", process, "nid pid agent_id uri", *key, agent, process)
        return agent, queue, stream, code

    def _symbol(self, process: str, name: str) -> int:
        number, node = self._process(process)
        code = self._machinery(process)[3]
        columns = "nid pid code_object_id kernel_name display_name"
        return self._id("info_kernel_symbol", (process, name), columns, node, number, code, name, name)

    def _events(self, categories: Iterable[str], extra: Iterable[str]) -> int:
        """Write an event for each; the id of the first."""
        string = functools.cache(self._string)
        rows = [(string(category), 0, 0, 0, more) for category, more in zip(categories, extra, strict=True)]
        first = self._next("event", len(rows))
        self._insert("event", "category_id stack_id parent_stack_id correlation_id extdata", rows)
        return first

    def _add_slices(self, batch: Slices) -> None:
        details = batch.details or [{}] * len(batch)
        first = self._events(batch.category.texts(), (format_json(detail) if detail else "{}" for detail in details))
        texts = (column.texts() for column in (batch.process, batch.lane, batch.name, batch.category))
        spans = zip(batch.start_ns.tolist(), (batch.start_ns + batch.duration_ns).tolist(), strict=True)
        thread, string = functools.cache(self._thread), functools.cache(self._string)
        machinery, symbol = functools.cache(self._machinery), functools.cache(self._symbol)
        regions: list[tuple[Any, ...]] = []
        dispatches: list[tuple[Any, ...]] = []
        for event, (process, lane, name, category, span) in enumerate(zip(*texts, spans, strict=True), start=first):
            if category not in self._kernels:
                regions.append((*thread(process, lane), *span, string(name), event))
                continue
            agent, queue, stream, _ = machinery(process)
            row = (agent, symbol(process, name), self._next("dispatch"), queue, stream, *span)
            dispatches.append((*thread(process, lane), *row, *_ONES, string(name), event))
        self._insert("region", "nid pid tid start end name_id event_id", regions)
        self._insert("kernel_dispatch", _DISPATCH, dispatches)

    def _add_counters(self, batch: Counters) -> None:
        first = self._events(["counter"] * len(batch), ["{}"] * len(batch))
        texts = (column.texts() for column in (batch.process, batch.name, batch.unit))
        rows = zip(*texts, batch.timestamp_ns.tolist(), batch.value.tolist(), strict=True)
        samples, values = [], []
        for event, (process, name, unit, moment, value) in enumerate(rows, start=first):
            node, number, thread = self._thread(process, "counters")
            track = self._id("track", (process, name), "nid pid tid name_id", node, number, thread, self._string(name))
            samples.append((track, moment, event))
            values.append((event, self._counter(process, name, unit), value))
        self._insert("sample", "track_id timestamp event_id", samples)
        self._insert("pmc_event", "event_id pmc_id value", values)

    def _counter(self, process: str, name: str, unit: str) -> int:
        number, node = self._process(process)
        agent = self._machinery(process)[0]
        columns = (
            "nid pid agent_id target_arch name symbol description component units value_type is_constant is_derived"
        )
        row = (node, number, agent, "CPU", name, name, name, "host", unit, "ABS", 0, 0)
        return self._id("info_pmc", (process, name, unit), columns, *row)


_ONES = (0, 0, 1, 1, 1, 1, 1, 1)
_DISPATCH = (
    "nid pid tid agent_id kernel_id dispatch_id queue_id stream_id start end private_segment_size group_segment_size "
    "workgroup_size_x workgroup_size_y workgroup_size_z grid_size_x grid_size_y grid_size_z region_name_id event_id"
)
