"""How inputs are read: only the columns and the time that a query needs, in pages, side by side; never less."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from tests.tvmtraces import rocpd_files
from tests.tvmtraces.test_seal import write_data, write_night
from tests.tvmtraces.traces_for_tests import BEGIN_NS, write_raw
from tvmdash.errors import DashboardError
from tvmdash.machine import telemetry
from tvmdash.measure.capture import Capture, OperatorSpan, Sample
from tvmdash.measure.phases import TIMING, phase
from tvmtraces import Filters, Straddle, Window
from tvmtraces.batches import WantedRows
from tvmtraces.connection import Traces, open_traces
from tvmtraces.readers import raw_reader, rocpd_reader
from tvmtraces.readers.rocpd_reader import RocpdSource
from tvmtraces.sealing import seal
from tvmtraces.sources import find

NAMES = ["void conv(float*)", "gemm", "copy_kernel"]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Two RocPD databases of the test's own."""
    return make_databases(tmp_path)


@pytest.fixture(scope="module")
def same_paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two RocPD databases that no test changes."""
    return make_databases(tmp_path_factory.mktemp("rocpd"))


def make_databases(tmp_path: Path) -> list[Path]:
    made = [tmp_path / f"{pid}_results.db" for pid in (100, 200)]
    for index, path in enumerate(made):
        rows = rocpd_files.kernels(50, seed=index, names=len(NAMES))
        rocpd_files.write(path, rows, NAMES, pid=100 * (index + 1), more=True)
    return made


@pytest.fixture(scope="module")
def all_of_them(same_paths: list[Path]) -> Iterator[Traces]:
    """The databases, every column of them read."""
    with open_traces(same_paths) as traces:
        list(traces.stream(lambda table: []))
        yield traces


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM top",
        "SELECT count(*) FROM kernels",
        "FROM kernels ORDER BY guid, id",
        "SELECT k FROM kernels AS k ORDER BY k.guid, k.id",
        "SELECT renamed.b FROM kernels AS renamed(a, b) ORDER BY a, b",
        "SELECT COLUMNS('.*id') FROM kernels ORDER BY ALL",
        "SELECT #2 FROM (SELECT id, name FROM kernels) ORDER BY 1",
        "SELECT name FROM kernels WHERE duration > 1000 AND category = 'KERNEL_DISPATCH' ORDER BY guid, id",
        "SELECT max(stack_id) FROM kernels GROUP BY queue ORDER BY 1",
        "SELECT * FROM kernels JOIN threads USING (guid, tid) ORDER BY guid, kernels.id",
        "SELECT * FROM busy ORDER BY ALL",
        "SELECT * FROM counters_collection ORDER BY ALL",
        "SELECT name, extdata FROM regions ORDER BY ALL",
        "SELECT count(*) FROM base_dispatch",
        "WITH k AS (FROM kernels) SELECT sum(grid_x), min(region) FROM k",
    ],
)
def test_a_query_that_reads_some_columns_says_what_all_columns_say(
    same_paths: list[Path], all_of_them: Traces, sql: str
) -> None:
    with open_traces(same_paths) as some:
        expected = all_of_them.execute(sql).fetchall()
        assert some.execute(sql).fetchall() == expected
        assert expected
        some.execute("SELECT lds_size FROM kernels").fetchall()
        assert some.execute(sql).fetchall() == expected, "more columns were read in between"


def test_only_what_a_query_needs_is_read(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[WantedRows] = []
    read = RocpdSource.read

    def noted(self: RocpdSource, wanted: WantedRows) -> object:
        asked.append(wanted)
        return read(self, wanted)

    monkeypatch.setattr(RocpdSource, "read", noted)
    with open_traces(paths) as traces:
        traces.execute("SELECT sum(duration) FROM kernels").fetchall()
        assert [dict(one.tables)["dispatch"] for one in asked] == [{"duration", "missing"}] * 2
        traces.execute("SELECT sum(duration) FROM kernels").fetchall()
        assert len(asked) == 2, "what is read is kept"
        traces.execute("SELECT CAST(? AS VARCHAR), name FROM kernels", ("a",)).fetchall()
        assert dict(asked[-1].tables)["dispatch"] == {"duration", "missing", "name"}


def test_planning_a_query_runs_nothing_of_it(paths: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "new.csv"
    with open_traces(paths) as traces:
        for sql in (
            f"SELECT 1; COPY (SELECT name FROM kernels) TO '{target}'",
            f"FROM read_csv('{paths[0]}'), kernels",
        ):
            with pytest.raises(DashboardError):
                traces.execute(sql)
    assert not target.exists()


@pytest.fixture(scope="module")
def runs(same_paths: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[Path], Path]]:
    """Databases of two kinds, each with the sealed run of them."""
    folder = tmp_path_factory.mktemp("runs")
    write_raw(folder / "raw", [("matmul", 0, 70), ("relu", 80, 10), ("matmul", 100, 90)])
    kinds = (same_paths, [folder / "raw"])
    return [(inputs, seal(inputs, folder / f"sealed_{len(inputs)}").path) for inputs in kinds]


def test_a_window_and_filters_given_as_text_mean_what_they_say_or_are_refused() -> None:
    for straddle in Straddle:
        window: Window = Window("25%", "75%", straddle.value)  # type: ignore[arg-type] - as authors write it
        assert window.straddle is straddle
    with pytest.raises(DashboardError, match="straddle: 'inside' is none of contained, overlapping, clipped, starting"):
        Window("25%", "75%", "inside")  # type: ignore[arg-type]
    with pytest.raises(DashboardError, match=r"nights: '2026\*' is a text. Give a list of patterns"):
        Filters(nights="2026*")


@pytest.mark.parametrize("straddle", Straddle)
def test_a_window_into_databases_leaves_what_it_leaves_of_all_rows(
    runs: list[tuple[list[Path], Path]], straddle: Straddle
) -> None:
    for place, run in runs:
        with open_traces(run) as traces:
            first, last = traces.execute('SELECT min(start), max("end") FROM kernels').fetchall()[0]
        window = Window(str(first + (last - first) // 4), str(last - (last - first) // 4), straddle)
        sql = "SELECT name, start, duration FROM kernels ORDER BY start, guid, id"
        with open_traces(run, filters=Filters(window=window)) as one:
            expected = one.execute(sql).fetchall()
        with open_traces(place, filters=Filters(window=window)) as traces:
            assert traces.execute(sql).fetchall() == expected
            before = traces.bounds_ns()
            assert before[0] <= first
            assert before[1] >= last, "bounds are of everything, filters aside"
            assert traces.execute(sql).fetchall() == expected
        assert expected


@pytest.mark.parametrize("rows", [1, 7, 50, 51])
def test_large_tables_come_in_pages(paths: list[Path], rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT * FROM kernels ORDER BY guid, id"
    with open_traces(paths) as traces:
        expected = traces.execute(sql).fetchall()
    monkeypatch.setattr(rocpd_reader, "_ROWS_AT_ONCE", rows)
    with open_traces(paths) as traces:
        assert traces.execute(sql).fetchall() == expected


def test_numbers_that_do_not_follow_one_another_are_joined_too(paths: list[Path]) -> None:
    """Rows may be missing anywhere; a process numbers them without gaps."""
    with sqlite3.connect(paths[0]) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        event, dispatch = (next(t for t in tables if t.startswith(f"rocpd_{x}_")) for x in ("event", "kernel_dispatch"))
        database.execute(f'UPDATE "{event}" SET id = id * 1000')
        database.execute(f'UPDATE "{dispatch}" SET event_id = event_id * 1000')
        database.execute(f'DELETE FROM "{event}" WHERE id = 7000')
    database.close()
    with open_traces(paths[0]) as traces:
        found = dict(traces.execute("SELECT id, corr_id FROM base_dispatch").fetchall())
    assert found == {number: None if number == 7 else number for number in range(1, 51)}


def test_the_phases_of_a_trial_are_regions_and_samples_lie_at_the_end_of_their_own(tmp_path: Path) -> None:
    with Capture(tmp_path, {}) as capture, phase("before any trial"):
        trial = capture.begin({"workload": "w"})
        with phase("prepare"), phase("inner"):
            pass
        with pytest.raises(ValueError, match="out"), phase(TIMING):
            raise ValueError("out")
        capture.end(trial, samples=[Sample(100, 1), Sample(50, 1)], operators=[OperatorSpan(0, "op", 5, 1, BEGIN_NS)])
        other = capture.begin({"workload": "without phases"})
        capture.end(other, samples=[Sample(7, 1)])
    with open_traces(tmp_path) as traces:
        names = traces.execute("SELECT trial, name, category FROM regions ORDER BY id").fetchall()
        assert names == [(1, "inner", "phase"), (1, "prepare", "phase"), (1, TIMING, "phase")]
        ((end,),) = traces.execute("SELECT \"end\" FROM regions WHERE name = 'time'").fetchall()
        begins = traces.execute('SELECT "timestamp" FROM samples ORDER BY trial, position').fetchall()
        assert [row[0] for row in begins[:2]] == [end - 150, end - 50]
        assert begins[2] == traces.execute("SELECT start FROM trials WHERE id = 2").fetchall()[0]
        assert traces.execute("SELECT start FROM kernels").fetchall()[0] == (BEGIN_NS + 5,)


def test_the_hosts_sensors_are_told_for_the_time_of_the_chosen_processes(tmp_path: Path) -> None:
    write_raw(tmp_path / "raw")
    with open_traces(tmp_path / "raw") as traces:
        begun, ended = traces.execute('SELECT start, "end" FROM processes').fetchall()[0]
    middle_s = (begun + ended) / 2e9
    columns = {"elapsed_s": [-3600.0, 0.0, 3600.0], "cpu_mhz_max.x": [1.0, 2.0, 3.0]}
    told = telemetry.Telemetry("e", "s", middle_s, 2.0, 2, 10, telemetry.Cost(0.0, 0.0), columns)
    telemetry.write(tmp_path / "telemetry_20261121T031500Z.json", told)
    sql = "SELECT value, unit FROM telemetry WHERE name = 'cpu_mhz_max.x' ORDER BY value"
    (pid,) = {int(path.name.split("_")[1]) for path in (tmp_path / "raw").glob("raw_*.db")}
    with open_traces(tmp_path) as traces:
        assert traces.execute(sql).fetchall() == [(1.0, "mhz"), (2.0, "mhz"), (3.0, "mhz")]
    with open_traces(tmp_path, filters=Filters(processes=[pid])) as traces:
        assert traces.execute(sql).fetchall() == [(2.0, "mhz")]
    with open_traces(tmp_path, filters=Filters(processes=[pid + 1])) as traces:
        assert traces.execute(sql).fetchall() == []


def test_a_night_is_told_with_its_tvms_its_notes_and_the_dashboards_commit(tmp_path: Path) -> None:
    night = write_night(tmp_path, "20261121T031500Z")
    known = {"artifacts": [{"key": "wheel-0.27"}, {"key": "git-ab"}], "notes": ["late", "hot"]}
    columns = 'SELECT tvm, notes, "commit", duration FROM nights'
    with open_traces(tmp_path / "results") as traces:
        assert traces.execute(columns).fetchall() == [(None, None, None, 3 * 10**9)]
    night.write_text(json.dumps({**json.loads(night.read_text()), **known, "repository": {"commit": "c0ffee"}}))
    with open_traces(tmp_path / "results") as traces:
        assert traces.execute(columns).fetchall() == [("wheel-0.27, git-ab", "late\nhot", "c0ffee", 3 * 10**9)]


def test_records_that_a_sealed_run_and_the_home_both_hold_are_told_once(tmp_path: Path) -> None:
    data, night = write_data(tmp_path, "relax_opt", "20261121T031500Z"), write_night(tmp_path, "20261121T031500Z")
    run = seal([write_raw(tmp_path / "raw"), data, night], tmp_path / "sealed")
    both = [run.path, tmp_path / "results"]
    with open_traces(both) as traces:
        for view in ("records", "nights", "stages"):
            assert traces.execute(f"SELECT count(*) FROM {view}").fetchall() == [(1,)], view
    merged = seal(both, tmp_path / "merged")
    assert merged.catalogue.tables["record"].rows == 1


def test_every_source_is_read_whole_though_they_are_read_side_by_side(tmp_path: Path) -> None:
    for number in range(40):
        write_raw(tmp_path / str(number), [("op", number, 1 + number)])
    told: list[tuple[str, int, int]] = []
    with open_traces(tmp_path, progress=lambda *news: told.append(news)) as traces:
        found = traces.execute("SELECT duration FROM kernels ORDER BY 1").fetchall()
    assert [row[0] for row in found] == list(range(1, 41))
    assert told == [("reading", done, 40) for done in range(1, 41)]
    assert len(find([tmp_path])) == 40


@pytest.mark.parametrize(
    ("table", "damage"),
    [
        ("kernel_dispatch", "UPDATE {} SET start = 'then' WHERE id = 3"),
        ("kernel_dispatch", "UPDATE {} SET kernel_id = 1.5"),
        ("kernel_dispatch", "UPDATE {} SET event_id = x'00'"),
        ("event", "UPDATE {} SET stack_id = 'deep' WHERE id = 1"),
        ("info_thread", "UPDATE {} SET tid = '[1]'"),
        ("info_agent", "UPDATE {} SET absolute_index = '\"'"),
    ],
)
def test_damage_inside_a_rocpd_database_is_an_error_that_names_it(paths: list[Path], table: str, damage: str) -> None:
    with sqlite3.connect(paths[0]) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        database.execute(damage.format(f'"{next(n for n in names if n.startswith(f"rocpd_{table}_"))}"'))
    database.close()
    with open_traces(paths) as traces, pytest.raises(DashboardError, match=paths[0].name):
        list(traces.stream(lambda table: []))


def test_nothing_of_a_rocpd_database_runs(paths: list[Path]) -> None:
    """Views and triggers of a stranger's lie beside the tables; a view in a table's place is not looked at."""
    with sqlite3.connect(paths[0]) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        event = next(name for name in names if name.startswith("rocpd_event_"))
        database.execute(f'ALTER TABLE "{event}" RENAME TO hidden')
        database.execute(f'CREATE VIEW "{event}" AS SELECT 1 AS id, 77 AS stack_id, load_extension(1) AS category_id')
        database.execute("DROP VIEW kernels")
        database.execute("CREATE VIEW kernels AS SELECT 'theirs' AS name, 5 AS duration")
    database.close()
    with open_traces(paths[0]) as traces:
        rows = "SELECT count(*), count(stack_id), count(category), sum(name = 'theirs') FROM base_dispatch"
        assert [int(value) for value in traces.execute(rows).fetchall()[0]] == [50, 0, 0, 0]


def test_numbers_of_names_are_few_enough_to_be_counted_and_others_are_refused() -> None:
    assert raw_reader.distinct(numpy.array([5, 70_000, 5])) == [5, 70_000]
    for broken in (-1, 2**60):
        with pytest.raises(ValueError, match="names are numbered"):
            raw_reader.distinct(numpy.array([5, broken]))
