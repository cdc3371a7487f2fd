"""The tables that every source of traces is read into, as data.

Readers fill them, sealed runs are their rows in Parquet, views are SQL over them. Times are integer nanoseconds. `guid`
names what wrote a row: one process, or a converter that wrote the rows of many. `guid` and `process` together are the
key of a process; `nid` is its node's number, `pid` the process id that the system gave it, which several may share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvmtraces.readers.rocpd_queries import DURATION, QUERIES, REFERENCES
from tvmtraces.rocpd_schema import read_columns

SEAL_VERSION = 4
"""Raised when a table gains, loses or changes a column; see `_SINCE`."""

INT, REAL, TEXT = "BIGINT", "DOUBLE", "VARCHAR"


@dataclass(frozen=True)
class TraceTable:
    """Columns with their SQL types; `start` is the column with a row's begin, `duration` with its length, where known.

    `order` is how a sealed run sorts it, so that a time window reads few row groups.
    """

    columns: Mapping[str, str]
    start: str | None = None
    duration: str | None = None
    order: tuple[str, ...] = ()
    describes: bool = False
    """True where a sealed run and its parts or sources may hold the same row, which is shown once."""


def _columns(**groups: str) -> dict[str, str]:
    """Return columns by type, written as `text="guid name"`; the types in the order given."""
    kinds = {"int": INT, "real": REAL, "text": TEXT}
    return {name: kinds[kind.rstrip("_")] for kind, names in groups.items() for name in names.split()}


_PLACE = _columns(text="guid", int="process id nid pid tid")


def _find_kind(table: str, path: str) -> str:
    """Return the type of the column at the end of a path that begins in one of RocPD's tables."""
    *links, column = ["id"] if path == DURATION else path.split(".")
    for link in links:
        table = REFERENCES[link]
    letter = "I" if column == "id" else read_columns(table)[column].letter
    return {"I": INT, "B": INT, "Z": INT, "R": REAL}.get(letter, TEXT)


def _read(name: str, *, order: str = "", describes: bool = False, **more: str) -> TraceTable:
    """Return a table that RocPD has too, with its types, and more columns."""
    query = QUERIES[name]
    columns = {"guid": TEXT, **{column: _find_kind(query.table, path) for column, path in query.paths.items()}}
    columns |= {**({"missing": INT} if query.joined else {}), **_columns(**more)}
    timed = [column for column in ("start", "timestamp") if column in columns and not describes and order]
    duration = "duration" if "duration" in columns else None
    return TraceTable(columns, next(iter(timed), None), duration, tuple(order.split()), describes)


TABLES: Mapping[str, TraceTable] = {
    "process": _read(
        "process", order="start guid", describes=True, text="night experiment engine tvm_hash facts source"
    ),
    **{
        name: _read(name, describes=True)
        for name in ("node", "agent", "thread", "queue", "stream", "track", "code_object", "symbol", "pmc")
    },
    "trial": TraceTable(
        _columns(
            text="guid",
            int="process id nid pid tid",
            text_="workload point identity engine target",
            int_="start duration",
            text__="error facts",
        ),
        start="start",
        duration="duration",
        order=("start",),
    ),
    "timing": TraceTable(
        {**_PLACE, **_columns(int="trial position timestamp elapsed_ns number cpu_ns waited")},
        start="timestamp",
        order=("timestamp", "trial", "position"),
    ),
    "operator": TraceTable(
        {**_PLACE, **_columns(int="trial repetition", text="name", int_="start duration")},
        start="start",
        duration="duration",
        order=("start",),
    ),
    "pass": TraceTable(
        _columns(text="guid", int="process nid pid trial position", text_="name", int_="timestamp duration"),
        start="timestamp",
        order=("timestamp", "trial", "position"),
    ),
    "telemetry": TraceTable(
        _columns(text="guid", int="process nid pid timestamp", text_="name unit", real="value"),
        start="timestamp",
        order=("name", "timestamp"),
    ),
    "region": _read("region", order="start", int="trial"),
    "instant": _read("instant", order="timestamp"),
    **{name: _read(name, order="start") for name in ("dispatch", "copy", "allocation", "graph_launch")},
    "argument": _read("argument"),
    "counter": _read("counter"),
    "record": TraceTable(
        _columns(
            text="experiment night tvm_hash timestamp",
            int="schema_version",
            text_="additional_info workload workload_args engine engine_version engine_config target build_config "
            "env_name hw_model runtime_config execution_config",
            real="execution_elapsed_ms_mean execution_elapsed_ms_std",
        ),
        order=("night", "workload"),
        describes=True,
    ),
    "night": TraceTable(
        _columns(text="night state", int="start duration seed", text_="commit tvm notes source"),
        start="start",
        duration="duration",
        order=("night",),
        describes=True,
    ),
    "stage": TraceTable(
        _columns(text="night kind job stage state message", int="start duration"),
        start="start",
        duration="duration",
        order=("night", "start"),
        describes=True,
    ),
}


def is_held(table: str) -> bool:
    """Return True where a table is small enough to be held as a whole."""
    return TABLES[table].describes or table == "trial"


_PROCESS_IN_VERSION_1 = f"coalesce(nid, 0) * {2**32} + pid"
"""Version 1 told the processes of one guid apart by node and process id."""
_SINCE: Mapping[int, Mapping[str, str]] = {
    3: {"timing": "cpu_ns waited"},
    4: {
        "process": "extdata missing",
        "thread": "id extdata",
        "region": "own_extdata missing thread_id",
        "instant": "track_id own_extdata missing",
        "dispatch": "queue_pid extdata call_stack line_info own_extdata missing thread_id",
        "copy": "extdata call_stack line_info own_extdata missing thread_id",
        "counter": "category stack_id parent_stack_id corr_id extdata call_stack line_info own_extdata missing "
        "sample_id timestamp xcc shader_engine shader_array wgp instance",
    },
}
"""The columns that a version added. Version 2 added `process` to whatever belongs to one."""
_BEFORE = {"queue_pid": "pid"}
"""Replacements of a column in versions before it; NULL for the others."""


def stored_columns(table: str, version: int) -> dict[str, str]:
    """Return SQL for each column of a table in a Parquet file of that seal version."""
    columns = {name: f'"{name}"' for name in TABLES[table].columns}
    for since, added in _SINCE.items():
        if version < since:
            columns |= {name: _BEFORE.get(name, "NULL") for name in added.get(table, "").split()}
    if version == 1 and "process" in columns:
        columns["process"] = _PROCESS_IN_VERSION_1
    return columns
