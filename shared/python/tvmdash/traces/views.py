"""The views of a connection as data: names and columns of RocPD where the thing is the same, ours where it is ours.

Each is plain SQL over `base_<table>` (see tables), in words that DuckDB and SQLite both understand. Beyond RocPD's
columns stand ours: kernels and samples know their trial. Times are nanoseconds; `top`, `top_kernels` give microseconds,
as RocPD does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tvmdash.traces.tables import TABLES

_EVENT = "event_id stack_id parent_stack_id corr_id"
_KERNELS = (
    "id guid tid category region name nid pid agent_abs_index agent_log_index agent_type_index agent_type "
    "code_object_id kernel_id dispatch_id stream_id queue_id graph_exec_id graph_node_id queue stream start end "
    "duration grid_x grid_y grid_z workgroup_x workgroup_y workgroup_z lds_size scratch_size vgpr_count "
    f"accum_vgpr_count sgpr_count static_lds_size static_scratch_size {_EVENT} trial repetition agent_id process"
).split()
_REGIONS = (
    f"id guid category name nid pid tid start end duration {_EVENT} extdata call_stack line_info trial process".split()
)
_COPIES = (
    "id guid category nid pid tid start end duration name region_name stream_id queue_id graph_exec_id graph_node_id "
    "stream_name queue_name size dst_device dst_agent_abs_index dst_agent_log_index dst_agent_type_index "
    "dst_agent_type dst_address src_device src_agent_abs_index src_agent_log_index src_agent_type_index "
    f"src_agent_type src_address {_EVENT} dst_agent_id src_agent_id process"
).split()
_SAMPLES = (
    f"id guid category name nid pid tid timestamp {_EVENT} extdata call_stack line_info trial position elapsed_ns "
    "number process cpu_ns waited"
).split()
_END = {"end": '"start" + duration'}


def _select(table: str, names: list[str], given: Mapping[str, str], source: str = "", prefix: str = "") -> str:
    """The columns `names` of a table: those `given` as SQL, its own, else NULL."""
    types = {column: kind for spec in TABLES.values() for column, kind in spec.columns.items()}
    own = TABLES[table].columns
    parts = [
        given[name]
        if name in given
        else f'{prefix}"{name}"'
        if name in own
        else f"CAST(NULL AS {types.get(name, 'BIGINT')})"
        for name in names
    ]
    chosen = ", ".join(f'{part} AS "{name}"' for part, name in zip(parts, names, strict=True))
    return f"SELECT {chosen} FROM {source or 'base_' + table}"  # noqa: S608 - our own words


_OPERATOR = {
    **_END,
    "category": "'operator'",
    **dict.fromkeys(("agent_abs_index", "agent_log_index", "agent_type_index", "agent_id"), "0"),
    "agent_type": "'CPU'",
}
_TIMING = {"category": "'sample'", "name": "W.workload"}
_TIMING_SOURCE = "base_timing S LEFT JOIN base_trial W ON W.guid = S.guid AND W.process = S.process AND W.id = S.trial"


def _top(spans: str) -> str:
    return f"""
    SELECT name, count(*) AS total_calls, sum(duration) / 1000.0 AS total_duration,
        sum(duration) * 1.0 / count(*) / 1000.0 AS average,
        sum(duration) * 100.0 / sum(sum(duration)) OVER () AS percentage
    FROM ({spans}) AS spans GROUP BY name ORDER BY total_duration DESC, name"""  # noqa: S608 - our own words


VIEWS: Mapping[str, str] = {
    "kernels": f"{_select('dispatch', _KERNELS, _END)} UNION ALL {_select('operator', _KERNELS, _OPERATOR)}",
    "regions": _select("region", _REGIONS, _END),
    "memory_copies": _select("copy", _COPIES, _END),
    "samples": _select("instant", _SAMPLES, {})
    + " UNION ALL "
    + _select("timing", _SAMPLES, _TIMING, source=_TIMING_SOURCE, prefix="S."),
    "top": _top(
        "SELECT name, duration FROM base_dispatch UNION ALL SELECT name, duration FROM base_operator UNION ALL "
        "SELECT name, duration FROM base_copy UNION ALL SELECT name, duration FROM base_region"
    ),
    "top_kernels": _top("SELECT name, duration FROM base_dispatch UNION ALL SELECT name, duration FROM base_operator"),
    "busy": """
    SELECT T.agent_id, A.type, T.GpuTime, W.WallTime, T.GpuTime * 1.0 / W.WallTime AS Busy, T.guid
    FROM (SELECT guid, agent_id, sum(duration) AS GpuTime FROM (
            SELECT guid, agent_id, duration FROM base_dispatch
            UNION ALL SELECT guid, 0 AS agent_id, duration FROM base_operator
            UNION ALL SELECT guid, dst_agent_id AS agent_id, duration FROM base_copy) AS U GROUP BY guid, agent_id) AS T
        CROSS JOIN (SELECT max("start" + duration) - min("start") AS WallTime FROM (
            SELECT "start", duration FROM base_dispatch UNION ALL SELECT "start", duration FROM base_operator
            UNION ALL SELECT "start", duration FROM base_copy) AS V) AS W
        LEFT JOIN base_agent A ON A.guid = T.guid AND A.id = T.agent_id""",
    "counters_collection": """
    SELECT min(C.id) AS id, C.guid, D.dispatch_id, min(D.kernel_id) AS kernel_id, min(D.event_id) AS event_id,
        min(D.corr_id) AS correlation_id, min(D.stack_id) AS stack_id, min(D.parent_stack_id) AS parent_stack_id,
        min(D.pid) AS pid, min(D.tid) AS tid, D.agent_id, min(D.agent_abs_index) AS agent_abs_index,
        min(D.agent_log_index) AS agent_log_index, min(D.agent_type_index) AS agent_type_index,
        min(D.agent_type) AS agent_type, min(D.queue_id) AS queue_id, min(D.grid_x) AS grid_size_x,
        min(D.grid_y) AS grid_size_y, min(D.grid_z) AS grid_size_z, min(D.grid_x * D.grid_y * D.grid_z) AS grid_size,
        min(D.name) AS kernel_name, min(D.region) AS kernel_region, min(D.workgroup_x) AS workgroup_size_x,
        min(D.workgroup_y) AS workgroup_size_y, min(D.workgroup_z) AS workgroup_size_z,
        min(D.workgroup_x * D.workgroup_y * D.workgroup_z) AS workgroup_size, min(D.lds_size) AS lds_block_size,
        min(D.scratch_size) AS scratch_size, min(D.vgpr_count) AS vgpr_count,
        min(D.accum_vgpr_count) AS accum_vgpr_count, min(D.sgpr_count) AS sgpr_count, C.counter_name,
        min(C.counter_symbol) AS counter_symbol, min(C.component) AS component, min(C.description) AS description,
        min(C.block) AS block, min(C.expression) AS expression, min(C.value_type) AS value_type,
        min(C.counter_id) AS counter_id, sum(C.value) AS value, min(D."start") AS "start",
        min(D."start" + D.duration) AS "end", min(C.is_constant) AS is_constant, min(C.is_derived) AS is_derived,
        min(D.duration) AS duration, min(D.category) AS category, min(D.nid) AS nid,
        min(D.code_object_id) AS code_object_id, D.process
    FROM base_counter C JOIN base_dispatch D ON D.guid = C.guid AND D.event_id = C.event_id
    GROUP BY C.guid, D.process, D.dispatch_id, C.counter_name, D.agent_id""",
    "processes": """
    SELECT nid, machine_id, system_name, hostname, system_release, system_version, guid, ppid, pid, init, "start",
        "end", fini, command, night, experiment, engine, tvm_hash, facts, source, process FROM base_process""",
    "threads": """
    SELECT T.nid, P.machine_id, P.system_name, P.hostname, P.system_release, P.system_version, T.guid, T.ppid, T.pid,
        T.tid, T."start", T."end", T.name, T.process
    FROM base_thread T LEFT JOIN base_process P ON P.guid = T.guid AND P.process = T.process""",
    "nodes": """
    SELECT id, guid, hash, machine_id, system_name, hostname, release, version, hardware_name, domain_name
    FROM base_node""",
    "agents": """
    SELECT id, guid, nid, pid, type, absolute_index, logical_index, type_index, uuid, name, model_name, vendor_name,
        product_name, user_name, extdata, process FROM base_agent""",
    "trials": """
    SELECT T.id, T.guid, T.nid, T.pid, T.tid, P.night, P.experiment, P.hostname, T.workload, T.point, T.engine,
        P.tvm_hash, T.target, T."start", T."start" + T.duration AS "end", T.duration, T.error, S.samples, S.ms_mean,
        S.ms_min, S.ms_max, T.facts, T.identity, T.process
    FROM base_trial T JOIN base_process P ON P.guid = T.guid AND P.process = T.process
        LEFT JOIN (SELECT guid, process, trial, count(*) AS samples, avg(elapsed_ns / 1e6 / number) AS ms_mean,
            min(elapsed_ns / 1e6 / number) AS ms_min, max(elapsed_ns / 1e6 / number) AS ms_max
            FROM base_timing GROUP BY guid, process, trial) AS S
            ON S.guid = T.guid AND S.process = T.process AND S.trial = T.id""",
    "passes": """
    SELECT X.guid, X.nid, X.pid, X.trial, T.workload, T.point, X.position, X.name, X."timestamp", X.duration,
        X.process
    FROM base_pass X LEFT JOIN base_trial T ON T.guid = X.guid AND T.process = X.process AND T.id = X.trial""",
    "telemetry": 'SELECT guid, nid, pid, "timestamp", name, unit, value, process FROM base_telemetry',
    "records": _select("record", list(TABLES["record"].columns), {}),
    "nights": """
    SELECT night, state, "start", "start" + duration AS "end", duration, seed, "commit", tvm, notes, source
    FROM base_night UNION ALL
    SELECT night, CAST(NULL AS VARCHAR), min("start"), max("end"), max("end") - min("start"), CAST(NULL AS BIGINT),
        CAST(NULL AS VARCHAR), min(tvm_hash), CAST(NULL AS VARCHAR), CAST(NULL AS VARCHAR)
    FROM base_process WHERE night IS NOT NULL AND night NOT IN (SELECT night FROM base_night) GROUP BY night""",
    "stages": """
    SELECT night, kind, job, stage, state, message, "start", "start" + duration AS "end", duration FROM base_stage""",
}
_WORD = re.compile(r"\w+")
VIEW_TABLES: Mapping[str, frozenset[str]] = {
    name: frozenset(table for table in TABLES if f"base_{table}" in _WORD.findall(sql)) for name, sql in VIEWS.items()
}
"""The tables under each view."""


def find_tables(sql: str) -> frozenset[str]:
    """The tables that a query needs: those whose names, or views' names, stand in it anywhere.

    All of them where it asks what there is, or gives a name as a text.
    """
    identifiers = {word.lower() for word in _WORD.findall(sql)}
    if identifiers & {
        "query",
        "query_table",
        "show",
        "describe",
        "information_schema",
        "duckdb_tables",
        "duckdb_views",
    }:
        return frozenset(TABLES)
    tables = {table for word in identifiers for table in VIEW_TABLES.get(word, ())}
    return frozenset(tables | {table for table in TABLES if {f"base_{table}", f"all_{table}"} & identifiers})
