"""RocPD databases, as rocprofv3 writes them: many as one, with RocPD's view and column names."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from tests.tvmtraces import rocpd_files
from tests.tvmtraces.traces_for_tests import files_below, write_raw
from tvmdash.errors import DashboardError
from tvmtraces import Filters, connect
from tvmtraces.connection import open_traces
from tvmtraces.export.converters import CONVERTERS
from tvmtraces.sealing import seal

NAMES = ["void conv(float*)", "gemm", "copy_kernel"]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Three databases of three processes."""
    made = [tmp_path / f"{pid}_results.db" for pid in (100, 200, 300)]
    for index, path in enumerate(made):
        rows = rocpd_files.kernels(50, seed=index, names=len(NAMES))
        rocpd_files.write(path, rows, NAMES, pid=100 * (index + 1), more=True)
    return made


@pytest.mark.parametrize("kind", ["raw", "sealed"])
def test_kernels_are_what_the_views_in_the_files_show(tmp_path: Path, paths: list[Path], kind: str) -> None:
    alone = [sqlite3.connect(path) for path in paths]
    names = ", ".join(f'"{row[1]}"' for row in alone[0].execute("PRAGMA table_info(kernels)"))
    expected = sorted(row for one in alone for row in one.execute("SELECT * FROM kernels"))
    before = files_below(tmp_path)
    place = seal(paths, tmp_path / "sealed").path if kind == "sealed" else paths
    with connect(place) as traces:
        assert sorted(traces.execute(f"SELECT {names} FROM kernels").fetchall()) == expected
        top = traces.execute("SELECT name, total_calls, total_duration FROM top_kernels").fetchall()
    named = [str(column) for column in names.replace('"', "").split(", ")]
    sums = Counter[str]()
    for row in expected:
        sums[row[named.index("name")]] += row[named.index("duration")]
    assert [(name, us) for name, _, us in top] == [(name, total / 1000) for name, total in sums.most_common()]
    for one in alone:
        one.close()
    assert {name: found for name, found in files_below(tmp_path).items() if "/sealed/" not in name} == before


def test_regions_copies_samples_and_counters_are_there(paths: list[Path]) -> None:
    with connect(paths[0]) as traces:
        one = traces.execute
        region = "SELECT name, category, pid, tid, duration, corr_id, extdata FROM regions"
        assert one(region).fetchall() == [("region void conv(float*)", "HIP_API", 100, 101, 100, 9, "{}")]
        copy = "SELECT name, category, size, dst_device, src_device, dst_agent_type, duration FROM memory_copies"
        assert one(copy).fetchall() == [("region gemm", "MEMORY_COPY", 4096, "gfx942", "EPYC", "GPU", 30)]
        assert one("SELECT name, category, pid FROM samples").fetchall() == [
            ("region void conv(float*)", "HIP_API", 100)
        ]
        counter = "SELECT counter_name, value, dispatch_id, kernel_name IS NOT NULL FROM counters_collection"
        assert [tuple(row[:3]) for row in one(counter)] == [("SQ_WAVES", 6.5, 1)]
        assert one("SELECT hostname, machine_id, pid, command FROM processes").fetchall() == [
            ("gpu-node", "machine-100", 100, "python3 model.py")
        ]
        assert one("SELECT pid, tid, name FROM threads").fetchall() == [(100, 101, "main")]
        assert one("SELECT type, name FROM agents ORDER BY id").fetchall() == [("GPU", "gfx942"), ("CPU", "EPYC")]
        agents = one("SELECT agent_id, type, GpuTime > 0, Busy > 0 AND Busy <= 1 FROM busy").fetchall()
        assert [tuple(map(bool, row[2:])) for row in agents] == [(True, True)]
        assert one("SELECT count(*) FROM top").fetchone() == (5,)


def test_they_are_mixed_with_our_own(tmp_path: Path, paths: list[Path]) -> None:
    with connect([*paths, write_raw(tmp_path / "ours")]) as traces:
        assert traces.execute("SELECT count(*) FROM kernels").fetchone() == (153,)
        assert traces.execute("SELECT count(DISTINCT guid) FROM processes").fetchone() == (4,)
    with connect([*paths, tmp_path / "ours"], filters=Filters(processes=[200], categories=["KERNEL*"])) as traces:
        assert traces.execute("SELECT count(*), min(pid), max(pid) FROM kernels").fetchone() == (50, 200, 200)


def test_several_processes_in_one_file_are_several_processes(tmp_path: Path, paths: list[Path]) -> None:
    place = tmp_path / "both.db"
    database = sqlite3.connect(place)
    for path in paths[:2]:
        other = sqlite3.connect(path)
        tables = other.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%'"
        ).fetchall()
        for name, sql in tables:
            database.execute(sql)
            rows = other.execute(f'SELECT * FROM "{name}"').fetchall()
            if rows:
                database.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(rows[0]))})', rows)
        other.close()
    database.commit()
    database.close()
    with connect(place) as one, connect(paths[:2]) as other:
        query = "SELECT guid, pid, name, start, duration FROM kernels ORDER BY guid, start"
        assert one.execute(query).fetchall() == other.execute(query).fetchall()


def test_what_sealing_leaves_out_is_counted(tmp_path: Path, paths: list[Path]) -> None:
    with sqlite3.connect(paths[0]) as database:
        query = "SELECT name FROM sqlite_master WHERE name LIKE 'rocpd_info_process_%'"
        (name,) = database.execute(query).fetchone()
        suffix = name.removeprefix("rocpd_info_process")
        database.execute(f'CREATE TABLE "rocpd_hip_event{suffix}" (id INTEGER PRIMARY KEY, start BIGINT)')
        database.executemany(f'INSERT INTO "rocpd_hip_event{suffix}" (start) VALUES (?)', [(1,), (2,)])
        database.execute(f"""UPDATE "{name}" SET environment = '{{"A": "b"}}'""")
    database.close()
    left_out = {"rows of rocpd_hip_event": 2, "values of rocpd_info_process.environment": 1}
    assert seal(paths, tmp_path / "sealed").catalogue.left_out == left_out
    assert seal([tmp_path / "sealed"], tmp_path / "again").catalogue.left_out == left_out
    assert seal(paths[1:], tmp_path / "all").catalogue.left_out == {}
    assert "left_out" not in json.loads((tmp_path / "all" / "catalogue.json").read_text())


def read_own(paths: list[Path], table: str) -> list[tuple[object, ...]]:
    """The rows of one of RocPD's tables in all files, as SQLite gives them."""
    found = []
    for path in paths:
        with contextlib.closing(sqlite3.connect(path)) as database:
            query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB ?"
            (name,) = database.execute(query, (f"{table}_[0-9a-f]*",)).fetchone()
            found += database.execute(f'SELECT * FROM "{name}"').fetchall()
    return found


@pytest.mark.parametrize("table", ["rocpd_kernel_dispatch", "rocpd_string", "rocpd_info_process", "rocpd_metadata"])
def test_rocpds_own_tables_have_the_rows_of_all_files(paths: list[Path], table: str) -> None:
    own = read_own(paths, table)
    with connect(paths) as traces:  # behind the columns stand those of later schemas
        found = [row[: len(own[0])] for row in traces.execute(f"SELECT * FROM {table}")]
    assert found
    assert sorted(map(repr, found)) == sorted(map(repr, own))


def test_rocpds_own_tables_join_as_amds_documents_join_them(paths: list[Path]) -> None:
    query = """SELECT S.display_name, count(*) FROM ROCPD_KERNEL_DISPATCH K JOIN rocpd_info_kernel_symbol S
        ON S.guid = K.guid AND S.id = K.kernel_id GROUP BY 1 ORDER BY 1"""
    with connect(paths) as traces:
        views = traces.execute("SELECT name, count(*) FROM kernels GROUP BY 1 ORDER BY 1").fetchall()
        assert traces.execute(query).fetchall() == views


def test_a_column_that_one_file_lacks_is_null_in_its_rows(paths: list[Path]) -> None:
    with sqlite3.connect(paths[0]) as database:
        query = "SELECT name FROM sqlite_master WHERE name GLOB 'rocpd_string_[0-9a-f]*' AND type = 'table'"
        (name,) = database.execute(query).fetchone()
        database.execute(f'ALTER TABLE "{name}" ADD COLUMN "weight" REAL DEFAULT 0.5')
    database.close()
    with connect(paths) as traces:
        counted = traces.execute(
            "SELECT weight, count(DISTINCT guid) FROM rocpd_string GROUP BY 1 ORDER BY 1"
        ).fetchall()
    assert counted == [(None, 2), (0.5, 1)]


def test_where_rocpds_own_tables_are_not_it_is_said_what_to_ask(tmp_path: Path, paths: list[Path]) -> None:
    for place, table in ((write_raw(tmp_path / "raw"), "rocpd_string"), (paths, "rocpd_hip_event")):
        with (
            connect(place) as traces,
            pytest.raises(DashboardError, match=f"no such table: {table}. Query the views"),
        ):
            traces.execute(f"SELECT * FROM {table}")
    with (
        connect(paths, filters=Filters(operators=["gemm"])) as traces,
        pytest.raises(DashboardError, match="filters do not apply to RocPD"),
    ):
        traces.execute("SELECT * FROM rocpd_string")
    with connect(paths) as traces:
        assert traces.execute("SELECT 'rocpd_nothing'").fetchone() == ("rocpd_nothing",)


@pytest.mark.parametrize(("version", "words"), [("5.0.0", "is newer than 4"), ("", "is unknown"), ("x", "is unknown")])
def test_another_schema_is_refused(tmp_path: Path, version: str, words: str) -> None:
    rocpd_files.write(tmp_path / "x.db", rocpd_files.kernels(3, seed=0, names=1), ["k"], pid=1, version=version)
    with pytest.raises(DashboardError, match=words):
        connect(tmp_path / "x.db")


def test_later_columns_of_the_same_schema_may_be_missing_or_there(tmp_path: Path, paths: list[Path]) -> None:
    """graph_exec_id came with 3.0.2, sample_id with 3.0.3."""
    rocpd_files.drop_keys(paths[1])
    with sqlite3.connect(paths[1]) as database:
        names = find_tables(database)
        database.execute(f'ALTER TABLE "{names["rocpd_kernel_dispatch"]}" DROP COLUMN graph_exec_id')
        database.execute(f'ALTER TABLE "{names["rocpd_pmc_event"]}" DROP COLUMN sample_id')
    database.close()
    with sqlite3.connect(paths[0]) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        dispatch = next(name for name in tables if name.startswith("rocpd_kernel_dispatch_"))
        counter = next(name for name in tables if name.startswith("rocpd_pmc_event_"))
        database.execute(f'UPDATE "{dispatch}" SET graph_exec_id = 5')
        database.execute(f'UPDATE "{counter}" SET sample_id = 1 WHERE id = 1')
    database.close()
    with connect(paths[:2]) as traces:
        graphs = "SELECT pid, min(graph_exec_id), max(graph_exec_id) FROM kernels GROUP BY pid ORDER BY pid"
        assert traces.execute(graphs).fetchall() == [(100, 5, 5), (200, None, None)]
        values = "SELECT pid, value FROM counters_collection ORDER BY pid"
        assert traces.execute(values).fetchall() == [(100, 4.0), (200, 6.5)], "streamed counters are not collected ones"


def test_a_call_that_has_not_ended_costs_itself_and_no_other(tmp_path: Path, paths: list[Path]) -> None:
    with sqlite3.connect(paths[0]) as database:
        query = "SELECT name FROM sqlite_master WHERE name GLOB 'rocpd_kernel_dispatch_[0-9a-f]*' AND type = 'table'"
        (name,) = database.execute(query).fetchone()
        database.execute(f'UPDATE "{name}" SET "end" = 0 WHERE id = 5')
    database.close()
    with connect(paths[0]) as traces:
        summed = traces.execute("SELECT count(*) AS calls, sum(duration) AS total FROM kernels").fetchone()
        assert summed[0] == 50
        assert summed[1] < 0, "as RocPD's own view has it"
    with open_traces(paths[0]) as traces:
        query = "SELECT count(*), count(duration), min(duration) > 0 FROM kernels"
        assert traces.execute(query).fetchall() == [(50, 49, True)]
    for kind in ("perfetto", "rocpd"):
        CONVERTERS[kind].write([str(paths[0])], tmp_path / kind, Filters(), None)


def test_a_row_that_refers_to_nothing_is_kept_and_counted_where_rocpds_views_leave_it_out(paths: list[Path]) -> None:
    with sqlite3.connect(paths[0]) as database:
        name = database.execute("SELECT name FROM sqlite_master WHERE name LIKE 'rocpd_kernel_dispatch_%'").fetchone()[
            0
        ]
        database.execute(f'UPDATE "{name}" SET tid = NULL, region_name_id = 999, event_id = NULL WHERE id = 1')
    database.close()
    with connect(paths[0]) as traces:
        query = "SELECT tid, region, category, name IS NOT NULL FROM base_dispatch WHERE id = 1"
        assert traces.execute(query).fetchone() == (None, None, None, True)
        assert traces.execute("SELECT count(*), min(id) FROM kernels").fetchone() == (49, 2)
        assert traces.execute("SELECT sum(total_calls) FROM top_kernels").fetchone() == (50,), "as in RocPD"
        query = "SELECT refers_to, rows FROM unresolved WHERE kind = 'dispatch' ORDER BY refers_to"
        assert traces.execute(query).fetchall() == [("event", 1), ("name of the region", 1), ("thread", 1)]


def find_tables(database: sqlite3.Connection) -> dict[str, str]:
    """RocPD's tables in a database of one writer, by their names without its suffix."""
    named = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'rocpd_*'").fetchall()
    suffix = next(name.removeprefix("rocpd_string") for (name,) in named if name.startswith("rocpd_string"))
    return {name.removesuffix(suffix): name for (name,) in named}


def test_a_view_that_only_the_files_know_is_answered_over_all_of_them(paths: list[Path]) -> None:
    """As `hip_events` of schema 3.0.4: a table and a view that none of ours is made of."""
    for path in paths:
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            suffix = find_tables(database)["rocpd_string"].removeprefix("rocpd_string")
            database.execute(f'CREATE TABLE "rocpd_hip_event{suffix}" (id INTEGER PRIMARY KEY, name_id INTEGER)')
            database.executemany(f'INSERT INTO "rocpd_hip_event{suffix}" VALUES (?, ?)', [(1, 1), (2, 2)])
            database.execute(f'CREATE VIEW rocpd_hip_event AS SELECT * FROM "rocpd_hip_event{suffix}"')
            database.execute(
                "CREATE VIEW `hip_events` AS SELECT H.id, S.string AS name FROM `rocpd_hip_event` H"
                " INNER JOIN rocpd_string S ON S.id = H.name_id AND S.guid = (SELECT min(guid) FROM rocpd_string)"
            )
            database.execute("DROP VIEW kernels")
            database.execute("CREATE VIEW kernels AS SELECT 'not ours' AS name")
    with connect(paths) as traces:
        assert traces.execute("SELECT count(*) FROM hip_events WHERE name LIKE 'kernel%'").fetchone() == (len(paths),)
        assert traces.execute("SELECT count(*) FROM kernels WHERE name = 'not ours'").fetchone() == (0,)
    with (
        connect(paths, filters=Filters(operators=["gemm"])) as traces,
        pytest.raises(DashboardError, match="hip_events"),
    ):
        traces.execute("SELECT * FROM hip_events")


@pytest.mark.parametrize("how", ["as it is", "sealed"])
def test_the_passes_of_a_replayed_kernel_are_counted_apart(how: str, tmp_path: Path, paths: list[Path]) -> None:
    """Two passes have one `dispatch_id` and events of their own; summed up, each counter would count twice."""
    with contextlib.closing(sqlite3.connect(paths[0])) as database, database:
        names = find_tables(database)
        dispatch, counter = names["rocpd_kernel_dispatch"], names["rocpd_pmc_event"]
        database.execute(f'ALTER TABLE "{dispatch}" ADD COLUMN replay_pass INTEGER')
        database.execute(f'UPDATE "{dispatch}" SET replay_pass = id, dispatch_id = 1 WHERE id < 3')
        database.execute(f'INSERT INTO "{counter}" (event_id, pmc_id, value) VALUES (2, 1, 3.0)')
    place = seal(paths[:1], tmp_path / "sealed").path if how == "sealed" else paths[0]
    with connect(place) as traces:
        query = "SELECT dispatch_id, event_id, value FROM counters_collection ORDER BY event_id"
        assert traces.execute(query).fetchall() == [(1, 1, 6.5), (1, 2, 3.0)]
        if how != "sealed":
            query = "SELECT replay_pass FROM rocpd_kernel_dispatch WHERE replay_pass IS NOT NULL ORDER BY 1"
            assert traces.execute(query).fetchall() == [(1,), (2,)]


def make_schema_4(path: Path) -> None:
    """Rewrite a database as schema 4.1 has it: places stand in tracks, categories in a table of their own."""
    rocpd_files.drop_keys(path)
    on_track = {"rocpd_kernel_dispatch": "agent_id queue_id stream_id", "rocpd_memory_copy": "queue_id stream_id"}
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        names = find_tables(database)
        suffix, track = names["rocpd_string"].removeprefix("rocpd_string"), names["rocpd_track"]
        database.execute(f'ALTER TABLE "{names["rocpd_sample"]}" ADD COLUMN name_id INTEGER')
        database.execute(f'UPDATE "{names["rocpd_sample"]}" SET name_id = (SELECT max(name_id) FROM "{track}")')
        database.execute(f'UPDATE "{track}" SET name_id = 1')
        for column in ("ppid", "agent_id", "queue_id", "stream_id"):
            database.execute(f'ALTER TABLE "{track}" ADD COLUMN {column} INTEGER')
        for table in ("rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_region"):
            own, columns = names[table], ["nid", "pid", "tid", *on_track.get(table, "").split()]
            listed, same = ", ".join(columns), " AND ".join(f"T.{name} IS R.{name}" for name in columns)
            database.execute(f'INSERT INTO "{track}" ({listed}) SELECT DISTINCT {listed} FROM "{own}"')
            database.execute(f'ALTER TABLE "{own}" ADD COLUMN track_id INTEGER')
            database.execute(f'UPDATE "{own}" AS R SET track_id = (SELECT max(T.id) FROM "{track}" T WHERE {same})')
            for column in columns:
                database.execute(f'ALTER TABLE "{own}" DROP COLUMN {column}')
        database.execute(f'CREATE TABLE "rocpd_info_category{suffix}" (id INTEGER PRIMARY KEY, guid TEXT, name TEXT)')
        database.execute(
            f'INSERT INTO "rocpd_info_category{suffix}" SELECT DISTINCT S.id + 100, S.guid, S.string FROM'
            f' "{names["rocpd_event"]}" E JOIN "{names["rocpd_string"]}" S ON S.id = E.category_id'
        )
        database.execute(f'UPDATE "{names["rocpd_event"]}" SET category_id = category_id + 100')
        database.execute(f"""UPDATE "{names["rocpd_metadata"]}" SET value = '4.1.0' WHERE tag = 'schema_version'""")


def test_schema_4_says_the_same_in_its_own_tables(tmp_path: Path, paths: list[Path]) -> None:
    views = ("kernels", "regions", "samples", "memory_copies", "counters_collection", "threads", "top")
    with connect(seal(paths[:2], tmp_path / "before").path) as traces:
        expected = {view: sorted(map(repr, traces.execute(f"SELECT * FROM {view}").fetchall())) for view in views}
    for path in paths[:2]:
        make_schema_4(path)
    for place in (paths[:2], seal(paths[:2], tmp_path / "sealed").path):
        with connect(place) as traces:
            found = {view: sorted(map(repr, traces.execute(f"SELECT * FROM {view}").fetchall())) for view in views}
            assert found == expected
    assert seal(paths[:2], tmp_path / "all").catalogue.left_out == {}
    CONVERTERS["rocpd"].write([str(path) for path in paths[:2]], tmp_path / "three.db", Filters(), None)
    with connect(tmp_path / "three.db") as traces:
        assert traces.execute("SELECT count(*), count(DISTINCT name) FROM kernels").fetchone()[0] == 100
