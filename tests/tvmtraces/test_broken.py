"""Broken inputs: each is refused with its file, table and column, or read; none gives a traceback or a wrong number."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.thorough import THOROUGH
from tests.tvmtraces import rocpd_files
from tests.tvmtraces.traces_for_tests import BEGIN_NS, write_format_1, write_raw
from tvmdash.errors import DashboardError
from tvmtraces import connect
from tvmtraces.analysis import summary
from tvmtraces.sealing import seal, verify
from tvmtraces.views import VIEWS

VALUES = (None, b"\x00\xffblob", "text", "", float("inf"), 0.5, -1, 2**62, -(2**63), "{bad json", "[]", "a\0b")
NAMES = ["conv", "gemm"]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A whole input of each kind."""
    folder = tmp_path_factory.mktemp("whole")
    raw = write_raw(folder / "raw")
    rocpd_files.write(folder / "rocpd.db", rocpd_files.kernels(5, seed=1, names=2), NAMES, pid=100, more=True)
    return {
        "raw": raw,
        "format 1": write_format_1(folder / "format_1.db"),
        "rocpd": folder / "rocpd.db",
        "sealed": seal([raw, folder / "rocpd.db"], folder / "sealed").path,
    }


def change(path: Path, table: str, column: str, value: object) -> None:
    """Put a value into a column; `table` is how its name begins."""
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        name = next(name for (name,) in rows if name.startswith(table))
        database.execute(f'UPDATE OR IGNORE "{name}" SET "{column}" = ?', (value,))
        database.commit()


def ask_everything(place: Path) -> dict[str, list[tuple[Any, ...]]]:
    with connect(place) as traces:
        list(summary(traces, by="host"))
        return {view: traces.execute(f"SELECT * FROM {view}").fetchall() for view in VIEWS}


@pytest.mark.parametrize(
    ("kind", "table", "column", "value", "words"),
    [
        ("raw", "trials", "ended_ns", b"blob", r"trials\.ended_ns: b'blob' is not a whole number"),
        ("raw", "trials", "started_ns", "soon", r"trials\.started_ns: 'soon' is not a whole number"),
        ("raw", "trials", "point", "{", r"trials\.point: '{' is not JSON"),
        ("raw", "process", "pid", b"x", r"process\.pid: b'x' is not a whole number"),
        ("raw", "names", "name", b"\xff", r"names\.name: b'\\xff' is not a text"),
        ("raw", "samples", "elapsed_ns", b"x", r"samples\.elapsed_ns: b'x' is not a whole number"),
        ("raw", "samples", "elapsed_ns", 2**63 - 1, r"samples\.elapsed_ns: 9223372036854775807 is not a time"),
        ("raw", "passes", "duration_ns", -5, r"passes\.duration_ns: -5 is not a time in nanoseconds"),
        ("raw", "regions", "start_ns", "x", r"regions\.start_ns: 'x' is not a whole number"),
        ("raw", "telemetry", "value", b"\x01", r"telemetry\.value: b'\\x01' is not a number"),
        ("format 1", "operators", "start_ns", b"x", r"operators\.start_ns: b'x' is not a whole number"),
        ("rocpd", "rocpd_kernel_dispatch", "end", b"x", r"rocpd_kernel_dispatch_\w+\.end: b'x' is not a whole number"),
        ("rocpd", "rocpd_memory_copy", "end", "a", r"rocpd_memory_copy_\w+\.end: 'a' is not a whole number"),
        ("rocpd", "rocpd_region", "start", 0.5, r"rocpd_region_\w+\.start: 0\.5 is not a whole number"),
        ("rocpd", "rocpd_pmc_event", "value", b"x", r"rocpd_pmc_event_\w+\.value: b'x' is not a number"),
        ("rocpd", "rocpd_info_agent", "logical_index", float("inf"), r"logical_index: inf is not a whole number"),
        ("rocpd", "rocpd_info_process", "command", b"x", r"process_\w+\.command: b'x' is not a text"),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_refused_with_its_place(
    kind: str,
    table: str,
    column: str,
    value: object,
    words: str,
    sources: dict[str, Path],
    tmp_path: Path,
) -> None:
    broken = Path(shutil.copy(sources[kind], tmp_path / "broken.db"))
    change(broken, table, column, value)
    with pytest.raises(DashboardError, match=words) as refused:
        ask_everything(broken)
    assert str(refused.value).startswith(f"{broken}: ")
    assert "leave it out" in str(refused.value).lower()


def test_a_raw_database_whose_process_lacks_a_column_is_refused(tmp_path: Path) -> None:
    broken = write_format_1(tmp_path / "broken.db")
    with closing(sqlite3.connect(broken)) as database:
        database.execute("ALTER TABLE process RENAME COLUMN pid TO number")
        database.commit()
    with pytest.raises(DashboardError, match=rf"{broken}: process\.pid: None is not a whole number"):
        connect(broken)


def put_a_value(path: Path, chance: random.Random) -> None:
    """Some value into some column of some rows."""
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        table = chance.choice([row[0] for row in rows])
        column = chance.choice([row[1] for row in database.execute(f'PRAGMA table_info("{table}")')])
        try:
            database.execute(f'UPDATE "{table}" SET "{column}" = ?', (chance.choice(VALUES),))
        except sqlite3.Error:
            return  # a constraint of the table
        database.commit()


def put_bytes(path: Path, chance: random.Random) -> None:
    """Some other bytes in place of some, or nothing behind some place."""
    content = bytearray(path.read_bytes())
    place = chance.randrange(len(content))
    if chance.random() < 0.3:
        content = content[:place]
    else:
        content[place : place + 20] = chance.randbytes(20)
    path.write_bytes(content)


def break_sealed(folder: Path, chance: random.Random) -> None:
    """Other bytes in a file, of whose size the catalogue knows."""
    file = chance.choice(sorted(folder.iterdir()))
    put_bytes(file, chance)
    if file.suffix == ".parquet":
        catalogue = json.loads((folder / "catalogue.json").read_text())
        catalogue["tables"][file.stem]["size_bytes"] = file.stat().st_size
        (folder / "catalogue.json").write_text(json.dumps(catalogue))


BREAKS: dict[str, tuple[Callable[[Path, random.Random], None], ...]] = {
    "raw": (put_a_value, put_bytes),
    "format 1": (put_a_value, put_bytes),
    "rocpd": (put_a_value, put_bytes),
    "sealed": (break_sealed,),
}


@pytest.mark.parametrize("kind", BREAKS)
def test_whatever_is_broken_is_read_or_refused(kind: str, sources: dict[str, Path], tmp_path: Path) -> None:
    """What is shown has no time or length that nobody stored: those are what a silent conversion gives."""
    stored = {abs(value) for value in VALUES if isinstance(value, int)}
    for seed in range(20 if THOROUGH else 3):
        chance, place = random.Random(seed), tmp_path / f"{seed}.db"
        (shutil.copytree if kind == "sealed" else shutil.copy)(sources[kind], place)
        chance.choice(BREAKS[kind])(place, chance)
        try:
            shown = ask_everything(place)
            if kind == "sealed":
                verify(place)
        except DashboardError:
            continue
        times = [cell for rows in shown.values() for row in rows for cell in row if isinstance(cell, int)]
        assert not [time for time in times if time < -BEGIN_NS // 2 and abs(time) not in stored], seed
