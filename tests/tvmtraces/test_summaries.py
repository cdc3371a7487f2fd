"""Summaries, windows and differences against a straightforward computation in Python."""

from __future__ import annotations

import json
import math
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from tests.tvmtraces.traces_for_tests import BEGIN_NS, write_raw
from tvmdash.errors import DashboardError
from tvmdash.judge.operators import OperatorSide, compare_operators
from tvmtraces import Connection, Filters, Straddle, Window, connect
from tvmtraces.analysis import read_point_times, summary
from tvmtraces.sealing import seal

Span = tuple[str, int, int]
Files = list[list[Span]]
SPANS = st.tuples(st.sampled_from(["conv", "relu", "add", "pool"]), st.integers(0, 1000), st.integers(0, 300))
FILES = st.lists(st.lists(SPANS, min_size=1, max_size=12), min_size=1, max_size=3)
FEW = examples(3, 25)
KINDS = st.sampled_from(["raw", "sealed"])


@contextmanager
def opened(files: Files, how: str, filters: Filters | None = None) -> Iterator[Connection]:
    """The files as raw databases on two hosts, or as one sealed run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for index, spans in enumerate(files):
            write_raw(folder / "raw" / str(index), spans, host=f"host{index % 2}", workload=f"w{index}")
        if how == "sealed":
            with connect(seal([folder / "raw"], folder / "sealed").path, filters=filters) as traces:
                yield traces
        else:
            with connect(folder / "raw", filters=filters) as traces:
                yield traces


def close(one: float | None, other: float | None) -> bool:
    return one is other if one is None or other is None else math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)


@FEW
@given(FILES, KINDS, st.sampled_from([None, "host", "process"]))
def test_a_summary_is_what_all_calls_of_all_files_say(files: Files, how: str, by: str | None) -> None:
    durations: dict[tuple[str, object], list[int]] = defaultdict(list)
    for index, spans in enumerate(files):
        group = None if by is None else f"host{index % 2}" if by == "host" else f"w{index}"
        for name, _, duration in spans:
            durations[name, group].append(duration)
    with opened(files, how) as traces:
        rows = [row for row in summary(traces, by=by) if row.domain == "operator"]
        trials = traces.execute("SELECT pid, guid, process, workload FROM trials").fetchall()
    shown: dict[str | None, str | None] = {}
    if by == "process":  # all files come from this process: its number alone does not tell them apart
        shown = {f"{pid} ({guid}/{process})" if len(files) > 1 else str(pid): w for pid, guid, process, w in trials}
    found = {(row.name, shown.get(row.group, row.group)): row for row in rows}
    assert found.keys() == durations.keys()
    for (name, group), values in durations.items():
        row = found[name, group]
        whole = sum(sum(v) for (_, g), v in durations.items() if g == group)
        assert (row.calls, row.total_ns, row.min_ns, row.max_ns) == (len(values), sum(values), min(values), max(values))
        assert close(row.mean_ns, statistics.fmean(values))
        assert close(row.median_ns, statistics.median(values))
        assert row.p95_ns == sorted(values)[max(0, math.ceil(len(values) * 0.95) - 1)]
        assert close(row.std_ns, statistics.stdev(values) if len(values) > 1 else None)
        assert close(row.percent, sum(values) * 100 / whole if whole else None)
    totals = [row.total_ns for row in rows]
    assert totals == sorted(totals, reverse=True)


def kept(span: Span, low: int, high: int, straddle: Straddle) -> tuple[int, int] | None:
    """Begin and length of what a window leaves of a span, by the stated rule."""
    _, start, duration = span
    end = start + duration
    if straddle is Straddle.STARTING:
        return (start, duration) if low <= start < high else None
    if straddle is Straddle.CONTAINED:
        return (start, duration) if low <= start < high and end <= high else None
    if not (start < high and (end > low or start >= low)):
        return None
    if straddle is Straddle.OVERLAPPING:
        return start, duration
    return max(start, low), min(end, high) - max(start, low)


@FEW
@given(FILES, KINDS, st.integers(-10, 1300), st.integers(0, 600), st.sampled_from(Straddle))
def test_a_window_leaves_what_its_rule_says(files: Files, how: str, low: int, length: int, straddle: Straddle) -> None:
    window = Window(str(BEGIN_NS + low), str(BEGIN_NS + low + length), straddle)
    expected = [found for spans in files for span in spans if (found := kept(span, low, low + length, straddle))]
    with opened(files, how, Filters(window=window)) as traces:
        rows = traces.execute("SELECT start - ?, duration FROM kernels", (BEGIN_NS,)).fetchall()
    assert sorted(rows) == sorted(expected)


@FEW
@given(
    FILES, KINDS, st.sampled_from(["*o*", "re[lm]u", "conv", "?dd", "none"]), st.sampled_from(["host1", "host?", "x"])
)
def test_names_and_hosts_are_chosen_by_patterns(files: Files, how: str, name: str, host: str) -> None:
    fitting = {"*o*": {"conv", "pool"}, "re[lm]u": {"relu"}, "conv": {"conv"}, "?dd": {"add"}, "none": set()}[name]
    hosts = {"host1": {1}, "host?": {0, 1}, "x": set()}[host]
    expected = [
        span[0] for index, spans in enumerate(files) for span in spans if span[0] in fitting and index % 2 in hosts
    ]
    with opened(files, how, Filters(operators=[name], hosts=[host])) as traces:
        assert sorted(row[0] for row in traces.execute("SELECT name FROM kernels")) == sorted(expected)


@FEW
@given(FILES, st.integers(1, 4))
def test_windows_side_by_side_hold_everything_once(files: Files, parts: int) -> None:
    views = ("kernels", "samples", "regions", "trials", "telemetry")
    with opened(files, "raw") as whole:
        expected = {view: sorted(map(repr, whole.execute(f"SELECT * FROM {view}"))) for view in views}
        first, last = whole.traces.bounds_ns()
        place = whole.filenames
        edges = [first, *(BEGIN_NS + 300 * number for number in range(1, parts)), last + 1]
        found: dict[str, list[str]] = {view: [] for view in views}
        for begin, end in pairwise(edges):
            window = Window(str(begin), str(end), Straddle.STARTING)
            with connect(place, filters=Filters(window=window)) as part:
                found = {view: [*found[view], *map(repr, part.execute(f"SELECT * FROM {view}"))] for view in views}
    assert {view: sorted(rows) for view, rows in found.items()} == expected


def test_parts_that_an_earlier_version_split_by_time_are_read_as_one(tmp_path: Path) -> None:
    write_raw(tmp_path / "raw", [("conv", 0, 300), ("relu", 1000, 0)])
    windows = (Window("", str(BEGIN_NS + 500), Straddle.STARTING), Window(str(BEGIN_NS + 500), "", Straddle.STARTING))
    for number, window in enumerate(windows, start=1):
        path = seal([tmp_path / "raw"], tmp_path / f"part_{number}", filters=Filters(window=window)).path
        catalogue = json.loads((path / "catalogue.json").read_text())
        (path / "catalogue.json").write_text(json.dumps({**catalogue, "part": f"{number}/2"}))
    with connect([tmp_path / "part_1", tmp_path / "part_2"]) as traces:
        assert traces.execute("SELECT name FROM kernels ORDER BY start").fetchall() == [("conv",), ("relu",)]


def test_moments_are_written_in_many_ways(tmp_path: Path) -> None:
    write_raw(tmp_path, [("a", 0, 100), ("b", 400, 100), ("c", 900, 100)], sample_ns=())
    run = seal([tmp_path], tmp_path / "sealed").path
    with connect(run) as traces:
        first, last = traces.traces.bounds_ns()
    assert first == BEGIN_NS - 1000, "the region compile is the first thing in it"

    def names(begin: str, end: str) -> str:
        with connect(run, filters=Filters(window=Window(begin, end))) as traces:
            return "".join(str(row[0]) for row in traces.execute("SELECT name FROM kernels ORDER BY start"))

    assert names("", "") == "abc"
    assert names("+1000ns", "+1.5us") == "ab"
    assert names(str(BEGIN_NS + 1), "") == "bc"
    assert names("2026-11-18T11:06:40Z", "2026-11-18T11:06:40.0000005Z") == "ab"
    assert names("2026-11-18T12:06:40+01:00", "") == "abc"
    assert names("@compile", "@compile") == ""
    assert names(f"-{last - BEGIN_NS - 400}ns", "100%") == "bc"
    assert names("0%", "100%") == "abc"
    for begin, words in (
        ("soon", "is not a time"),
        ("@nothing", "no region or trial with that name"),
        ("%", "not a time"),
    ):
        with pytest.raises(DashboardError, match=words):
            names(begin, "")
    with pytest.raises(DashboardError, match=r"ends .* before it begins"):
        names("+20us", "+10us")


def test_workloads_leave_only_what_belongs_to_their_trials(tmp_path: Path) -> None:
    write_raw(tmp_path / "a", workload="network.mlp")
    write_raw(tmp_path / "b", [("conv", 0, 5)], workload="network.dqn")
    with connect(tmp_path, filters=Filters(workloads=["*.dqn"])) as traces:
        assert traces.execute("SELECT name FROM kernels").fetchall() == [("conv",)]
        assert traces.execute("SELECT count(*) FROM samples").fetchone() == (2,)
        assert traces.execute("SELECT DISTINCT workload FROM trials").fetchall() == [("network.dqn",)]
        assert traces.execute("SELECT count(*) FROM telemetry").fetchone() == (0,)


@FEW
@given(FILES)
def test_the_operators_of_a_point_are_those_of_its_process(files: Files) -> None:
    with opened(files, "raw") as traces:
        points = read_point_times(traces.traces)
    assert sorted(point[1] for point in points) == [f"w{index}" for index in range(len(files))]
    for (_, workload, _), times in points.items():
        sums: dict[str, float] = defaultdict(float)
        for name, _, duration in files[int(workload[1:])]:
            sums[name] += duration / 1e6
        assert times.operators.keys() == sums.keys()
        assert all(close(times.operators[name][0], total) for name, total in sums.items())
        assert times.whole == [0.0015]


def test_what_got_slower_is_told_with_its_interval_and_the_rest(tmp_path: Path) -> None:
    """Six processes of each side, of which one was disturbed; timed without a profile the run took 100 ns more."""
    for side, conv, sample in (("a", 100, 400), ("b", 160, 600)):
        for process in range(6):
            late = 900 if process == 2 else process % 3
            other = ("relu", 1200, 10 + process % 2) if side == "a" else ("gelu", 1200, 5)
            write_raw(tmp_path / side / str(process), [("conv", 0, conv + late), other], sample_ns=(sample, sample))
    with connect(tmp_path / "a") as before, connect(tmp_path / "b") as after:
        sides = [read_point_times(each.traces) for each in (before, after)]
    ((point, first),) = sides[0].items()
    last = sides[1][point]
    found = compare_operators(OperatorSide(first.operators, first.whole), OperatorSide(last.operators, last.whole))
    assert [(each.name, each.words, each.processes) for each in found.changes] == [
        ("conv", "worse", (6, 6)), ("relu", "gone", (6, 0)), ("gelu", "new", (0, 6)),
    ]  # fmt: skip
    assert found.changes[0].low_ms is not None
    assert found.changes[0].low_ms < 60e-6
    assert close(found.unexplained_ms, 100e-6 - (60 - 10.5 + 5) * 1e-6)


@FEW
@given(FILES, KINDS)
def test_the_views_that_sum_up_say_what_all_rows_say(files: Files, how: str) -> None:
    durations: dict[str, list[int]] = defaultdict(list)
    for spans in files:
        for name, _, duration in spans:
            durations[name].append(duration)
    whole = sum(map(sum, durations.values()))
    wall = max(s + d for f in files for _, s, d in f) - min(s for f in files for _, s, _ in f)
    with opened(files, how) as traces:
        top = {row[0]: row[1:] for row in traces.execute("SELECT * FROM top_kernels")}
        busy = traces.execute("SELECT GpuTime, WallTime, Busy FROM busy").fetchall()
        trials = traces.execute("SELECT samples, ms_mean, ms_min, ms_max FROM trials").fetchall()
    assert top.keys() == durations.keys()
    for name, values in durations.items():
        calls, total_us, average_us, percentage = top[name]
        assert calls == len(values)
        assert close(total_us, sum(values) / 1000)
        assert close(average_us, sum(values) // len(values) / 1000), "whole nanoseconds, as RocPD"
        assert close(percentage, sum(values) * 100 / whole if whole else None) or not whole
    assert sorted(row[0] for row in busy) == sorted(sum(span[2] for span in spans) for spans in files)
    assert {row[1] for row in busy} == {wall}
    assert all(close(row[2], row[0] / wall) for row in busy if wall)
    assert trials == [(2, 0.0015, 0.001, 0.002)] * len(files), "samples of 2000 and 4000 ns for 2 calls"
