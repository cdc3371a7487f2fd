"""Places of our columns in a RocPD database, as data, in the words of RocPD's schema 3.0.x.

A place is a path of references: `event_id.category_id.string` is the column `string` of the row that the `category_id`
of the row's event numbers. A path of one word is a column of the table itself.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


class Missing(enum.IntFlag):
    """Dangling references of a row. RocPD's views leave such a row out where they join it."""

    EVENT = enum.auto()
    PROCESS = enum.auto()
    THREAD = enum.auto()
    NAME = enum.auto()
    AGENT = enum.auto()
    SOURCE = enum.auto()
    REGION = enum.auto()
    QUEUE = enum.auto()
    TRACK = enum.auto()
    COUNTER = enum.auto()
    NODE = enum.auto()
    SAMPLE = enum.auto()


WORDS = {
    Missing.EVENT: "event",
    Missing.PROCESS: "process",
    Missing.THREAD: "thread",
    Missing.NAME: "name",
    Missing.AGENT: "agent",
    Missing.SOURCE: "source agent",
    Missing.REGION: "name of the region",
    Missing.QUEUE: "process of the queue",
    Missing.TRACK: "track",
    Missing.COUNTER: "counter",
    Missing.NODE: "node",
    Missing.SAMPLE: "sample",
}

REFERENCES: Mapping[str, str] = {
    "nid": "info_node",
    "pid": "info_process",
    "tid": "info_thread",
    **dict.fromkeys(("agent_id", "dst_agent_id", "src_agent_id"), "info_agent"),
    "queue_id": "info_queue",
    "stream_id": "info_stream",
    "pmc_id": "info_pmc",
    "kernel_id": "info_kernel_symbol",
    "track_id": "track",
    "event_id": "event",
    "sample_id": "sample",
    **dict.fromkeys(("name_id", "region_name_id", "category_id"), "string"),
}
"""The table that a column's numbers are of."""
ON_TRACK = frozenset({"nid", "pid", "tid", "agent_id", "queue_id", "stream_id"})
"""Columns that schema 4 has in a row's track."""
DURATION = "end - start"
"""Stands for a path: the row's duration."""


@dataclass(frozen=True)
class Query:
    """One of our tables in terms of theirs, without the suffix and `rocpd_`.

    `joined` are the references of which a row of ours tells in `missing` whether they lead anywhere.
    """

    table: str
    paths: Mapping[str, str]
    joined: Mapping[Missing, str] = field(default_factory=dict)


def _same(names: str, prefix: str = "") -> dict[str, str]:
    return {name: f"{prefix}{name}" for name in names.split()}


_SIDE = _same("extdata call_stack line_info", "event_id.")
_STACK = {**_same("event_id"), **_same("stack_id parent_stack_id", "event_id."), "corr_id": "event_id.correlation_id"}
_EVENT = {"category": "event_id.category_id.string", **_STACK, **_SIDE, "own_extdata": "extdata"}
_OWNED = {**_same("id nid"), "process": "pid", "pid": "pid.pid"}
_ON_THREAD = {**_OWNED, "tid": "tid.tid", "thread_id": "tid"}
_SPAN = {"start": "start", "duration": DURATION}
_JOINED = {Missing.EVENT: "event_id", Missing.PROCESS: "pid", Missing.THREAD: "tid"}
_QUEUED = {**_same("queue_id stream_id"), "queue_name": "queue_id.name", "stream_name": "stream_id.name"}
_GRAPH = _same("graph_exec_id graph_node_id")


def _agent(prefix: str = "") -> dict[str, str]:
    indexes = {"abs": "absolute_index", "log": "logical_index", "type": "type_index"}
    path = f"{prefix}agent_id"
    return {
        path: path,
        f"{prefix}agent_type": f"{path}.type",
        **{f"{prefix}agent_{word}_index": f"{path}.{column}" for word, column in indexes.items()},
    }


QUERIES: Mapping[str, Query] = {
    "process": Query(
        "info_process",
        {
            **_same("nid ppid pid init fini start end command extdata"),
            "process": "id",
            **_same("machine_id system_name hostname", "nid."),
            "system_release": "nid.release",
            "system_version": "nid.version",
        },
        {Missing.NODE: "nid"},
    ),
    "node": Query(
        "info_node",
        _same("id hash machine_id system_name hostname release version hardware_name domain_name"),
    ),
    "agent": Query(
        "info_agent",
        {
            **_OWNED,
            **_same("type absolute_index logical_index type_index uuid"),
            **_same("name model_name vendor_name product_name user_name extdata"),
        },
    ),
    "thread": Query("info_thread", {**_OWNED, **_same("ppid tid start end name extdata")}),
    "queue": Query("info_queue", {**_OWNED, **_same("name extdata")}),
    "stream": Query("info_stream", {**_OWNED, **_same("name extdata")}, {Missing.PROCESS: "pid"}),
    "track": Query("track", {**_ON_THREAD, "name": "name_id.string", "extdata": "extdata"}),
    "code_object": Query(
        "info_code_object",
        {
            **_OWNED,
            **_same("agent_id uri storage_type extdata load_base load_size load_delta"),
            "agent_abs_index": "agent_id.absolute_index",
        },
        {Missing.AGENT: "agent_id", Missing.PROCESS: "pid"},
    ),
    "symbol": Query(
        "info_kernel_symbol",
        {
            **_OWNED,
            **_same("kernel_name display_name extdata code_object_id kernel_object kernarg_segment_size"),
            **_same("kernarg_segment_alignment group_segment_size private_segment_size sgpr_count arch_vgpr_count"),
            **_same("accum_vgpr_count"),
        },
        {Missing.PROCESS: "pid"},
    ),
    "pmc": Query(
        "info_pmc",
        {
            **_OWNED,
            **_same("target_arch name symbol description long_description component units value_type block expression"),
            **_same("extdata agent_id event_code instance_id is_constant is_derived spm_support"),
            "agent_abs_index": "agent_id.absolute_index",
        },
        {Missing.AGENT: "agent_id", Missing.PROCESS: "pid"},
    ),
    "region": Query(
        "region", {**_ON_THREAD, **_SPAN, "name": "name_id.string", **_EVENT}, {**_JOINED, Missing.NAME: "name_id"}
    ),
    "instant": Query(
        "sample",
        {
            **_same("id timestamp track_id"),
            "nid": "track_id.nid",
            "process": "track_id.pid",
            "pid": "track_id.pid.pid",
            "tid": "track_id.tid.tid",
            "name": "track_id.name_id.string",
            **_EVENT,
        },
        {
            Missing.TRACK: "track_id",
            Missing.EVENT: "event_id",
            Missing.PROCESS: "track_id.pid",
            Missing.THREAD: "track_id.tid",
        },
    ),
    "dispatch": Query(
        "kernel_dispatch",
        {
            **_ON_THREAD,
            **_SPAN,
            **_same("kernel_id dispatch_id stream_id queue_id"),
            **_GRAPH,
            **_agent(),
            "queue_pid": "queue_id.pid.pid",
            "region": "region_name_id.string",
            "name": "kernel_id.display_name",
            "queue": "queue_id.name",
            "stream": "stream_id.name",
            **{f"grid_{axis}": f"grid_size_{axis}" for axis in "xyz"},
            **{f"workgroup_{axis}": f"workgroup_size_{axis}" for axis in "xyz"},
            "lds_size": "group_segment_size",
            "scratch_size": "private_segment_size",
            **_same("code_object_id accum_vgpr_count sgpr_count", "kernel_id."),
            "vgpr_count": "kernel_id.arch_vgpr_count",
            "static_lds_size": "kernel_id.group_segment_size",
            "static_scratch_size": "kernel_id.private_segment_size",
            **_EVENT,
        },
        {
            **_JOINED,
            Missing.AGENT: "agent_id",
            Missing.REGION: "region_name_id",
            Missing.NAME: "kernel_id",
            Missing.QUEUE: "queue_id.pid",
        },
    ),
    "copy": Query(
        "memory_copy",
        {
            **_ON_THREAD,
            **_SPAN,
            **_QUEUED,
            **_GRAPH,
            **_same("size dst_address src_address"),
            "name": "name_id.string",
            "region_name": "region_name_id.string",
            **_agent("dst_"),
            **_agent("src_"),
            "dst_device": "dst_agent_id.name",
            "src_device": "src_agent_id.name",
            **_EVENT,
        },
        {**_JOINED, Missing.NAME: "name_id", Missing.AGENT: "dst_agent_id", Missing.SOURCE: "src_agent_id"},
    ),
    "allocation": Query(
        "memory_allocate",
        {
            **_ON_THREAD,
            **_SPAN,
            **_QUEUED,
            **_same("type level address size"),
            **_agent(),
            "agent_name": "agent_id.name",
            **_EVENT,
        },
        _JOINED,
    ),
    "graph_launch": Query(
        "graph_launch",
        {
            **_ON_THREAD,
            **_SPAN,
            **_same("queue_id graph_exec_id kernel_dispatch_count"),
            **_agent(),
            "queue": "queue_id.name",
            **_EVENT,
        },
        _JOINED,
    ),
    "argument": Query("arg", {**_same("id position type name value"), **_EVENT}, {Missing.EVENT: "event_id"}),
    "counter": Query(
        "pmc_event",
        {
            **_same("id value sample_id xcc shader_engine shader_array wgp instance"),
            "counter_id": "pmc_id",
            "counter_name": "pmc_id.name",
            "counter_symbol": "pmc_id.symbol",
            **_same("component description block expression value_type is_constant is_derived", "pmc_id."),
            "timestamp": "sample_id.timestamp",
            **_EVENT,
        },
        {Missing.EVENT: "event_id", Missing.COUNTER: "pmc_id", Missing.SAMPLE: "sample_id"},
    ),
}
"""The source of each of our tables."""


def list_read_columns(adapt: Callable[[Query], Query], find_referred: Callable[[str], str]) -> dict[str, set[str]]:
    """Return the columns of each of RocPD's tables that are read, in the words of a database."""
    found: dict[str, set[str]] = {"metadata": {"id", "tag", "value"}}
    for query in map(adapt, QUERIES.values()):
        for path in query.paths.values():
            table = query.table
            for column in ("start", "end") if path == DURATION else path.split("."):
                found.setdefault(table, {"id", "guid"}).add(column)
                table = find_referred(column) if column in REFERENCES else table
    return found
