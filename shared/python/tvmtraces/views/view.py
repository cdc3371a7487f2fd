"""What a view is, and the words that several are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvmtraces.tables import TABLES
from tvmtraces.views.missing import Missing

EVENT = "event_id stack_id parent_stack_id corr_id"
END = {"end": '"start" + duration'}
_TYPES = {column: kind for table in TABLES.values() for column, kind in table.columns.items()}


@dataclass(frozen=True)
class View:
    """What a row of it is, for people, and its SQL over `base_<table>`."""

    about: str
    sql: str


def select(table: str, names: str, given: Mapping[str, str], source: str = "", prefix: str = "") -> str:
    """The columns `names` of a table: those `given` as SQL, its own, else NULL."""
    own, listed = TABLES[table].columns, names.split()
    parts = [
        given[name]
        if name in given
        else f'{prefix}"{name}"'
        if name in own
        else f"CAST(NULL AS {_TYPES.get(name, 'BIGINT')})"
        for name in listed
    ]
    chosen = ", ".join(f'{part} AS "{name}"' for part, name in zip(parts, listed, strict=True))
    return f"SELECT {chosen} FROM {source or 'base_' + table}"  # noqa: S608 - our own words


def where_joined(bits: Missing, prefix: str = "") -> str:
    """The condition that none of these references leads nowhere."""
    return f"coalesce({prefix}missing, 0) & {int(bits)} = 0"
