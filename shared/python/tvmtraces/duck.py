"""The only access to DuckDB: batches without a copy, Parquet without reading it, and nothing else.

No file but the given Parquet files can be opened, no extension loaded, no setting changed by a query.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvmtraces.batches import NULL_INT, Batch, Column, Texts, concatenate, shrink
from tvmtraces.dbapi import (
    DataError,
    NotSupportedError,
    OperationalError,
    Parameters,
    ProgrammingError,
    bind,
)
from tvmtraces.filters import format_literal
from tvmtraces.sealed import SealedFile
from tvmtraces.tables import INT, TABLES, stored_columns

if TYPE_CHECKING:
    import duckdb

CLOSED = (
    "temp_directory = ''",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
    "python_enable_replacements = false",
    "enable_external_access = false",
    # the last one, as it locks the others
    "lock_configuration = true",
)
MACROS = (
    """CREATE MACRO utc(ns) AS strftime(make_timestamp(ns // 1000), '%Y-%m-%dT%H:%M:%S.')
    || lpad(CAST(ns % 1000000000 AS VARCHAR), 9, '0') || 'Z'""",
)
"""Functions for queries besides DuckDB's."""
_ALLOWED = frozenset({"SELECT", "EXPLAIN", "CREATE", "INSERT", "UPDATE", "DELETE", "DROP", "RELATION"})
_LARGE_ROWS = 50_000
"""Batches of so many rows are not concatenated with others."""
_MOST_PARTS = 256
_WRITES = re.compile(r"\b(copy|export|attach)\b", re.IGNORECASE)


class DuckEngine:
    """An in-memory DuckDB over batches and Parquet files."""

    def __init__(self, parquet: Sequence[SealedFile], writable: Path | None = None) -> None:
        import duckdb

        self._ordered: set[str] = set()
        self._values: dict[str, dict[str, set[Any]]] = {}
        self._database = duckdb.connect(":memory:")
        # before CLOSED: without external access DuckDB refuses to allow more
        self._allow("allowed_paths", [file.path for file in parquet])
        self._allow("allowed_directories", [writable] if writable else [])
        for setting in CLOSED:
            self._database.execute(f"SET {setting}")
        for macro in MACROS:
            self._database.execute(macro)

    def _allow(self, setting: str, paths: Sequence[Path]) -> None:
        """Allow these paths, verbatim and escaped for `read_parquet`, which takes a name for a pattern."""
        names = dict.fromkeys(name for path in paths for name in (str(path), glob.escape(str(path))))
        if names:
            self._database.execute(f"SET {setting} = [{', '.join(map(format_literal, names))}]")

    def load(self, table: str, batches: Sequence[Batch], files: Sequence[SealedFile]) -> None:
        """Make `all_<table>` from the batches and Parquet files of the table, in place of an earlier one."""
        self._ordered.add(table)
        self._values[table] = {name: set() for name in TABLES[table].columns}
        for file in files:
            for name, values in self._values[table].items():
                values.add(file.left_out.get(name, _MANY))
        selections = [*self._memory(table, [batch for batch in batches if batch.count]), *_select_files(table, files)]
        if not selections:
            nothing = ", ".join(f'CAST(NULL AS {kind}) AS "{name}"' for name, kind in TABLES[table].columns.items())
            selections = [f"SELECT {nothing} WHERE false"]
        self.view(f"all_{table}", " UNION ALL ".join(selections))

    def is_ordered(self, table: str) -> bool:
        """Return True where each batch, and so each sealed run, has its rows in order of the table's first column."""
        return table in self._ordered

    def constants(self, table: str) -> dict[str, Any]:
        """Return the columns of `all_<table>` that hold one value in all rows, as far as that is known."""
        found = self._values[table].items()
        return {name: next(iter(values)) for name, values in found if len(values) == 1 and _MANY not in values}

    def view(self, name: str, sql: str) -> None:
        _translate_errors(lambda: self._database.execute(f"CREATE OR REPLACE VIEW {name} AS {sql}"))

    def execute(self, sql: str, parameters: Parameters = ()) -> DuckResult:
        """Return the result of one statement; an Error where it fails or reaches out of the traces."""
        bound = bind(sql, parameters)
        statements = _translate_errors(lambda: self._database.extract_statements(sql))
        if len(statements) != 1:
            raise ProgrammingError(f"{len(statements)} statements were given. Give one at a time.")
        kind = str(statements[0].type).rpartition(".")[2]
        if kind not in _ALLOWED or (kind == "EXPLAIN" and _WRITES.search(sql)):  # EXPLAIN ANALYZE does what it explains
            raise NotSupportedError(
                f"{kind} is not supported; connections to traces are read-only. Use the commands to write files."
            )
        relation = _translate_errors(lambda: self._database.sql(sql, params=bound or None))
        return DuckResult(relation)

    def interrupt(self) -> None:
        """Stop the statement that another thread runs."""
        self._database.interrupt()

    def copy(self, selection: str, path: Path, options: str) -> None:
        """Write a selection to a file that was allowed from the start."""
        _translate_errors(
            lambda: self._database.execute(f"COPY ({selection}) TO {format_literal(str(path))} ({options})")
        )

    def close(self) -> None:
        self._database.close()

    def _memory(self, table: str, batches: Sequence[Batch]) -> Iterator[str]:
        """Yield selections from arrays that DuckDB scans in place: large batches as they are, small ones joined."""
        batches = sorted(batches, key=lambda batch: _find_first(batch, TABLES[table].order[:1]))
        large = [[batch] for batch in batches if batch.count >= _LARGE_ROWS][:_MOST_PARTS]
        alone = {id(part[0]) for part in large}
        small = [batch for batch in batches if id(batch) not in alone]
        for number, part in enumerate([*large, small] if small else large):
            yield self._part(table, part, f"{table}_{number}")

    def _part(self, table: str, batches: Sequence[Batch], label: str) -> str:
        import numpy

        counts = [batch.count for batch in batches]
        arrays: dict[str, Any] = {"batch": numpy.repeat(numpy.arange(1, len(batches) + 1), counts)}
        chosen = []
        for name, kind in TABLES[table].columns.items():
            parts = [batch.columns.get(name) for batch in batches]
            value = _find_constant(parts)
            self._values[table][name].add(value)
            if value is not _MANY:
                expression = "NULL" if value is None else format_literal(str(value))
            elif any(isinstance(part, Texts) or hasattr(part, "dtype") for part in parts):
                column = concatenate(kind, list(zip(parts, counts, strict=True)))
                expression = self._expression((kind, name, label), column, arrays)
            else:
                expression = f"({self._pool((kind, name, label), parts)})[batch]"
            chosen.append(f'CAST({expression} AS {kind}) AS "{name}"')
        if not _is_in_order(arrays, TABLES[table].order[:1], counts):
            self._ordered.discard(table)
        _translate_errors(lambda: self._database.register(f"memory_{label}", arrays))
        return f"SELECT {', '.join(chosen)} FROM memory_{label}"  # noqa: S608 - our own names

    def _expression(self, key: tuple[str, str, str], column: Column, arrays: dict[str, Any]) -> str:
        """Return the SQL that reads a column from `arrays`, into which it is put."""
        import numpy

        kind, name, _ = key
        if isinstance(column, Texts):
            arrays[name] = column.codes
            return f'({self._pool(key, column.pool)})["{name}" + 1]'
        arrays[name] = column
        if kind == INT:
            return f'nullif("{name}", {NULL_INT + 1} - 1)' if (column == NULL_INT).any() else f'"{name}"'
        return f'CASE WHEN isnan("{name}") THEN NULL ELSE "{name}" END' if numpy.isnan(column).any() else f'"{name}"'

    def _pool(self, key: tuple[str, str, str], pool: Sequence[Any]) -> str:
        """Return a subquery that is a list of values of a column, whose type, name and part are the key."""
        kind, name, part = key
        kept, content = f'"pool_{part}_{name}"', format_literal(json.dumps(list(pool)))
        # As a literal: a parameter, or an array of objects, makes DuckDB import pandas, which takes a second.
        self._database.execute(
            f"CREATE OR REPLACE TABLE {kept} AS SELECT from_json({content}, '[\"{kind}\"]') AS texts"
        )
        return f"SELECT texts FROM {kept}"  # noqa: S608 - our own names


class DuckResult:
    """Rows of one statement, fetched as they are asked for."""

    def __init__(self, relation: duckdb.DuckDBPyRelation | None) -> None:
        self._relation = relation
        self.names = list(relation.columns) if relation is not None else []
        self.types = [str(kind) for kind in relation.types] if relation is not None else []
        self._is_done = relation is None

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """Return at most `size` further rows."""
        relation = self._relation
        if relation is None or self._is_done or not size:
            return []
        rows: list[tuple[Any, ...]] = _translate_errors(lambda: relation.fetchmany(size))
        self._is_done = len(rows) < size  # asked again, a relation would begin anew
        return rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        if self._relation is None or self._is_done:
            return []
        self._is_done = True
        rows: list[tuple[Any, ...]] = _translate_errors(self._relation.fetchall)
        return rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while rows := self.fetchmany(4096):
            yield from rows

    def fetchnumpy(self) -> dict[str, Any]:
        """Return all rows, as an array for each column; before any other fetch."""
        relation, self._is_done = self._relation, True
        found: dict[str, Any] = _translate_errors(relation.fetchnumpy) if relation is not None else {}
        return found


_MANY = object()
"""Stands for the value of a column that has several, or that cannot be written as a literal."""


def _find_constant(parts: Sequence[Column]) -> Any:
    """Return the one value that a column has in all batches, or _MANY."""
    values = {_find_value(part) for part in parts}
    return values.pop() if len(values) == 1 else _MANY


def _find_value(column: Column) -> Any:
    value = shrink(column)
    return value if isinstance(value, (int, str, type(None))) and "\0" not in str(value) else _MANY


def _select_files(table: str, files: Sequence[SealedFile]) -> Iterator[str]:
    alike: dict[tuple[Any, ...], list[SealedFile]] = {}
    for file in files:
        alike.setdefault((file.version, *sorted(file.left_out.items())), []).append(file)
    for (version, *_), some in alike.items():
        names = ", ".join(format_literal(glob.escape(str(file.path))) for file in some)
        stored, kinds = stored_columns(table, version), TABLES[table].columns
        for name, value in some[0].left_out.items():
            stored[name] = "NULL" if value is None else format_literal(str(value))
        columns = ", ".join(f'CAST({sql} AS {kinds[name]}) AS "{name}"' for name, sql in stored.items())
        yield f"SELECT {columns} FROM read_parquet([{names}], hive_partitioning = false)"  # noqa: S608 - escaped


def _translate_errors(work: Callable[[], Any]) -> Any:
    import duckdb

    try:
        return work()
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException, duckdb.DataError) as error:
        kind = DataError if isinstance(error, duckdb.DataError) else ProgrammingError
        raise kind(f"DuckDB: {error}") from error
    except (duckdb.Error, UnicodeError) as error:
        hint = "If the inputs include sealed runs, check them with `verify`; restore a broken one or leave it out."
        raise OperationalError(f"DuckDB: {error}\n{hint}") from error


def _find_first(batch: Batch, order: Sequence[str]) -> int:
    """Return a batch's first value in its table's order, 0 where unknown."""
    column = batch.columns.get(order[0]) if order else None
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    return int(column[0]) if column is not None and kind == "i" else 0


def _is_in_order(arrays: Mapping[str, Any], order: Sequence[str], counts: Sequence[int]) -> bool:
    """Return True where each batch's rows are in the order of the first column."""
    import numpy

    column: Any = arrays.get(order[0]) if order else None
    if getattr(getattr(column, "dtype", None), "kind", "") != "i":
        return not order
    later = numpy.diff(column) >= 0
    # from one batch to the next no order is needed
    later[numpy.cumsum(counts)[:-1] - 1] = True
    return bool(later.all())
