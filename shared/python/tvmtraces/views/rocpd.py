"""RocPD's views: its names, its columns in its order, its rows; ours stand behind them."""

from __future__ import annotations

from collections.abc import Mapping

from tvmtraces.views.missing import Missing
from tvmtraces.views.view import END, EVENT, View, select, where_joined

_SAID = "extdata call_stack line_info"
_AGENT = "agent_abs_index agent_log_index agent_type_index agent_type"
_SIZES = "grid_x grid_y grid_z workgroup_x workgroup_y workgroup_z lds_size scratch_size"
_KERNELS = (
    f"id guid tid category region name nid pid {_AGENT} code_object_id kernel_id dispatch_id stream_id queue_id "
    f"graph_exec_id graph_node_id queue stream start end duration {_SIZES} vgpr_count accum_vgpr_count sgpr_count "
    f"static_lds_size static_scratch_size {EVENT} trial repetition agent_id process"
)
_REGIONS = f"id guid category name nid pid tid start end duration {EVENT} {_SAID} trial process"
_SAMPLES = (
    f"id guid category name nid pid tid timestamp {EVENT} {_SAID} trial position elapsed_ns number process "
    "cpu_ns waited"
)
_COPIES = (
    "id guid category nid pid tid start end duration name region_name stream_id queue_id graph_exec_id graph_node_id "
    "stream_name queue_name size dst_device dst_agent_abs_index dst_agent_log_index dst_agent_type_index "
    "dst_agent_type dst_address src_device src_agent_abs_index src_agent_log_index src_agent_type_index "
    f"src_agent_type src_address {EVENT} dst_agent_id src_agent_id process"
)
_ALLOCATIONS = (
    f"id guid category nid pid tid start end duration type level agent_name {_AGENT} address size queue_id queue_name "
    "stream_id stream_name stack_id parent_stack_id corr_id event_id agent_id process"
)
_SCRATCH = (
    f"id guid nid pid operation agent_name {_AGENT} queue_id tid alloc_flags start end duration size address "
    "correlation_id stack_id parent_stack_id corr_id category event_extdata event_id process"
)
_GRAPHS = (
    f"id guid nid pid tid agent_id {_AGENT} queue_id queue name start end duration graph_exec_id "
    f"kernel_dispatch_count {EVENT} process"
)
_CODE_OBJECTS = (
    "id guid nid pid agent_abs_index uri load_base load_size load_delta storage_type_str code_object_size storage_type "
    "memory_base memory_size extdata process"
)
_SYMBOLS = (
    "id guid nid pid code_object_id kernel_name display_name kernel_object kernarg_segment_size "
    "kernarg_segment_alignment group_segment_size private_segment_size sgpr_count arch_vgpr_count accum_vgpr_count "
    "kernel_symbol_size kernel_id kernel_code_entry_byte_offset formatted_kernel_name demangled_kernel_name "
    "truncated_kernel_name kernel_address extdata process"
)
_PMC = (
    "id guid nid pid agent_abs_index is_constant is_derived name description block expression symbol units component "
    "value_type agent_id process"
)
_JOINED = Missing.EVENT | Missing.PROCESS | Missing.THREAD
_OF_KERNELS = Missing.EVENT | Missing.THREAD | Missing.NAME | Missing.AGENT | Missing.REGION | Missing.QUEUE
_OPERATOR = {
    **END,
    "category": "'operator'",
    **dict.fromkeys((*_AGENT.split()[:3], "agent_id"), "0"),
    "agent_type": "'CPU'",
}
_TIMING = {"category": "'sample'", "name": "W.workload"}
_TIMING_SOURCE = "base_timing S LEFT JOIN base_trial W ON W.guid = S.guid AND W.process = S.process AND W.id = S.trial"


def _from_json(column: str, path: str, kind: str = "VARCHAR") -> str:
    return f"TRY_CAST(CASE WHEN json_valid({column}) THEN json_extract_string({column}, '$.{path}') END AS {kind})"


def _both_samples(names: str, timed: Mapping[str, str], instant: Mapping[str, str]) -> str:
    rows = f"{select('instant', names, instant)} WHERE {where_joined(_JOINED | Missing.TRACK)}"
    return rows + " UNION ALL " + select("timing", names, {**timed, **_TIMING}, source=_TIMING_SOURCE, prefix="S.")


_REGION_ROWS = f"{select('region', _REGIONS, END)} WHERE {where_joined(_JOINED | Missing.NAME)}"
_SAMPLE_REGION_ROWS = _both_samples(
    _REGIONS,
    {"start": 'S."timestamp"', "end": 'S."timestamp"', "duration": "0"},
    {"start": '"timestamp"', "end": '"timestamp"', "duration": "0"},
)


def _top(spans: str) -> str:
    """Of each name; what has none is part of the whole alone."""
    return f"""
    SELECT name, total_calls, total / 1000.0 AS total_duration, (total // total_calls) / 1000.0 AS average,
        total * 100.0 / everything AS percentage
    FROM (SELECT name, named, count(*) AS total_calls, sum(duration) AS total, sum(sum(duration)) OVER () AS everything
        FROM ({spans}) AS spans GROUP BY name, named) AS sums
    WHERE named ORDER BY total_duration DESC, name"""  # noqa: S608 - our own words


def _spans(*tables: str) -> str:
    named = where_joined(Missing.NAME)
    parts = [f"SELECT name, duration, {named} AS named FROM base_{table}" for table in tables]  # noqa: S608 - ours
    return " UNION ALL ".join([*parts, "SELECT name, duration, true FROM base_operator"])


def _summarize(rows: str, name: str) -> str:
    """As rocprof-systems sums up the rows of a view by name."""
    return f"""
    SELECT name, count(*) AS calls, sum(duration) AS "DURATION (nsec)",
        sum(duration::DOUBLE * duration) AS "SQR (nsec)", sum(duration) * 1.0 / count(*) AS "AVERAGE (nsec)",
        sum(duration)::DOUBLE / sum(sum(duration)) OVER () * 100 AS "PERCENT (INC)", min(duration) AS "MIN (nsec)",
        max(duration) AS "MAX (nsec)", var_samp(duration) AS "VARIANCE", stddev_samp(duration) AS "STD_DEV"
    FROM (SELECT {name} AS name, duration FROM ({rows})) AS named WHERE name IS NOT NULL GROUP BY name"""  # noqa: S608


_COUNTED = """C.guid, D.dispatch_id, D.kernel_id, C.event_id, C.corr_id AS correlation_id, C.stack_id,
    C.parent_stack_id, D.pid, D.tid, D.agent_id, D.agent_abs_index, D.agent_log_index, D.agent_type_index,
    D.agent_type, D.queue_id, D.grid_x AS grid_size_x, D.grid_y AS grid_size_y, D.grid_z AS grid_size_z,
    D.grid_x * D.grid_y * D.grid_z AS grid_size, D.name AS kernel_name, D.region AS kernel_region,
    D.workgroup_x AS workgroup_size_x, D.workgroup_y AS workgroup_size_y, D.workgroup_z AS workgroup_size_z,
    D.workgroup_x * D.workgroup_y * D.workgroup_z AS workgroup_size, D.lds_size AS lds_block_size, D.scratch_size,
    D.vgpr_count, D.accum_vgpr_count, D.sgpr_count, C.counter_name, C.counter_symbol, C.component, C.description,
    C.block, C.expression, C.value_type, C.counter_id"""
_OF_DISPATCHES = f"""base_counter C JOIN base_dispatch D ON D.guid = C.guid AND D.event_id = C.event_id
    WHERE {where_joined(Missing.EVENT | Missing.COUNTER, "C.")}
        AND {where_joined(Missing.AGENT | Missing.NAME | Missing.PROCESS | Missing.THREAD, "D.")}"""

_KERNEL_ROWS = (
    f"{select('dispatch', _KERNELS, {**END, 'pid': 'queue_pid'})} "
    f"WHERE {where_joined(_OF_KERNELS)}"
    f" UNION ALL {select('operator', _KERNELS, _OPERATOR)}"
)
_COPY_ROWS = (
    f"{select('copy', _COPIES, END)} WHERE {where_joined(_JOINED | Missing.NAME | Missing.AGENT | Missing.SOURCE)}"
)
_ALLOCATION_ROWS = f"{select('allocation', _ALLOCATIONS, END)} WHERE {where_joined(_JOINED)}"

ROCPD_VIEWS: Mapping[str, View] = {
    "kernels": View("one call of an operator, of a profiled run, or one GPU kernel", _KERNEL_ROWS),
    "regions": View("a named span of a process, or an API call", _REGION_ROWS),
    "samples": View("one timed value, or an instant", _both_samples(_SAMPLES, {}, {})),
    "sample_regions": View("the same with the columns of regions", _SAMPLE_REGION_ROWS),
    "regions_and_samples": View("both", f"{_REGION_ROWS} UNION ALL {_SAMPLE_REGION_ROWS}"),
    "memory_copies": View("a copy between devices", _COPY_ROWS),
    "memory_allocations": View("memory that was allocated or freed", _ALLOCATION_ROWS),
    "scratch_memory": View(
        "the same of scratch memory",
        select(
            "allocation",
            _SCRATCH,
            {
                **END,
                "operation": "type",
                "alloc_flags": _from_json("own_extdata", "flags"),
                "correlation_id": "corr_id",
                "event_extdata": "extdata",
            },
        )
        + f" WHERE level = 'SCRATCH' AND {where_joined(_JOINED)} ORDER BY \"start\"",
    ),
    "graph_launches": View(
        "a launch of a HIP graph",
        select("graph_launch", _GRAPHS, {**END, "name": "'Graph Execution'"}) + f" WHERE {where_joined(_JOINED)}",
    ),
    "counters_collection": View(
        "a counter of a kernel, its instances summed up",
        f"""
    SELECT C.id, {_COUNTED}, sum(C.value) OVER same AS value, D."start", D."start" + D.duration AS "end",
        C.is_constant, C.is_derived, D.duration, C.category, D.nid, C.extdata, D.code_object_id, D.process
    FROM {_OF_DISPATCHES} AND C.sample_id IS NULL
    WINDOW same AS (PARTITION BY C.guid, D.event_id, C.counter_name, D.agent_id)
    QUALIFY row_number() OVER (PARTITION BY C.guid, D.event_id, C.counter_name, D.agent_id ORDER BY C.id) = 1""",  # noqa: S608
    ),
    "spm_counters": View(
        "a value of a counter that was streamed while a kernel ran",
        f"""
    SELECT C.id, {_COUNTED}, C.xcc, C.shader_engine, C.instance, C.value, C."timestamp", C.is_constant, C.is_derived,
        C.category, D.nid, C.extdata, D.code_object_id, C.shader_array, C.wgp, D.process
    FROM {_OF_DISPATCHES} AND C.sample_id IS NOT NULL AND {where_joined(Missing.SAMPLE, "C.")}""",  # noqa: S608
    ),
    "pmc_info": View(
        "what a counter counts",
        f"{select('pmc', _PMC, {})} WHERE {where_joined(Missing.AGENT | Missing.PROCESS)}",
    ),
    "pmc_events": View(
        "a value of a counter of a kernel",
        f"""
    SELECT C.id, C.guid, C.counter_id AS pmc_id, C.event_id, C.category, D.name, D.nid, D.pid, D.dispatch_id,
        D."start", D."start" + D.duration AS "end", D.duration, C.counter_name, C.value AS counter_value, D.process
    FROM base_counter C JOIN base_dispatch D ON D.guid = C.guid AND D.event_id = C.event_id
    WHERE {where_joined(Missing.EVENT | Missing.COUNTER, "C.")} AND {where_joined(Missing.PROCESS, "D.")}""",  # noqa: S608
    ),
    "events_args": View(
        "an argument of a call",
        f"""
    SELECT event_id, category, stack_id, parent_stack_id, corr_id AS correlation_id, position AS arg_position,
        type AS arg_type, name AS arg_name, value AS arg_value, call_stack, line_info, own_extdata AS extdata, guid
    FROM base_argument WHERE {where_joined(Missing.EVENT)}""",  # noqa: S608 - our own words
    ),
    "region_args": View(
        "an argument of a region",
        f"""
    SELECT R.id, R.guid, R.nid, R.pid, A.type, A.name, A.value, A.position, R.process
    FROM base_region R JOIN base_argument A ON A.guid = R.guid AND A.event_id = R.event_id
    WHERE {where_joined(Missing.EVENT | Missing.PROCESS, "R.")}""",  # noqa: S608 - our own words
    ),
    "stream_args": View(
        "an argument that is a stream",
        f"""
    SELECT A.id AS argument_id, A.event_id, A.position AS arg_position, A.type AS arg_type, A.value AS arg_value,
        S.id AS stream_id, S.nid, S.pid, S.name AS stream_name, S.extdata, A.guid, S.process
    FROM base_argument A JOIN base_stream S
        ON S.guid = A.guid AND S.id = {_from_json("A.own_extdata", "stream_id", "BIGINT")}
    WHERE A.name = 'stream' AND {where_joined(Missing.PROCESS, "S.")}""",  # noqa: S608 - our own words
    ),
    "code_objects": View(
        "code that was loaded onto a device",
        select(
            "code_object",
            _CODE_OBJECTS,
            {
                "storage_type_str": "storage_type",
                "code_object_size": _from_json("extdata", "size", "BIGINT"),
                "storage_type": _from_json("extdata", "storage_type"),
                "memory_base": _from_json("extdata", "memory_base", "BIGINT"),
                "memory_size": _from_json("extdata", "memory_size", "BIGINT"),
            },
        )
        + f" WHERE {where_joined(Missing.AGENT | Missing.PROCESS)}",
    ),
    "kernel_symbols": View(
        "a kernel in such code",
        select(
            "symbol",
            _SYMBOLS,
            {
                "kernel_symbol_size": _from_json("extdata", "size", "BIGINT"),
                "kernel_id": _from_json("extdata", "kernel_id", "BIGINT"),
                "kernel_code_entry_byte_offset": _from_json("extdata", "kernel_code_entry_byte_offset", "BIGINT"),
                **{
                    f"{kind}_kernel_name": _from_json("extdata", f"{kind}_kernel_name")
                    for kind in ("formatted", "demangled", "truncated")
                },
                "kernel_address": _from_json("extdata", "kernel_address.handle", "BIGINT"),
            },
        )
        + f" WHERE {where_joined(Missing.PROCESS)}",
    ),
    "processes": View(
        "a process, ours with its night, experiment and TVM",
        f"""
    SELECT nid, machine_id, system_name, hostname, system_release, system_version, guid, ppid, pid, init, "start",
        "end", fini, command, night, experiment, engine, tvm_hash, facts, source, process
    FROM base_process WHERE {where_joined(Missing.NODE)}""",  # noqa: S608 - our own words
    ),
    "threads": View(
        "a thread of a process",
        """
    SELECT N.id AS nid, N.machine_id, N.system_name, N.hostname, N.release AS system_release,
        N.version AS system_version, T.guid, P.ppid, P.pid, T.tid, T."start", T."end", T.name, T.process
    FROM base_thread T JOIN base_process P ON P.guid = T.guid AND P.process = T.process
        JOIN base_node N ON N.guid = T.guid AND N.id = T.nid""",
    ),
    "top": View("a name, of everything: calls, microseconds, percent", _top(_spans("dispatch", "copy", "region"))),
    "top_kernels": View("a name, of kernels: calls, microseconds, percent", _top(_spans("dispatch"))),
    "busy": View(
        "a device: time in kernels and copies, wall time, their ratio",
        """
    SELECT T.agent_id, A.type, T.GpuTime, W.WallTime, T.GpuTime * 1.0 / W.WallTime AS Busy, T.guid
    FROM (SELECT guid, agent_id, sum(duration) AS GpuTime FROM (
            SELECT guid, agent_id, duration FROM base_dispatch
            UNION ALL SELECT guid, 0 AS agent_id, duration FROM base_operator
            UNION ALL SELECT guid, dst_agent_id AS agent_id, duration FROM base_copy) AS U GROUP BY guid, agent_id) AS T
        CROSS JOIN (SELECT max("start" + duration) - min("start") AS WallTime FROM (
            SELECT "start", duration FROM base_dispatch UNION ALL SELECT "start", duration FROM base_operator
            UNION ALL SELECT "start", duration FROM base_copy) AS V) AS W
        JOIN base_agent A ON A.guid = T.guid AND A.id = T.agent_id""",
    ),
    "kernel_summary": View("a kernel's name, as rocprof-systems sums them up", _summarize(_KERNEL_ROWS, "name")),
    "kernel_summary_region": View("a kernel's region, likewise", _summarize(_KERNEL_ROWS, "region")),
    "memory_copy_summary": View("a copy's name, likewise", _summarize(_COPY_ROWS, "name")),
    "memory_allocation_summary": View(
        "a kind of allocation, likewise", _summarize(_ALLOCATION_ROWS, "'MEMORY_ALLOCATION_' || type")
    ),
}
