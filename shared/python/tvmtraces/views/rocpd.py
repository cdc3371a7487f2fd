# ruff: noqa: S608 - these queries are our own words
"""RocPD's views: its names, its columns in its order, its rows; ours stand behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvmtraces.readers.rocpd_queries import Missing
from tvmtraces.views.view import View, Words

_STACK = "stack_id parent_stack_id corr_id"
_SAID = "extdata call_stack line_info"
_AGENT = "agent_abs_index agent_log_index agent_type_index agent_type"
_SIZES = "grid_x grid_y grid_z workgroup_x workgroup_y workgroup_z lds_size scratch_size"
_KERNELS = (
    f"id guid tid category region name nid pid {_AGENT} code_object_id kernel_id dispatch_id stream_id queue_id "
    f"graph_exec_id graph_node_id queue stream start end duration {_SIZES} vgpr_count accum_vgpr_count sgpr_count "
    f"static_lds_size static_scratch_size event_id {_STACK} | trial repetition agent_id process"
)
_REGIONS = f"id guid category name nid pid tid start end duration event_id {_STACK} {_SAID} | trial process"
_SAMPLES = (
    f"id guid category name nid pid tid timestamp event_id {_STACK} {_SAID} | trial position elapsed_ns number process "
    "cpu_ns waited"
)
_COPIES = (
    "id guid category nid pid tid start end duration name region_name stream_id queue_id graph_exec_id graph_node_id "
    "stream_name queue_name size dst_device dst_agent_abs_index dst_agent_log_index dst_agent_type_index "
    "dst_agent_type dst_address src_device src_agent_abs_index src_agent_log_index src_agent_type_index "
    f"src_agent_type src_address {_STACK} | event_id dst_agent_id src_agent_id process"
)
_ALLOCATIONS = (
    f"id guid category nid pid tid start end duration type level agent_name {_AGENT} address size queue_id queue_name "
    f"stream_id stream_name {_STACK} | event_id agent_id process"
)
_SCRATCH = (
    f"id guid nid pid operation agent_name {_AGENT} queue_id tid alloc_flags start end duration size address "
    f"correlation_id {_STACK} category event_extdata | event_id process"
)
_GRAPHS = (
    f"id guid nid pid tid agent_id {_AGENT} queue_id queue name start end duration graph_exec_id "
    f"kernel_dispatch_count event_id {_STACK} | process"
)
_CODE_OBJECTS = (
    "id guid nid pid agent_abs_index uri load_base load_size load_delta storage_type_str code_object_size storage_type "
    "memory_base memory_size | extdata process"
)
_SYMBOLS = (
    "id guid nid pid code_object_id kernel_name display_name kernel_object kernarg_segment_size "
    "kernarg_segment_alignment group_segment_size private_segment_size sgpr_count arch_vgpr_count accum_vgpr_count "
    "kernel_symbol_size kernel_id kernel_code_entry_byte_offset formatted_kernel_name demangled_kernel_name "
    "truncated_kernel_name kernel_address | extdata process"
)
_ARGUMENTS = (
    "event_id category stack_id parent_stack_id correlation_id arg_position arg_type arg_name arg_value call_stack "
    "line_info extdata | guid"
)
_PMC = (
    "id guid nid pid agent_abs_index is_constant is_derived name description block expression symbol units component "
    "value_type | agent_id process"
)
_PROCESSES = (
    "nid machine_id system_name hostname system_release system_version guid ppid pid init start end fini command | "
    "night experiment engine tvm_hash facts source process"
)
_COUNTED = {
    **{name: f"C.{name}" for name in ("id", "guid")},
    **{name: f"D.{name}" for name in ("dispatch_id", "kernel_id")},
    **{name: f"C.{name}" for name in ("event_id", "correlation_id", "stack_id", "parent_stack_id")},
    "correlation_id": "C.corr_id",
    **{name: f"D.{name}" for name in ("pid", "tid", "agent_id", *_AGENT.split(), "queue_id")},
    **{f"grid_size_{axis}": f"D.grid_{axis}" for axis in "xyz"},
    "grid_size": "D.grid_x * D.grid_y * D.grid_z",
    "kernel_name": "D.name",
    "kernel_region": "D.region",
    **{f"workgroup_size_{axis}": f"D.workgroup_{axis}" for axis in "xyz"},
    "workgroup_size": "D.workgroup_x * D.workgroup_y * D.workgroup_z",
    "lds_block_size": "D.lds_size",
    **{name: f"D.{name}" for name in ("scratch_size", "vgpr_count", "accum_vgpr_count", "sgpr_count")},
    **{name: f"C.{name}" for name in ("counter_name", "counter_symbol", "component", "description", "block")},
    **{name: f"C.{name}" for name in ("expression", "value_type", "counter_id")},
}
"""Columns of a kernel's counter, common to two views."""
_OF_KERNEL = (
    'D."start", D."end", C.is_constant, C.is_derived, D.duration, C.category, D.nid, C.extdata, D.code_object_id'
)
_STREAMED = (
    'C.xcc, C.shader_engine, C.instance, C.value, C."timestamp", C.is_constant, C.is_derived, C.category, D.nid, '
    "C.extdata, D.code_object_id"
)
_JOINED = Missing.EVENT | Missing.PROCESS | Missing.THREAD
_OF_KERNELS = Missing.EVENT | Missing.THREAD | Missing.NAME | Missing.AGENT | Missing.REGION | Missing.QUEUE
_OPERATOR = {
    "category": "'operator'",
    **dict.fromkeys((*_AGENT.split()[:3], "agent_id"), "0"),
    "agent_type": "'CPU'",
}


_OPERATORS = '(SELECT *, "start" + duration AS "end" FROM base_operator)'
_TIMING = """(SELECT S.*, W.workload AS name FROM base_timing S
    LEFT JOIN base_trial W ON W.guid = S.guid AND W.process = S.process AND W.id = S.trial)"""


def _top(everything: Sequence[str], named: Sequence[str]) -> str:
    """Sum up by name; unnamed rows count in the whole alone. An average is of whole nanoseconds."""
    every, known = (
        " UNION ALL ".join(f"SELECT {columns} FROM {each}" for each in relations)
        for columns, relations in (("duration", everything), ("name, duration", named))
    )
    return f"""SELECT name, count(*) AS total_calls, sum(duration) / 1000.0 AS total_duration,
        (sum(duration) - sum(duration) % count(*)) / count(*) / 1000.0 AS average,
        sum(duration) * 100.0 / (SELECT sum(duration) FROM ({every}) AS spans) AS percentage
    FROM ({known}) AS named GROUP BY name ORDER BY total_duration DESC, name"""


def _summarize(rows: str, name: str) -> str:
    """Sum up the rows of a view by name, as rocprof-systems does."""
    return f"""
    SELECT name, count(*) AS calls, sum(duration) AS "DURATION (nsec)",
        sum(duration::DOUBLE * duration) AS "SQR (nsec)", sum(duration) * 1.0 / count(*) AS "AVERAGE (nsec)",
        sum(duration)::DOUBLE / sum(sum(duration)) OVER () * 100 AS "PERCENT (INC)", min(duration) AS "MIN (nsec)",
        max(duration) AS "MAX (nsec)", var_samp(duration) AS "VARIANCE", stddev_samp(duration) AS "STD_DEV"
    FROM (SELECT {name} AS name, duration FROM ({rows})) AS named WHERE name IS NOT NULL GROUP BY name"""


_ABOUT = {
    "kernels": "one call of an operator, of a profiled run, or one GPU kernel",
    "regions": "a named span of a process, or an API call",
    "samples": "one timed value, or an instant",
    "sample_regions": "the same with the columns of regions",
    "regions_and_samples": "both",
    "memory_copies": "a copy between devices",
    "memory_allocations": "memory that was allocated or freed",
    "scratch_memory": "the same of scratch memory",
    "graph_launches": "a launch of a HIP graph",
    "counters_collection": "a counter of a kernel, its instances summed up",
    "spm_counters": "a value of a counter that was streamed while a kernel ran",
    "pmc_info": "what a counter counts",
    "pmc_events": "a value of a counter of a kernel",
    "events_args": "an argument of a call",
    "region_args": "an argument of a region",
    "stream_args": "an argument that is a stream",
    "code_objects": "code that was loaded onto a device",
    "kernel_symbols": "a kernel in such code",
    "processes": "a process, ours with its night, experiment and TVM",
    "threads": "a thread of a process",
    "top": "a name, of everything: calls, microseconds, percent",
    "top_kernels": "a name, of kernels: calls, microseconds, percent",
    "busy": "a device: time in kernels and copies, wall time, their ratio",
    "kernel_summary": "a kernel's name, as rocprof-systems sums them up",
    "kernel_summary_region": "a kernel's region, likewise",
    "memory_copy_summary": "a copy's name, likewise",
    "memory_allocation_summary": "a kind of allocation, likewise",
}
"""Meaning of a row of each view; they are listed in this order."""


def make_rocpd_views(words: Words) -> Mapping[str, View]:
    """All of them in the words of DuckDB; in SQLite's those that each of AMD's versions has."""
    sql = {**_select_rows(words), **_join_rows(words)}
    if words.shows_ours:
        launches = words.select("graph_launch", _GRAPHS, {"name": "'Graph Execution'"}, _JOINED)
        allocated = _summarize(sql["memory_allocations"], "'MEMORY_ALLOCATION_' || type")
        sql |= {"graph_launches": launches, "memory_allocation_summary": allocated}
        sql |= {"kernel_summary": _summarize(sql["kernels"], "name")}
        sql |= {"kernel_summary_region": _summarize(sql["kernels"], "region")}
        sql |= {"memory_copy_summary": _summarize(sql["memory_copies"], "name")}
    return {name: View(about, sql[name]) for name, about in _ABOUT.items() if name in sql}


def _select_rows(words: Words) -> dict[str, str]:
    """The views of which a row is one of a table's."""
    select, extract = words.select, words.extract

    def add(rows: str) -> str:
        return f" UNION ALL {rows}" if words.shows_ours else ""

    def both_samples(names: str, given: Mapping[str, str]) -> str:
        timed = {"category": "'sample'", "name": "name", **given}
        instants = select("instant", names, given, _JOINED | Missing.TRACK)
        return instants + add(select("timing", names, timed, Missing(0), _TIMING))

    kernels = select("dispatch", _KERNELS, {"pid": "queue_pid"}, _OF_KERNELS)
    regions = select("region", _REGIONS, {}, _JOINED | Missing.NAME)
    at_once = {"start": '"timestamp"', "END": '"timestamp"', "duration": "0"}
    sample_regions = both_samples(_REGIONS.replace(" end ", " END "), at_once)
    flags = {"operation": "type", "alloc_flags": extract("own_extdata", "flags"), "correlation_id": "corr_id"}
    scratch = {**flags, "event_extdata": "extdata"}
    objects = {
        **{name: extract("extdata", name, "BIGINT") for name in ("memory_base", "memory_size")},
        "storage_type_str": "storage_type",
        "code_object_size": extract("extdata", "size", "BIGINT"),
        "storage_type": extract("extdata", "storage_type"),
    }
    symbols = {
        **{name: extract("extdata", name, "BIGINT") for name in ("kernel_id", "kernel_code_entry_byte_offset")},
        **{name: extract("extdata", name) for name in _SYMBOLS.split() if name.endswith("ed_kernel_name")},
        "kernel_symbol_size": extract("extdata", "size", "BIGINT"),
        "kernel_address": extract("extdata", "kernel_address.handle", "BIGINT"),
    }
    arguments = {**{f"arg_{name}": name for name in ("position", "type", "name", "value")}, "correlation_id": "corr_id"}
    return {
        "kernels": kernels + add(select("operator", _KERNELS, _OPERATOR, Missing(0), _OPERATORS)),
        "regions": regions,
        "samples": both_samples(_SAMPLES, {}),
        "sample_regions": sample_regions,
        "regions_and_samples": f"{regions} UNION ALL {sample_regions}",
        "memory_copies": select("copy", _COPIES, {}, _JOINED | Missing.NAME | Missing.AGENT | Missing.SOURCE),
        "memory_allocations": select("allocation", _ALLOCATIONS, {}, _JOINED),
        "scratch_memory": select("allocation", _SCRATCH, scratch, _JOINED, where="level = 'SCRATCH'")
        + ' ORDER BY "start"',
        "pmc_info": select("pmc", _PMC, {}, Missing.AGENT | Missing.PROCESS),
        "events_args": select("argument", _ARGUMENTS, {**arguments, "extdata": "own_extdata"}, Missing.EVENT),
        "code_objects": select("code_object", _CODE_OBJECTS, objects, Missing.AGENT | Missing.PROCESS),
        "kernel_symbols": select("symbol", _SYMBOLS, symbols, Missing.PROCESS),
        "processes": select("process", _PROCESSES, {}, Missing.NODE),
    }


def _join_rows(words: Words) -> dict[str, str]:
    """The views over several tables."""
    rows, is_ours = words.rows, words.shows_ours

    def ours(columns: str) -> str:
        return f", {columns}" if is_ours else ""

    counted = ", ".join(f'{column} AS "{name}"' for name, column in _COUNTED.items())
    used = f"{counted} {_OF_KERNEL} {_STREAMED} value sample_id shader_array wgp process"
    dispatches = rows("dispatch", used, Missing.AGENT | Missing.NAME | Missing.PROCESS | Missing.THREAD)
    at_end, streamed = (
        f"{rows('counter', used, bits)} AS C JOIN {dispatches} AS D ON D.guid = C.guid AND D.event_id = C.event_id"
        for bits in (Missing.EVENT | Missing.COUNTER, Missing.EVENT | Missing.COUNTER | Missing.SAMPLE)
    )
    same = "PARTITION BY C.guid, D.event_id, C.counter_name, D.agent_id"
    operators = ["base_operator"] if is_ours else []
    every, named = (
        {table: rows(table, "name duration", bits) for table in ("dispatch", "copy", "region")}
        for bits in (Missing(0), Missing.NAME)
    )
    parts = [("agent_id", rows("dispatch", "guid agent_id start duration"))]
    parts += [("dst_agent_id", rows("copy", "guid dst_agent_id start duration")), *(("0", each) for each in operators)]
    busy = " UNION ALL ".join(f'SELECT guid, {agent} AS agent_id, "start", duration FROM {of}' for agent, of in parts)
    streams = {"spm_counters": f"""SELECT {counted}, {_STREAMED}, C.shader_array, C.wgp, D.process
        FROM {streamed} WHERE C.sample_id IS NOT NULL"""} if is_ours else {}  # fmt: skip
    return {
        **streams,
        "counters_collection": f"""SELECT {", ".join(_COUNTED)}, value, "start", "end", is_constant, is_derived,
        duration, category, nid, extdata, code_object_id{ours("process")}
        FROM (SELECT {counted}, {_OF_KERNEL}{ours("D.process")}, sum(C.value) OVER ({same}) AS value,
            row_number() OVER ({same} ORDER BY C.id) AS place FROM {at_end} WHERE C.sample_id IS NULL) AS numbered
        WHERE place = 1""",
        "pmc_events": f"""SELECT C.id, C.guid, C.counter_id AS pmc_id, C.event_id, C.category, D.name, D.nid, D.pid,
        D.dispatch_id, D."start", D."end", D.duration, C.counter_name, C.value AS counter_value{ours("D.process")}
        FROM {rows("counter", f"{counted} value category", Missing.EVENT | Missing.COUNTER)} C
        JOIN {rows("dispatch", "guid event_id name nid pid dispatch_id start end duration", Missing.PROCESS)} D
            ON D.guid = C.guid AND D.event_id = C.event_id""",
        "region_args": f"""SELECT R.id, R.guid, R.nid, R.pid, A.type, A.name, A.value, A.position{ours("R.process")}
        FROM {rows("region", "id guid nid pid event_id", Missing.EVENT | Missing.PROCESS)} R
        JOIN {rows("argument", "guid event_id type name value position")} A
            ON A.guid = R.guid AND A.event_id = R.event_id""",
        "stream_args": f"""SELECT A.id AS argument_id, A.event_id, A.position AS arg_position, A.type AS arg_type,
        A.value AS arg_value, S.id AS stream_id, S.nid, S.pid, S.name AS stream_name,
        S.extdata{ours("A.guid, S.process")}
        FROM {rows("argument", "id guid event_id position type value name own_extdata")} A
        JOIN {rows("stream", "id guid nid pid name extdata", Missing.PROCESS)} S
            ON S.guid = A.guid AND S.id = {words.extract("A.own_extdata", "stream_id", "BIGINT")}
        WHERE A.name = 'stream'""",
        "threads": f"""SELECT N.id AS nid, N.machine_id, N.system_name, N.hostname, N.release AS system_release,
        N.version AS system_version, T.guid, P.ppid, P.pid, T.tid, T."start", T."end", T.name{ours("T.process")}
        FROM {rows("thread", "guid process nid tid start end name")} T
        JOIN {rows("process", "guid process ppid pid")} P ON P.guid = T.guid AND P.process = T.process
        JOIN {rows("node", "id guid machine_id system_name hostname release version")} N
            ON N.guid = T.guid AND N.id = T.nid""",
        "top": _top([*every.values(), *operators], [*named.values(), *operators]),
        "top_kernels": _top([every["dispatch"], *operators], [named["dispatch"], *operators]),
        "busy": f"""SELECT T.agent_id, A.type, T.GpuTime, W.WallTime,
        T.GpuTime * 1.0 / W.WallTime AS Busy{ours("T.guid")}
        FROM (SELECT guid, agent_id, sum(duration) AS GpuTime FROM ({busy}) AS U GROUP BY guid, agent_id) AS T
        CROSS JOIN (SELECT max("start" + duration) - min("start") AS WallTime FROM ({busy}) AS V) AS W
        JOIN {rows("agent", "id guid type")} A ON A.guid = T.guid AND A.id = T.agent_id""",
    }
