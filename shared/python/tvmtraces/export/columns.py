"""Rows of a connection as slices and counters in columns, a window of them at a time: one row of SLICES for each kind.

A kind's source is a relation with `guid`, `process`, `start` and `duration`, and the columns in `told`, which describe
a row: few values of those stand for many rows, so that their texts are made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvmtraces.convert import Counters, Names, Slices, names

if TYPE_CHECKING:
    from tvmtraces.connection import Traces
    from tvmtraces.convert.events import Ints


@dataclass(frozen=True)
class Kind:
    """Rows that become slices: `name`, `category` and `lane` are SQL over the columns `told`."""

    source: str
    told: str
    name: str
    category: str
    lane: str
    runs: bool = False
    """True where a row may be the first of a trial's profiled run, to which a flow leads."""
    arrow: int = 0
    """1 where arrows begin at rows (the call that launched something), -1 where they end; `stack_id` joins the two."""


def _timed(columns: str, view: str, *, start: str = '"start"', duration: str = "coalesce(duration, 0)") -> str:
    return (
        f'(SELECT guid, process, {columns}, {start} AS "start", {duration} AS duration FROM {view} '  # noqa: S608
        f"WHERE {start} IS NOT NULL)"
    )


_LAID_END_TO_END = """(SELECT guid, process, name, CAST("timestamp" + coalesce(sum(duration) OVER (
    PARTITION BY guid, process, trial ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS BIGINT)
    AS "start",
    coalesce(duration, 0) AS duration FROM passes WHERE "timestamp" IS NOT NULL)"""
_TIMED = """(SELECT guid, process, name, CAST("timestamp" + coalesce(sum(elapsed_ns) OVER (
    PARTITION BY guid, process, trial, "timestamp" ORDER BY position
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS BIGINT) AS "start", elapsed_ns AS duration
    FROM samples WHERE elapsed_ns IS NOT NULL AND "timestamp" IS NOT NULL)"""
_QUEUE = "coalesce(queue, '') || ' ' || coalesce(stream, '')"
_ON_THREAD = "CASE WHEN tid IS NULL THEN '' ELSE ' of ' || tid END"

SLICES = (
    Kind(_LAID_END_TO_END, "name", "name", "'pass'", "'passes, laid end to end'"),
    Kind(_TIMED, "name", "name", "'sample'", "'samples'"),
    Kind(
        _timed("name, category, tid, stack_id", "regions"),
        "name, category, tid",
        "name",
        "coalesce(category, 'region')",
        f"'regions' || {_ON_THREAD}",
        arrow=1,
    ),
    Kind(
        _timed("name, category, tid", "samples", start='"timestamp"', duration="CAST(0 AS BIGINT)").replace(
            "WHERE", "WHERE elapsed_ns IS NULL AND"
        ),
        "name, category, tid",
        "name",
        "coalesce(category, 'instant')",
        f"'instants' || {_ON_THREAD}",
    ),
    Kind(_timed("name, stack_id", "memory_copies"), "name", "name", "'memory copy'", "'memory copies'", arrow=-1),
    Kind(
        _timed("type, level", "memory_allocations"),
        "type, level",
        "concat_ws(' ', type, level)",
        "'memory allocation'",
        "'memory allocations'",
    ),
    Kind(_timed("name", "graph_launches"), "name", "name", "'graph launch'", "'graph launches'"),
    Kind(
        _timed("name, category, queue, stream, agent_type, agent_abs_index, trial, repetition, stack_id", "kernels"),
        "name, category, queue, stream, agent_type, agent_abs_index",
        "name",
        "category",
        f"CASE WHEN queue IS NULL AND stream IS NULL THEN 'operators' WHEN agent_type IS NULL THEN {_QUEUE} "
        f"ELSE agent_type || ' ' || coalesce(agent_abs_index, 0) || ' ' || {_QUEUE} END",
        runs=True,
        arrow=-1,
    ),
)


def format_counted(chosen: str, events: str) -> str:
    """Return SQL for the values of some performance counters: of a kernel at its begin, its instances summed up.

    `chosen` is the condition on the counters' rows, `events` a condition on `event_id` that holds of all their events.
    """
    of_events = " ".join(
        f"""LEFT JOIN (SELECT guid, event_id, any_value(process) AS process, min({moment}) AS begun, any_value({agent})
            AS agent FROM base_{table} WHERE {events} GROUP BY guid, event_id) AS {alias}
            ON {alias}.guid = C.guid AND {alias}.event_id = C.event_id"""  # noqa: S608 - our own words
        for table, alias, moment, agent in (
            ("dispatch", "D", '"start"', "agent_type || ' ' || agent_abs_index"),
            ("instant", "I", '"timestamp"', "CAST(NULL AS VARCHAR)"),
        )
    )
    return f"""(SELECT guid, process, name, unit, "start", sum(value) AS value, count(*) AS count FROM (
        WITH C AS (SELECT * FROM base_counter WHERE {chosen} AND value IS NOT NULL AND counter_name IS NOT NULL)
        SELECT C.guid, coalesce(S.process, D.process, I.process) AS process, coalesce(N.units, '') AS unit, C.value,
            C.counter_name || coalesce(' of ' || D.agent, '') AS name,
            CASE WHEN C.sample_id IS NULL THEN coalesce(D.begun, I.begun) ELSE S."timestamp" END AS "start"
        FROM C LEFT JOIN base_pmc N ON N.guid = C.guid AND N.id = C.counter_id {of_events}
        LEFT JOIN (SELECT guid, id, process, "timestamp" FROM base_instant
            WHERE id BETWEEN (SELECT min(sample_id) FROM C) AND (SELECT max(sample_id) FROM C)) AS S
            ON S.guid = C.guid AND S.id = C.sample_id
    ) WHERE "start" IS NOT NULL GROUP BY ALL)"""  # noqa: S608 - our own words


ROWS = 1 << 18
"""Most rows of a window, unless they all begin at one moment."""
_BINS = 1 << 12


def cut_into_windows(traces: Traces, rows: str, column: str = '"start"', most: int = ROWS) -> Iterator[range]:
    """Yield rising ranges of a column of whole numbers, which together hold every row of the relation `rows` once."""
    query = f"SELECT min({column}), max({column}), count(*) FROM {rows}"  # noqa: S608 - our own words
    first, last, count = traces.execute(query).fetchall()[0]
    if count:
        yield from _cut(traces, rows, column, range(first, last + 1), count, most)


def _cut(traces: Traces, rows: str, column: str, span: range, count: int, most: int) -> Iterator[range]:
    """Cut into bins of one width; join neighbours as far as they may be, cut those with too many rows again."""
    if count <= most or len(span) == 1:
        yield span
        return
    width = -(-len(span) // _BINS)
    query = f"""SELECT ({column} - {span.start}) // {width} AS bin, count(*) FROM
        {rows} WHERE {column} BETWEEN {span.start} AND {span.stop - 1} GROUP BY bin ORDER BY bin"""  # noqa: S608 - our own words
    begin, waiting = span.start, 0
    for number, held in traces.execute(query).fetchall():
        low, high = span.start + number * width, min(span.start + (number + 1) * width, span.stop)
        if waiting and waiting + held > most:
            yield range(begin, low)
            begin, waiting = low, 0
        if held > most:
            yield from _cut(traces, rows, column, range(low, high), held, most)
            begin = high
        else:
            waiting += held
    if waiting:
        yield range(begin, span.stop)


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
