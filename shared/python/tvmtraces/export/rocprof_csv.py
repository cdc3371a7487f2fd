"""The CSV files that rocprofv3 and AMD's `rocpd convert -f csv` write: a folder of them, their names, their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmtraces.connection import Traces
from tvmtraces.filters import Filters
from tvmtraces.reading import Progress
from tvmtraces.sources import find


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
_TEXTS = frozenset({"Guid", "Kind", "Domain", "Function", "Operation", "Direction", "Address"})
"""Columns that AMD quotes, beside names and agents."""
FILES: Mapping[str, CsvFile] = {
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
        for title, file in FILES.items():
            source = f"{file.view} WHERE {file.where}"
            rows = int(traces.execute(f"SELECT count(*) FROM {source}").fetchall()[0][0])  # noqa: S608 - our own words
            if rows:
                columns = dict(part.split("=", 1) for part in file.columns.split("; "))
                listed = ", ".join(f'{sql} AS "{column}"' for column, sql in columns.items())
                quoted = [name for name in columns if name in _TEXTS or name.endswith(("_Name", "Agent_Id"))]
                options = f"FORMAT csv, HEADER, FORCE_QUOTE ({', '.join(quoted)})"
                traces.copy(f'SELECT {listed} FROM {source} ORDER BY "start"', folder / f"{title}.csv", options)  # noqa: S608
                written[title] = rows
    files = ", ".join(f"{name}.csv ({rows} rows)" for name, rows in written.items())
    return files or "no file, as there are no kernels, copies, allocations or calls"
