"""Chrome JSON: what went in is read back; whatever the format, a broken source leaves nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from trace_processor import ask

from tvmdash.errors import DashboardError
from tvmtraces.convert import (
    Counter,
    Event,
    Flow,
    Slice,
    Written,
    write_chrome,
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
WRITERS = [write_chrome, write_perfetto, write_rocpd]


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


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_a_source_that_breaks_leaves_nothing(write: Callable[[Path, Iterator[Event]], Written], tmp_path: Path) -> None:
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
