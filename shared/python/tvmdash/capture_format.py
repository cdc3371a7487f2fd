"""The tables of a raw database: what `capture` writes and `traces` reads.

Format 2 keeps a profiled run's operators as three packed columns in one row of `runs`: names as 4-byte numbers, starts
(from the run's begin) and durations as 8-byte ones, all little-endian. That takes a fifth of the time to write and a
fiftieth to read. Format 1 had a row of `operators` for each, and knew neither night nor regions nor telemetry. Every
format stays readable.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence

FORMAT_VERSION = 2
READABLE_VERSIONS = (1, 2)
SCHEMA = """
CREATE TABLE process (guid TEXT, pid INTEGER, ppid INTEGER, started_ns INTEGER, ended_ns INTEGER, night TEXT,
    experiment TEXT, command TEXT, facts TEXT);
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE trials (id INTEGER PRIMARY KEY, point TEXT, started_ns INTEGER, ended_ns INTEGER, error TEXT, facts TEXT);
CREATE TABLE samples (trial INTEGER, position INTEGER, elapsed_ns INTEGER, number INTEGER,
    PRIMARY KEY (trial, position)) WITHOUT ROWID;
CREATE TABLE runs (trial INTEGER, repetition INTEGER, begun_ns INTEGER, names BLOB, starts_ns BLOB, durations_ns BLOB,
    PRIMARY KEY (trial, repetition));
CREATE TABLE passes (trial INTEGER, position INTEGER, name INTEGER, duration_ns INTEGER);
CREATE TABLE regions (trial INTEGER, name INTEGER, category INTEGER, start_ns INTEGER, duration_ns INTEGER);
CREATE TABLE telemetry (timestamp_ns INTEGER, name INTEGER, unit INTEGER, value REAL);
"""
NAME_TYPE, TIME_TYPE = "i", "q"
"""Type codes of `array.array` for numbers of names, and for times."""


def packed(kind: str, values: Sequence[int]) -> bytes:
    """`values` as little-endian numbers of a type code."""
    numbers = array(kind, values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
