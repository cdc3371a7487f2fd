"""AMD's own SQL and Python, where a checkout of ROCm/rocm-systems is at hand: databases made by it, and what it says.

`TVMDASH_ROCM_SYSTEMS` names the checkout. Nothing of it is copied: the tables and views are created by its files, the
rows are ours.
"""

from __future__ import annotations

import functools
import importlib
import os
import random
import sqlite3
import sys
import types
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VARIABLE = "TVMDASH_ROCM_SYSTEMS"
SDK = "projects/rocprofiler-sdk/source"
SQL = f"{SDK}/share/rocprofiler-sdk-rocpd"
SYSTEMS = "projects/rocprofiler-systems/source/lib/core/rocpd/data_storage/schema"
SCRIPTS = ("rocpd_tables", "rocpd_views", "data_views", "summary_views")
MULTIPLIED = {
    "threads": "joins processes by their number alone",
    "memory_allocations": "joins threads by their number alone",
    "memory_allocation_summary": "sums memory_allocations up",
}
"""Views of AMD's that show a row once for each writer in the files, with the reason; ours show it once."""
BEGIN_NS = 1_795_000_000_000_000_000


def checkout() -> Path | None:
    """The checkout of AMD's source, or None."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named and (Path(named) / SQL / "data_views.sql").is_file() else None


@dataclass(frozen=True)
class Schema:
    """One version, or flavour, of the schema: the texts of its scripts."""

    name: str
    scripts: dict[str, str]

    def statements(self, names: Iterable[str], suffix: str = "", guid: str = "") -> str:
        """Some scripts for one writer."""
        text = "\n".join(self.scripts[name] for name in names)
        return text.replace("{{uuid}}", suffix).replace("{{guid}}", guid)


@functools.cache
def schemas() -> dict[str, Schema]:
    """Every version in the checkout, and rocprofiler-systems' flavour."""
    root = checkout()
    if root is None:
        return {}
    folders = {path.name: path for path in sorted((root / SQL / "versions").glob("3.*")) if path.is_dir()}
    folders |= {"current": root / SQL, "systems": root / SYSTEMS}
    found = {}
    for name, folder in folders.items():
        there = {script: folder / f"{script}.sql" for script in SCRIPTS}
        if name == "systems" and not there["data_views"].is_file():
            continue
        texts = {script: (path if path.is_file() else root / SQL / path.name) for script, path in there.items()}
        found[name] = Schema(name, {script: path.read_text() for script, path in texts.items()})
    return found


class Writer:
    """Rows of one writer (a uuid): many processes, agents of several kinds, references that lead nowhere."""

    def __init__(self, database: sqlite3.Connection, schema: Schema, number: int, *, holes: bool) -> None:
        self._chance = random.Random(number)
        self.guid = f"0197{number:04d}-0000-7000-8000-000000000000"
        self._suffix = "_" + self.guid.replace("-", "_")
        self._database, self._holes = database, holes
        database.executescript(schema.statements(["rocpd_tables"], self._suffix, self.guid))
        database.execute("PRAGMA foreign_keys = OFF")
        self._nic = "'NIC'" in schema.scripts["rocpd_tables"]
        self._columns = {
            name.removesuffix(self._suffix).removeprefix("rocpd_"): {
                row[1]: bool(row[3]) for row in database.execute(f'PRAGMA table_info("{name}")')
            }
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            if name.endswith(self._suffix)
        }

    def put(self, table: str, **row: Any) -> int:
        """Insert a row, as far as the schema has its columns; its id, 0 where there is no such table.

        What must not be NULL leads nowhere instead.
        """
        there = self._columns.get(table)
        if there is None:
            return 0
        known = {name: 9999 if value is None and there[name] else value for name, value in row.items() if name in there}
        names, marks = ", ".join(f'"{name}"' for name in known), ", ".join("?" * len(known))
        query = f'INSERT INTO "rocpd_{table}{self._suffix}" ({names}) VALUES ({marks})'
        return int(self._database.execute(query, list(known.values())).lastrowid or 0)

    def some(self, *values: Any) -> Any:
        """One of the values, now and then nothing or what is not there."""
        if self._holes and self._chance.random() < 0.1:
            return self._chance.choice((None, 9999))
        return self._chance.choice(values)

    def write(self, processes: int, calls: int) -> None:
        """Everything that so many processes leave."""
        self.strings = [self.put("string", string=f"text {index}") for index in range(6)]
        nodes = [
            self.put("info_node", hash=index, machine_id=f"{self.guid}-{index}", hostname=f"host{index}", release="6")
            for index in range(2)
        ]
        for number in range(processes):
            self._write_process(nodes[number % 2], number, calls)

    def _write_process(self, node: int, number: int, calls: int) -> None:
        chance, holes = self._chance, self._holes
        pid = self.put(
            "info_process", nid=9999 if holes and number == 3 else node, ppid=1, pid=700 + number // 2, start=BEGIN_NS,
            end=BEGIN_NS + 10**9, init=BEGIN_NS, fini=BEGIN_NS, command=f"run {number}",
        )  # fmt: skip
        place = {"nid": node, "pid": pid}
        self.place = place
        self.threads = [self.put("info_thread", **place, ppid=5, tid=40 + index, name="t") for index in range(2)]
        kinds = ["CPU", "GPU", "GPU", *(["NIC"] if self._nic else [])]
        self.agents = [
            self.put(
                "info_agent", **place, type=kind, absolute_index=index, logical_index=index, type_index=index, name=kind
            )
            for index, kind in enumerate(kinds)
        ]
        queues = [self.put("info_queue", **place, name=f"queue {index}") for index in range(2)]
        streams = [self.put("info_stream", **place, name=f"stream {index}", extdata='{"a": 1}') for index in range(2)]
        self.queued = {"queue_id": queues[0], "stream_id": streams[0]}
        code = self.put(
            "info_code_object", **place, agent_id=self.some(*self.agents), uri="file:///k", load_base=4096,
            load_size=10, load_delta=2, storage_type="FILE", extdata='{"size": 5, "storage_type": 1, "memory_base": 7}',
        )  # fmt: skip
        symbols = [
            self.put(
                "info_kernel_symbol", **place, code_object_id=code, kernel_name=f"k{index}.kd", sgpr_count=index,
                display_name=None if holes and index == 2 else f"kernel {index}", group_segment_size=3,
                private_segment_size=4, arch_vgpr_count=8, accum_vgpr_count=9,
                extdata='{"size": 3, "formatted_kernel_name": "f(1)", "kernel_address": {"handle": 9}}',
            )
            for index in range(3)
        ]  # fmt: skip
        counters = [
            self.put(
                "info_pmc", **place, agent_id=self.some(*self.agents), name=f"WAVES{index}", symbol=f"W{index}",
                target_arch="GPU", component="c", description="d", block="b", expression="e", value_type="ABS",
                is_constant=0, is_derived=index,
            )
            for index in range(2)
        ]  # fmt: skip
        tracks = [
            self.put(
                "track", nid=node, pid=self.some(pid), tid=self.some(*self.threads), name_id=self.some(*self.strings)
            )
            for _ in range(3)
        ]
        for index in range(calls):
            begin = BEGIN_NS + 1000 * index + chance.randrange(1000)
            span = {**place, "tid": self.some(*self.threads), "start": begin, "end": begin + chance.randrange(1, 5000)}
            self._write_kernel(span, index, symbols, counters, tracks)
            self._write_region(span, streams)
            self._write_memory(span)
            sample = self.put("sample", track_id=self.some(*tracks), timestamp=begin, event_id=self._event())
            self.put("graph_launch", **span, **self._where(), graph_exec_id=index, event_id=self._event())
            self.put("pmc_event", event_id=self._event(), sample_id=sample, pmc_id=counters[0], value=1.5)

    def _where(self) -> dict[str, Any]:
        return {"agent_id": self.some(*self.agents), "queue_id": self.some(self.queued["queue_id"])}

    def _event(self) -> int:
        event = self.put(
            "event", category_id=self.some(*self.strings), stack_id=self.some(1, 2), parent_stack_id=0,
            correlation_id=4, extdata=self._chance.choice(('{"message": "hi"}', "{}")), call_stack="{}", line_info="{}",
        )  # fmt: skip
        return int(self.some(event) or 0) or None  # type: ignore[return-value]

    def _write_kernel(
        self, span: dict[str, Any], index: int, symbols: Sequence[int], counters: Sequence[int], tracks: Sequence[int]
    ) -> None:
        event = self._event()
        sizes = {
            f"{kind}_size_{axis}": self._chance.randrange(1, 9) for kind in ("workgroup", "grid") for axis in "xyz"
        }
        self.put(
            "kernel_dispatch", **span, **self._where(), **sizes, stream_id=self.queued["stream_id"], dispatch_id=index,
            kernel_id=self.some(*symbols), region_name_id=self.some(*self.strings), event_id=event,
            private_segment_size=1, group_segment_size=2, graph_exec_id=index % 3, graph_node_id=1,
        )  # fmt: skip
        for counter in counters:
            for value in (0.5, 2.0):
                self.put("pmc_event", event_id=event, pmc_id=self.some(counter), value=value)
        sample = self.put("sample", track_id=tracks[0], timestamp=span["start"], event_id=event)
        self.put(
            "pmc_event", event_id=event, pmc_id=counters[0], value=index / 3, sample_id=sample, xcc=1, shader_engine=2,
            shader_array=3, wgp=4, instance=5,
        )  # fmt: skip

    def _write_region(self, span: dict[str, Any], streams: Sequence[int]) -> None:
        event = self._event()
        self.put("region", **span, name_id=self.some(*self.strings), event_id=event)
        if event:
            self.put("arg", event_id=event, position=0, type="int", name="size", value="12")
            extra = f'{{"stream_id": {self._chance.choice(streams)}}}'
            self.put("arg", event_id=event, position=1, type="hipStream_t", name="stream", value="0x1", extdata=extra)

    def _write_memory(self, span: dict[str, Any]) -> None:
        self.put(
            "memory_copy", **span, **self.queued, name_id=self.some(*self.strings), size=64, dst_address=1,
            dst_agent_id=self.some(*self.agents), src_agent_id=self.some(*self.agents), src_address=2,
            region_name_id=self.some(*self.strings), event_id=self._event(), graph_exec_id=2, graph_node_id=3,
        )  # fmt: skip
        for level, kind in (("REAL", "ALLOC"), ("SCRATCH", "FREE"), ("VIRTUAL", "ALLOC")):
            self.put(
                "memory_allocate", **span, **self._where(), stream_id=self.queued["stream_id"], type=kind, level=level,
                address=77, size=32, event_id=self._event(), extdata='{"flags": "x"}',
            )  # fmt: skip


def write(path: Path, schema: Schema, writers: Sequence[int], *, processes: int, calls: int, holes: bool) -> None:
    """A database of AMD's tables with so many writers, and as AMD merges such, views over all of them."""
    with closing(sqlite3.connect(path)) as database:
        made = [Writer(database, schema, number, holes=holes) for number in writers]
        for writer in made:
            writer.write(processes, calls)
        _unite(database, ["_" + writer.guid.replace("-", "_") for writer in made])
        database.commit()
        database.executescript(schema.statements(["data_views", "summary_views"]))


def _unite(database: sqlite3.Connection, suffixes: Sequence[str]) -> None:
    """A view for each kind of table, over those of all writers."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%'"
    tables = [str(row[0]) for row in database.execute(query)]
    bases = {table.removesuffix(suffix) for table in tables for suffix in suffixes if table.endswith(suffix)}
    for base in sorted(bases):
        parts = " UNION ALL ".join(f'SELECT * FROM "{base}{suffix}"' for suffix in suffixes)
        database.execute(f'CREATE VIEW "{base}" AS {parts}')


def import_rocpd(schema: Schema) -> types.ModuleType:
    """AMD's importer in Python; its compiled half is stood in for by what it does of SQLite."""
    root = checkout()
    assert root is not None
    for name in [name for name in sys.modules if name.split(".")[0] == "rocpd"]:
        del sys.modules[name]
    package = types.ModuleType("rocpd")
    package.__path__ = [str(root / SDK / "lib" / "python" / "rocpd")]
    compiled: Any = types.ModuleType("rocpd.libpyrocpd")

    class Imported:
        def __init__(self, connection: sqlite3.Connection, filenames: list[str]) -> None:
            self.connection, self.filenames = connection, filenames

    def load_schema(_engine: object, kind: str, _options: object, variables: Any) -> str:
        text = schema.scripts.get(kind, "")
        return text.replace("{{uuid}}", variables.uuid).replace("{{guid}}", variables.guid)

    compiled.connect = sqlite3.connect
    compiled.output_config = type("output_config", (), {})
    compiled.RocpdImportData = Imported
    compiled.load_schema = load_schema
    compiled.schema_jinja_variables = types.SimpleNamespace
    kinds = ("rocpd_tables", "rocpd_indexes", "rocpd_views", "data_views", "summary_views", "marker_views")
    compiled.sql_schema = types.SimpleNamespace(**{kind: kind.replace("rocpd_views", "") for kind in kinds})
    compiled.sql_engine = types.SimpleNamespace(sqlite3="sqlite3")
    compiled.sql_option = types.SimpleNamespace(sqlite3_pragma_foreign_keys=1, none=0)
    package.libpyrocpd = compiled  # type: ignore[attr-defined]
    sys.modules |= {"rocpd": package, "rocpd.libpyrocpd": compiled}
    return importlib.import_module("rocpd.importer")


def views_of(schema: Schema) -> list[str]:
    """The names of AMD's views for people, of a schema."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(schema.statements(SCRIPTS, "_u", "g"))
        rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'view' AND name NOT LIKE 'rocpd%'")
        return sorted(row[0] for row in rows)


def tables_of(schema: Schema) -> list[str]:
    """The names of AMD's views over the tables of all writers."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(schema.statements(["rocpd_tables", "rocpd_views"], "_u", "g"))
        rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'view' AND name LIKE 'rocpd%'")
        return sorted(row[0] for row in rows)


def rows_of(database: Any, view: str, columns: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """The columns of a view, and its rows as texts, sorted: the same number is the same text, whoever gives it."""
    chosen = ", ".join(f'"{name}"' for name in columns) or "*"
    cursor = database.execute(f"SELECT {chosen} FROM {view}")
    rows = sorted("|".join(map(_format, row)) for row in cursor.fetchall())
    return [column[0] for column in cursor.description], rows


def _format(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else "" if value is None else str(value)
