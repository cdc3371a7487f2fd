"""Views, and the SQL dialects that they are written in: DuckDB's over our tables, SQLite's over RocPD's."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from tvmtraces.readers.rocpd_queries import DURATION, QUERIES, REFERENCES, Missing
from tvmtraces.tables import TABLES

_WORD = re.compile(r"\w+")
_NOTHING = Missing(0)
_TYPES = {column: kind for table in TABLES.values() for column, kind in table.columns.items()}


@dataclass(frozen=True)
class View:
    """A view's SQL, and the meaning of its rows for people."""

    about: str
    sql: str


class Words(ABC):
    """A dialect of the views' SQL. Of the names of columns, RocPD's stand before `|`, ours behind it."""

    shows_ours: bool
    """True where there are columns and rows beside RocPD's."""

    @abstractmethod
    def list_columns(self, table: str) -> frozenset[str]:
        """Return the columns that `rows` may give."""

    @abstractmethod
    def rows(self, table: str, used: str, bits: Missing = _NOTHING) -> str:
        """Return the rows of a table whose references of `bits` are not dangling, with the columns named in `used`."""

    @abstractmethod
    def extract(self, column: str, path: str, kind: str = "VARCHAR") -> str:
        """Return the value at a path of the JSON in a column."""

    def select(
        self, table: str, names: str, given: Mapping[str, str], bits: Missing, source: str = "", where: str = "true"
    ) -> str:
        """Select the columns `names` of a table's rows, or of a source: those `given` as SQL, its own, else NULL."""
        columns, (theirs, _, ours) = self.list_columns(table), names.partition("|")
        listed = [*theirs.split(), *(ours.split() if self.shows_ours else ())]
        parts = [
            given[name]
            if name in given
            else f'"{name}"'
            if name in columns
            else f"CAST(NULL AS {_TYPES.get(name, 'BIGINT')})"
            for name in listed
        ]
        chosen = ", ".join(f'{part} AS "{name}"' for part, name in zip(parts, listed, strict=True))
        rows = source or self.rows(table, " ".join([*parts, where]), bits)
        return f"SELECT {chosen} FROM {rows} AS R WHERE {where}"  # noqa: S608 - our own words


class DuckWords(Words):
    """DuckDB's, over `base_<table>`."""

    shows_ours = True

    def list_columns(self, table: str) -> frozenset[str]:
        return frozenset(TABLES[table].columns.keys() | ({"end"} if TABLES[table].duration else set()))

    def rows(self, table: str, used: str, bits: Missing = _NOTHING) -> str:
        end = ', "start" + duration AS "end"' if TABLES[table].duration else ""
        where = f" WHERE coalesce(missing, 0) & {int(bits)} = 0" if bits else ""
        return f"(SELECT *{end} FROM base_{table}{where})"  # noqa: S608 - our own words

    def extract(self, column: str, path: str, kind: str = "VARCHAR") -> str:
        return f"TRY_CAST(CASE WHEN json_valid({column}) THEN json_extract_string({column}, '$.{path}') END AS {kind})"


class RocpdWords(Words):
    """SQLite's, over RocPD's own tables of schema 3, of many writers: an id is one among those of a guid."""

    shows_ours = False

    def list_columns(self, table: str) -> frozenset[str]:
        return frozenset(_list_paths(table)) if table in QUERIES else frozenset()

    def rows(self, table: str, used: str, bits: Missing = _NOTHING) -> str:
        query, wanted = QUERIES[table], set(_WORD.findall(used))
        source, aliases = f"rocpd_{query.table} R", {"": "R"}
        links = [link.split(".") for bit, link in query.joined.items() if bit & bits]
        for path in (".".join(link[:count]) for link in links for count in range(1, len(link) + 1)):
            if path not in aliases:
                before, _, column = path.rpartition(".")
                alias = f"J{len(aliases)}"
                on = f"{alias}.id = {aliases[before]}.{column} AND {alias}.guid = R.guid"
                source += f" JOIN rocpd_{REFERENCES[column]} {alias} ON {on}"
                aliases[path] = alias
        chosen = [f'{_find(path, aliases)} AS "{name}"' for name, path in _list_paths(table).items() if name in wanted]
        return f"(SELECT {', '.join(chosen) or 'R.id'} FROM {source})"  # noqa: S608 - our own words

    def extract(self, column: str, path: str, kind: str = "VARCHAR") -> str:
        return f"json_extract({column}, '$.{path}')"


def _list_paths(table: str) -> dict[str, str]:
    """Return RocPD's paths for our columns."""
    return {"guid": "guid", **QUERIES[table].paths, **({"end": "end"} if TABLES[table].duration else {})}


def _find(path: str, aliases: Mapping[str, str]) -> str:
    """Return the column at the end of a path; of a reference that is not joined NULL where it leads nowhere."""
    link, _, column = path.rpartition(".")
    if path == DURATION:
        return 'R."end" - R.start'
    if link in aliases:
        return f'{aliases[link]}."{column}"'
    same = f"X.id = {_find(link, aliases)} AND X.guid = R.guid"
    return f'(SELECT X."{column}" FROM rocpd_{REFERENCES[link.rpartition(".")[2]]} X WHERE {same})'  # noqa: S608
