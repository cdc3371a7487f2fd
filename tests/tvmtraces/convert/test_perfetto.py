"""Perfetto traces, read back with Perfetto's own trace processor: counts, sums, names, lanes, flows, counters."""

from __future__ import annotations

import random
from collections import Counter as Tally
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_processor import ask

from tvmdash.errors import DashboardError
from tvmtraces.convert import Counter, Flow, Slice, Slices, names, write_perfetto
from tvmtraces.convert.events import BATCH
from tvmtraces.convert.perfetto import Lanes
from tvmtraces.convert.wire.packets import padded, varint

MOMENT = 1_795_000_000_123_456_789

NIGHT = [
    Slice("night", "night", "20261121T031500Z", "night", MOMENT, 100_000, 1, {"tvm": "0.27", "jobs": 2, "seed": -3}),
    Slice("night", "stages", "relax_opt: run", "stage", MOMENT + 10, 50_000, 2),
    Slice("relax_opt", "trials", "network.mlp", "trial", MOMENT + 20, 40_000, 3, {"ok": True, "ms": 1.5, "at": [1]}),
    Slice("relax_opt", "operators", "fused_matmul", "operator", MOMENT + 30, 1_000, 4),
    Slice("relax_opt", "operators", "fused_add", "operator", MOMENT + 1_030, 1),
    Counter("relax_opt", "cpu_frequency", "MHz", MOMENT + 40, 2450.5),
    Counter("relax_opt", "cpu_frequency", "MHz", MOMENT + 60, 1200.0),
    Counter("relax_opt", "load", "", MOMENT + 60, -0.25),
]
FLOWS = [Flow(1, 2), Flow(2, 3), Flow(3, 4)]
FAULTS = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
TRACKS = "JOIN track t ON t.id = s.track_id"


def test_slices_counters_and_flows_come_back_to_the_nanosecond(tmp_path: Path) -> None:
    written = write_perfetto(tmp_path / "x.pftrace", NIGHT, flows=FLOWS)
    assert (written.slices, written.counters) == (5, 3)
    slices, counters, flows, faults, processes = ask(
        written.paths[0],
        f"SELECT s.name, s.category, CAST(s.ts AS TEXT), s.dur, t.name FROM slice s {TRACKS} ORDER BY s.ts, s.dur DESC",
        "SELECT t.name, t.unit, CAST(c.ts AS TEXT), c.value FROM counter c JOIN counter_track t ON t.id = c.track_id"
        " ORDER BY t.name, c.ts",
        "SELECT a.name, b.name FROM flow f JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = f.slice_in"
        " ORDER BY a.ts",
        FAULTS,
        "SELECT name FROM process WHERE name IS NOT NULL ORDER BY name",
    )
    expected = [e for e in NIGHT if isinstance(e, Slice)]
    assert slices == [[e.name, e.category, str(e.start_ns), e.duration_ns, e.lane] for e in expected]
    assert counters == [
        ["cpu_frequency", "MHz", str(MOMENT + 40), 2450.5],
        ["cpu_frequency", "MHz", str(MOMENT + 60), 1200.0],
        ["load", None, str(MOMENT + 60), -0.25],
    ]
    assert flows == [
        ["20261121T031500Z", "relax_opt: run"],
        ["relax_opt: run", "network.mlp"],
        ["network.mlp", "fused_matmul"],
    ]
    assert faults == []
    assert processes == [["night"], ["relax_opt"]]


def test_details_become_arguments(tmp_path: Path) -> None:
    write_perfetto(tmp_path / "x.pftrace", NIGHT)
    query = (
        "SELECT s.name, a.key, a.display_value FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id"
        " WHERE a.key LIKE 'debug%' ORDER BY s.ts, a.key"
    )
    [rows] = ask(tmp_path / "x.pftrace", query)
    assert rows == [
        ["20261121T031500Z", "debug.jobs", "2"],
        ["20261121T031500Z", "debug.seed", "-3"],
        ["20261121T031500Z", "debug.tvm", "0.27"],
        ["network.mlp", "debug.at", "[1]"],
        ["network.mlp", "debug.ms", "1.5"],
        ["network.mlp", "debug.ok", "true"],
    ]


def random_slices(seed: int, count: int) -> list[Slice]:
    """Nested, overlapping, touching and empty slices in few lanes, in order of their starts."""
    chance = random.Random(seed)
    found = [
        Slice(
            f"process {chance.randrange(3)}",
            f"lane {chance.randrange(2)}",
            f"op {chance.randrange(20)}",
            chance.choice(["operator", "trial"]),
            MOMENT + chance.randrange(count),
            chance.choice([0, 1, 2, 5, 50, 500]),
        )
        for _ in range(count)
    ]
    return sorted(found, key=lambda one: one.start_ns)


def test_many_overlapping_slices_keep_their_counts_and_sums(tmp_path: Path) -> None:
    slices = random_slices(7, 6_000)
    write_perfetto(tmp_path / "x.pftrace", slices)
    totals, faults, torn = ask(
        tmp_path / "x.pftrace",
        "SELECT p.name, s.name, s.category, COUNT(*), SUM(s.dur), CAST(SUM(s.ts - 1795000000000000000) AS TEXT)"
        " FROM slice s JOIN process_track t ON t.id = s.track_id JOIN process p USING (upid) GROUP BY 1, 2, 3",
        FAULTS,
        "SELECT COUNT(*) FROM slice WHERE dur < 0",
    )
    expected: dict[tuple[str, str, str], list[int]] = {}
    for one in slices:
        sums = expected.setdefault((one.process, one.name, one.category), [0, 0, 0])
        sums[0] += 1
        sums[1] += one.duration_ns
        sums[2] += one.start_ns - 1_795_000_000_000_000_000
    found = {(p, n, c): [count, total, int(starts)] for p, n, c, count, total, starts in totals}
    assert found == expected
    assert faults == []
    assert torn == [[0]]


def test_each_file_of_a_trace_split_by_size_is_whole(tmp_path: Path) -> None:
    slices = [Slice("p", "lane", f"op {n % 3}", "operator", MOMENT + n * 10, 5) for n in range(3 * BATCH)]
    written = write_perfetto(tmp_path / "x.pftrace", slices, max_bytes=1 << 20)
    assert [path.name for path in written.paths] == ["x.pftrace", "x.2.pftrace", "x.3.pftrace"]
    answers = [ask(path, "SELECT COUNT(*), SUM(dur) FROM slice", FAULTS) for path in written.paths]
    assert answers == [[[[BATCH, 5 * BATCH]], []]] * 3


def test_a_trace_of_nothing_opens(tmp_path: Path) -> None:
    written = write_perfetto(tmp_path / "x.pftrace", [])
    assert written.paths == (tmp_path / "x.pftrace",)


def test_memory_does_not_grow_with_the_trace(tmp_path: Path) -> None:
    import tracemalloc

    def many(count: int) -> Iterator[Slices]:
        for first in range(0, count, BATCH):
            starts = numpy.arange(first, first + BATCH, dtype=numpy.int64) * 10 + MOMENT
            texts = [names([text] * BATCH) for text in ("p", "lane", "op", "operator")]
            yield Slices(*texts, starts, numpy.full(BATCH, 5, dtype=numpy.int64))

    peaks = []
    for count in (BATCH, 8 * BATCH):
        tracemalloc.start()
        write_perfetto(tmp_path / f"{count}.pftrace", many(count))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_a_failing_source_leaves_nothing_behind(tmp_path: Path) -> None:
    def failing() -> Iterator[Slice]:
        yield NIGHT[0]  # type: ignore[misc]
        raise DashboardError("the source broke")

    with pytest.raises(DashboardError, match="the source broke"):
        write_perfetto(tmp_path / "x.pftrace", failing())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([Slice("p", "l", "n", "c", -1, 5)], "before 1970"),
        ([Slice("p", "l", "n", "c", 1, -5)], "'n' lasts -5 ns"),
        ([Slices(*[names(["x"])] * 4, *[numpy.array([at]), numpy.array([1])]) for at in (9, 3)], "not in order"),
    ],
)
def test_impossible_events_are_refused(tmp_path: Path, events: list[Slice], words: str) -> None:
    with pytest.raises(DashboardError, match=words):
        write_perfetto(tmp_path / "x.pftrace", events)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "x.pftrace").write_text("mine")
    with pytest.raises(DashboardError, match="already exists"):
        write_perfetto(tmp_path / "x.pftrace", NIGHT)
    assert (tmp_path / "x.pftrace").read_text() == "mine"


def test_names_that_are_not_text_are_written_with_question_marks(tmp_path: Path) -> None:
    write_perfetto(tmp_path / "x.pftrace", [Slice("p", "l", "a\udcffb", "c", 1, 5, 0, {"k\udcff": "v\udcff"})])
    [rows] = ask(tmp_path / "x.pftrace", "SELECT name FROM slice")
    assert rows == [["a?b"]]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from([0, 1, 3, 10, 40]), st.integers(0, 1)), max_size=60),
    st.integers(1, 7),
)
def test_slices_of_one_track_nest_or_lie_apart(spans: list[tuple[int, int, int]], size: int) -> None:
    spans = sorted(spans)
    lanes, tracks = Lanes(), {}
    for first in range(0, len(spans), size):
        some = spans[first : first + size]
        starts = numpy.array([start for start, _, _ in some], dtype=numpy.int64)
        lasts = numpy.array([last for _, last, _ in some], dtype=numpy.int64)
        lane = names([f"lane {lane}" for _, _, lane in some])
        one = names(["x"] * len(some))
        placed, numbers = lanes.place(Slices(one, lane, one, one, starts, lasts))
        ends = placed.start_ns + placed.duration_ns
        rows = zip(placed.start_ns.tolist(), ends.tolist(), placed.lane.texts(), numbers.tolist(), strict=True)
        for start, end, name, number in rows:
            assert lanes.tracks[number].lane == name
            for other_start, other_end in tracks.get(number, ()):
                apart = other_end <= start or end <= other_start
                assert (
                    apart or (other_start <= start and end <= other_end) or (start <= other_start and other_end <= end)
                )
            tracks.setdefault(number, []).append((start, end))
    kept = Tally((start, end) for found in tracks.values() for start, end in found)
    assert kept == Tally((start, start + last) for start, last, _ in spans)


@given(st.integers(0, 2**63 - 1))
def test_varints_mean_their_number_at_any_width(value: int) -> None:
    for encoded in (varint(value), padded(value, 9)):
        assert sum((byte & 127) << 7 * place for place, byte in enumerate(encoded)) == value
        assert all(byte > 127 for byte in encoded[:-1])
        assert encoded[-1] < 128
