"""Output formats of traces: one visible row for each. Writers plug in here.

Rows that a format has no place for are counted, so that nothing is dropped in silence. Rows that came from RocPD
databases become rows of RocPD's tables again, with the same ids, references and guids. The CSV files have the names
and columns of those that rocprofv3 and AMD's `rocpd convert -f csv` write.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmtraces import convert
from tvmtraces.connection import Progress, Traces, open_traces
from tvmtraces.convert import RocpdRows
from tvmtraces.export.columns import Counted, cut_into_windows
from tvmtraces.export.events import trace_events
from tvmtraces.filters import Filters, format_literal
from tvmtraces.output import format_left_out
from tvmtraces.readers.packed import count_bytes
from tvmtraces.readers.rocpd_queries import DURATION, QUERIES, Missing, Query
from tvmtraces.rocpd_schema import ColumnKind, read_columns
from tvmtraces.sealing import seal
from tvmtraces.sources import find
from tvmtraces.tables import TABLES


@dataclass(frozen=True)
class CsvFile:
    """A file: the view that it is of, which of its rows, and its columns, `Name=SQL` each; a text in it is quoted."""

    view: str
    where: str
    columns: str


_TIMES = 'Start_Timestamp="start"; End_Timestamp="end"'
_AGENT = "'Agent ' || {0}agent_log_index"
_CALLS = "Guid=guid; Domain=category; Function=name; Process_Id=pid; Thread_Id=tid; Correlation_Id=stack_id; " + _TIMES
_REGISTERS = (
    "Scratch_Size=scratch_size; VGPR_Count=vgpr_count; Accum_VGPR_Count=accum_vgpr_count; SGPR_Count=sgpr_count"
)
_SIZES = "; ".join(
    f"{kind}_Size_{axis.upper()}={kind.lower()}_{axis}" for kind in ("Workgroup", "Grid") for axis in "xyz"
)
_QUOTED = frozenset({"Guid", "Kind", "Domain", "Function", "Operation", "Direction", "Address"})
"""Columns that AMD quotes, beside names and agents."""
_CSV_FILES: Mapping[str, CsvFile] = {
    "kernel_trace": CsvFile(
        "kernels",
        "true",
        f"Guid=guid; Kind='KERNEL_DISPATCH'; Agent_Id={_AGENT.format('')}; Queue_Id=queue_id; Stream_Id=stream_id; "
        "Thread_Id=tid; Dispatch_Id=dispatch_id; Kernel_Id=kernel_id; Kernel_Name=name; Correlation_Id=stack_id; "
        f"{_TIMES}; LDS_Block_Size=lds_size; {_REGISTERS}; {_SIZES}",
    ),
    "memory_copy_trace": CsvFile(
        "memory_copies",
        "true",
        f"Guid=guid; Kind='MEMORY_COPY'; Direction=name; Stream_Id=stream_id; Source_Agent_Id={_AGENT.format('src_')}; "
        f"Destination_Agent_Id={_AGENT.format('dst_')}; Correlation_Id=stack_id; {_TIMES}",
    ),
    "memory_allocation_trace": CsvFile(
        "memory_allocations",
        "true",
        "Guid=guid; Kind='MEMORY_ALLOCATION'; "
        "Operation='MEMORY_ALLOCATION_' || CASE type WHEN 'ALLOC' THEN 'ALLOCATE' ELSE type END; "
        f"Agent_Id=CASE type WHEN 'FREE' THEN '' ELSE {_AGENT.format('')} END; Allocation_Size=size; "
        f"Address=printf('0x%016x', address); Correlation_Id=stack_id; {_TIMES}",
    ),
    "scratch_memory_trace": CsvFile(
        "scratch_memory",
        "true",
        f"Kind='SCRATCH_MEMORY'; Operation='SCRATCH_MEMORY_' || operation; Agent_Id={_AGENT.format('')}; "
        f"Queue_Id=queue_id; Thread_Id=tid; Alloc_Flags=alloc_flags; {_TIMES}",
    ),
    **{
        f"{domain}_api_trace": CsvFile("regions", f"category LIKE '{domain.upper()}%'", _CALLS)
        for domain in ("hip", "hsa", "rccl", "rocdecode", "rocjpeg")
    },
    "marker_api_trace": CsvFile(
        "regions_and_samples",
        "category LIKE 'MARKER%'",
        _CALLS.replace(
            "Function=name", "Function=coalesce(CASE WHEN json_valid(extdata) THEN extdata ->> '$.message' END, name)"
        ),
    ),
    "counter_collection": CsvFile(
        "counters_collection",
        "true",
        f"Pid=pid; Correlation_Id=stack_id; Dispatch_Id=dispatch_id; Agent_Id={_AGENT.format('')}; Queue_Id=queue_id; "
        "Process_Id=pid; Thread_Id=tid; Grid_Size=grid_size; Kernel_Id=kernel_id; Kernel_Name=kernel_name; "
        f"Workgroup_Size=workgroup_size; LDS_Block_Size=lds_block_size; {_REGISTERS}; Counter_Name=counter_name; "
        f"Counter_Value=value; {_TIMES}",
    ),
}


def write_csv(paths: list[str], destination: Path, filters: Filters, progress: Progress | None) -> str:
    """Write a file for each kind of which there are rows, by their starts; return the description."""
    if destination.exists():
        raise DashboardError(f"{destination}: already exists. Give a new folder name.")
    written: dict[str, int] = {}
    target = destination.absolute()
    with common.folder_beside(target) as folder, Traces(find(paths), filters, progress, writable=folder) as traces:
        for title, file in _CSV_FILES.items():
            source = f"{file.view} WHERE {file.where}"
            rows = int(traces.execute(f"SELECT count(*) FROM {source}").fetchall()[0][0])  # noqa: S608 - our own words
            if rows:
                columns = dict(part.split("=", 1) for part in file.columns.split("; "))
                listed = ", ".join(f'{sql} AS "{column}"' for column, sql in columns.items())
                quoted = [name for name in columns if name in _QUOTED or name.endswith(("_Name", "Agent_Id"))]
                options = f"FORMAT csv, HEADER, FORCE_QUOTE ({', '.join(quoted)})"
                traces.copy(f'SELECT {listed} FROM {source} ORDER BY "start"', folder / f"{title}.csv", options)  # noqa: S608
                written[title] = rows
    files = ", ".join(f"{name}.csv ({rows} rows)" for name, rows in written.items())
    return files or "no file, as there are no kernels, copies, allocations or calls"


_ROWS_AT_ONCE = 1 << 15
_EVENT = "event_id."
_STRING = ".string"
_UNIQUE = {"hash": "id", "machine_id": "CAST(id AS VARCHAR)"}
"""Substitutes for missing values that must be unique."""


def find_writers(traces: Traces) -> list[str]:
    """Return the guids of those who wrote RocPD databases: processes of ours have facts, which those have not.

    Sealed runs before version 4 lack the numbers of threads, so that their rows cannot be referred to.
    """
    query = """SELECT DISTINCT guid FROM base_process WHERE facts IS NULL AND guid NOT IN (
        SELECT guid FROM base_thread WHERE id IS NULL) ORDER BY guid"""
    return [str(row[0]) for row in traces.execute(query).fetchall()]


def copy_rows(traces: Traces, guids: list[str]) -> Iterator[RocpdRows]:
    """Yield the rows of these writers, table by table, some at a time."""
    for guid in guids:
        yield from _copy_strings(traces, guid)
        for table, query in QUERIES.items():
            yield from _copy_table(traces, guid, table, query)


def _copy_strings(traces: Traces, guid: str) -> Iterator[RocpdRows]:
    """Yield all texts that others refer to, which the table `rocpd_strings` now numbers."""
    columns = {
        (table, name)
        for table, query in QUERIES.items()
        for name, path in query.paths.items()
        if path.endswith(_STRING)
    }
    texts = " UNION ".join(
        f"SELECT {name} AS string FROM base_{table} WHERE guid = {format_literal(guid)}"  # noqa: S608 - escaped
        for table, name in sorted(columns)
    )
    traces.execute(
        f"""CREATE OR REPLACE TEMP TABLE rocpd_strings AS SELECT row_number() OVER (ORDER BY string) AS id, string
        FROM ({texts}) WHERE string IS NOT NULL"""  # noqa: S608 - escaped
    )
    rows = traces.execute("SELECT id, string FROM rocpd_strings ORDER BY id").fetchall()
    yield RocpdRows(guid, "string", ["id", "string"], rows)


def _copy_table(traces: Traces, guid: str, table: str, query: Query) -> Iterator[RocpdRows]:
    key = "id" if "id" in TABLES[table].columns else "process"
    source = f"(SELECT *, {key} AS number FROM base_{table} WHERE guid = {format_literal(guid)}) AS R"  # noqa: S608 - escaped
    made = {query.table: _format_own(query)}
    if query.paths.get("stack_id", "").startswith(_EVENT):
        made["event"] = _format_event(query)
    for window in cut_into_windows(traces, source, "number", _ROWS_AT_ONCE):
        for theirs, columns in reversed(made.items()):
            kinds = read_columns(theirs)
            chosen = ", ".join(_fill(name, sql, kinds.get(name)) for name, sql in columns.items())
            joins = " ".join(
                f"LEFT JOIN rocpd_strings {name}_text ON {name}_text.string = R.{name}"
                for name, path in query.paths.items()
                if path.endswith(_STRING) and name in TABLES[table].columns
            )
            known = f"R.event_id IS NOT NULL AND coalesce(R.missing, 0) & {int(Missing.EVENT)} = 0"
            condition = known if theirs == "event" else "true"
            rows = traces.execute(
                f"""SELECT {chosen} FROM {source} {joins}
                WHERE R.number BETWEEN {window.start} AND {window.stop - 1} AND {condition} ORDER BY R.number"""  # noqa: S608
            ).fetchall()
            if rows:
                yield RocpdRows(guid, theirs, list(columns), rows)


def _format_own(query: Query) -> dict[str, str]:
    """Return the columns of RocPD's table, each as SQL over a row of ours."""
    columns = {"id": "R.number"}
    for name, path in query.paths.items():
        if path == DURATION:
            columns["end"] = 'R."start" + R.duration'
        elif "." not in path:
            columns[path] = f'R."{name}"'
        elif path.endswith(_STRING) and path.count(".") == 1:
            columns[path.removesuffix(_STRING)] = f"{name}_text.id"
    known = read_columns(query.table)
    return {name: sql for name, sql in columns.items() if name == "id" or name in known}


def _format_event(query: Query) -> dict[str, str]:
    """Return the columns of the event of a row of ours."""
    columns = {"id": "R.event_id"}
    for name, path in query.paths.items():
        if path.startswith(_EVENT):
            column = path.removeprefix(_EVENT)
            columns[column.removesuffix(_STRING)] = f"{name}_text.id" if path.endswith(_STRING) else f'R."{name}"'
    return columns


def _fill(name: str, sql: str, kind: ColumnKind | None) -> str:
    """Return the column with a value for NULL where RocPD wants one: a reference then leads nowhere."""
    if kind is None or not kind.needed:
        return f'{sql} AS "{name}"'
    empty = {"J": "'{}'", "T": "''"}.get(kind.letter, "0")
    return f'coalesce({sql}, {_UNIQUE.get(name, empty)}) AS "{name}"'


def format_others(guids: list[str]) -> str:
    """Return the condition that a row is of none of these writers."""
    listed = ", ".join(map(format_literal, guids))
    return f"(guid IS NULL OR guid NOT IN ({listed}))" if guids else ""


def count_copied(traces: Traces, guids: list[str]) -> Mapping[str, int]:
    """Count the copied rows of RocPD's tables for events."""
    listed = ", ".join(map(format_literal, guids)) or "NULL"
    tables = ("dispatch", "copy", "allocation", "graph_launch", "region", "instant", "counter", "argument")
    return {
        table: int(
            traces.execute(f"SELECT count(*) FROM base_{table} WHERE guid IN ({listed})").fetchall()[0][0]  # noqa: S608
        )
        for table in tables
    }


_OF_ROCPD = {
    "arguments of calls": "base_argument",
    "code objects": "base_code_object",
    "kernel symbols": "base_symbol",
    "descriptions of counters": "base_pmc",
}
_SHOWN = {"dispatch": "kernels", "copy": "memory_copies", "allocation": "memory_allocations", "region": "regions"}
"""Tables, and the views that leave out those of their rows that refer to what is not there."""


def count_left_out(traces: Traces, counted: Counted) -> dict[str, int]:
    """Count the rows of each kind that are neither slices nor counter values nor flows."""
    left_out = {words: _count(traces, f"SELECT count(*) FROM {table}") for words, table in _OF_ROCPD.items()}  # noqa: S608
    left_out["counter values without a moment"] = _count(traces, "SELECT count(*) FROM base_counter") - counted.rows
    left_out["rows that refer to what is not there"] = sum(
        _count(traces, f"SELECT count(*) FROM base_{table}") - _count(traces, _format_shown(table, view))  # noqa: S608
        for table, view in _SHOWN.items()
    )
    left_out["records"] = _count(traces, "SELECT count(*) FROM records")
    return left_out


def _format_shown(table: str, view: str) -> str:
    of_operators = " - (SELECT count(*) FROM base_operator)" if table == "dispatch" else ""
    return f"SELECT (SELECT count(*) FROM {view}){of_operators}"  # noqa: S608 - our own words


def _count(traces: Traces, query: str) -> int:
    return int(traces.execute(query).fetchall()[0][0])


Write = Callable[[list[str], Path, Filters, Progress | None], str]
"""Writes the traces in the paths, as filtered, to a place that does not exist yet; says in words what it wrote."""
_LARGE_BYTES = 8 << 20
"""Inputs of so many bytes that are not sealed are sealed first: a sealed run is read a part at a time."""


@dataclass(frozen=True)
class Converter:
    """A format: its description and its writer."""

    about: str
    write: Write


def _perfetto(destination: Path, traces: Traces) -> str:
    trace = trace_events(traces)
    written = convert.write_perfetto(destination, trace.events, flows=trace.flows)
    return written.describe() + format_left_out(count_left_out(traces, trace.counted))


def _rocpd(destination: Path, traces: Traces) -> str:
    """Copy the rows of RocPD unchanged, and write the rest as events."""
    writers = find_writers(traces)
    trace = trace_events(traces, format_others(writers))
    others = copy_rows(traces, writers)
    written = convert.write_rocpd(destination, trace.events, processes=trace.processes, others=others)
    copied = sum(count_copied(traces, writers).values())
    records = traces.execute("SELECT count(*) FROM records").fetchall()[0][0]
    also = f", and {copied} rows of RocPD as they were" if copied else ""
    return written.describe() + also + format_left_out({"flows": len(trace.flows), "records": records})


def _convert(write_events: Callable[[Path, Traces], str]) -> Write:
    """Return a converter of a format that is written event by event."""

    def write(paths: list[str], destination: Path, filters: Filters, progress: Progress | None) -> str:
        with _open(paths, destination, filters, progress) as traces:
            return write_events(destination, traces)

    return write


@contextmanager
def _open(paths: list[str], destination: Path, filters: Filters, progress: Progress | None) -> Iterator[Traces]:
    """Open the traces; large ones by way of a sealed run beside the destination."""
    sources = [source for source in find(paths) if source.kind != "sealed"]
    parent = destination.absolute().parent
    if sum(count_bytes(source.path) for source in sources) < _LARGE_BYTES or not parent.is_dir():
        with open_traces(paths, filters=filters, progress=progress) as traces:
            yield traces
        return
    with tempfile.TemporaryDirectory(prefix=".convert.", dir=parent) as folder:
        run = seal(paths, Path(folder) / "sealed", filters=filters, progress=progress)
        with open_traces(run.path) as traces:
            yield traces


CONVERTERS: Mapping[str, Converter] = {
    "perfetto": Converter(
        "a trace for ui.perfetto.dev; further files where one would be too large", _convert(_perfetto)
    ),
    "rocpd": Converter("a RocPD database, which AMD's tools open", _convert(_rocpd)),
    "csv": Converter("a folder of the CSV files that rocprofv3 writes", write_csv),
}
