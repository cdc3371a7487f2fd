"""RocPD-like databases for benchmarks and tests, written by our own generator, and RocPD's way of reading many as one.

Tables and columns are named as rocprofv3's schema 3 has them; a database holds what rocprofv3 leaves of a process that
launched kernels.
"""

from __future__ import annotations

import random
import sqlite3
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_OWN = "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT DEFAULT '{guid}' NOT NULL"
_EXTRA = "extdata JSONB DEFAULT '{{}}' NOT NULL"
TABLES = {
    "rocpd_string": f"{_OWN}, string TEXT NOT NULL UNIQUE",
    "rocpd_info_node": f"{_OWN}, hash BIGINT NOT NULL UNIQUE, machine_id TEXT NOT NULL UNIQUE, system_name TEXT, "
    "hostname TEXT, release TEXT, version TEXT, hardware_name TEXT, domain_name TEXT",
    "rocpd_info_process": f"{_OWN}, nid INTEGER NOT NULL, ppid INTEGER, pid INTEGER NOT NULL, "
    f'init BIGINT, fini BIGINT, start BIGINT, "end" BIGINT, command TEXT, '
    f"environment JSONB DEFAULT '{{{{}}}}' NOT NULL, {_EXTRA}",
    "rocpd_info_thread": f"{_OWN}, nid INTEGER NOT NULL, ppid INTEGER, pid INTEGER NOT NULL, tid INTEGER NOT NULL, "
    f'name TEXT, start BIGINT, "end" BIGINT, {_EXTRA}',
    "rocpd_info_agent": f"{_OWN}, nid INTEGER NOT NULL, pid INTEGER NOT NULL, type TEXT, absolute_index INTEGER, "
    "logical_index INTEGER, type_index INTEGER, uuid INTEGER, name TEXT, model_name TEXT, vendor_name TEXT, "
    f"product_name TEXT, user_name TEXT, {_EXTRA}",
    "rocpd_info_queue": f"{_OWN}, nid INTEGER NOT NULL, pid INTEGER NOT NULL, name TEXT, {_EXTRA}",
    "rocpd_info_stream": f"{_OWN}, nid INTEGER NOT NULL, pid INTEGER NOT NULL, name TEXT, {_EXTRA}",
    "rocpd_info_pmc": f"{_OWN}, nid INTEGER NOT NULL, pid INTEGER NOT NULL, agent_id INTEGER, target_arch TEXT, "
    "name TEXT NOT NULL, symbol TEXT NOT NULL, description TEXT, component TEXT, units TEXT, value_type TEXT, "
    f"block TEXT, expression TEXT, is_constant INTEGER, is_derived INTEGER, {_EXTRA}",
    "rocpd_info_kernel_symbol": f"{_OWN}, nid INTEGER NOT NULL, pid INTEGER NOT NULL, code_object_id INTEGER NOT NULL, "
    "kernel_name TEXT, display_name TEXT, kernel_object INTEGER, kernarg_segment_size INTEGER, "
    "kernarg_segment_alignment INTEGER, group_segment_size INTEGER, private_segment_size INTEGER, sgpr_count INTEGER, "
    f"arch_vgpr_count INTEGER, accum_vgpr_count INTEGER, {_EXTRA}",
    "rocpd_track": f"{_OWN}, nid INTEGER NOT NULL, pid INTEGER, tid INTEGER, name_id INTEGER, {_EXTRA}",
    "rocpd_event": f"{_OWN}, category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER, correlation_id INTEGER, "
    f"call_stack JSONB DEFAULT '{{{{}}}}' NOT NULL, line_info JSONB DEFAULT '{{{{}}}}' NOT NULL, {_EXTRA}",
    "rocpd_pmc_event": f"{_OWN}, event_id INTEGER, pmc_id INTEGER NOT NULL, value REAL DEFAULT 0.0, {_EXTRA}",
    "rocpd_region": f"{_OWN}, nid INTEGER NOT NULL, pid INTEGER NOT NULL, tid INTEGER NOT NULL, start BIGINT NOT NULL, "
    f'"end" BIGINT NOT NULL, name_id INTEGER NOT NULL, event_id INTEGER, {_EXTRA}',
    "rocpd_sample": f"{_OWN}, track_id INTEGER NOT NULL, timestamp BIGINT NOT NULL, event_id INTEGER, {_EXTRA}",
    "rocpd_kernel_dispatch": f"{_OWN}, nid INTEGER NOT NULL, pid INTEGER NOT NULL, tid INTEGER, "
    "agent_id INTEGER NOT NULL, kernel_id INTEGER NOT NULL, dispatch_id INTEGER NOT NULL, "
    "queue_id INTEGER NOT NULL, stream_id INTEGER NOT NULL, "
    'start BIGINT NOT NULL, "end" BIGINT NOT NULL, private_segment_size INTEGER, group_segment_size INTEGER, '
    "workgroup_size_x INTEGER NOT NULL, workgroup_size_y INTEGER NOT NULL, workgroup_size_z INTEGER NOT NULL, "
    "grid_size_x INTEGER NOT NULL, grid_size_y INTEGER NOT NULL, grid_size_z INTEGER NOT NULL, region_name_id INTEGER, "
    f"event_id INTEGER, {_EXTRA}",
    "rocpd_memory_copy": f"{_OWN}, nid INTEGER NOT NULL, pid INTEGER NOT NULL, tid INTEGER, start BIGINT NOT NULL, "
    '"end" BIGINT NOT NULL, name_id INTEGER NOT NULL, dst_agent_id INTEGER, dst_address INTEGER, src_agent_id INTEGER, '
    "src_address INTEGER, size INTEGER NOT NULL, queue_id INTEGER, stream_id INTEGER, region_name_id INTEGER, "
    f"event_id INTEGER, {_EXTRA}",
}
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


def write(
    path: Path, rows: Sequence[Kernel], names: Sequence[str], *, pid: int, version: str = "3", more: bool = False
) -> str:
    """Write a database; its process's guid. With `more`: a region, a copy, a sample and counters too."""
    guid = str(uuid.UUID(int=random.Random(pid).getrandbits(128), version=4))
    suffix = "_" + guid.replace("-", "_")
    database = sqlite3.connect(path)
    database.execute("PRAGMA synchronous = OFF")
    create(database, suffix, guid, version)
    put = _Put(database, suffix)
    strings = [*CATEGORIES, "", *(f"region {name}" for name in names)]
    put("string", "string", ([text] for text in strings))
    put("info_node", "hash, machine_id, hostname, system_name", [[pid, f"machine-{pid}", "gpu-node", "Linux"]])
    first, last = (rows[0].start_ns, rows[-1].start_ns + rows[-1].duration_ns) if rows else (0, 0)
    put("info_process", 'nid, ppid, pid, start, "end", command', [[1, 1, pid, first, last, "python3 model.py"]])
    put("info_thread", 'nid, ppid, pid, tid, name, start, "end"', [[1, 1, 1, pid + 1, "main", first, last]])
    agents = [[1, 1, "GPU", 1, 0, 0, "gfx942"], [1, 1, "CPU", 0, 0, 0, "EPYC"]]
    put("info_agent", "nid, pid, type, absolute_index, logical_index, type_index, name", agents)
    put("info_queue", "nid, pid, name", [[1, 1, "Queue 0"]])
    put("info_stream", "nid, pid, name", [[1, 1, "Stream 0"]])
    symbols = ([1, 1, 1, f"{name}.kd", name, 0, 0, 32, 64, 0] for name in names)
    columns = (
        "nid, pid, code_object_id, kernel_name, display_name, group_segment_size, private_segment_size, sgpr_count"
    )
    put("info_kernel_symbol", columns + ", arch_vgpr_count, accum_vgpr_count", symbols)
    events = "category_id, stack_id, parent_stack_id, correlation_id"
    put("event", events, ([1, index, 0, index] for index in range(1, len(rows) + 1)))
    columns = (
        'nid, pid, tid, agent_id, kernel_id, dispatch_id, queue_id, stream_id, start, "end", private_segment_size, '
    )
    columns += "group_segment_size, workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, "
    shape = (0, 0, 256, 1, 1, 65536, 1, 1, 4)
    dispatches = (
        [1, 1, 1, 1, row.name + 1, index, 1, 1, row.start_ns, row.start_ns + row.duration_ns, *shape, index]
        for index, row in enumerate(rows, start=1)
    )
    put("kernel_dispatch", columns + "grid_size_z, region_name_id, event_id", dispatches)
    if more:
        _more(put, len(rows), first)
    database.commit()
    database.close()
    return guid


def create(database: sqlite3.Connection, suffix: str, guid: str, version: str = "3") -> None:
    """The tables of one process, and what its metadata says."""
    database.execute(f'CREATE TABLE "rocpd_metadata{suffix}" (id INTEGER PRIMARY KEY, tag TEXT, value TEXT)')
    for tag, value in (("schema_version", version), ("uuid", suffix), ("guid", guid)):
        database.execute(f'INSERT INTO "rocpd_metadata{suffix}" (tag, value) VALUES (?, ?)', (tag, value))
    for name, columns in TABLES.items():
        database.execute(f'CREATE TABLE "{name}{suffix}" ({columns.format(guid=guid)})')
        database.execute(f'CREATE VIEW IF NOT EXISTS "{name}" AS SELECT * FROM "{name}{suffix}"')


class _Put:
    def __init__(self, database: sqlite3.Connection, suffix: str) -> None:
        self.database, self.suffix = database, suffix

    def __call__(self, table: str, columns: str, rows: Iterable[Sequence[object]]) -> None:
        marks = ", ".join("?" for _ in columns.split(","))
        self.database.executemany(f'INSERT INTO "rocpd_{table}{self.suffix}" ({columns}) VALUES ({marks})', rows)


def _more(put: _Put, kernels_written: int, first_ns: int) -> None:
    put(
        "event",
        "category_id, stack_id, parent_stack_id, correlation_id, extdata",
        [[2, 9, 0, 9, "{}"], [3, 8, 0, 8, "{}"]],
    )
    api, copy = kernels_written + 1, kernels_written + 2
    put("region", 'nid, pid, tid, start, "end", name_id, event_id', [[1, 1, 1, first_ns - 50, first_ns + 50, 5, api]])
    columns = 'nid, pid, tid, start, "end", name_id, dst_agent_id, src_agent_id, size, queue_id, stream_id, event_id'
    put("memory_copy", columns, [[1, 1, 1, first_ns - 40, first_ns - 10, 6, 1, 2, 4096, 1, None, copy]])
    put("track", "nid, pid, tid, name_id", [[1, 1, 1, 5]])
    put("sample", "track_id, timestamp, event_id", [[1, first_ns + 1, api]])
    put("info_pmc", "nid, pid, agent_id, name, symbol, value_type", [[1, 1, 1, "SQ_WAVES", "SQ_WAVES", "ABS"]])
    put("pmc_event", "event_id, pmc_id, value", [[1, 1, 2.5], [1, 1, 4.0]])


KERNELS_VIEW = """
CREATE TEMP VIEW kernels AS SELECT K.id, K.guid, T.tid,
  (SELECT string FROM rocpd_string C WHERE C.id = E.category_id AND C.guid = E.guid) AS category, R.string AS region,
  S.display_name AS name, K.nid, P.pid, A.absolute_index AS agent_abs_index, A.type AS agent_type, K.kernel_id,
  K.dispatch_id, K.stream_id, K.queue_id, Q.name AS queue, W.name AS stream, K.start, K."end",
  (K."end" - K.start) AS duration, K.event_id, E.stack_id, E.correlation_id AS corr_id
FROM rocpd_kernel_dispatch K
  JOIN rocpd_info_agent A ON A.id = K.agent_id AND A.guid = K.guid
  JOIN rocpd_event E ON E.id = K.event_id AND E.guid = K.guid
  JOIN rocpd_string R ON R.id = K.region_name_id AND R.guid = K.guid
  JOIN rocpd_info_kernel_symbol S ON S.id = K.kernel_id AND S.guid = K.guid
  LEFT JOIN rocpd_info_stream W ON W.id = K.stream_id AND W.guid = K.guid
  LEFT JOIN rocpd_info_queue Q ON Q.id = K.queue_id AND Q.guid = K.guid
  JOIN rocpd_info_process P ON P.id = Q.pid AND P.guid = Q.guid
  JOIN rocpd_info_thread T ON T.id = K.tid AND T.guid = K.guid"""


def attached(paths: Sequence[Path]) -> sqlite3.Connection:
    """RocPD's way: every file attached, a temporary UNION ALL view for each table, `kernels` as a view over those."""
    database = sqlite3.connect(":memory:")
    for index, path in enumerate(paths):
        database.execute(f"ATTACH '{path}' AS db{index}")
    for name in TABLES:
        parts = " UNION ALL ".join(f"SELECT * FROM db{index}.{name}" for index in range(len(paths)))
        database.execute(f"CREATE TEMP VIEW {name} AS {parts}")
    database.execute(KERNELS_VIEW)
    return database
