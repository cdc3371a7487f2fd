"""`convert` on traces as the dashboard captures them: what the views say is what other tools read."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import time
from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from trace_processor import ask

from tests.tvmtraces import rocpd_files
from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.machine import telemetry
from tvmdash.measure.capture import Capture, OperatorSpan, Reading, Region, Sample
from tvmtraces import connect
from tvmtraces.export import converters
from tvmtraces.export.columns import cut_into_windows
from tvmtraces.export.converters import CONVERTERS
from tvmtraces.filters import Filters

STAMP = "20261121T031500Z"
SECRET = "a path of the host: /home/anna"


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the raw database of one process: two trials, one of them profiled twice."""
    monkeypatch.setenv("TVMDASH_NIGHT", STAMP)
    monkeypatch.setenv("TVMDASH_JOB", "relax_opt")
    folder = tmp_path / "raw"
    folder.mkdir()
    spans = [OperatorSpan(r, name, at, 400) for r in (0, 1) for name, at in (("conv", 0), ("dense", 500))]
    with Capture(folder, {"machine": {"host": "bench1"}}) as capture:
        for workload in ("network.mlp", "network.dqn"):
            trial = capture.begin({"workload": workload, "values": {"level": 3}})
            now = time.time_ns()
            capture.end(
                trial,
                samples=[Sample(1_000_000, 10)],
                passes=[("FoldConstant", 70), ("FuseOps", 30)],
                operators=spans if workload == "network.dqn" else [],
                run_starts_ns=[now, now + 2_000],
                regions=[Region("compile", "phase", now, 900)],
                telemetry=[Reading("cpu_frequency", "MHz", 2450.0)],
            )
    return folder


def convert(raw: Path, style: str, place: Path) -> str:
    return CONVERTERS[style].write([str(raw)], place, Filters(), None)


def test_perfetto_shows_what_the_views_say(raw: Path, tmp_path: Path) -> None:
    words = convert(raw, "perfetto", tmp_path / "x.pftrace")
    slices, flows, counters, faults = ask(
        tmp_path / "x.pftrace",
        "SELECT category, COUNT(*), SUM(dur) FROM slice WHERE category != 'trial' GROUP BY 1 ORDER BY 1",
        "SELECT a.category, b.category, COUNT(*) FROM flow f JOIN slice a ON a.id = f.slice_out"
        " JOIN slice b ON b.id = f.slice_in GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT t.name, COUNT(*), MAX(c.value) FROM counter c JOIN counter_track t ON t.id = c.track_id GROUP BY 1",
        "SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0",
    )
    with connect([raw]) as traces:
        nights = traces.execute("SELECT sum(duration) FROM nights").fetchall()[0][0]
    assert slices == [
        ["night", 1, nights],
        ["operator", 4, 1600],
        ["pass", 4, 200],
        ["phase", 2, 1800],
        ["sample", 2, 2_000_000],
    ]
    assert flows == [["night", "trial", 2], ["trial", "operator", 2]]
    assert counters == [["cpu_frequency", 2, 2450.0]]
    assert faults == []
    assert words == "15 slices and 2 counter values in 1 file"


def test_rocpd_has_the_operators_and_the_process(raw: Path, tmp_path: Path) -> None:
    convert(raw, "rocpd", tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        assert database.execute("SELECT name, total_calls, total_duration FROM top_kernels ORDER BY 1").fetchall() == [
            ("conv", 2, 0.8),
            ("dense", 2, 0.8),
        ]
        assert database.execute("SELECT hostname FROM processes WHERE pid = ?", (os.getpid(),)).fetchall() == [
            ("bench1",)
        ]
    with connect([tmp_path / "x.db"]) as traces:
        assert traces.execute("SELECT count(*), sum(duration) FROM kernels").fetchall() == [(4, 1600)]


def test_filters_hold(raw: Path, tmp_path: Path) -> None:
    CONVERTERS["perfetto"].write([str(raw)], tmp_path / "x", Filters(operators=("conv",)), None)
    (names,) = ask(tmp_path / "x", "SELECT name FROM slice WHERE category = 'operator'")
    assert names == [["conv"], ["conv"]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one night, whose run began a second after it, and what sensors said meanwhile."""
    begun = round(common.parse_stamp(STAMP).timestamp())
    step = {"stage": "run", "state": "ok", "message": SECRET, "started_ns": (begun + 1) * 10**9, "elapsed_s": 7e8}
    night = {
        "stamp": STAMP,
        "state": "complete",
        "elapsed_s": 8e8,
        "notes": [],
        "artifacts": [],
        "jobs": [{"kind": "experiment", "name": "relax_opt", "steps": [step]}],
    }
    (tmp_path / "home" / "results" / "nights").mkdir(parents=True)
    (tmp_path / "home" / "results" / "nights" / f"{STAMP}.json").write_text(json.dumps(night))
    sensors = telemetry.Telemetry(
        "relax_opt",
        STAMP,
        float(begun),
        1.0,
        2,
        1,
        telemetry.Cost(0.0, 0.0),
        {"elapsed_s": [1.0, 2.0], "load_1_min": [0.5, None]},
    )
    telemetry.write(telemetry.file(tmp_path / "home", "relax_opt", STAMP), sensors)
    return tmp_path / "home"


def test_flows_lead_from_the_night_to_its_stage_to_its_trials_to_their_operators(
    home: Path, raw: Path, tmp_path: Path
) -> None:
    CONVERTERS["perfetto"].write([str(home), str(raw)], tmp_path / "x.pftrace", Filters(), None)
    flows, counters = ask(
        tmp_path / "x.pftrace",
        "SELECT a.category, b.category, COUNT(*) FROM flow f JOIN slice a ON a.id = f.slice_out"
        " JOIN slice b ON b.id = f.slice_in GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT p.name, t.name, c.value FROM counter c JOIN process_counter_track t ON t.id = c.track_id"
        " JOIN process p USING (upid) WHERE t.name = 'load_1_min'",
    )
    assert flows == [["night", "stage", 1], ["stage", "trial", 2], ["trial", "operator", 2]]
    assert counters == [["host", "load_1_min", 0.5]]


@pytest.fixture
def amd(tmp_path: Path) -> list[Path]:
    """Databases of two processes as rocprofv3 leaves them: kernels, copies, samples, counters of a GPU."""
    paths = [tmp_path / f"{pid}.db" for pid in (100, 200)]
    for number, path in enumerate(paths):
        rows = rocpd_files.kernels(50, seed=number, names=3)
        rocpd_files.write(path, rows, ["conv", "gemm", "relu"], pid=100 * (number + 1), more=True)
    return paths


def test_what_came_from_rocpd_goes_back_to_it_row_by_row(amd: list[Path], raw: Path, tmp_path: Path) -> None:
    inputs = [*map(str, amd), str(raw)]
    words = CONVERTERS["rocpd"].write(inputs, tmp_path / "x.db", Filters(), None)
    assert words.endswith("and 110 rows of RocPD as they were; left out: 4 flows")
    views = ("kernels", "memory_copies", "regions", "samples", "counters_collection", "pmc_info", "kernel_symbols")
    with connect(amd) as before, connect(tmp_path / "x.db") as after:
        guids = ", ".join(f"'{row[0]}'" for row in before.execute("SELECT guid FROM processes").fetchall())
        for view in views:
            graphs = view in ("kernels", "memory_copies")  # older databases have no numbers of graphs
            columns = "* EXCLUDE (graph_exec_id, graph_node_id)" if graphs else "*"
            expected, found = (
                sorted(traces.execute(f"SELECT {columns} FROM {view} WHERE guid IN ({guids})").fetchall(), key=str)
                for traces in (before, after)
            )
            assert found == expected != [], view
        agents = "SELECT DISTINCT agent_type, agent_abs_index FROM kernels WHERE agent_type = 'GPU'"
        assert after.execute(agents).fetchall() == before.execute(agents).fetchall() != []
        assert after.execute("SELECT count(*) FROM kernels").fetchone() == (104,)
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        assert database.execute("SELECT sum(total_calls) FROM top_kernels").fetchone() == (104,)


def test_perfetto_shows_samples_counters_and_the_gpu_of_rocpd(amd: list[Path], tmp_path: Path) -> None:
    words = CONVERTERS["perfetto"].write([str(amd[0])], tmp_path / "x.pftrace", Filters(), None)
    tracks, instants, counters = ask(
        tmp_path / "x.pftrace",
        "SELECT t.name, count(*) FROM slice s JOIN track t ON t.id = s.track_id WHERE s.category = 'KERNEL_DISPATCH'"
        " GROUP BY 1",
        "SELECT t.name, count(*) FROM slice s JOIN track t ON t.id = s.track_id WHERE t.name LIKE 'instants%'"
        " GROUP BY 1",
        "SELECT t.name, count(*), sum(c.value) FROM counter c JOIN counter_track t ON t.id = c.track_id GROUP BY 1",
    )
    with connect(amd[0]) as traces:
        queue = "SELECT DISTINCT agent_type || ' ' || agent_abs_index || ' ' || queue || ' ' || stream FROM kernels"
        (lane,) = traces.execute(queue).fetchall()
        value = traces.execute("SELECT counter_name || ' of ' || agent_type || ' ' || agent_abs_index, value "
                               "FROM counters_collection").fetchall()  # fmt: skip
    assert tracks == [[lane[0], 50]]
    assert instants == [["instants of 101", 1]]
    assert counters == [[value[0][0], 1, value[0][1]]]
    assert words.endswith("left out: 3 kernel symbols, 1 descriptions of counters")


def test_what_refers_to_nothing_is_counted(amd: list[Path], tmp_path: Path) -> None:
    with closing(sqlite3.connect(amd[0])) as database:
        query = "SELECT name FROM sqlite_master WHERE name LIKE 'rocpd_kernel_dispatch_%'"
        (table,) = database.execute(query).fetchone()
        database.execute(f'UPDATE "{table}" SET tid = 999 WHERE id = 7')
        database.commit()
    words = CONVERTERS["perfetto"].write([str(amd[0])], tmp_path / "x.pftrace", Filters(), None)
    assert "1 rows that refer to what is not there" in words


@pytest.mark.parametrize("style", ["perfetto"])
def test_large_inputs_that_are_not_sealed_become_the_same_file(
    style: str, raw: Path, amd: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, filters = [str(raw), *map(str, amd)], Filters(operators=["conv"])
    first = CONVERTERS[style].write(inputs, tmp_path / "x.0", filters, None)
    monkeypatch.setattr(converters, "_LARGE_BYTES", 0)
    assert CONVERTERS[style].write(inputs, tmp_path / "x.1", filters, None) == first
    assert (tmp_path / "x.1").read_bytes() == (tmp_path / "x.0").read_bytes()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_an_arrow_leads_from_the_call_to_the_kernel_that_it_launched(amd: list[Path], tmp_path: Path) -> None:
    """In the data the call has the ninth kernel's correlation."""
    CONVERTERS["perfetto"].write([str(path) for path in amd], tmp_path / "x.pftrace", Filters(), None)
    arrows, faults = ask(
        tmp_path / "x.pftrace",
        "SELECT a.category, b.category, b.name FROM flow f JOIN slice a ON a.id = f.slice_out"
        " JOIN slice b ON b.id = f.slice_in ORDER BY b.ts",
        "SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0",
    )
    with connect(amd) as traces:
        expected = traces.execute("SELECT name FROM kernels WHERE stack_id = 9 ORDER BY start").fetchall()
    assert (arrows, faults) == ([["HIP_API", "KERNEL_DISPATCH", called] for (called,) in expected], [])
    assert len(expected) == 2


def test_csv_files_are_those_of_rocprofv3(amd: list[Path], tmp_path: Path) -> None:
    with connect(amd[0]) as database:
        expected = database.execute(
            "SELECT guid, 'KERNEL_DISPATCH', 'Agent ' || agent_log_index, queue_id, stream_id, tid, dispatch_id,"
            " kernel_id, name, stack_id, start, end, lds_size, scratch_size, vgpr_count, accum_vgpr_count, sgpr_count,"
            " workgroup_x, workgroup_y, workgroup_z, grid_x, grid_y, grid_z FROM kernels ORDER BY start"
        ).fetchall()
    words = CONVERTERS["csv"].write([str(amd[0])], tmp_path / "csv", Filters(), None)
    assert words.startswith("kernel_trace.csv (50 rows), memory_copy_trace.csv (")
    with (tmp_path / "csv" / "kernel_trace.csv").open(newline="") as file:
        names, *rows = csv.reader(file)
    assert names[:12] == ["Guid", "Kind", "Agent_Id", "Queue_Id", "Stream_Id", "Thread_Id", "Dispatch_Id", "Kernel_Id",
                          "Kernel_Name", "Correlation_Id", "Start_Timestamp", "End_Timestamp"]  # fmt: skip
    assert names[12:] == ["LDS_Block_Size", "Scratch_Size", "VGPR_Count", "Accum_VGPR_Count", "SGPR_Count",
                          *(f"{of}_Size_{axis}" for of in ("Workgroup", "Grid") for axis in "XYZ")]  # fmt: skip
    assert rows == [["" if value is None else str(value) for value in row] for row in expected]
    with pytest.raises(DashboardError, match="already exists"):
        CONVERTERS["csv"].write([str(amd[0])], tmp_path / "csv", Filters(), None)


@pytest.mark.parametrize("most", [1, 3, 7, 1000])
def test_windows_hold_every_row_once_and_few_at_a_time(most: int, raw: Path, amd: list[Path]) -> None:
    with connect([raw, *amd]) as traces:
        windows = list(cut_into_windows(traces, "kernels", most=most))
        starts = [row[0] for row in traces.execute('SELECT "start" FROM kernels').fetchall()]
    held = [sum(start in window for start in starts) for window in windows]
    assert sum(held) == len(starts) == 104
    assert all(first.stop <= second.start for first, second in pairwise(windows))
    ties = max(Counter(starts).values())
    assert max(held) <= max(most, ties)


@pytest.mark.parametrize("style", ["perfetto", "rocpd"])
def test_without_annotations_no_message_or_error_leaves(style: str, home: Path, raw: Path, tmp_path: Path) -> None:
    inputs = [str(home), str(raw)]
    for name, filters in (("all", Filters()), ("bare", Filters(annotations=False))):
        CONVERTERS[style].write(inputs, tmp_path / name, filters, None)
    everything, bare = ((tmp_path / name).read_bytes() for name in ("all", "bare"))
    assert SECRET.encode() in everything
    assert SECRET.encode() not in bare
