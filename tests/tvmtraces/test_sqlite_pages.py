"""Rows out of the pages of a database are those that SQLite gives; what is unusual SQLite is asked for."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from tvmtraces.batches import NULL_INT, Texts, WrongValue
from tvmtraces.readers import table_rows
from tvmtraces.readers.sqlite_pages import Unusual
from tvmtraces.readers.table_rows import HIGHEST, LOWEST, read_rows_of
from tvmtraces.tables import INT, REAL, TEXT

KINDS = {"whole": INT, "number": REAL, "words": TEXT}
ROWS = st.lists(
    st.tuples(
        st.integers(1, 2**50),
        st.none() | st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-2, 300),
        st.none() | st.floats(allow_nan=False) | st.integers(-9, 9),
        st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
    ),
    max_size=30,
    unique_by=lambda row: row[0],
)


def write(path: Path, rows: Sequence[Sequence[Any]], more: str = "", page: int = 512) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA page_size = {page}")
        database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, whole INTEGER, number REAL, words TEXT)")
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        database.executescript(more)
        database.commit()


def plain(column: Any) -> list[Any]:
    if isinstance(column, Texts):
        return [None if code < 0 else column.pool[code] for code in column.codes.tolist()]
    if column.dtype == numpy.float64:
        return [None if math.isnan(value) else value for value in column.tolist()]
    return [None if value == NULL_INT else value for value in column.tolist()]


def read(path: Path, low: int = LOWEST, high: int = HIGHEST) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    with closing(sqlite3.connect(path)) as database:
        for rows in read_rows_of(database, "t", KINDS, low, high):
            found += zip(rows.ids.tolist(), *map(plain, rows.columns.values()), strict=True)
    return found


@examples(15, 200)
@given(ROWS, st.integers(0, 2**50), st.integers(0, 2**50))
def test_they_are_what_sqlite_gives(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]], low: int, high: int
) -> None:
    path = tmp_path_factory.mktemp("pages") / "x.db"
    write(path, rows)
    with closing(sqlite3.connect(path)) as database:
        expected = database.execute("SELECT id, whole, number, words FROM t ORDER BY id").fetchall()
    assert read(path) == expected
    assert read(path, low, high) == [row for row in expected if low <= row[0] <= high]


@pytest.mark.parametrize("page", [512, 4096, 65536])
def test_no_row_of_a_large_table_is_asked_of_sqlite(tmp_path: Path, page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(number * 3, number, number / 2, f"name {number % 7}") for number in range(5000)]
    write(tmp_path / "x.db", rows, page=page)

    def refuse(*_: object) -> None:
        raise AssertionError("SQLite was asked")

    monkeypatch.setattr(table_rows, "_ask_sqlite", refuse)
    assert read(tmp_path / "x.db") == rows
    assert read(tmp_path / "x.db", 7000, 7010) == [row for row in rows if 7000 <= row[0] <= 7010]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("ALTER TABLE t RENAME COLUMN words TO old; ALTER TABLE t ADD COLUMN words TEXT DEFAULT 'later'", "later"),
        (f"UPDATE t SET words = '{'long ' * 2000}'", "long " * 2000),
        ("UPDATE t SET words = 5", "5"),
        (f"UPDATE t SET id = {-(2**40)} WHERE id = 1", "a"),
        ("CREATE TABLE u (whole INT, number REAL, words TEXT, id INT PRIMARY KEY) WITHOUT ROWID", "a"),
    ],
)
def test_what_is_unusual_sqlite_is_asked_for(tmp_path: Path, more: str, expected: str) -> None:
    write(tmp_path / "x.db", [(1, 2, 3.0, "a"), (5, None, None, "a")], more)
    assert {row[3] for row in read(tmp_path / "x.db")} == {expected}


def test_a_column_that_was_added_is_not_read_from_values_that_look_like_its_type(tmp_path: Path) -> None:
    more = "ALTER TABLE t RENAME COLUMN whole TO old; ALTER TABLE t ADD COLUMN whole INTEGER DEFAULT 77"
    write(tmp_path / "x.db", [(1, 8, 3.0, "a"), (5, 9, 3.0, "a")], more)  # SQLite's types 8 and 9 are those of 0 and 1
    assert [row[1] for row in read(tmp_path / "x.db")] == [77, 77]


@pytest.mark.parametrize("value", ["'5'", "'5,6'", "1.5", "9e99", "x'05'", "'[1]'"])
def test_what_is_no_whole_number_is_refused(tmp_path: Path, value: str) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        database.execute("CREATE TABLE t (x)")
        database.executemany("INSERT INTO t VALUES (?)", [(1,), (None,), (2**63 - 1,)])
        database.commit()
        (rows,) = read_rows_of(database, "t", {"x": INT})
        assert plain(rows.columns["x"]) == [1, None, 2**63 - 1]
        database.execute(f"INSERT INTO t VALUES ({value})")
        database.commit()
        with pytest.raises(WrongValue, match=r"^t\.x: .+ is not a whole number$"):
            list(read_rows_of(database, "t", {"x": INT}))


@pytest.mark.parametrize("seed", range(40))
def test_broken_pages_are_unusual_or_read_and_nothing_else_happens(tmp_path: Path, seed: int) -> None:
    chance = numpy.random.default_rng(seed)
    path = tmp_path / "x.db"
    write(path, [(number, number, 0.5, "name") for number in range(1, 400)])
    content = numpy.frombuffer(path.read_bytes(), dtype=numpy.uint8).copy()
    places = chance.integers(512, len(content), 30)
    content[places] = chance.integers(0, 256, 30)
    path.write_bytes(content.tobytes())
    with closing(sqlite3.connect(path)) as database:
        try:
            asked, root = table_rows._find_places(database, "t", KINDS)
            with table_rows.Pages(path) as pages:
                for ids, _ in pages.read(root, asked, LOWEST, HIGHEST):
                    assert len(ids) <= len(content)
        except (Unusual, sqlite3.DatabaseError):
            return
