"""The tables that every source of traces is read into, as data.

Readers fill them, sealed runs are their rows in Parquet, views are SQL over them. Times are integer nanoseconds. `guid`
names what wrote a row: one process, or a converter that wrote the rows of many. `guid` and `process` together are the
key of a process; `nid` is its node's number, `pid` the process id that the system gave it, which several may share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SEAL_VERSION = 3
"""Raised when a table gains, loses or changes a column. 2 added `process`, 3 `cpu_ns` and `waited` of `timing`."""

INT, REAL, TEXT = "BIGINT", "DOUBLE", "VARCHAR"


@dataclass(frozen=True)
class Table:
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


_EVENT = _columns(int="event_id stack_id parent_stack_id corr_id")
_PLACE = _columns(text="guid", int="process id nid pid tid")
_SAID = _columns(text="extdata call_stack line_info")

TABLES: Mapping[str, Table] = {
    "process": Table(
        _columns(
            text="guid",
            int="process nid pid ppid",
            text_="machine_id hostname system_name system_release system_version",
            int_="init start end fini",
            text__="command night experiment engine tvm_hash facts source",
        ),
        order=("start", "guid"),
        describes=True,
    ),
    "node": Table(
        _columns(
            text="guid",
            int="id hash",
            text_="machine_id system_name hostname release version hardware_name domain_name",
        ),
        describes=True,
    ),
    "agent": Table(
        _columns(
            text="guid",
            int="process id nid pid",
            text_="type",
            int_="absolute_index logical_index type_index uuid",
            text__="name model_name vendor_name product_name user_name extdata",
        ),
        describes=True,
    ),
    "thread": Table(_columns(text="guid", int="process nid ppid pid tid start end", text_="name"), describes=True),
    "trial": Table(
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
    "timing": Table(
        {**_PLACE, **_columns(int="trial position timestamp elapsed_ns number cpu_ns waited")},
        start="timestamp",
        order=("timestamp", "trial", "position"),
    ),
    "operator": Table(
        {**_PLACE, **_columns(int="trial repetition", text="name", int_="start duration")},
        start="start",
        duration="duration",
        order=("start",),
    ),
    "pass": Table(
        _columns(text="guid", int="process nid pid trial position", text_="name", int_="timestamp duration"),
        start="timestamp",
        order=("timestamp", "trial", "position"),
    ),
    "telemetry": Table(
        _columns(text="guid", int="process nid pid timestamp", text_="name unit", real="value"),
        start="timestamp",
        order=("name", "timestamp"),
    ),
    "region": Table(
        {**_PLACE, **_columns(int="trial", text="category name", int_="start duration"), **_EVENT, **_SAID},
        start="start",
        duration="duration",
        order=("start",),
    ),
    "instant": Table(
        {**_PLACE, **_columns(text="category name", int="timestamp"), **_EVENT, **_SAID},
        start="timestamp",
        order=("timestamp",),
    ),
    "dispatch": Table(
        {
            **_PLACE,
            **_columns(
                text="category region name",
                int="agent_id agent_abs_index agent_log_index agent_type_index",
                text_="agent_type",
                int_="code_object_id kernel_id dispatch_id stream_id queue_id graph_exec_id graph_node_id",
                text__="queue stream",
                int__="start duration grid_x grid_y grid_z workgroup_x workgroup_y workgroup_z lds_size scratch_size "
                "vgpr_count accum_vgpr_count sgpr_count static_lds_size static_scratch_size",
            ),
            **_EVENT,
        },
        start="start",
        duration="duration",
        order=("start",),
    ),
    "copy": Table(
        {
            **_PLACE,
            **_columns(
                text="category name region_name",
                int="start duration stream_id queue_id graph_exec_id graph_node_id",
                text_="stream_name queue_name",
                int_="size",
                text__="dst_device",
                int__="dst_agent_id dst_agent_abs_index dst_agent_log_index dst_agent_type_index",
                text___="dst_agent_type",
                int___="dst_address",
                text____="src_device",
                int____="src_agent_id src_agent_abs_index src_agent_log_index src_agent_type_index",
                text_____="src_agent_type",
                int_____="src_address",
            ),
            **_EVENT,
        },
        start="start",
        duration="duration",
        order=("start",),
    ),
    "counter": Table(
        _columns(
            text="guid",
            int="id event_id",
            text_="counter_name counter_symbol component description block expression value_type",
            int_="counter_id",
            real="value",
            int__="is_constant is_derived",
        ),
    ),
    "record": Table(
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
    "night": Table(
        _columns(text="night state", int="start duration seed", text_="commit tvm notes source"),
        start="start",
        duration="duration",
        order=("night",),
        describes=True,
    ),
    "stage": Table(
        _columns(text="night kind job stage state message", int="start duration"),
        start="start",
        duration="duration",
        order=("night", "start"),
        describes=True,
    ),
}

_PROCESS_IN_VERSION_1 = f"coalesce(nid, 0) * {2**32} + pid"
"""Version 1 told the processes of one guid apart by node and process id."""


def stored_columns(table: str, version: int) -> dict[str, str]:
    """How each column of a table is read from a Parquet file of that seal version, as SQL."""
    columns = {name: f'"{name}"' for name in TABLES[table].columns}
    if version < 3 and table == "timing":
        columns |= {"cpu_ns": "NULL", "waited": "NULL"}
    if version == 1 and "process" in columns:
        columns["process"] = _PROCESS_IN_VERSION_1
    return columns
