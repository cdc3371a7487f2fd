"""The tables that every source of traces is read into, as data.

Readers fill them, sealed runs are their rows in Parquet, views are SQL over them. Times are integer nanoseconds. `guid`
names what wrote a row: one process, or a converter that wrote the rows of many. `guid` and `process` together are the
key of a process; `nid` is its node's number, `pid` the process id that the system gave it, which several may share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    """Whether a row tells something that a sealed run and its parts or sources both may hold; it is shown once."""


def _columns(**groups: str) -> dict[str, str]:
    """Columns by type, written as `text="guid name"`; the types in the order given."""
    kinds = {"int": INT, "real": REAL, "text": TEXT}
    return {name: kinds[kind.rstrip("_")] for kind, names in groups.items() for name in names.split()}


_PLACE = _columns(text="guid", int="process id nid pid tid")
_OWNED = _columns(text="guid", int="process id nid pid")
_EVENT = _columns(int="event_id stack_id parent_stack_id corr_id", text="extdata call_stack line_info")
"""What RocPD's event of a row says."""
_REST = _columns(text="own_extdata", int="missing")
"""What the row says beyond its columns, and which of its references lead nowhere (see `missing`); 0 is none."""
_THREAD = _columns(int="thread_id")
"""The number of its thread among those of its guid; `tid` is the number that the system gave it."""
_AGENT = "agent_abs_index agent_log_index agent_type_index"
_GRAPH = _columns(int="graph_exec_id graph_node_id")

TABLES: Mapping[str, TraceTable] = {
    "process": TraceTable(
        _columns(
            text="guid",
            int="process nid pid ppid",
            text_="machine_id hostname system_name system_release system_version",
            int_="init start end fini",
            text__="command night experiment engine tvm_hash facts source extdata",
            int__="missing",
        ),
        order=("start", "guid"),
        describes=True,
    ),
    "node": TraceTable(
        _columns(
            text="guid",
            int="id hash",
            text_="machine_id system_name hostname release version hardware_name domain_name",
        ),
        describes=True,
    ),
    "agent": TraceTable(
        _columns(
            text="guid",
            int="process id nid pid",
            text_="type",
            int_="absolute_index logical_index type_index uuid",
            text__="name model_name vendor_name product_name user_name extdata",
        ),
        describes=True,
    ),
    "thread": TraceTable(
        _columns(text="guid", int="process nid ppid pid tid start end", text_="name", int_="id", text__="extdata"),
        describes=True,
    ),
    "queue": TraceTable({**_OWNED, **_columns(text="name extdata")}, describes=True),
    "stream": TraceTable({**_OWNED, **_columns(text="name extdata", int="missing")}, describes=True),
    "track": TraceTable({**_OWNED, **_columns(int="tid", text="name extdata"), **_THREAD}, describes=True),
    "code_object": TraceTable(
        {
            **_OWNED,
            **_columns(
                int="agent_id agent_abs_index",
                text="uri storage_type extdata",
                int_="load_base load_size load_delta missing",
            ),
        },
        describes=True,
    ),
    "symbol": TraceTable(
        {
            **_OWNED,
            **_columns(
                text="kernel_name display_name extdata",
                int="code_object_id kernel_object kernarg_segment_size kernarg_segment_alignment group_segment_size "
                "private_segment_size sgpr_count arch_vgpr_count accum_vgpr_count missing",
            ),
        },
        describes=True,
    ),
    "pmc": TraceTable(
        {
            **_OWNED,
            **_columns(
                text="target_arch name symbol description long_description component units value_type block "
                "expression extdata",
                int="agent_id agent_abs_index event_code instance_id is_constant is_derived spm_support missing",
            ),
        },
        describes=True,
    ),
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
    "region": TraceTable(
        {**_PLACE, **_columns(int="trial", text="category name", int_="start duration"), **_EVENT, **_REST, **_THREAD},
        start="start",
        duration="duration",
        order=("start",),
    ),
    "instant": TraceTable(
        {**_PLACE, **_columns(text="category name", int="timestamp track_id"), **_EVENT, **_REST},
        start="timestamp",
        order=("timestamp",),
    ),
    "dispatch": TraceTable(
        {
            **_PLACE,
            **_columns(
                text="category region name agent_type queue stream",
                int=f"agent_id {_AGENT} code_object_id kernel_id dispatch_id stream_id queue_id queue_pid start "
                "duration grid_x grid_y grid_z workgroup_x workgroup_y workgroup_z lds_size scratch_size "
                "vgpr_count accum_vgpr_count sgpr_count static_lds_size static_scratch_size",
            ),
            **_GRAPH,
            **_EVENT,
            **_REST,
            **_THREAD,
        },
        start="start",
        duration="duration",
        order=("start",),
    ),
    "copy": TraceTable(
        {
            **_PLACE,
            **_columns(
                text="category name region_name stream_name queue_name dst_device dst_agent_type src_device "
                "src_agent_type",
                int="start duration stream_id queue_id size dst_agent_id dst_agent_abs_index dst_agent_log_index "
                "dst_agent_type_index dst_address src_agent_id src_agent_abs_index src_agent_log_index "
                "src_agent_type_index src_address",
            ),
            **_GRAPH,
            **_EVENT,
            **_REST,
            **_THREAD,
        },
        start="start",
        duration="duration",
        order=("start",),
    ),
    "allocation": TraceTable(
        {
            **_PLACE,
            **_columns(
                text="category type level agent_name agent_type queue_name stream_name",
                int=f"start duration agent_id {_AGENT} address size queue_id stream_id",
            ),
            **_EVENT,
            **_REST,
            **_THREAD,
        },
        start="start",
        duration="duration",
        order=("start",),
    ),
    "graph_launch": TraceTable(
        {
            **_PLACE,
            **_columns(
                text="category agent_type queue",
                int=f"start duration agent_id {_AGENT} queue_id graph_exec_id kernel_dispatch_count",
            ),
            **_EVENT,
            **_REST,
            **_THREAD,
        },
        start="start",
        duration="duration",
        order=("start",),
    ),
    "argument": TraceTable(
        {**_columns(text="guid", int="id position", text_="category type name value"), **_EVENT, **_REST},
    ),
    "counter": TraceTable(
        {
            **_columns(
                text="guid category counter_name counter_symbol component description block expression value_type",
                int="id counter_id is_constant is_derived sample_id timestamp xcc shader_engine shader_array wgp "
                "instance",
                real="value",
            ),
            **_EVENT,
            **_REST,
        },
    ),
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
    """Whether a table is small, so that it may be held as a whole."""
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
"""What stands for a column in versions before it; NULL for the others."""


def stored_columns(table: str, version: int) -> dict[str, str]:
    """How each column of a table is read from a Parquet file of that seal version, as SQL."""
    columns = {name: f'"{name}"' for name in TABLES[table].columns}
    for since, added in _SINCE.items():
        if version < since:
            columns |= {name: _BEFORE.get(name, "NULL") for name in added.get(table, "").split()}
    if version == 1 and "process" in columns:
        columns["process"] = _PROCESS_IN_VERSION_1
    return columns
