"""Many files as one DuckDB database, for those who write its SQL themselves: `open_traces`."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tvmdash.errors import DashboardError
from tvmtraces.batches import Batch, WantedRows, WrongValue
from tvmtraces.dbapi import Parameters
from tvmtraces.duck import DuckEngine, DuckResult
from tvmtraces.filters import (
    OF_EVENTS,
    ChosenProcess,
    Filters,
    TimeSpan,
    format_literal,
    format_selection,
    is_absolute,
    is_marker,
    order_of_views,
    process_condition,
    resolve_moment,
)
from tvmtraces.planning import Planner
from tvmtraces.readers.reach import BOUNDED, EVERYTHING, Reach, ReachNames
from tvmtraces.sealed import SealedFile
from tvmtraces.sources import Source, find, sealed_of
from tvmtraces.tables import TABLES, is_held
from tvmtraces.views import VIEW_TABLES, VIEWS, find_tables

Progress = Callable[[str, int, int], None]
"""Called with the task, the amount done, and the total."""

_MOST_THREADS = 8
_MOST_BYTES = 32 << 20
"""Limit of the memory for batches that wait for the consumer."""


def read_all(sources: Sequence[Source], wanted: WantedRows, progress: Progress | None) -> dict[str, list[Batch]]:
    """Return the batches of every table that is wanted, source after source.

    Sources are read side by side: SQLite and numpy let other threads run while they work.
    """
    batches: dict[str, list[Batch]] = {table: [] for table in wanted.tables}
    slow = [source for source in sources if source.kind != "sealed"]
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as pool:
        reads = [pool.submit(_read, source, wanted) for source in slow]
        try:
            for done, _ in enumerate(as_completed(reads), start=1):
                if progress is not None:
                    progress("reading", done, len(slow))
            for read in reads:
                for batch in read.result():
                    batches[batch.table].append(batch)
        except BaseException:
            for read in reads:
                read.cancel()
            raise
    return batches


def read_in_parts(
    sources: Sequence[Source], wanted: WantedRows, progress: Progress | None
) -> Iterator[tuple[str, list[Batch]]]:
    """Yield the batches of all sources, table by table, as soon as together they exceed a limit of memory."""
    waiting: dict[str, list[Batch]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    slow = [source for source in sources if source.kind != "sealed"]
    for done, source in enumerate(slow, start=1):
        for batch in _read_one(source, wanted):
            waiting[batch.table].append(batch)
            sizes[batch.table] += batch.size_bytes
            while sum(sizes.values()) > _MOST_BYTES:
                largest = max(sizes, key=lambda table: sizes[table])
                sizes.pop(largest)
                yield largest, waiting.pop(largest)
        if progress is not None:
            progress("reading", done, len(slow))
    yield from waiting.items()


def _read(source: Source, wanted: WantedRows) -> list[Batch]:
    return list(_read_one(source, wanted))


def _read_one(source: Source, wanted: WantedRows) -> Iterator[Batch]:
    try:
        yield from source.read(wanted)
    except WrongValue as error:
        raise DashboardError(f"{source.path}: {error}. It is broken; restore it or leave it out.") from error


_ALL: Mapping[str, frozenset[str]] = {name: frozenset(table.columns) for name, table in TABLES.items()}


def open_traces(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    filters: Filters | None = None,
    progress: Progress | None = None,
) -> Traces:
    """Open all the traces in `paths` as one database.

    `paths`: raw databases, RocPD databases, sealed runs, homes, folders of any of these, patterns; in any number.
    Nothing is read before a query needs it, and nothing is ever written. DashboardError for what is missing, given
    twice, broken or newer than this program.
    """
    return Traces(find(paths), filters or Filters(), progress)


class Traces:
    """Traces queried in DuckDB's SQL. A context manager that closes itself."""

    def __init__(
        self,
        sources: Sequence[Source],
        filters: Filters,
        progress: Progress | None = None,
        writable: Path | None = None,
    ) -> None:
        self.sources = tuple(sources)
        self._filters, self._progress = filters, progress
        self._made: set[str] = set()
        self._loaded: dict[str, frozenset[str]] = {}
        self._cut: set[str] = set()
        self._planner = Planner()
        self._sealed = sealed_of(sources)
        self._engine = DuckEngine([file for table in TABLES for file in self._list_files(table)], writable)
        self._reach = EVERYTHING
        self._chosen: list[ChosenProcess] | None = None
        self._span: TimeSpan | None = None
        try:
            self._resolve()
        except BaseException:
            self._engine.close()
            raise

    def execute(self, sql: str, parameters: Parameters = ()) -> DuckResult:
        """Run one statement and return its rows.

        `?` in it stands for the parameters in turn, `:name` and `$name` for that of a mapping.
        """
        self._prepare(sql, parameters)
        return self._engine.execute(sql, parameters)

    def interrupt(self) -> None:
        """Stop the statement that another thread runs."""
        self._engine.interrupt()

    @property
    def filters(self) -> Filters:
        return self._filters

    def close(self) -> None:
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def bounds_ns(self) -> tuple[int, int]:
        """Return when the first thing in these traces began and the last ended, filters aside."""
        first, last = self.known_bounds_ns()
        if first is None or last is None:
            raise DashboardError("These traces contain no times, so a window cannot be applied. Remove the window.")
        return first, last

    def known_bounds_ns(self) -> tuple[int | None, int | None]:
        """Return the bounds as `bounds_ns`, None where nothing has a time."""
        runs = self._sealed
        if len(runs) < len(self.sources):
            return self._measured_bounds()
        starts = (run.catalogue.start_ns for run in runs if run.catalogue.start_ns is not None)
        ends = (run.catalogue.end_ns for run in runs if run.catalogue.end_ns is not None)
        return min(starts, default=None), max(ends, default=None)

    def _measured_bounds(self) -> tuple[int | None, int | None]:
        self._load({table: _edges(table) for table in BOUNDED}, whole=True)
        parts = " UNION ALL ".join(_bounds(table) for table in BOUNDED)
        query = f"SELECT min(a), max(b) FROM ({parts}) AS u"  # noqa: S608 - our own names
        first, last = self._engine.execute(query).fetchall()[0]
        return first, last

    def stream(self, written: Callable[[str], Sequence[SealedFile]]) -> Iterator[str]:
        """Read everything, a part at a time: yield the name of each table whose next rows `base_<table>` now shows.

        What is small is read first and stays; its name comes once, at the end. `written` gives the files that the
        caller made of a table so far, at which the filters of others look.
        """
        held = [name for name in TABLES if is_held(name)]
        self._load({name: _ALL[name] for name in held})
        for table in held:
            self._prepare(f"FROM base_{table}")
        late = set(OF_EVENTS) if self._filters != Filters() else set()
        for tables in (set(TABLES) - late - set(held), late):
            for table in {other for name in tables & late for other in OF_EVENTS[name]}:
                self._show(table, [], written(table))
            for table in sorted(tables):
                yield from self._stream(table, [], self._list_files(table, self._reach))
            wanted = WantedRows({name: _ALL[name] for name in tables}, *(self._span.edges if self._span else ()))
            for table, batches in read_in_parts(self.sources, wanted, self._progress) if tables else ():
                yield from self._stream(table, batches, [])
        yield from held

    def _stream(self, table: str, batches: Sequence[Batch], files: Sequence[SealedFile]) -> Iterator[str]:
        if batches or files:
            self._show(table, batches, files)
            yield table

    def _show(self, table: str, batches: Sequence[Batch], files: Sequence[SealedFile]) -> None:
        """Show, as `base_<table>`, the rows of these that the filters leave."""
        self._engine.load(table, batches, files)
        self._loaded[table] = _ALL[table]
        if f"base_{table}" not in self._made:
            self._view(f"base_{table}", self._selection(table))

    def ask_loaded(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query over what is loaded already."""
        return self._engine.execute(sql).fetchall()

    def constants(self, table: str) -> dict[str, Any]:
        """Return the columns of the rows in `base_<table>` that hold one value throughout."""
        return self._engine.constants(table)

    def write_table(self, table: str, columns: Sequence[str], path: Path, options: str) -> None:
        """Write the rows of `base_<table>`, in its order, to a Parquet file below the `writable` folder.

        Where each part of it (a process, a sealed run) is in that order already, part follows part.
        """
        chosen, order = (", ".join(f'"{name}"' for name in names) for names in (columns, TABLES[table].order))
        ordered = "" if self._engine.is_ordered(table) or not order else f" ORDER BY {order}"
        self._engine.copy(f"SELECT {chosen} FROM base_{table}{ordered}", path, options)  # noqa: S608 - our own names

    def copy(self, selection: str, path: Path, options: str) -> None:
        """Write the rows of a query to a file below the `writable` folder."""
        self._prepare(selection)
        self._engine.copy(selection, path, options)

    def _prepare(self, sql: str, parameters: Parameters = ()) -> None:
        """Load the tables that a query needs, and make the views."""
        needed = set(find_tables(sql))
        if needed and self._filters.workloads:
            needed.add("trial")
        if self._filters != Filters():
            needed.update(other for table in list(needed) for other in OF_EVENTS.get(table, ()))
        self._load(self._columns(needed, sql, parameters))
        for table in sorted(needed, key=order_of_views):
            if f"base_{table}" not in self._made:
                self._view(f"base_{table}", self._selection(table))
        for name, view in VIEWS.items():
            if name not in self._made and VIEW_TABLES[name] <= needed:
                self._view(name, view)

    def _view(self, name: str, sql: str) -> None:
        self._engine.view(name, sql)
        self._made.add(name)

    def _selection(self, table: str) -> str:
        return format_selection(table, self._filters, self._span, self._chosen)

    def _columns(self, needed: AbstractSet[str], sql: str, parameters: Parameters) -> dict[str, frozenset[str]]:
        """Return the columns that a query needs of these tables: all, where fewer save nothing or cannot be known."""
        columns = {table: _ALL[table] for table in needed}
        slow = [source for source in self.sources if source.kind == "rocpd"]
        if slow and not columns.items() <= self._loaded.items():
            selections = {table: self._selection(table) for table in TABLES}
            columns.update(self._planner.columns(sql, parameters, selections, needed))
        return columns

    def _load(self, tables: Mapping[str, frozenset[str]], *, whole: bool = False) -> None:
        """Read these columns, limited to the filters' window unless `whole`."""
        missing = {
            table: columns | self._loaded.get(table, frozenset())
            for table, columns in tables.items()
            if not columns <= self._loaded.get(table, frozenset()) or (whole and table in self._cut)
        }
        if not missing:
            return
        span = None if whole else self._span
        wanted = WantedRows(missing, *(span.edges if span else ()))
        batches = read_all(self.sources, wanted, self._progress)
        for table, columns in missing.items():
            files = self._list_files(table, EVERYTHING if whole else self._reach)
            self._engine.load(table, batches[table], files)
            self._loaded[table] = columns
            is_cut = span is not None or len(files) < len(self._list_files(table))
            (self._cut.add if is_cut else self._cut.discard)(table)

    def _list_files(self, table: str, reach: Reach = EVERYTHING) -> list[SealedFile]:
        """Return the table's files of the sealed runs in which the filters may leave rows, by their catalogues."""
        runs = (run for run in self._sealed if reach.may_hold(table, run.catalogue))
        return [file for run in runs for file in run.files(table)]

    def _resolve(self) -> None:
        """Turn the filters on processes and the window's bounds into plain values."""
        condition = process_condition(self._filters)
        if condition is not None:
            self._choose(condition)
        window = self._filters.window
        if window is not None:
            absolute = all(is_absolute(bound) for bound in (window.begin, window.end))
            first, last = (0, 0) if absolute else self.bounds_ns()
            begin = self._moment(window.begin or "0%", first, last, (first, None))
            end = self._moment(window.end or "100%", first, last, (begin, "end"))
            if window.end in ("", "100%"):
                end += 1  # what ends, or happens, at the very end of the run is inside
            if end < begin:
                raise DashboardError(f"The window ends ({window.end}) before it begins ({window.begin}).")
            self._span = TimeSpan(begin, end, window.straddle)
            self._reach = replace(self._reach, span=self._span)

    def _choose(self, condition: str) -> None:
        """Find the processes that the filters leave."""
        catalogues = [run.catalogue for run in self._sealed]
        names = ReachNames.of(self._filters, catalogues, lambda query: self._engine.execute(query).fetchall())
        self._reach = Reach(names)
        self._load({"process": _ALL["process"]})
        # a process without an end runs on; one below the greatest number, as its reach adds one
        columns = f'guid, process, nid, min("start"), max(coalesce("end", {2**63 - 2}))'
        query = f"SELECT {columns} FROM all_process WHERE {condition} GROUP BY ALL"  # noqa: S608 - escaped by filters
        found = self._engine.execute(query).fetchall()
        self._chosen = [ChosenProcess(*row[:3]) for row in found]
        ran = [(int(first), int(last)) for *_, first, last in found if first is not None]
        ran_ns = (min(first for first, _ in ran), max(last for _, last in ran)) if ran else None
        self._reach = Reach(names, frozenset(process.guid for process in self._chosen), ran_ns)

    def _moment(self, bound: str, first: int, last: int, marker: tuple[int, str | None]) -> int:
        if not is_marker(bound):
            return resolve_moment(bound, first, last)
        earliest, edge = marker
        self._load({table: _ALL[table] for table in ("region", "trial")}, whole=True)
        wanted = '"start" + duration' if edge else '"start"'
        name = format_literal(bound[1:])
        query = f"""
            SELECT {wanted} FROM (SELECT name, "start", duration FROM all_region
                UNION ALL SELECT workload, "start", duration FROM all_trial) AS markers
            WHERE name = {name} AND "start" >= {earliest} ORDER BY "start" LIMIT 1"""  # noqa: S608 - escaped
        rows = self._engine.execute(query).fetchall()
        if not rows or rows[0][0] is None:
            raise DashboardError(f"{bound}: no region or trial with that name starts there. See the view `regions`.")
        return int(rows[0][0])


def _edges(table: str) -> frozenset[str]:
    spec = TABLES[table]
    return frozenset(name for name in (spec.start, spec.duration) if name)


def _bounds(table: str) -> str:
    spec = TABLES[table]
    end = f'"{spec.start}" + coalesce("{spec.duration}", 0)' if spec.duration else f'"{spec.start}"'
    return f'SELECT min("{spec.start}") AS a, max({end}) AS b FROM all_{table}'  # noqa: S608 - our own names
