"""Small traces that the tests of `tvmtraces` read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from tvmdash.measure.capture import Capture, OperatorSpan, Reading, Region, Sample

BEGIN_NS = 1_795_000_000_000_000_000

FORMAT_1 = """
CREATE TABLE process (pid INTEGER, started_ns INTEGER, facts TEXT);
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE trials (id INTEGER PRIMARY KEY, point TEXT, started_ns INTEGER, ended_ns INTEGER, error TEXT, facts TEXT);
CREATE TABLE samples (trial INTEGER, position INTEGER, elapsed_ns INTEGER, number INTEGER,
    PRIMARY KEY (trial, position)) WITHOUT ROWID;
CREATE TABLE operators (trial INTEGER, repetition INTEGER, name INTEGER, start_ns INTEGER, duration_ns INTEGER);
CREATE TABLE passes (trial INTEGER, position INTEGER, name INTEGER, duration_ns INTEGER);
PRAGMA user_version = 1;
"""
"""What version 1 of the dashboard wrote; it stays readable for ever."""


def write_raw(
    folder: Path,
    spans: Sequence[tuple[str, int, int]] = (("matmul", 0, 70), ("relu", 80, 10), ("matmul", 100, 90)),
    *,
    host: str = "node",
    workload: str = "network.mlp",
    sample_ns: Sequence[int] = (2000, 4000),
    begun_ns: int = BEGIN_NS,
) -> Path:
    """The raw database of a process that measured one point; spans are name, start from `begun_ns`, duration."""
    folder.mkdir(parents=True, exist_ok=True)
    with Capture(folder, {"machine": {"host": host, "cpu_model": "EPYC"}, "engine": {"tvm_hash": "abc"}}) as capture:
        trial = capture.begin({"workload": workload, "values": {"batch": 1}, "engine": "tvm", "target": "llvm"})
        capture.end(
            trial,
            samples=[Sample(elapsed, 2) for elapsed in sample_ns],
            passes=[("FoldConstant", 500), ("FuseOps", 300)],
            operators=[OperatorSpan(0, *span) for span in spans],
            run_starts_ns=[begun_ns],
            regions=[Region("compile", "phase", begun_ns - 1000, 900)],
            telemetry=[Reading("load_1_min", "", 0.5)],
            facts={"compile_time": 1.5},
        )
    return max(folder.glob("raw_*.db"), key=lambda path: path.stat().st_mtime_ns)


def write_format_1(path: Path, pid: int = 7) -> Path:
    """A raw database of format 1: two runs of two operators, the trial ending at BEGIN_NS + 1000."""
    database = sqlite3.connect(path)
    database.executescript(FORMAT_1)
    facts = json.dumps({"machine": {"host": "old"}, "engine": {"tvm_hash": "old"}})
    database.execute("INSERT INTO process VALUES (?, ?, ?)", (pid, BEGIN_NS, facts))
    database.executemany("INSERT INTO names VALUES (?, ?)", [(1, "conv"), (2, "Fold")])
    point = json.dumps({"workload": "network.old", "values": {}})
    database.execute("INSERT INTO trials VALUES (1, ?, ?, ?, NULL, '{}')", (point, BEGIN_NS, BEGIN_NS + 1000))
    database.executemany("INSERT INTO samples VALUES (1, ?, ?, 2)", [(0, 10), (1, 30)])
    runs = [(1, 0, 1, 0, 100), (1, 0, 1, 120, 80), (1, 1, 1, 0, 100), (1, 1, 1, 110, 190)]
    database.executemany("INSERT INTO operators VALUES (?, ?, ?, ?, ?)", runs)
    database.execute("INSERT INTO passes VALUES (1, 0, 2, 5)")
    database.commit()
    database.close()
    return path


def files_below(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its time and content."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in found}
