"""Where each column of our tables stands in a RocPD database, as data. The words of RocPD's schema 3.0.x."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Query:
    """One of our tables in terms of theirs, without the suffix and `rocpd_`.

    `columns` are written `alias.table.column`, or as plain SQL; `joins` are table, alias, condition, all of them left
    joins by id; `pools` says for a text column in which table's column its number is written out; rows in which
    `only_without` is not NULL are left out.
    """

    table: str
    alias: str
    columns: Mapping[str, str]
    joins: tuple[tuple[str, str, str], ...] = ()
    pools: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    only_without: str | None = None


def _same(alias: str, table: str, names: str) -> dict[str, str]:
    """Columns that have the same name there."""
    return {name: f"{alias}.{table}.{name}" for name in names.split()}


_STRING = ("string", "string")
_EVENT = {
    "event_id": "{0}.{1}.event_id",
    "stack_id": "E.event.stack_id",
    "parent_stack_id": "E.event.parent_stack_id",
    "corr_id": "E.event.correlation_id",
}
_SAID = {name: f"E.event.{name}" for name in ("extdata", "call_stack", "line_info")}


def _duration(alias: str) -> str:
    """End less start; of what are no whole numbers SQLite would make 0, so they come as a text, which is refused."""
    end, start = f'{alias}."end"', f"{alias}.start"
    whole = f"typeof({end}) = 'integer' AND typeof({start}) = 'integer'"
    return f"CASE WHEN {whole} THEN {end} - {start} WHEN {end} IS NOT NULL AND {start} IS NOT NULL THEN {end} || '' END"


def _event(alias: str, table: str) -> dict[str, str]:
    return {name: pattern.format(alias, table) for name, pattern in _EVENT.items()}


def _joins(alias: str, *more: tuple[str, str, str]) -> tuple[tuple[str, str, str], ...]:
    """The event of each row, its process, its thread, and what else it refers to."""
    return (
        ("event", "E", f"E.id = {alias}.event_id"),
        ("info_process", "P", f"P.id = {alias}.pid"),
        ("info_thread", "T", f"T.id = {alias}.tid"),
        *more,
    )


_PLACE = {"pid": "P.info_process.pid", "tid": "T.info_thread.tid", "category": "E.event.category_id"}


def _agent_columns(alias: str, prefix: str) -> dict[str, str]:
    return {
        f"{prefix}agent_abs_index": f"{alias}.info_agent.absolute_index",
        f"{prefix}agent_log_index": f"{alias}.info_agent.logical_index",
        f"{prefix}agent_type_index": f"{alias}.info_agent.type_index",
        f"{prefix}agent_type": f"{alias}.info_agent.id",
    }


_COUNTER_NAMES = {"counter_name": "name", "counter_symbol": "symbol"}
_COUNTER_WORDS = ("component", "description", "block", "expression", "value_type")

QUERIES: Mapping[str, Query] = {
    "process": Query(
        "info_process",
        "P",
        {
            **_same("P", "info_process", "nid ppid pid init fini start end command"),
            **_same("N", "info_node", "machine_id system_name hostname"),
            "system_release": "N.info_node.release",
            "system_version": "N.info_node.version",
            "process": "P.info_process.id",
        },
        joins=(("info_node", "N", "N.id = P.nid"),),
    ),
    "node": Query(
        "info_node",
        "N",
        _same("N", "info_node", "id hash machine_id system_name hostname release version hardware_name domain_name"),
    ),
    "agent": Query(
        "info_agent",
        "A",
        {
            **_same("A", "info_agent", "id nid type absolute_index logical_index type_index uuid"),
            **_same("A", "info_agent", "name model_name vendor_name product_name user_name extdata"),
            "process": "A.info_agent.pid",
            "pid": "P.info_process.pid",
        },
        joins=(("info_process", "P", "P.id = A.pid"),),
    ),
    "thread": Query(
        "info_thread",
        "T",
        {
            **_same("T", "info_thread", "nid ppid tid start end name"),
            "process": "T.info_thread.pid",
            "pid": "P.info_process.pid",
        },
        joins=(("info_process", "P", "P.id = T.pid"),),
    ),
    "region": Query(
        "region",
        "R",
        {
            **_same("R", "region", "id nid start"),
            "duration": _duration("R"),
            "name": "R.region.name_id",
            "process": "R.region.pid",
            **_PLACE,
            **_event("R", "region"),
            **_SAID,
        },
        joins=_joins("R"),
        pools={"name": _STRING, "category": _STRING},
    ),
    "instant": Query(
        "sample",
        "R",
        {
            **_same("R", "sample", "id timestamp"),
            "nid": "K.track.nid",
            "process": "K.track.pid",
            "name": "K.track.name_id",
            **_PLACE,
            **_event("R", "sample"),
            **_SAID,
        },
        joins=(("track", "K", "K.id = R.track_id"), _joins("R")[0], *_joins("K")[1:]),
        pools={"name": _STRING, "category": _STRING},
    ),
    "dispatch": Query(
        "kernel_dispatch",
        "K",
        {
            **_same("K", "kernel_dispatch", "id nid agent_id kernel_id dispatch_id stream_id queue_id start"),
            **_same("K", "kernel_dispatch", "graph_exec_id graph_node_id"),
            "duration": _duration("K"),
            "process": "K.kernel_dispatch.pid",
            "region": "K.kernel_dispatch.region_name_id",
            "name": "K.kernel_dispatch.kernel_id",
            "queue": "K.kernel_dispatch.queue_id",
            "stream": "K.kernel_dispatch.stream_id",
            **{f"grid_{axis}": f"K.kernel_dispatch.grid_size_{axis}" for axis in "xyz"},
            **{f"workgroup_{axis}": f"K.kernel_dispatch.workgroup_size_{axis}" for axis in "xyz"},
            "lds_size": "K.kernel_dispatch.group_segment_size",
            "scratch_size": "K.kernel_dispatch.private_segment_size",
            **_same("S", "info_kernel_symbol", "code_object_id accum_vgpr_count sgpr_count"),
            "vgpr_count": "S.info_kernel_symbol.arch_vgpr_count",
            "static_lds_size": "S.info_kernel_symbol.group_segment_size",
            "static_scratch_size": "S.info_kernel_symbol.private_segment_size",
            **_agent_columns("A", ""),
            **_PLACE,
            **_event("K", "kernel_dispatch"),
        },
        joins=_joins("K", ("info_agent", "A", "A.id = K.agent_id"), ("info_kernel_symbol", "S", "S.id = K.kernel_id")),
        pools={
            "category": _STRING,
            "region": _STRING,
            "name": ("info_kernel_symbol", "display_name"),
            "queue": ("info_queue", "name"),
            "stream": ("info_stream", "name"),
            "agent_type": ("info_agent", "type"),
        },
    ),
    "copy": Query(
        "memory_copy",
        "M",
        {
            **_same("M", "memory_copy", "id nid start stream_id queue_id graph_exec_id graph_node_id size"),
            **_same("M", "memory_copy", "dst_address src_address dst_agent_id src_agent_id"),
            "duration": _duration("M"),
            "process": "M.memory_copy.pid",
            "name": "M.memory_copy.name_id",
            "region_name": "M.memory_copy.region_name_id",
            "queue_name": "M.memory_copy.queue_id",
            "stream_name": "M.memory_copy.stream_id",
            "dst_device": "M.memory_copy.dst_agent_id",
            "src_device": "M.memory_copy.src_agent_id",
            **_agent_columns("D", "dst_"),
            **_agent_columns("F", "src_"),
            **_PLACE,
            **_event("M", "memory_copy"),
        },
        joins=_joins("M", ("info_agent", "D", "D.id = M.dst_agent_id"), ("info_agent", "F", "F.id = M.src_agent_id")),
        pools={
            "category": _STRING,
            "name": _STRING,
            "region_name": _STRING,
            "queue_name": ("info_queue", "name"),
            "stream_name": ("info_stream", "name"),
            "dst_device": ("info_agent", "name"),
            "src_device": ("info_agent", "name"),
            "dst_agent_type": ("info_agent", "type"),
            "src_agent_type": ("info_agent", "type"),
        },
    ),
    "counter": Query(
        "pmc_event",
        "C",
        {
            **_same("C", "pmc_event", "id event_id value"),
            "counter_id": "C.pmc_event.pmc_id",
            **_same("I", "info_pmc", "is_constant is_derived"),
            **dict.fromkeys((*_COUNTER_NAMES, *_COUNTER_WORDS), "C.pmc_event.pmc_id"),
        },
        joins=(("info_pmc", "I", "I.id = C.pmc_id"),),
        only_without="C.pmc_event.sample_id",
        pools={
            **{name: ("info_pmc", column) for name, column in _COUNTER_NAMES.items()},
            **{name: ("info_pmc", name) for name in _COUNTER_WORDS},
        },
    ),
}
