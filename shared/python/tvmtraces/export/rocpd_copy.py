"""Rows that came from RocPD databases, as rows of RocPD's tables again: the same ids, references and guids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tvmtraces.convert import RocpdRows
from tvmtraces.export.columns import cut_into_windows
from tvmtraces.filters import format_literal
from tvmtraces.readers.rocpd_queries import DURATION, QUERIES, Missing, Query
from tvmtraces.rocpd_schema import ColumnKind, read_columns
from tvmtraces.tables import TABLES

if TYPE_CHECKING:
    from tvmtraces.connection import Traces

_ROWS = 1 << 15
_EVENT = "event_id."
_STRING = ".string"
_UNIQUE = {"hash": "id", "machine_id": "CAST(id AS VARCHAR)"}
"""Substitutes for missing values that must be unique."""


def find_writers(traces: Traces) -> list[str]:
    """Return the guids of those who wrote RocPD databases: processes of ours have facts, which those have not.

    Sealed runs before version 4 lack the numbers of threads, so that their rows cannot be referred to.
    """
    query = """SELECT DISTINCT guid FROM base_process WHERE facts IS NULL AND guid NOT IN (
        SELECT guid FROM base_thread WHERE id IS NULL) ORDER BY guid"""
    return [str(row[0]) for row in traces.execute(query).fetchall()]


def copy_rows(traces: Traces, guids: list[str]) -> Iterator[RocpdRows]:
    """Yield the rows of these writers, table by table, some at a time."""
    for guid in guids:
        yield from _copy_strings(traces, guid)
        for table, query in QUERIES.items():
            yield from _copy_table(traces, guid, table, query)


def _copy_strings(traces: Traces, guid: str) -> Iterator[RocpdRows]:
    """Yield all texts that others refer to, which the table `rocpd_strings` now numbers."""
    columns = {
        (table, name)
        for table, query in QUERIES.items()
        for name, path in query.paths.items()
        if path.endswith(_STRING)
    }
    texts = " UNION ".join(
        f"SELECT {name} AS string FROM base_{table} WHERE guid = {format_literal(guid)}"  # noqa: S608 - escaped
        for table, name in sorted(columns)
    )
    traces.execute(
        f"""CREATE OR REPLACE TEMP TABLE rocpd_strings AS SELECT row_number() OVER (ORDER BY string) AS id, string
        FROM ({texts}) WHERE string IS NOT NULL"""  # noqa: S608 - escaped
    )
    rows = traces.execute("SELECT id, string FROM rocpd_strings ORDER BY id").fetchall()
    yield RocpdRows(guid, "string", ["id", "string"], rows)


def _copy_table(traces: Traces, guid: str, table: str, query: Query) -> Iterator[RocpdRows]:
    key = "id" if "id" in TABLES[table].columns else "process"
    source = f"(SELECT *, {key} AS number FROM base_{table} WHERE guid = {format_literal(guid)}) AS R"  # noqa: S608 - escaped
    made = {query.table: _format_own(query)}
    if query.paths.get("stack_id", "").startswith(_EVENT):
        made["event"] = _format_event(query)
    for window in cut_into_windows(traces, source, "number", _ROWS):
        for theirs, columns in reversed(made.items()):
            kinds = read_columns(theirs)
            chosen = ", ".join(_fill(name, sql, kinds.get(name)) for name, sql in columns.items())
            joins = " ".join(
                f"LEFT JOIN rocpd_strings {name}_text ON {name}_text.string = R.{name}"
                for name, path in query.paths.items()
                if path.endswith(_STRING) and name in TABLES[table].columns
            )
            known = f"R.event_id IS NOT NULL AND coalesce(R.missing, 0) & {int(Missing.EVENT)} = 0"
            condition = known if theirs == "event" else "true"
            rows = traces.execute(
                f"""SELECT {chosen} FROM {source} {joins}
                WHERE R.number BETWEEN {window.start} AND {window.stop - 1} AND {condition} ORDER BY R.number"""  # noqa: S608
            ).fetchall()
            if rows:
                yield RocpdRows(guid, theirs, list(columns), rows)


def _format_own(query: Query) -> dict[str, str]:
    """Return the columns of RocPD's table, each as SQL over a row of ours."""
    columns = {"id": "R.number"}
    for name, path in query.paths.items():
        if path == DURATION:
            columns["end"] = 'R."start" + R.duration'
        elif "." not in path:
            columns[path] = f'R."{name}"'
        elif path.endswith(_STRING) and path.count(".") == 1:
            columns[path.removesuffix(_STRING)] = f"{name}_text.id"
    known = read_columns(query.table)
    return {name: sql for name, sql in columns.items() if name == "id" or name in known}


def _format_event(query: Query) -> dict[str, str]:
    """Return the columns of the event of a row of ours."""
    columns = {"id": "R.event_id"}
    for name, path in query.paths.items():
        if path.startswith(_EVENT):
            column = path.removeprefix(_EVENT)
            columns[column.removesuffix(_STRING)] = f"{name}_text.id" if path.endswith(_STRING) else f'R."{name}"'
    return columns


def _fill(name: str, sql: str, kind: ColumnKind | None) -> str:
    """Return the column with a value for NULL where RocPD wants one: a reference then leads nowhere."""
    if kind is None or not kind.needed:
        return f'{sql} AS "{name}"'
    empty = {"J": "'{}'", "T": "''"}.get(kind.letter, "0")
    return f'coalesce({sql}, {_UNIQUE.get(name, empty)}) AS "{name}"'


def format_others(guids: list[str]) -> str:
    """Return the condition that a row is of none of these writers."""
    listed = ", ".join(map(format_literal, guids))
    return f"(guid IS NULL OR guid NOT IN ({listed}))" if guids else ""


def count_copied(traces: Traces, guids: list[str]) -> Mapping[str, int]:
    """Count the copied rows of RocPD's tables for events."""
    listed = ", ".join(map(format_literal, guids)) or "NULL"
    tables = ("dispatch", "copy", "allocation", "graph_launch", "region", "instant", "counter", "argument")
    return {
        table: int(
            traces.execute(f"SELECT count(*) FROM base_{table} WHERE guid IN ({listed})").fetchall()[0][0]  # noqa: S608
        )
        for table in tables
    }
