"""One of RocPD's tables with what its rows refer to, joined by numpy: only what is needed is read."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tvmdash.traces.batches import NULL_INT, Texts
from tvmdash.traces.readers.rocpd_queries import Query
from tvmdash.traces.readers.sqlite_input import paged_columns, quote_name

if TYPE_CHECKING:
    from tvmdash.traces.batches import Ints

_PLACED = re.compile(r"(\w+)\.(\w+)\.(\w+)")
_JOINED = re.compile(r"(\w+)\.id = (\w+)\.(\w+)")


class Tables:
    """The tables of one process in an opened database, by RocPD's names without prefix and suffix."""

    def __init__(self, database: sqlite3.Connection, present: Mapping[str, Sequence[str]], suffix: str) -> None:
        self.database, self._present, self._suffix = database, present, suffix

    def name(self, table: str) -> str:
        """The table's name in this database."""
        return f"rocpd_{table}{self._suffix}"

    def has(self, table: str, column: str | None = None) -> bool:
        """Whether the database has the table, and the column in it."""
        columns = self._present.get(self.name(table))
        return columns is not None and (column is None or column in columns)

    def existing(self, expression: str) -> str:
        """`expression`; NULL where it is `alias.table.column` and the column came with a later schema."""
        match = _PLACED.fullmatch(expression)
        if match is None:
            return expression
        alias, table, column = match.groups()
        return f"{alias}.{quote_name(column)}" if self.has(table, column) else "NULL"

    def columns(self, expressions: Sequence[str], table: str, alias: str = "", where: str = "") -> list[Ints]:
        """Columns of whole numbers of one table, in the order of its rows."""
        source = f"{quote_name(self.name(table))} {alias}" + (f" WHERE {where}" if where else "")
        return paged_columns(self.database, expressions, source)

    def texts(self, codes: Ints, table: str, column: str) -> Texts:
        """The texts that `codes` number in a table and column; NULL where there is none."""
        import numpy

        query = f"SELECT id, CAST({quote_name(column)} AS TEXT) FROM {quote_name(self.name(table))}"  # noqa: S608 - quoted
        stored = self.database.execute(query) if self.has(table, column) else []
        text_of = {int(number): str(text) for number, text in stored if text is not None and number is not None}
        numbers = numpy.array(sorted(text_of), dtype=numpy.int64)
        if not len(numbers):
            return Texts(numpy.full(len(codes), -1, dtype=numpy.int64), [])
        return Texts(_places(numbers, codes), [text_of[number] for number in numbers.tolist()])


class Joined:
    """The rows of a query's main table that `where` leaves, and the numbers that they refer to."""

    def __init__(self, tables: Tables, query: Query, wanted: Sequence[str], where: str) -> None:
        self._tables, self._query = tables, query
        self._joins = {alias: (table, *_condition(condition)) for table, alias, condition in query.joins}
        expressions = dict.fromkeys(self._own(expression) for expression in wanted)
        columns = tables.columns(
            [tables.existing(expression) for expression in expressions], query.table, query.alias, where
        )
        self._found: dict[str, Ints] = dict(zip(expressions, columns, strict=True))
        self.count = len(columns[0])

    def _own(self, expression: str) -> str:
        """The column of the main table that an expression is, or is found by."""
        match = _PLACED.fullmatch(expression)
        if match is None or match[1] == self._query.alias:
            return expression
        return self._own(self._key(match[1]))

    def _key(self, alias: str) -> str:
        """The column that numbers the row of a joined table."""
        _, parent, column = self._joins[alias]
        table = self._query.table if parent == self._query.alias else self._joins[parent][0]
        return f"{parent}.{table}.{column}"

    def numbers(self, expression: str) -> Ints:
        """The column that an expression stands for, NULL_INT where it is NULL or refers to nothing."""
        import numpy

        if expression not in self._found:
            alias, _, column = expression.split(".")
            keys, table = self.numbers(self._key(alias)), self._joins[alias][0]
            if column == "id" and not self._tables.has(table, column):
                return numpy.full(self.count, NULL_INT, dtype=numpy.int64)
            self._found[expression] = self._looked_up(keys, table, column)
        return self._found[expression]

    def _looked_up(self, keys: Ints, table: str, column: str) -> Ints:
        import numpy

        nothing = numpy.full(len(keys), NULL_INT, dtype=numpy.int64)
        if not self._tables.has(table, column) or not len(keys):
            return nothing
        low, high = keys[keys != NULL_INT].min(initial=2**63 - 1), keys.max()
        ids, values = self._tables.columns(["id", quote_name(column)], table, where=f"id BETWEEN {low} AND {high}")
        if not len(ids):
            return nothing
        places = _places(ids, keys)
        return numpy.where((places >= 0) & (keys != NULL_INT), values[places], NULL_INT)


def _condition(condition: str) -> tuple[str, str]:
    """`E.id = K.event_id` as K and event_id."""
    match = _JOINED.fullmatch(condition)
    if match is None:
        raise ValueError(f"{condition} is no join by id")
    return match[2], match[3]


def _places(ids: Ints, keys: Ints) -> Ints:
    """Where each key stands in `ids`, -1 where it does not."""
    import numpy

    if int(ids[-1]) - int(ids[0]) == len(ids) - 1 and (ids[1:] > ids[:-1]).all():  # as a process numbers its rows
        inside = (keys >= ids[0]) & (keys <= ids[-1])
        return numpy.where(inside, keys - ids[0], -1)
    order = numpy.argsort(ids, kind="stable")
    places = numpy.minimum(numpy.searchsorted(ids, keys, sorter=order), len(ids) - 1)
    return numpy.where(ids[order[places]] == keys, order[places], -1)
