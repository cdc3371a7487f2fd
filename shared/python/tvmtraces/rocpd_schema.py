"""The tables of a RocPD database, schema 3.0.3, as data.

Names and columns are those of AMD's package (https://github.com/ROCm/rocm-systems, rocprofiler-sdk-rocpd), so that it
and whatever else reads such databases finds what it looks for. A table's name carries the suffix of its writer; a view
without the suffix stands for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
"""SQL types by a column's letter; behind it `!` is NOT NULL, `*` UNIQUE, `>table` a reference to a table's id."""

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
    """Yield the statements that create the empty tables of one writer; `suffix` and `guid` hold no quote."""
    for table, columns in TABLES.items():
        own = [] if table == "metadata" else [f"guid TEXT DEFAULT '{guid}' NOT NULL"]
        parts = ["id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", *own, *_format_columns(columns, suffix)]
        yield f'CREATE TABLE "rocpd_{table}{suffix}" ({", ".join(parts)})'


@dataclass(frozen=True)
class ColumnKind:
    """A column of a table: its letter in `_TYPES`, whether it must have a value, the table that its numbers are of."""

    letter: str
    needed: bool
    table: str


def read_columns(table: str) -> dict[str, ColumnKind]:
    """Return the columns of a table, without id and guid."""
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
