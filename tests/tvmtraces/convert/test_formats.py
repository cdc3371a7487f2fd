"""Chrome JSON, CSV, JSON lines and Parquet: what went in is read back, and a broken source leaves nothing."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_processor import ask

from tvmdash.errors import DashboardError
from tvmtraces.convert import (
    Counter,
    Event,
    Flow,
    Slice,
    Written,
    write_chrome,
    write_csv,
    write_json_lines,
    write_parquet,
    write_perfetto,
    write_rocpd,
)

MOMENT = 1_795_000_000_123_456_789
EVENTS: list[Event] = [
    Slice("night", "night", "a night", "night", MOMENT, 100_000, 1, {"tvm": "0.27"}),
    Slice("p", "trials", 'x "quoted", with a comma\nand a line', "trial", MOMENT + 1, 90_000, 2),
    Slice("p", "trials", "overlaps", "trial", MOMENT + 2, 95_000),
    Counter("p", "load", "cores", MOMENT + 3, 0.5),
    Counter("p", "load", "cores", MOMENT + 4, float("nan")),
]
WRITERS = [write_chrome, write_csv, write_json_lines, write_parquet, write_perfetto, write_rocpd]


def test_chrome_json_is_read_by_perfetto(tmp_path: Path) -> None:
    write_chrome(tmp_path / "x.json", EVENTS, flows=[Flow(1, 2)])
    slices, flows, counters, faults = ask(
        tmp_path / "x.json",
        "SELECT name, category, ts, dur FROM slice ORDER BY ts",
        "SELECT COUNT(*) FROM flow",
        "SELECT value FROM counter",
        "SELECT name FROM stats WHERE severity = 'error' AND value > 0",
    )
    assert slices == [
        ["a night", "night", 0, 100_000],
        ['x "quoted", with a comma\nand a line', "trial", 1, 90_000],
        ["overlaps", "trial", 2, 95_000],
    ]
    assert flows == [[1]]
    assert [0.5] in counters
    assert faults == []


def test_chrome_json_holds_times_exactly(tmp_path: Path) -> None:
    write_chrome(tmp_path / "x.json", EVENTS)
    trace = json.loads((tmp_path / "x.json").read_text(), parse_float=Decimal)
    base = int(trace["otherData"]["base_ns"])
    found = {e["name"]: (base + e["ts"] * 1000, e["dur"] * 1000) for e in trace["traceEvents"] if e["ph"] == "X"}
    assert found == {e.name: (e.start_ns, e.duration_ns) for e in EVENTS if isinstance(e, Slice)}


def test_overlapping_slices_lie_in_threads_of_their_own(tmp_path: Path) -> None:
    write_chrome(tmp_path / "x.json", EVENTS)
    events = json.loads((tmp_path / "x.json").read_text())["traceEvents"]
    threads = {e["name"]: e["tid"] for e in events if e["ph"] == "X" and e["pid"] == 2}
    titles = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert [titles[threads[name]] for name in sorted(threads)] == ["trials 2", "trials"]


def test_csv_has_a_row_for_each_event(tmp_path: Path) -> None:
    write_csv(tmp_path / "x.csv", EVENTS)
    assert b"\r" not in (tmp_path / "x.csv").read_bytes()
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["kind"] for row in rows] == ["slice"] * 3 + ["counter"] * 2
    assert rows[1]["name"] == 'x "quoted", with a comma\nand a line'
    assert (rows[1]["start_ns"], rows[1]["duration_ns"]) == (str(MOMENT + 1), "90000")
    assert (rows[3]["value"], rows[3]["unit"], rows[3]["duration_ns"]) == ("0.5", "cores", "")


def test_json_lines_leave_out_what_does_not_apply(tmp_path: Path) -> None:
    write_json_lines(tmp_path / "x.jsonl", EVENTS)
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows[0] == {
        "kind": "slice",
        "process": "night",
        "lane": "night",
        "category": "night",
        "name": "a night",
        "start_ns": MOMENT,
        "duration_ns": 100_000,
        "details": {"tvm": "0.27"},
    }
    assert rows[4] == {"kind": "counter", "process": "p", "name": "load", "start_ns": MOMENT + 4, "unit": "cores"}


def test_parquet_holds_many_rows_without_details(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: Parquet cannot be written")
    slices = [Slice("p", "a", f"n{number % 7}", "stage", MOMENT + number, 1) for number in range(3000)]
    write_parquet(tmp_path / "x.parquet", slices)
    query = f"SELECT count(*), count(DISTINCT name), count(details) FROM read_parquet('{tmp_path / 'x.parquet'}')"
    assert duckdb.sql(query).fetchone() == (3000, 7, 0)


def test_parquet_keeps_types_order_and_what_is_missing(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: Parquet cannot be written")
    write_parquet(tmp_path / "it's.parquet", EVENTS)
    source = duckdb.read_parquet(str(tmp_path / "it's.parquet"))
    rows = source.project("kind, name, start_ns, duration_ns, value, details").fetchall()
    assert rows[0] == ("slice", "a night", MOMENT, 100_000, None, '{"tvm": "0.27"}')
    assert rows[3] == ("counter", "load", MOMENT + 3, None, 0.5, None)
    assert len(rows) == 5
    write_parquet(tmp_path / "empty.parquet", [])
    assert duckdb.read_parquet(str(tmp_path / "empty.parquet")).fetchall() == []


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_a_source_that_breaks_leaves_nothing(write: Callable[[Path, Iterator[Event]], Written], tmp_path: Path) -> None:
    if write is write_parquet:
        pytest.importorskip("duckdb", reason="duckdb is not installed: Parquet cannot be written")

    def failing() -> Iterator[Event]:
        yield from EVENTS
        raise DashboardError("the source broke")

    with pytest.raises(DashboardError, match="the source broke"):
        write(tmp_path / "x.out", failing())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_a_folder_that_is_missing_is_said(write: Callable[[Path, list[Event]], Written], tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match="no such folder"):
        write(tmp_path / "no" / "x.out", EVENTS)


TEXT = st.text(st.characters(exclude_categories=()), max_size=6)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.builds(Slice, TEXT, TEXT, TEXT, TEXT, st.integers(0, 2**61), st.integers(0, 2**40)), max_size=8))
def test_any_names_and_times_survive_json_lines(tmp_path_factory: pytest.TempPathFactory, slices: list[Slice]) -> None:
    slices = sorted(slices, key=lambda one: one.start_ns)
    place = tmp_path_factory.mktemp("any") / "x.jsonl"
    write_json_lines(place, slices)
    rows = [json.loads(line) for line in place.read_text(encoding="utf-8").split("\n")[:-1]]
    expected = [(one.name.encode(errors="replace").decode(), one.start_ns, one.duration_ns) for one in slices]
    assert [(row["name"], row["start_ns"], row["duration_ns"]) for row in rows] == expected
