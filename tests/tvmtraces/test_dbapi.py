"""The connection as a module of Python's database API, and as AMD's Python uses it."""

from __future__ import annotations

import importlib.util
import sqlite3
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import tvmtraces
from tests.tvmtraces import rocpd_files
from tests.tvmtraces.traces_for_tests import write_raw
from tvmdash.errors import DashboardError
from tvmtraces import Connection, connect
from tvmtraces.database import INCOMPLETE

ROWS = "SELECT name, duration FROM kernels ORDER BY start"
EXPECTED = [("matmul", 70), ("relu", 10), ("matmul", 90)]


@pytest.fixture
def traces(tmp_path: Path) -> Iterator[Connection]:
    with connect(write_raw(tmp_path)) as opened:
        yield opened


def test_the_module_says_what_the_database_api_asks_for() -> None:
    assert (tvmtraces.apilevel, tvmtraces.threadsafety, tvmtraces.paramstyle) == ("2.0", 1, "qmark")
    for name in ("Error", "InterfaceError", "DatabaseError", "DataError", "OperationalError", "IntegrityError",
                 "InternalError", "ProgrammingError", "NotSupportedError", "Warning"):  # fmt: skip
        ours, theirs = getattr(tvmtraces, name), getattr(sqlite3, name)
        assert issubclass(ours, theirs)
        assert issubclass(ours, DashboardError if name != "Warning" else Exception)
        assert issubclass(ours, getattr(tvmtraces, theirs.__base__.__name__, Exception))


def test_a_fault_is_of_the_kind_that_the_database_api_names(traces: Connection) -> None:
    with pytest.raises(tvmtraces.OperationalError, match="no such column: nonsense"):
        traces.execute("SELECT nonsense FROM kernels")
    with pytest.raises(tvmtraces.ProgrammingError, match="one statement"):
        traces.execute("SELECT 1; SELECT 2")
    with pytest.raises(tvmtraces.DataError, match="Conversion Error"):
        traces.execute("SELECT CAST(name AS DATE) FROM kernels GROUP BY ALL").fetchall()
    assert traces.cursor().fetchone() is None
    with pytest.raises(tvmtraces.NotSupportedError, match="read-only"):
        traces.execute("COPY kernels TO 'x.csv'")


@pytest.mark.parametrize("name", sorted(name for name in dir(sqlite3.Connection) if not name.startswith("_")))
def test_every_member_of_sqlites_connection_is_there_or_says_what_to_use(name: str, traces: Connection) -> None:
    if name in INCOMPLETE:
        with pytest.raises(tvmtraces.NotSupportedError, match=f"{name} is not supported") as caught:
            getattr(traces, name)
        assert INCOMPLETE[name] in str(caught.value)
    else:
        getattr(traces, name)


def test_what_is_neither_sqlites_nor_ours_is_not_there(traces: Connection) -> None:
    assert not hasattr(traces, "no_such_thing")


def test_rows_are_fetched_as_in_sqlite(traces: Connection) -> None:
    cursor = traces.execute(ROWS)
    assert cursor.fetchmany(0) == []
    assert cursor.fetchone() == EXPECTED[0]
    assert next(cursor) == EXPECTED[1]
    assert cursor.fetchmany(-1) == EXPECTED[2:]
    assert (cursor.fetchone(), cursor.fetchmany(3), cursor.fetchall(), list(cursor)) == (None, [], [], [])
    assert (cursor.rowcount, cursor.lastrowid, cursor.connection) == (-1, None, traces)


@pytest.mark.parametrize("fetched", [0, 1, 3])
def test_a_frame_and_a_table_hold_what_was_not_fetched(fetched: int, traces: Connection) -> None:
    cursor = traces.execute(ROWS)
    cursor.fetchmany(fetched)
    frame = cursor.df()
    assert list(frame.columns) == ["name", "duration"]
    assert list(frame.itertuples(index=False, name=None)) == EXPECTED[fetched:]
    assert cursor.fetchall() == []
    assert len(cursor.df()) == 0
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(DashboardError, match="needs pyarrow"):
            cursor.arrow()
    else:
        cursor = traces.execute(ROWS)
        cursor.fetchmany(fetched)
        table = cursor.arrow()
        assert [tuple(row.values()) for row in table.to_pylist()] == EXPECTED[fetched:]
        assert fetched == 3 or str(table.schema.field("duration").type) == "int64"


def test_parameters_have_places_or_names(traces: Connection) -> None:
    expected = [("matmul", 90)]
    given = {"least": 80, "name": "matmul", "unused": 1}
    for sql in (
        "SELECT name, duration FROM kernels WHERE duration > :least AND name = :name -- :least",
        "SELECT name, duration FROM kernels WHERE duration > $least AND name = $name AND ':name' <> '' /* :x */",
        "SELECT name, duration::BIGINT FROM kernels WHERE duration > $least AND name[1:6] = $name",
    ):
        assert traces.execute(sql, given).fetchall() == expected
    assert traces.execute("SELECT name, duration FROM kernels WHERE duration > ?", (80,)).fetchall() == expected
    with pytest.raises(tvmtraces.ProgrammingError, match=":missing"):
        traces.execute("SELECT 1 WHERE 1 = :missing", {"other": 1})
    with pytest.raises(DashboardError):
        traces.execute("SELECT 1 WHERE 1 = $missing", {"other": 1})


def test_scripts_factories_and_traces_are_as_in_sqlite(traces: Connection) -> None:
    seen: list[str] = []
    traces.set_trace_callback(seen.append)
    traces.executescript(
        "CREATE MACRO doubled(n) AS 2 * n; CREATE TEMP VIEW slow AS SELECT * FROM kernels WHERE duration > 50"
    )
    assert len(seen) == 2
    traces.row_factory = lambda cursor, row: dict(zip([c[0] for c in cursor.description], row, strict=True))
    doubled = traces.execute("SELECT doubled(duration) AS twice FROM kernels WHERE duration > 50 ORDER BY 1")
    assert doubled.fetchall() == [{"twice": 140}, {"twice": 180}]
    assert len(traces.execute("SELECT * FROM slow").fetchall()) == 2
    assert (traces.in_transaction, traces.isolation_level) == (False, None)
    traces.commit()
    traces.rollback()
    with pytest.raises(tvmtraces.OperationalError, match="cannot modify kernels"):
        traces.cursor().executemany("INSERT INTO kernels (id) VALUES (?)", [(1,)])


def test_pandas_reads_it_as_any_database(traces: Connection) -> None:
    import pandas

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas has tried SQLAlchemy alone
        frame = pandas.read_sql_query("SELECT name FROM kernels WHERE duration > ?", traces.connection, params=(80,))
    assert frame["name"].tolist() == ["matmul"]


AMD_USE = """
{line}
rpd = rocpd.connect(["100.db", "200.db"])
for row in rpd.execute("SELECT * FROM kernels"):
    print(len(row) > 30)
cursor = rpd.cursor()
for row in cursor.execute("SELECT name, total_calls, total_duration, percentage FROM top").fetchall():
    print(row)
print([column[0] for column in cursor.description], rpd.filenames)
with rocpd.connect(["100.db"]) as one:
    print(one.execute("SELECT count(*) FROM regions").fetchone()[0])
    print(one.connection.execute("SELECT type FROM busy").fetchall())
"""
"""What AMD documents of its package: connect to a list, iterate, a cursor, its attributes, as a context."""


def test_python_for_amds_package_runs_with_one_changed_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, pid in enumerate((100, 200)):
        rows = rocpd_files.kernels(5, seed=number, names=2)
        rocpd_files.write(tmp_path / f"{pid}.db", rows, ["conv", "gemm"], pid=pid, more=True)
    monkeypatch.chdir(tmp_path)
    exec(compile(AMD_USE.format(line="import tvmtraces as rocpd"), "example", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[:10] == ["True"] * 10
    assert printed[-3:] == [
        "['name', 'total_calls', 'total_duration', 'percentage'] ['100.db', '200.db']",
        "1",
        "[('GPU',)]",
    ]
    assert sum(int(line.split(", ")[1]) for line in printed[10:-3]) == 14
