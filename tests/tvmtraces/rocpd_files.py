"""RocPD databases with kernels as a process of rocprofv3 leaves them, in the tables and views that `convert` writes."""

from __future__ import annotations

import random
import re
import sqlite3
import uuid
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tvmtraces.rocpd_schema import make_tables
from tvmtraces.views import make_views

CATEGORIES = ("KERNEL_DISPATCH", "HIP_API", "MEMORY_COPY")


@dataclass(frozen=True)
class Kernel:
    """One kernel: the number of its name, its begin and its length in ns."""

    name: int
    start_ns: int
    duration_ns: int


def kernels(count: int, seed: int, names: int = 40, begin_ns: int = 1_795_256_353_245_641_618) -> list[Kernel]:
    """Kernels one after the other, lengths log-normal about 13 µs."""
    chance = random.Random(seed)
    now, made = begin_ns, []
    for _ in range(count):
        duration = int(chance.lognormvariate(9.5, 1.0)) + 1
        made.append(Kernel(chance.randrange(names), now, duration))
        now += duration + chance.randrange(100, 3000)
    return made


def create(database: sqlite3.Connection, suffix: str, guid: str, version: str = "3") -> None:
    """The tables of one process, and what its metadata says."""
    for statement in make_tables(suffix, guid):
        database.execute(statement)
    facts = [("schema_version", version), ("uuid", suffix), ("guid", guid)]
    database.executemany(f'INSERT INTO "rocpd_metadata{suffix}" (tag, value) VALUES (?, ?)', facts)


def drop_keys(path: Path) -> None:
    """Let columns that refer to other tables be dropped: who does that wants another version of the schema."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA writable_schema = ON")
        for name, sql in database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
            plain = re.sub(r', FOREIGN KEY \("\w+"\) REFERENCES "[^"]+" \(id\) ON UPDATE CASCADE', "", sql)
            database.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (plain, name))
        for (view,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
            database.execute("DELETE FROM sqlite_master WHERE name = ?", (view,))


def write(
    path: Path, rows: Sequence[Kernel], names: Sequence[str], *, pid: int, version: str = "3", more: bool = False
) -> str:
    """Write a database; its process's guid. With `more`: a region, a copy, a sample and counters too."""
    guid = str(uuid.UUID(int=random.Random(pid).getrandbits(128), version=4))
    suffix = "_" + guid.replace("-", "_")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA synchronous = OFF")
        create(database, suffix, guid, version)
        put = _Put(database, suffix)
        put("string", "string", ([text] for text in [*CATEGORIES, "", *(f"region {name}" for name in names)]))
        put("info_node", "hash machine_id hostname system_name", [[pid, f"machine-{pid}", "gpu-node", "Linux"]])
        first, last = (rows[0].start_ns, rows[-1].start_ns + rows[-1].duration_ns) if rows else (0, 0)
        put("info_process", "nid ppid pid start end command", [[1, 1, pid, first, last, "python3 model.py"]])
        put("info_thread", "nid ppid pid tid name start end", [[1, 1, 1, pid + 1, "main", first, last]])
        agents = [[1, 1, "GPU", 1, 0, 0, "gfx942"], [1, 1, "CPU", 0, 0, 0, "EPYC"]]
        put("info_agent", "nid pid type absolute_index logical_index type_index name", agents)
        put("info_queue", "nid pid name", [[1, 1, "Queue 0"]])
        put("info_stream", "nid pid name", [[1, 1, "Stream 0"]])
        columns = "nid pid code_object_id kernel_name display_name group_segment_size private_segment_size sgpr_count"
        symbols = ([1, 1, 1, f"{name}.kd", name, 0, 0, 32, 64, 0] for name in names)
        put("info_kernel_symbol", f"{columns} arch_vgpr_count accum_vgpr_count", symbols)
        events = ([1, index, 0, index] for index in range(1, len(rows) + 1))
        put("event", "category_id stack_id parent_stack_id correlation_id", events)
        sizes = " ".join(f"{kind}_size_{axis}" for kind in ("workgroup", "grid") for axis in "xyz")
        shape = (0, 0, 256, 1, 1, 65536, 1, 1, 4)
        dispatches = (
            [1, 1, 1, 1, row.name + 1, index, 1, 1, row.start_ns, row.start_ns + row.duration_ns, *shape, index]
            for index, row in enumerate(rows, start=1)
        )
        columns = "nid pid tid agent_id kernel_id dispatch_id queue_id stream_id start end private_segment_size"
        put("kernel_dispatch", f"{columns} group_segment_size {sizes} region_name_id event_id", dispatches)
        if more:
            _put_more(put, len(rows), first)
        for statement in make_views([suffix]):
            database.execute(statement)
    return guid


class _Put:
    def __init__(self, database: sqlite3.Connection, suffix: str) -> None:
        self.database, self.suffix = database, suffix

    def __call__(self, table: str, columns: str, rows: Iterable[Sequence[object]]) -> None:
        names = [f'"{name}"' for name in columns.split()]
        query = f'INSERT INTO "rocpd_{table}{self.suffix}" ({", ".join(names)}) VALUES ({", ".join("?" * len(names))})'
        self.database.executemany(query, rows)


def _put_more(put: _Put, kernels_written: int, first_ns: int) -> None:
    put("event", "category_id stack_id parent_stack_id correlation_id", [[2, 9, 0, 9], [3, 8, 0, 8]])
    api, copy = kernels_written + 1, kernels_written + 2
    put("region", "nid pid tid start end name_id event_id", [[1, 1, 1, first_ns - 50, first_ns + 50, 5, api]])
    columns = "nid pid tid start end name_id dst_agent_id src_agent_id size queue_id stream_id event_id"
    put("memory_copy", columns, [[1, 1, 1, first_ns - 40, first_ns - 10, 6, 1, 2, 4096, 1, None, copy]])
    put("track", "nid pid tid name_id", [[1, 1, 1, 5]])
    put("sample", "track_id timestamp event_id", [[1, first_ns + 1, api]])
    put("info_pmc", "nid pid agent_id name symbol value_type", [[1, 1, 1, "SQ_WAVES", "SQ_WAVES", "ABS"]])
    put("pmc_event", "event_id pmc_id value", [[1, 1, 2.5], [1, 1, 4.0]])
