"""Many databases as one: what connect takes, what it shows, what it refuses, what it never does."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest

from tests.tvmtraces.traces_for_tests import BEGIN_NS, files_below, write_format_1, write_raw
from tvmdash.errors import DashboardError
from tvmtraces import connect
from tvmtraces.sealing import seal
from tvmtraces.views import VIEWS

SHARED = Path(__file__).resolve().parents[2] / "shared" / "python"
ALL = "SELECT count(*), sum(duration) FROM kernels"


def test_two_databases_are_one_to_a_query(tmp_path: Path) -> None:
    paths = [write_raw(tmp_path / "a"), write_raw(tmp_path / "b", [("matmul", 0, 30)])]
    with connect(paths) as traces:
        assert traces.execute(ALL).fetchall() == [(4, 200)]
        top = traces.execute("SELECT name, total_calls, total_duration, percentage FROM top_kernels").fetchall()
    assert top == [("matmul", 3, 0.19, 95.0), ("relu", 1, 0.01, 5.0)]


def test_it_is_used_as_sqlite3_is(tmp_path: Path) -> None:
    with connect(write_raw(tmp_path)) as traces:
        sql = "SELECT name, duration FROM kernels WHERE duration > ? ORDER BY id"
        assert list(traces.execute(sql, (50,))) == [("matmul", 70), ("matmul", 90)]
        cursor = traces.cursor()
        cursor.execute("SELECT name FROM kernels ORDER BY id")
        other = traces.execute("SELECT 1")
        assert cursor.fetchone() == ("matmul",)
        assert other.fetchone() == (1,)
        assert cursor.fetchmany(1) == [("relu",)]
        assert cursor.fetchall() == [("matmul",)]
        assert cursor.fetchone() is None
        assert [column[0] for column in cursor.description or ()] == ["name"]
        with pytest.raises(DashboardError, match="nonsense"):
            traces.execute("SELECT nonsense FROM kernels")
        with pytest.raises(DashboardError, match="statement"):
            traces.execute("SELECT 1; SELECT 2")


def test_rows_come_as_a_data_frame_and_as_arrow(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    with connect(write_raw(tmp_path)) as traces:
        frame = traces.execute("SELECT name, duration FROM kernels ORDER BY id").df()
        assert list(frame["duration"]) == [70, 10, 90]
        pytest.importorskip("pyarrow")
        assert traces.execute("SELECT name FROM kernels ORDER BY id").arrow().column("name").to_pylist()[1] == "relu"


def test_what_a_trial_gave_is_in_the_views(tmp_path: Path) -> None:
    with connect(write_raw(tmp_path)) as traces:
        trial = "SELECT workload, point, samples, ms_mean, tvm_hash, hostname, error FROM trials"
        assert traces.execute(trial).fetchall() == [("network.mlp", '{"batch": 1}', 2, 0.0015, "abc", "node", None)]
        assert traces.execute('SELECT start, "end" FROM kernels ORDER BY id').fetchall()[1] == (
            BEGIN_NS + 80,
            BEGIN_NS + 90,
        )
        assert traces.execute("SELECT name, category, duration FROM regions").fetchall() == [("compile", "phase", 900)]
        assert traces.execute("SELECT name, duration FROM passes ORDER BY position").fetchall() == [
            ("FoldConstant", 500),
            ("FuseOps", 300),
        ]
        assert traces.execute("SELECT name, value FROM telemetry").fetchall() == [("load_1_min", 0.5)]
        assert traces.execute("SELECT name, elapsed_ns, number FROM samples ORDER BY position").fetchall() == [
            ("network.mlp", 2000, 2),
            ("network.mlp", 4000, 2),
        ]


def test_format_1_is_read_and_its_runs_end_with_the_trial(tmp_path: Path) -> None:
    with connect(write_format_1(tmp_path / "raw_7_1.db")) as traces:
        rows = traces.execute("SELECT repetition, start - ?, duration FROM kernels ORDER BY id", (BEGIN_NS,)).fetchall()
    assert rows == [(0, 500, 100), (0, 620, 80), (1, 700, 100), (1, 810, 190)]


def test_two_hundred_databases_are_opened_at_once(tmp_path: Path) -> None:
    first = write_format_1(tmp_path / "raw_0_1.db", pid=0)
    for index in range(1, 200):
        with closing(sqlite3.connect(shutil.copy(first, tmp_path / f"raw_{index}_1.db"))) as database:
            database.execute("UPDATE process SET pid = ?", (index,))
            database.commit()
    with connect(tmp_path) as traces:
        assert traces.execute(ALL).fetchall() == [(800, 200 * 470)]
        assert traces.execute("SELECT count(DISTINCT guid) FROM processes").fetchone() == (200,)


def test_raw_sealed_and_old_are_mixed_through_folders_and_patterns(tmp_path: Path) -> None:
    seal([write_raw(tmp_path / "a")], tmp_path / "nights" / "one")
    write_raw(tmp_path / "raw" / "deep" / "b")
    write_format_1(tmp_path / "raw" / "raw_7_1.db")
    (tmp_path / "raw" / "status.json").write_text("{}")
    with connect([tmp_path / "nights", str(tmp_path / "raw" / "**" / "*.db")]) as traces:
        assert traces.execute(ALL).fetchall() == [(3 + 3 + 4, 170 + 170 + 470)]
    files = sorted((tmp_path / "nights" / "one").glob("*.parquet"))
    with connect(files) as traces:
        assert traces.execute(ALL).fetchall() == [(3, 170)]


def test_a_killed_process_leaves_what_it_had_committed(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        from tvmdash.measure.capture import Capture, OperatorSpan, Sample
        capture = Capture(Path(sys.argv[1]), {})
        for number in range(3):
            trial = capture.begin({"workload": f"w{number}"})
            if number == 2:
                print("in the third", flush=True)
                time.sleep(60)
            capture.end(trial, samples=[Sample(1000, 1)], operators=[OperatorSpan(0, "op", 0, 5)])
    """)
    environment = {**os.environ, "PYTHONPATH": str(SHARED)}
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with connect(tmp_path) as traces:
            assert traces.execute(ALL).fetchall() == [(2, 10)], "a living process is read as well"
        process.send_signal(signal.SIGKILL)
    before = files_below(tmp_path)
    assert any(name.endswith("-wal") for name in before)
    with connect(tmp_path) as traces:
        assert traces.execute(ALL).fetchall() == [(2, 10)]
        errors = traces.execute("SELECT workload, error IS NULL, duration IS NULL FROM trials ORDER BY id").fetchall()
    assert [bool(row[1]) for row in errors] == [True, True, False]
    assert [bool(row[2]) for row in errors] == [False, False, True]
    assert files_below(tmp_path) == before, "nothing is created, nothing is replayed in place"


def test_reading_leaves_every_file_as_it_was(tmp_path: Path) -> None:
    write_raw(tmp_path)
    before = files_below(tmp_path)
    with connect(tmp_path) as traces:
        traces.execute("SELECT * FROM top").fetchall()
    assert files_below(tmp_path) == before


def test_what_cannot_be_right_is_refused(tmp_path: Path) -> None:
    good = write_raw(tmp_path / "good")
    copy = tmp_path / "copy.db"
    shutil.copy(good, copy)
    (tmp_path / "text.db").write_text("no database " * 100)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link.db").symlink_to(good)
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE x (y)")
    other.close()
    cut = tmp_path / "cut.db"
    cut.write_bytes(good.read_bytes()[:9000])
    for paths, words in (
        ([good, good], "given twice"),
        ([good.parent, good], "given twice"),
        ([good, tmp_path / "link.db"], r"given twice \(also as"),
        ([good, copy], "contains process .*, which is also in"),
        ([tmp_path / "none.db"], "no such file or folder"),
        ([tmp_path / "*.none"], "no file matches"),
        ([tmp_path / "text.db"], "neither a database nor a sealed run"),
        ([tmp_path / "other.db"], "neither a raw database of this dashboard nor one of rocprofv3"),
        ([tmp_path / "empty"], "no traces in this folder"),
        ([], "No traces given"),
    ):
        with pytest.raises(DashboardError, match=words):
            connect(paths)
    with pytest.raises(DashboardError, match="cut"):
        connect(cut).execute(ALL)


@pytest.mark.parametrize("version", [4, 99])
def test_a_newer_raw_format_is_refused(tmp_path: Path, version: int) -> None:
    path = write_raw(tmp_path)
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {version}")
    database.close()
    with pytest.raises(DashboardError, match=rf"format version {version} is newer than 3\. Update"):
        connect(path)


def look_at_all(path: Path) -> None:
    with connect(path) as traces:
        for view in VIEWS:
            traces.execute(f"SELECT * FROM {view}").fetchall()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE runs SET starts_ns = x'00'",
        "UPDATE runs SET names = x'ffffff7f' || substr(names, 5)",
        "UPDATE runs SET durations_ns = 'text'",
        "UPDATE runs SET durations_ns = substr(durations_ns, 9)",
        "UPDATE samples SET elapsed_ns = 'many'",
        "UPDATE samples SET elapsed_ns = 1.5",
        "UPDATE trials SET started_ns = 'then'",
        "UPDATE trials SET point = '{'",
        "DROP TABLE passes",
        "DELETE FROM names",
    ],
)
def test_damage_inside_a_database_is_an_error_that_names_it(tmp_path: Path, damage: str) -> None:
    path = write_raw(tmp_path)
    with sqlite3.connect(path) as database:
        database.execute(damage)
    database.close()
    with pytest.raises(DashboardError, match=path.name):
        look_at_all(path)


def test_nothing_of_an_input_runs(tmp_path: Path) -> None:
    """A view, a trigger, a virtual table in the place of a table: refused or not looked at."""
    path = write_raw(tmp_path)
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE samples RENAME TO hidden")
        database.execute("CREATE VIEW samples AS SELECT 1 AS trial, 0 AS position, load_extension('x') AS elapsed_ns")
    database.close()
    with pytest.raises(DashboardError, match="neither a raw database"):
        connect(path)
    path = write_raw(tmp_path / "second")
    with sqlite3.connect(path) as database:
        database.execute("CREATE TRIGGER t AFTER INSERT ON samples BEGIN DELETE FROM trials; END")
        database.execute("CREATE VIEW kernels AS SELECT 'theirs' AS name, 5 AS duration")
    database.close()
    with connect(path) as traces:
        assert traces.execute(ALL).fetchone() == (3, 170)


@pytest.mark.parametrize("kind", ["raw", "sealed"])
def test_a_query_reaches_nothing_but_the_traces(tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    write_raw(tmp_path / "raw")
    run = seal([tmp_path / "raw"], tmp_path / "sealed")
    before = files_below(tmp_path)
    with connect(tmp_path / kind) as traces:
        for sql in (
            f"SELECT * FROM read_csv('{secret}')",
            f"SELECT * FROM '{secret}'",
            f"ATTACH '{tmp_path}/new.db'",
            f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
            f"COPY (SELECT 1) TO '{run.path}/operator.parquet' (FORMAT parquet)",
            f"EXPLAIN ANALYZE COPY (SELECT 1) TO '{run.path}/operator.parquet' (FORMAT parquet)",
            f"EXPORT DATABASE '{tmp_path}/new'",
            "SET enable_external_access = true",
            "INSTALL httpfs",
            f"SELECT * FROM glob('{tmp_path}/*')",
            f"SELECT load_extension('{secret}')",
            f"VACUUM INTO '{tmp_path}/new.db'",
        ):
            with pytest.raises(DashboardError):
                traces.execute(sql).fetchall()
    assert files_below(tmp_path) == before


def test_names_of_any_kind_are_data(tmp_path: Path) -> None:
    names = ["'; DROP TABLE x; --", 'a"b', "naïve 名前 🙂", "a\0b", "", "%s{}*?["]
    folder = tmp_path / 'it\'s [a] "place" *?'
    write_raw(folder, [(name, 10 * index, 1) for index, name in enumerate(names)], workload="o'hara", host="h'ost")
    run = seal([folder], tmp_path / "sealed 'so' [x]*")
    for place in (folder, run.path):
        with connect(place) as traces:
            assert [row[0] for row in traces.execute("SELECT name FROM kernels ORDER BY id")] == names
            assert traces.execute("SELECT workload FROM trials").fetchone() == ("o'hara",)


def test_importing_traces_imports_no_engine() -> None:
    script = "import sys, tvmtraces; assert not {'duckdb', 'numpy', 'pandas'} & set(sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(SHARED)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
