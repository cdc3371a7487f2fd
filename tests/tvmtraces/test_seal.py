"""Sealing: whole or not at all, checked against its source, kept by age and size."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tvmtraces.traces_for_tests import files_below, write_format_1, write_raw
from tvmdash.errors import DashboardError
from tvmdash.machine import telemetry
from tvmtraces import Filters, Straddle, Window, connect, connection, sealing
from tvmtraces.readers.raw_reader import RawSource
from tvmtraces.sealing import prune, seal, verify
from tvmtraces.views import VIEWS

REPO = Path(__file__).resolve().parents[2]
RECORD = {
    "timestamp": "2026-11-21T03:15:00Z", "schema_version": 1,
    "additional_info": {"docker_tag": None, "docker_hash": None}, "workload": "network.mlp",
    "workload_args": {"batch": 1}, "engine": "tvm", "engine_version": "0.27.0", "engine_config": {}, "target": "llvm",
    "build_config": {}, "env_name": "default", "hw_model": "EPYC x 2", "runtime_config": {"threads": 1},
    "execution_config": {"number": 1, "repeat": 3, "min_repeat_ms": 0}, "execution_elapsed_ms_mean": 1.5,
    "execution_elapsed_ms_std": 0.1,
}  # fmt: skip


def write_data(home: Path, experiment: str, stamp: str) -> Path:
    place = home / "results" / "experiments" / "data" / experiment / f"data_{stamp}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    value = {
        "schema_version": 1,
        "timestamp": stamp,
        "tvm_hash": "abc",
        "environment": {},
        "records": [RECORD],
        "failures": [],
    }
    place.write_text(json.dumps(value))
    return place


def write_night(home: Path, stamp: str) -> Path:
    step = {"stage": "run", "state": "ok", "message": "fine", "stamp": stamp, "elapsed_s": 2.5, "log_tail": ""}
    job = {"kind": "experiment", "name": "relax_opt", "title": "", "description": "", "steps": [step]}
    place = home / "results" / "nights" / f"{stamp}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    night = {
        "stamp": stamp,
        "state": "complete",
        "elapsed_s": 3.0,
        "seed": 1,
        "artifacts": [],
        "notes": [],
        "jobs": [job],
    }
    place.write_text(json.dumps(night))
    return place


def test_a_sealed_run_shows_what_its_sources_showed(tmp_path: Path) -> None:
    write_raw(tmp_path / "raw" / "a")
    write_format_1(tmp_path / "raw" / "raw_7_1.db")
    write_data(tmp_path, "relax_opt", "20261121T031500Z")
    write_night(tmp_path, "20261121T031500Z")
    sources = [tmp_path / "raw", tmp_path / "results"]
    before = files_below(tmp_path)
    run = verify(seal(sources, tmp_path / "sealed").path)
    assert {name: found for name, found in files_below(tmp_path).items() if "/sealed/" not in name} == before
    assert {name: table.rows for name, table in run.catalogue.tables.items()}["operator"] == 7
    assert run.catalogue.nights == ("20261121T031500Z",)
    with connect(sources) as one, connect(run.path) as other:
        for view in VIEWS:
            expected = sorted(map(repr, one.execute(f"SELECT * FROM {view}")))
            assert sorted(map(repr, other.execute(f"SELECT * FROM {view}"))) == expected, view
        assert other.execute("SELECT workload, execution_elapsed_ms_mean, night FROM records").fetchall() == [
            ("network.mlp", 1.5, "20261121T031500Z")
        ]
        assert other.execute("SELECT job, stage, duration FROM stages").fetchall() == [
            ("relax_opt", "run", 2_500_000_000)
        ]


def test_a_home_is_read_without_what_its_subsystems_made_of_it(tmp_path: Path) -> None:
    data = write_data(tmp_path, "relax_opt", "20261121T031500Z")
    copy = tmp_path / "results" / "subsystem" / "output" / "website" / "data" / "relax-opt" / data.name
    copy.parent.mkdir(parents=True)
    copy.hardlink_to(data)
    with connect(tmp_path) as traces:
        assert traces.execute("SELECT count(*) FROM records").fetchone() == (1,)


def test_a_nights_telemetry_is_rows(tmp_path: Path) -> None:
    columns = {"elapsed_s": [0.0, 0.5], "cpu_mhz.0": [2400.0, None], "load_1_min": [0.5, 0.25]}
    told = telemetry.Telemetry("e", "s", 100.0, 2.0, 2, 10, telemetry.Cost(0.0, 0.0), columns)
    telemetry.write(tmp_path / "telemetry_20261121T031500Z.json", told)
    run = seal([tmp_path], tmp_path / "sealed")
    with connect(run.path) as traces:
        rows = traces.execute("SELECT timestamp, name, value FROM telemetry ORDER BY name, timestamp").fetchall()
    half = 10**11 + 5 * 10**8
    assert rows == [(10**11, "cpu_mhz.0", 2400.0), (10**11, "load_1_min", 0.5), (half, "load_1_min", 0.25)]


def test_sealed_runs_merge_into_one(tmp_path: Path) -> None:
    runs = [seal([write_raw(tmp_path / name)], tmp_path / f"sealed_{name}").path for name in "ab"]
    merged = seal([*runs, write_raw(tmp_path / "c")], tmp_path / "merged").path
    with connect(merged) as traces:
        assert traces.execute("SELECT count(*), sum(duration) FROM kernels").fetchone() == (9, 510)
    with pytest.raises(DashboardError, match="contains process"):
        connect([merged, runs[0]])


def test_a_sealed_run_is_never_written_over(tmp_path: Path) -> None:
    path = write_raw(tmp_path / "raw")
    seal([path], tmp_path / "sealed")
    with pytest.raises(DashboardError, match="exists already"):
        seal([path], tmp_path / "sealed")


def test_a_reader_that_loses_a_row_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_raw(tmp_path / "raw")
    counts = RawSource.counts
    monkeypatch.setattr(RawSource, "counts", lambda self: {**counts(self), "operator": counts(self)["operator"] + 1})
    with pytest.raises(DashboardError, match=r"operator: 3 rows would be sealed, the sources have 4\. Keep"):
        seal([path], tmp_path / "sealed")
    assert not (tmp_path / "sealed").exists()
    assert not list(tmp_path.glob(".sealed*"))


def test_a_disk_that_changes_a_value_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_raw(tmp_path / "raw")
    write = sealing.Traces.write_table

    def changed(self: sealing.Traces, table: str, columns: Sequence[str], place: Path, options: str) -> None:
        write(self, table, columns, place, options)
        if table == "operator":
            self._engine.copy("SELECT * REPLACE (duration + 1 AS duration) FROM base_operator", place, options)

    monkeypatch.setattr(sealing.Traces, "write_table", changed)
    with pytest.raises(DashboardError, match=r"operator\.parquet: 3 rows were written and read back, not the same"):
        seal([path], tmp_path / "sealed")
    assert not (tmp_path / "sealed").exists()


def test_large_tables_are_written_in_parts_and_columns_of_one_value_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [write_raw(tmp_path / str(number), workload=f"network.{number % 2}") for number in range(3)]
    whole = seal(paths, tmp_path / "whole")
    monkeypatch.setattr(connection, "_MOST_BYTES", 1)
    parts = seal(paths, tmp_path / "parts")
    files = {path.name for path in parts.path.glob("operator*.parquet")}
    assert files == {"operator.parquet", *(f"operator.{number}.parquet" for number in range(1, 3))}
    assert parts.catalogue.table_names == whole.catalogue.table_names
    assert whole.catalogue.tables["operator"].left_out == {"nid": 1, "process": 1, "repetition": 0, "trial": 1}
    for filters in (None, Filters(workloads=["*.1"]), Filters(window=Window("10%", "60%", Straddle.CLIPPED))):
        merged = seal([parts.path], tmp_path / f"merged {filters}"[:40], filters=filters)
        with connect(whole.path, filters=filters) as expected, connect(merged.path) as found:
            for view in VIEWS:
                rows = [sorted(map(repr, one.execute(f"SELECT * FROM {view}"))) for one in (expected, found)]
                assert rows[0] == rows[1], (view, filters)


def test_a_sealed_run_of_version_3_shows_what_it_holds() -> None:
    """Written before tables had `missing`, and before there were tables of arguments, queues and the like."""
    with connect(REPO / "tests" / "golden" / "sealed_v3") as traces:
        assert traces.execute("SELECT count(*) FROM kernels").fetchone() == (6,)
        for view, rows in (("regions", 2), ("samples", 3), ("memory_copies", 1), ("threads", 2), ("region_args", 0)):
            assert traces.execute(f"SELECT count(*) FROM {view}").fetchone() == (rows,), view


def test_broken_sealed_runs_are_refused(tmp_path: Path) -> None:
    whole = seal([write_raw(tmp_path / "raw")], tmp_path / "whole").path

    def broken(name: str) -> Path:
        return Path(shutil.copytree(whole, tmp_path / name))

    cut = broken("cut")
    (cut / "operator.parquet").write_bytes(b"PAR1")
    with pytest.raises(DashboardError, match="has 4 bytes, its catalogue says"):
        connect(cut)
    gone = broken("gone")
    (gone / "trial.parquet").unlink()
    with pytest.raises(DashboardError, match="listed in the catalogue but missing"):
        connect(gone)
    flipped = broken("flipped")
    content = bytearray((flipped / "operator.parquet").read_bytes())
    content[40] ^= 255
    (flipped / "operator.parquet").write_bytes(content)
    with pytest.raises(DashboardError, match="differs from its catalogue"):
        verify(flipped)
    for place, value, words in (
        ("version", 5, "is newer than 4"),
        ("version", "1", "is not a version"),
        ("tables", {"../../etc/passwd": {"rows": 1, "size_bytes": 1, "sha256": ""}}, "not the catalogue"),
        ("guids", 5, "not the catalogue"),
        ("more", 5, "not the catalogue"),
        ("start_ns", "x", "not the catalogue"),
        ("part", [], "not the catalogue"),
        ("left_out", [1], "not the catalogue"),
    ):
        run = broken(f"catalogue_{place}_{value!s:.5}".replace("/", "_").replace(".", "_"))
        catalogue = json.loads((run / "catalogue.json").read_text())
        (run / "catalogue.json").write_text(json.dumps({**catalogue, place: value}))
        with pytest.raises(DashboardError, match=words):
            connect(run)
    (broken("json") / "catalogue.json").write_text("{")
    with pytest.raises(DashboardError, match="not JSON"):
        connect(tmp_path / "json")


def test_a_killed_seal_leaves_nothing_that_looks_sealed(tmp_path: Path) -> None:
    for index in range(30):
        write_raw(tmp_path / "raw" / str(index))
    argv = [sys.executable, "-m", "tvmtraces", "seal", str(tmp_path / "sealed"), str(tmp_path / "raw")]
    environment = {**os.environ, "PYTHONPATH": str(REPO / "shared" / "python")}
    process = subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".sealed.*/*.parquet")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    if not (tmp_path / "sealed").exists():  # else it was done before the signal came
        seal([tmp_path / "raw"], tmp_path / "sealed")
        assert not list(tmp_path.glob(".sealed*")), "the next seal to the same place removes what the killed one left"
    with connect(tmp_path / "sealed") as traces:
        assert traces.execute("SELECT count(*) FROM kernels").fetchone() == (90,)


def test_retention_drops_raw_measurements_by_age_and_size_and_never_records(tmp_path: Path) -> None:
    home, runs = tmp_path / "home", []
    for day in (1, 2, 3):
        stamp = f"2026110{day}T000000Z"
        place = tmp_path / "raw" / f"{day}"
        run = seal([write_raw(place), write_data(home, "relax_opt", stamp)], tmp_path / "kept" / stamp)
        catalogue = json.loads((run.path / "catalogue.json").read_text())
        (run.path / "catalogue.json").write_text(json.dumps({**catalogue, "sealed": stamp}))
        runs.append(run)
    assert prune(tmp_path / "kept", max_bytes=10**9) == []
    sizes = [run.catalogue.size_bytes for run in runs]
    assert prune(tmp_path / "kept", max_bytes=sizes[1] + sizes[2]) == [runs[0].path]
    with connect(tmp_path / "kept") as traces:
        assert traces.execute("SELECT count(*) FROM records").fetchone() == (3,)
        assert traces.execute("SELECT count(*) FROM kernels").fetchone() == (6,)
    assert prune(tmp_path / "kept", keep_days=0) == [runs[1].path, runs[2].path]
    assert prune(tmp_path / "kept", keep_days=0, max_bytes=0) == [], "what is left is kept for ever"
    with connect(tmp_path / "kept") as traces:
        assert traces.execute("SELECT count(*) FROM records").fetchone() == (3,)
        assert traces.execute("SELECT count(*) FROM kernels").fetchone() == (0,)
