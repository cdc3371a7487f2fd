"""Rows of a connection as slices and counters in columns, a window of them at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvmtraces.convert import Counters, Names, Slices, names
from tvmtraces.export.kinds import Kind, format_counted
from tvmtraces.export.windows import cut_into_windows

if TYPE_CHECKING:
    from tvmtraces.connection import Traces
    from tvmtraces.convert.events import Ints

Key = tuple[str | None, int | None]
"""Key of a process: its guid, and its number among those of that guid; None for what is the host's."""


@dataclass(frozen=True)
class ExportedRun:
    """One repetition of a profiled trial: when its first operator began, and the id of the slice that this becomes."""

    process: Key
    trial: int
    repetition: int | None
    start_ns: int
    id: int


_STACK = {
    0: "",
    1: ", coalesce(R.stack_id, 0) AS stack",
    -1: """, CASE WHEN (R.guid, R.process, R.stack_id) IN (SELECT guid, process, stack_id FROM regions)
        THEN R.stack_id ELSE 0 END AS stack""",
}
"""SQL for the call that launched a row, by the `arrow` of its kind; 0 where no such call is shown."""
_STACK_BITS = 40
_MOST_STACKS = (1 << _STACK_BITS) - 1


class Titles:
    """The names that processes have in a trace."""

    def __init__(self, named: Mapping[Key, str]) -> None:
        self._named = named
        self._places = {key: number for number, key in enumerate(named)}

    def place(self, guid: str | None, process: int | None) -> int:
        """Return the process's number in the trace."""
        return self._places.setdefault((guid, process), len(self._places))

    def find(self, guid: str | None, process: int | None) -> str:
        """Return the process's name; "host" for what is of no process."""
        return "host" if guid is None else self._named.get((guid, process)) or f"{guid}/{process}"

    def column(self, guids: Iterable[str | None], processes: Iterable[int | None]) -> Names:
        """Return the names of processes, as a column."""
        return names(self.find(guid, process) for guid, process in zip(guids, processes, strict=True))


@dataclass(frozen=True)
class _Texts:
    """Texts of the rows of a kind: row `kind` of each column is for all rows with that number."""

    keys: Sequence[Key]
    process: Names
    lane: Names
    name: Names
    category: Names


def read_slices(
    traces: Traces, kind: Kind, titles: Titles, runs: Sequence[ExportedRun] = (), only: str = ""
) -> Iterator[Slices]:
    """Yield the slices of a kind, by their starts, where the condition `only` holds."""
    source = f"(SELECT * FROM {kind.source} AS rows WHERE {only or 'true'}) AS rows"  # noqa: S608 - our own words
    texts = _read_texts(traces, kind, source, titles)
    if not texts.keys:
        return
    same = " AND ".join(f"K.{name} IS NOT DISTINCT FROM R.{name}" for name in _list_told(kind))
    more = (", R.trial, R.repetition" if kind.runs else "") + _STACK[kind.arrow]
    waiting = sorted(runs, key=lambda run: run.start_ns)
    for window in cut_into_windows(traces, source):
        query = f"""SELECT K.kind, R."start", R.duration{more}
            FROM (SELECT * FROM {source} WHERE "start" BETWEEN {window.start} AND {window.stop - 1}) AS R
            JOIN slice_kinds K ON {same} ORDER BY R."start", R.duration DESC, K.kind"""  # noqa: S608 - our own words
        columns = traces.execute(query).fetchnumpy()
        inside = [run for run in waiting if run.start_ns in window] if kind.runs else []
        arrow = _number_arrows(texts, columns, titles) * kind.arrow if kind.arrow else None
        called = {name: getattr(texts, name).taken(columns["kind"]) for name in ("process", "lane", "name", "category")}
        ids = _find_ids(texts, columns, inside)
        yield Slices(**called, start_ns=columns["start"], duration_ns=columns["duration"], id=ids, arrow=arrow)


def _number_arrows(texts: _Texts, columns: Mapping[str, Any], titles: Titles) -> Ints:
    """Return a number for each row that is common to a call and what it launched; 0 where there is no such call."""
    import numpy

    places = numpy.array([titles.place(*key) for key in texts.keys], dtype=numpy.int64)
    stacks = columns["stack"] & _MOST_STACKS
    return numpy.where(stacks == 0, 0, (places[columns["kind"]] << _STACK_BITS) + stacks)


def _list_told(kind: Kind) -> list[str]:
    return ["guid", "process", *(name.strip() for name in kind.told.split(","))]


def _read_texts(traces: Traces, kind: Kind, source: str, titles: Titles) -> _Texts:
    told = ", ".join(_list_told(kind))
    traces.execute(
        f"""CREATE OR REPLACE TEMP TABLE slice_kinds AS SELECT row_number() OVER (ORDER BY {told}) - 1 AS kind, *
        FROM (SELECT DISTINCT {told} FROM {source})"""  # noqa: S608 - our own words
    )
    named = ", ".join(f"coalesce({text}, '')" for text in (kind.lane, kind.name, kind.category))
    query = f"SELECT guid, process, {named} FROM slice_kinds ORDER BY kind"  # noqa: S608 - our own words
    rows = traces.execute(query).fetchall()
    guids, processes, lanes, called, categories = zip(*rows, strict=True) if rows else [()] * 5
    keys = list(zip(guids, processes, strict=True))
    return _Texts(keys, titles.column(guids, processes), names(lanes), names(called), names(categories))


def _find_ids(texts: _Texts, columns: Mapping[str, Any], runs: Sequence[ExportedRun]) -> Ints | None:
    """Return the id of a run for its first operator, 0 for all others."""
    import numpy

    if not runs:
        return None
    starts = columns["start"]
    ids = numpy.zeros(len(starts), dtype=numpy.int64)
    for run in runs:
        first, end = numpy.searchsorted(starts, [run.start_ns, run.start_ns + 1]).tolist()
        for row in range(first, end):
            of_run = (texts.keys[columns["kind"][row]], columns["trial"][row], columns["repetition"][row])
            if of_run == (run.process, run.trial, run.repetition) and not ids[row]:
                ids[row] = run.id
                break
    return ids


def read_sensors(traces: Traces, titles: Titles) -> Iterator[Counters]:
    """Yield the readings of sensors."""
    rows = """(SELECT guid, process, name, unit, "timestamp" AS "start", value FROM telemetry
        WHERE value IS NOT NULL AND "timestamp" IS NOT NULL)"""
    for window in cut_into_windows(traces, f"{rows} AS rows"):
        query = f"""SELECT * FROM {rows} AS rows WHERE "start" BETWEEN {window.start} AND {window.stop - 1}
            ORDER BY "start", guid, process, name, unit, value"""  # noqa: S608 - our own words
        yield _make_counters(traces.execute(query).fetchnumpy(), titles)


def read_counted(traces: Traces, titles: Titles, only: str, counted: Counted) -> Iterator[Counters]:
    """Yield the values of performance counters; `counted` adds up the rows that they were made of."""
    for chosen, events in _cut_counters(traces, only):
        query = f'SELECT * FROM {format_counted(chosen, events)} AS counted ORDER BY "start", name, value'  # noqa: S608 - our own words
        columns = traces.execute(query).fetchnumpy()
        counted.rows += int(columns["count"].sum())
        yield _make_counters(columns, titles)


def _cut_counters(traces: Traces, only: str) -> Iterator[tuple[str, str]]:
    """Yield conditions on some rows of counters each, and on their events: those of an event are together."""
    for of_event, column in (("event_id IS NOT NULL", "event_id"), ("event_id IS NULL", "id")):
        chosen = f"{of_event} AND {only}"
        for window in cut_into_windows(traces, f"(SELECT {column} FROM base_counter WHERE {chosen}) AS rows", column):  # noqa: S608
            inside = f"{column} BETWEEN {window.start} AND {window.stop - 1}"
            yield f"{chosen} AND {inside}", inside if column == "event_id" else "false"


@dataclass
class Counted:
    """The rows of performance counters read so far."""

    rows: int = 0


def _make_counters(columns: Mapping[str, Any], titles: Titles) -> Counters:
    import numpy

    guids, processes, called, units = (columns[name].tolist() for name in ("guid", "process", "name", "unit"))
    return Counters(
        titles.column(guids, processes),
        names("" if text is None else text for text in called),
        names("" if text is None else text for text in units),
        columns["start"],
        numpy.asarray(columns["value"], dtype=numpy.float64),
    )
