# ruff: noqa: S608 - these queries are our own words
"""The tables and views of a RocPD database, schema 3.0.3, as data.

Names and columns are those of AMD's package (https://github.com/ROCm/rocm-systems, rocprofiler-sdk-rocpd), so that it
and whatever else reads such databases finds what it looks for. A table's name carries the suffix of its writer; a view
without the suffix stands for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

SCHEMA_VERSION = "3.0.3"

_TYPES = {
    "I": "INTEGER",
    "B": "BIGINT",
    "T": "TEXT",
    "R": "REAL",
    "J": "JSONB DEFAULT '{}' NOT NULL",
    "E": "TEXT DEFAULT ''",
    "Z": "INTEGER NOT NULL DEFAULT 0",
}
"""What a column's letter stands for; behind it `!` is NOT NULL, `*` UNIQUE, `>table` a reference to a table's id."""

_PLACE = "nid:I!>info_node pid:I!>info_process"
_ON_THREAD = f"{_PLACE} tid:I>info_thread"
_SPAN = "start:B! end:B!"
_QUEUED = "queue_id:I>info_queue stream_id:I>info_stream"
_CAUSE = "region_name_id:I>string event_id:I>event extdata:J"
_SIZES = " ".join(f"{kind}_size_{axis}:I!" for kind in ("workgroup", "grid") for axis in "xyz")

TABLES: Mapping[str, str] = {
    "metadata": "tag:T! value:T!",
    "string": "string:T!*",
    "info_node": ("hash:B!* machine_id:T!* system_name:T hostname:T release:T version:T hardware_name:T domain_name:T"),
    "info_process": ("nid:I!>info_node ppid:I pid:I! init:B fini:B start:B end:B command:T environment:J extdata:J"),
    "info_thread": "nid:I!>info_node ppid:I pid:I!>info_process tid:I! name:T start:B end:B extdata:J",
    "info_agent": (
        f"{_PLACE} type:T absolute_index:I logical_index:I type_index:I uuid:I name:T model_name:T vendor_name:T "
        "product_name:T user_name:T extdata:J"
    ),
    "info_queue": f"{_PLACE} name:T extdata:J",
    "info_stream": f"{_PLACE} name:T extdata:J",
    "info_pmc": (
        f"{_PLACE} agent_id:I>info_agent target_arch:T event_code:I instance_id:I name:T! symbol:T! description:T "
        "long_description:E component:T units:E value_type:T block:T expression:T is_constant:I is_derived:I "
        "spm_support:I extdata:J"
    ),
    "info_code_object": (
        f"{_PLACE} agent_id:I>info_agent uri:T load_base:B load_size:B load_delta:B storage_type:T extdata:J"
    ),
    "info_kernel_symbol": (
        f"{_PLACE} code_object_id:I!>info_code_object kernel_name:T display_name:T kernel_object:I "
        "kernarg_segment_size:I kernarg_segment_alignment:I group_segment_size:I private_segment_size:I sgpr_count:I "
        "arch_vgpr_count:I accum_vgpr_count:I extdata:J"
    ),
    "track": "nid:I!>info_node pid:I>info_process tid:I>info_thread name_id:I>string extdata:J",
    "event": ("category_id:I>string stack_id:I parent_stack_id:I correlation_id:I call_stack:J line_info:J extdata:J"),
    "arg": "event_id:I!>event position:I! type:T! name:T! value:T extdata:J",
    "pmc_event": (
        "event_id:I>event sample_id:I>sample pmc_id:I!>info_pmc value:R xcc:I shader_engine:I shader_array:I wgp:I "
        "instance:I extdata:J"
    ),
    "region": f"{_PLACE} tid:I!>info_thread {_SPAN} name_id:I!>string event_id:I>event extdata:J",
    "sample": "track_id:I!>track timestamp:B! event_id:I>event extdata:J",
    "kernel_dispatch": (
        f"{_ON_THREAD} agent_id:I!>info_agent kernel_id:I!>info_kernel_symbol dispatch_id:I! queue_id:I!>info_queue "
        f"stream_id:I!>info_stream {_SPAN} private_segment_size:I group_segment_size:I {_SIZES} graph_exec_id:Z "
        f"graph_node_id:Z {_CAUSE}"
    ),
    "memory_copy": (
        f"{_ON_THREAD} {_SPAN} name_id:I!>string dst_agent_id:I>info_agent dst_address:I src_agent_id:I>info_agent "
        f"src_address:I size:I! {_QUEUED} graph_exec_id:Z graph_node_id:Z {_CAUSE}"
    ),
    "memory_allocate": (
        f"{_ON_THREAD} agent_id:I>info_agent type:T level:T {_SPAN} address:I size:I! {_QUEUED} event_id:I>event "
        "extdata:J"
    ),
    "graph_launch": (
        f"{_ON_THREAD} agent_id:I>info_agent queue_id:I>info_queue {_SPAN} graph_exec_id:I! kernel_dispatch_count:Z "
        "event_id:I>event extdata:J"
    ),
    "event_operation": (
        f"{_ON_THREAD} agent_id:I!>info_agent event_obj:I! type_id:I! issue_id:I! queue_id:I!>info_queue "
        f"stream_id:I!>info_stream {_SPAN} type:T event_id:I>event"
    ),
}


def make_tables(suffix: str, guid: str) -> Iterator[str]:
    """What makes the empty tables of one writer; `suffix` and `guid` hold no quote."""
    for table, columns in TABLES.items():
        own = [] if table == "metadata" else [f"guid TEXT DEFAULT '{guid}' NOT NULL"]
        parts = ["id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", *own, *_format_columns(columns, suffix)]
        yield f'CREATE TABLE "rocpd_{table}{suffix}" ({", ".join(parts)})'


def make_views(suffixes: Sequence[str]) -> Iterator[str]:
    """What makes a view for each table, over those of all writers, and the views for people."""
    for table in TABLES:
        parts = " UNION ALL ".join(f'SELECT * FROM "rocpd_{table}{suffix}"' for suffix in suffixes)
        yield f"CREATE VIEW rocpd_{table} AS {parts}"
    for name, sql in VIEWS.items():
        yield f"CREATE VIEW {name} AS {sql}"


@dataclass(frozen=True)
class ColumnKind:
    """A column of a table: its letter in `_TYPES`, whether it must have a value, the table that its numbers are of."""

    letter: str
    needed: bool
    table: str


def read_columns(table: str) -> dict[str, ColumnKind]:
    """The columns of a table, without id and guid."""
    found = {}
    for column in TABLES[table].split():
        name, _, kind = column.partition(":")
        marks, _, referred = kind[1:].partition(">")
        found[name] = ColumnKind(kind[0], "!" in marks or "NOT NULL" in _TYPES[kind[0]], referred)
    return found


def _format_columns(columns: str, suffix: str) -> Iterator[str]:
    references = []
    for column in columns.split():
        name, _, kind = column.partition(":")
        marks, _, table = kind[1:].partition(">")
        constraints = " ".join(word for mark, word in (("!", "NOT NULL"), ("*", "UNIQUE")) if mark in marks)
        yield f'"{name}" {_TYPES[kind[0]]} {constraints}'.strip()
        if table:
            references.append(f'FOREIGN KEY ("{name}") REFERENCES "rocpd_{table}{suffix}" (id) ON UPDATE CASCADE')
    yield from references


def _join(alias: str, *joins: tuple[str, str, str]) -> str:
    """Joins by id within one writer's rows."""
    return " ".join(
        f"{'LEFT JOIN' if table.endswith('?') else 'JOIN'} rocpd_{table.rstrip('?')} {other} "
        f"ON {other}.id = {on} AND {other}.guid = {alias}.guid"
        for table, other, on in joins
    )


_CATEGORY = "(SELECT string FROM rocpd_string C WHERE C.id = E.category_id AND C.guid = E.guid) AS category"
_STACK = "E.stack_id, E.parent_stack_id, E.correlation_id AS corr_id"
_SAID = "E.extdata, E.call_stack, E.line_info"
_NODE = "N.machine_id, N.system_name, N.hostname, N.release AS system_release, N.version AS system_version"
_AGENT = (
    "{0}.absolute_index AS {1}agent_abs_index, {0}.logical_index AS {1}agent_log_index, "
    "{0}.type_index AS {1}agent_type_index, {0}.type AS {1}agent_type"
)
_SAMPLES = f"""SELECT R.id, R.guid, {_CATEGORY}, S.string AS name, K.nid, P.pid, T.tid, {{0}},
    R.event_id, {_STACK}, {_SAID}
    FROM rocpd_sample R {_join("R", ("track", "K", "R.track_id"), ("event", "E", "R.event_id"))}
    {_join("R", ("info_process", "P", "K.pid"), ("info_thread", "T", "K.tid"), ("string?", "S", "K.name_id"))}"""

_ALLOCATED = _join(
    "M", ("info_agent?", "A", "M.agent_id"), ("info_queue?", "Q", "M.queue_id"), ("event", "E", "M.event_id"),
    ("info_process", "P", "M.pid"), ("info_thread", "T", "M.tid"),
)  # fmt: skip
_GRID, _GROUP = (", ".join(f"K.{kind}_size_{axis}" for axis in "xyz") for kind in ("grid", "workgroup"))
_COUNTED = f"""C.guid, K.dispatch_id, K.kernel_id, E.id AS event_id, E.correlation_id, E.stack_id, E.parent_stack_id,
    P.pid, T.tid, K.agent_id, {_AGENT.format("A", "")}, K.queue_id, {_GRID},
    K.grid_size_x * K.grid_size_y * K.grid_size_z AS grid_size, S.display_name AS kernel_name,
    R.string AS kernel_region, {_GROUP},
    K.workgroup_size_x * K.workgroup_size_y * K.workgroup_size_z AS workgroup_size,
    K.group_segment_size AS lds_block_size, K.private_segment_size AS scratch_size, S.arch_vgpr_count AS vgpr_count,
    S.accum_vgpr_count, S.sgpr_count, I.name AS counter_name, I.symbol AS counter_symbol, I.component, I.description,
    I.block, I.expression, I.value_type, I.id AS counter_id"""
_OF_KERNELS = f"""rocpd_pmc_event C {_join("C", ("info_pmc", "I", "C.pmc_id"), ("event", "E", "C.event_id"))}
    JOIN rocpd_kernel_dispatch K ON K.event_id = C.event_id AND K.guid = C.guid
    {_join("K", ("info_agent", "A", "K.agent_id"), ("info_kernel_symbol", "S", "K.kernel_id"))}
    {_join("K", ("info_process", "P", "K.pid"), ("info_thread", "T", "K.tid"))}
    {_join("K", ("string?", "R", "K.region_name_id"))}"""


def _sum_up(*tables: str) -> str:
    """Calls and microseconds by name; what has no name is part of the whole alone."""
    named = {"kernel_dispatch": ("info_kernel_symbol", "display_name", "kernel_id")}
    parts = []
    for table in tables:
        names, name, number = named.get(table, ("string", "string", "name_id"))
        joined = f"rocpd_{table} K JOIN rocpd_{names} S ON S.id = K.{number} AND S.guid = K.guid"
        parts.append(f'SELECT S.{name} AS name, K."end" - K.start AS duration FROM {joined}')
    every = " UNION ALL ".join(f'SELECT "end" - start AS duration FROM rocpd_{table}' for table in tables)
    return f"""SELECT name, count(*) AS total_calls, sum(duration) / 1000.0 AS total_duration,
        sum(duration) / count(*) / 1000.0 AS average,
        sum(duration) * 100.0 / (SELECT sum(duration) FROM ({every})) AS percentage
        FROM ({" UNION ALL ".join(parts)}) GROUP BY name ORDER BY total_duration DESC"""


def _extract(alias: str, paths: str) -> str:
    """What the JSON of a row holds, each as its path, or as the name behind it."""
    parts = [path.split() for path in paths.split(", ")]
    return ", ".join(f"json_extract({alias}.extdata, '$.{part[0]}') AS {part[-1]}" for part in parts)


VIEWS: Mapping[str, str] = {
    "processes": f"""SELECT N.id AS nid, {_NODE}, P.guid, P.ppid, P.pid, P.init, P.start, P."end", P.fini, P.command
        FROM rocpd_info_process P {_join("P", ("info_node", "N", "P.nid"))}""",
    "threads": f"""SELECT N.id AS nid, {_NODE}, P.guid, P.ppid, P.pid, T.tid, T.start, T."end", T.name
        FROM rocpd_info_thread T {_join("T", ("info_process", "P", "T.pid"), ("info_node", "N", "T.nid"))}""",
    "regions": f"""SELECT R.id, R.guid, {_CATEGORY}, S.string AS name, R.nid, P.pid, T.tid, R.start, R."end",
        R."end" - R.start AS duration, R.event_id, {_STACK}, {_SAID}
        FROM rocpd_region R {_join("R", ("event", "E", "R.event_id"), ("string", "S", "R.name_id"))}
        {_join("R", ("info_process", "P", "R.pid"), ("info_thread", "T", "R.tid"))}""",
    "samples": _SAMPLES.format("R.timestamp"),
    "sample_regions": _SAMPLES.format('R.timestamp AS start, R.timestamp AS "END", 0 AS duration'),
    "regions_and_samples": "SELECT * FROM regions UNION ALL SELECT * FROM sample_regions",
    "kernels": f"""SELECT K.id, K.guid, T.tid, {_CATEGORY}, R.string AS region, S.display_name AS name, K.nid, P.pid,
        {_AGENT.format("A", "")}, S.code_object_id, K.kernel_id, K.dispatch_id, K.stream_id, K.queue_id,
        K.graph_exec_id, K.graph_node_id, Q.name AS queue, M.name AS stream, K.start, K."end",
        K."end" - K.start AS duration,
        {", ".join(f"K.grid_size_{axis} AS grid_{axis}" for axis in "xyz")},
        {", ".join(f"K.workgroup_size_{axis} AS workgroup_{axis}" for axis in "xyz")},
        K.group_segment_size AS lds_size, K.private_segment_size AS scratch_size, S.arch_vgpr_count AS vgpr_count,
        S.accum_vgpr_count, S.sgpr_count, S.group_segment_size AS static_lds_size,
        S.private_segment_size AS static_scratch_size, K.event_id, {_STACK}
        FROM rocpd_kernel_dispatch K {_join("K", ("info_agent", "A", "K.agent_id"), ("event", "E", "K.event_id"))}
        {_join("K", ("string", "R", "K.region_name_id"), ("info_kernel_symbol", "S", "K.kernel_id"))}
        {_join("K", ("info_stream?", "M", "K.stream_id"), ("info_queue", "Q", "K.queue_id"))}
        {_join("K", ("info_process", "P", "Q.pid"), ("info_thread", "T", "K.tid"))}""",
    "memory_copies": f"""SELECT M.id, M.guid, {_CATEGORY}, M.nid, P.pid, T.tid, M.start, M."end",
        M."end" - M.start AS duration, S.string AS name, R.string AS region_name, M.stream_id, M.queue_id,
        M.graph_exec_id, M.graph_node_id, W.name AS stream_name, Q.name AS queue_name, M.size, D.name AS dst_device,
        {_AGENT.format("D", "dst_")}, M.dst_address, F.name AS src_device, {_AGENT.format("F", "src_")}, M.src_address,
        {_STACK} FROM rocpd_memory_copy M {_join("M", ("string", "S", "M.name_id"))}
        {_join("M", ("string?", "R", "M.region_name_id"))}
        {_join("M", ("info_agent", "D", "M.dst_agent_id"), ("info_agent", "F", "M.src_agent_id"))}
        {_join("M", ("info_queue?", "Q", "M.queue_id"), ("info_stream?", "W", "M.stream_id"))}
        {_join("M", ("event", "E", "M.event_id"), ("info_process", "P", "M.pid"), ("info_thread", "T", "M.tid"))}""",
    "memory_allocations": f"""SELECT M.id, M.guid, {_CATEGORY}, M.nid, P.pid, T.tid, M.start, M."end",
        M."end" - M.start AS duration, M.type, M.level, A.name AS agent_name, {_AGENT.format("A", "")}, M.address,
        M.size, M.queue_id, Q.name AS queue_name, M.stream_id, W.name AS stream_name, {_STACK}
        FROM rocpd_memory_allocate M {_ALLOCATED} {_join("M", ("info_stream?", "W", "M.stream_id"))}""",
    "scratch_memory": f"""SELECT M.id, M.guid, M.nid, P.pid, M.type AS operation, A.name AS agent_name,
        {_AGENT.format("A", "")}, M.queue_id, T.tid, json_extract(M.extdata, '$.flags') AS alloc_flags, M.start,
        M."end", M."end" - M.start AS duration, M.size, M.address, E.correlation_id, {_STACK}, {_CATEGORY},
        E.extdata AS event_extdata
        FROM rocpd_memory_allocate M {_ALLOCATED} WHERE M.level = 'SCRATCH' ORDER BY M.start""",
    "counters_collection": f"""SELECT min(C.id) AS id, {_COUNTED}, sum(C.value) AS value, K.start, K."end",
        I.is_constant, I.is_derived, K."end" - K.start AS duration, {_CATEGORY}, K.nid, E.extdata, S.code_object_id
        FROM {_OF_KERNELS} WHERE C.sample_id IS NULL GROUP BY C.guid, E.id, I.name, K.agent_id""",
    "pmc_info": f"""SELECT I.id, I.guid, I.nid, P.pid, A.absolute_index AS agent_abs_index, I.is_constant, I.is_derived,
        I.name, I.description, I.block, I.expression, I.symbol, I.units, I.component, I.value_type
        FROM rocpd_info_pmc I {_join("I", ("info_agent", "A", "I.agent_id"), ("info_process", "P", "I.pid"))}""",
    "pmc_events": f"""SELECT C.id, C.guid, C.pmc_id, E.id AS event_id, {_CATEGORY}, S.display_name AS name, K.nid,
        P.pid, K.dispatch_id, K.start, K."end", K."end" - K.start AS duration, I.name AS counter_name,
        C.value AS counter_value
        FROM rocpd_pmc_event C {_join("C", ("info_pmc", "I", "C.pmc_id"), ("event", "E", "C.event_id"))}
        JOIN rocpd_kernel_dispatch K ON K.event_id = C.event_id AND K.guid = C.guid
        {_join("K", ("info_process", "P", "K.pid"), ("info_kernel_symbol?", "S", "K.kernel_id"))}""",
    "events_args": f"""SELECT E.id AS event_id, {_CATEGORY}, E.stack_id, E.parent_stack_id, E.correlation_id,
        A.position AS arg_position, A.type AS arg_type, A.name AS arg_name, A.value AS arg_value, E.call_stack,
        E.line_info, A.extdata FROM rocpd_arg A {_join("A", ("event", "E", "A.event_id"))}""",
    "region_args": f"""SELECT R.id, R.guid, R.nid, P.pid, A.type, A.name, A.value, A.position
        FROM rocpd_region R {_join("R", ("event", "E", "R.event_id"), ("info_process", "P", "R.pid"))}
        JOIN rocpd_arg A ON A.event_id = E.id AND A.guid = R.guid""",
    "stream_args": f"""SELECT A.id AS argument_id, A.event_id, A.position AS arg_position, A.type AS arg_type,
        A.value AS arg_value, S.id AS stream_id, S.nid, P.pid, S.name AS stream_name, S.extdata
        FROM rocpd_arg A {_join("A", ("info_stream", "S", "json_extract(A.extdata, '$.stream_id')"))}
        {_join("S", ("info_process", "P", "S.pid"))} WHERE A.name = 'stream'""",
    "code_objects": f"""SELECT C.id, C.guid, C.nid, P.pid, A.absolute_index AS agent_abs_index, C.uri, C.load_base,
        C.load_size, C.load_delta, C.storage_type AS storage_type_str,
        {_extract("C", "size code_object_size, storage_type, memory_base, memory_size")}
        FROM rocpd_info_code_object C {_join("C", ("info_agent", "A", "C.agent_id"))}
        {_join("C", ("info_process", "P", "C.pid"))}""",
    "kernel_symbols": f"""SELECT S.id, S.guid, S.nid, P.pid, S.code_object_id, S.kernel_name, S.display_name,
        S.kernel_object, S.kernarg_segment_size, S.kernarg_segment_alignment, S.group_segment_size,
        S.private_segment_size, S.sgpr_count, S.arch_vgpr_count, S.accum_vgpr_count,
        {_extract("S", "size kernel_symbol_size, kernel_id, kernel_code_entry_byte_offset, formatted_kernel_name")},
        {_extract("S", "demangled_kernel_name, truncated_kernel_name, kernel_address.handle kernel_address")}
        FROM rocpd_info_kernel_symbol S {_join("S", ("info_process", "P", "S.pid"))}""",
    "top_kernels": _sum_up("kernel_dispatch"),
    "top": _sum_up("kernel_dispatch", "memory_copy", "region"),
    "busy": """SELECT G.agent_id, A.type, G.GpuTime, W.WallTime, G.GpuTime * 1.0 / W.WallTime AS Busy
        FROM (SELECT agent_id, guid, sum(taken) AS GpuTime FROM (
            SELECT agent_id, guid, "end" - start AS taken FROM rocpd_kernel_dispatch
            UNION ALL SELECT dst_agent_id, guid, "end" - start FROM rocpd_memory_copy) GROUP BY agent_id, guid) G
        CROSS JOIN (SELECT max("end") - min(start) AS WallTime FROM (SELECT start, "end" FROM rocpd_kernel_dispatch
            UNION ALL SELECT start, "end" FROM rocpd_memory_copy)) W
        JOIN rocpd_info_agent A ON A.id = G.agent_id AND A.guid = G.guid""",
}
