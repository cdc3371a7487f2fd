"""The tables of a raw database, which `capture` writes and `traces` reads.

Format 2 keeps a profiled run's operators as three packed columns in one row of `runs`: names as 4-byte numbers, starts
(from the run's begin) and durations as 8-byte ones, all little-endian. That takes a fifth of the time to write and a
fiftieth to read. Format 1 had a row of `operators` for each, and knew neither night nor regions nor telemetry. Format 3
tells of a sample that was taken in turn with another process when it began, the thread's CPU time for all that was done
for it, and whether the core was taken from it. Every format stays readable.
"""

from __future__ import annotations

import functools
import sqlite3
import sys
from array import array
from collections.abc import Sequence

FORMAT_VERSION = 3
READABLE_VERSIONS = (1, 2, 3)
SCHEMA = """
CREATE TABLE process (guid TEXT, pid INTEGER, ppid INTEGER, started_ns INTEGER, ended_ns INTEGER, night TEXT,
    experiment TEXT, command TEXT, facts TEXT);
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE trials (id INTEGER PRIMARY KEY, point TEXT, started_ns INTEGER, ended_ns INTEGER, error TEXT, facts TEXT);
CREATE TABLE samples (trial INTEGER, position INTEGER, elapsed_ns INTEGER, number INTEGER,
    started_ns INTEGER, cpu_ns INTEGER, waited INTEGER, PRIMARY KEY (trial, position)) WITHOUT ROWID;
CREATE TABLE runs (trial INTEGER, repetition INTEGER, begun_ns INTEGER, names BLOB, starts_ns BLOB, durations_ns BLOB);
CREATE TABLE passes (trial INTEGER, position INTEGER, name INTEGER, duration_ns INTEGER);
CREATE TABLE regions (trial INTEGER, name INTEGER, category INTEGER, start_ns INTEGER, duration_ns INTEGER);
CREATE TABLE telemetry (timestamp_ns INTEGER, name INTEGER, unit INTEGER, value REAL);
"""
KNOWN_OPERATORS = "known_operators"
"""A trial's fact: `hash`, `shapes`, `flop` and `bytes` of each operator by name."""
NAME_TYPE, TIME_TYPE = "i", "q"
"""Type codes of `array.array` for numbers of names, and for times."""
Row = tuple[int | float | bytes | None, ...]
_MOST_ROWS = 100
"""Rows in one statement: SQLite takes 999 values at least."""


def packed(kind: str, values: Sequence[int]) -> bytes:
    """Return `values` as little-endian numbers of a type code."""
    numbers = array(kind, values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


class NameNumbers(dict[str, int]):
    """The numbers of names; a new one is stored, in the transaction of who asks for it."""

    def __init__(self, database: sqlite3.Connection) -> None:
        super().__init__()
        self._database = database

    def __missing__(self, name: str) -> int:
        self._database.execute("INSERT OR IGNORE INTO names (name) VALUES (?)", (name,))
        row = self._database.execute("SELECT id FROM names WHERE name = ?", (name,)).fetchone()
        self[name] = int(row[0])
        return self[name]


def insert(database: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    """Put whole rows into a table, many with one statement: that takes half the time of one statement for each."""
    for first in range(0, len(rows), _MOST_ROWS):
        part = rows[first : first + _MOST_ROWS]
        statement = _insertion(table, len(part[0]), len(part))
        database.execute(statement, [value for row in part for value in row])


@functools.lru_cache(maxsize=256)
def _insertion(table: str, columns: int, rows: int) -> str:
    row = f"({','.join('?' * columns)})"
    return f"INSERT INTO {table} VALUES {','.join([row] * rows)}"  # noqa: S608 - our words
