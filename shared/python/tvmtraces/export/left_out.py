"""Counts of rows that a format has no place for, so that nothing is dropped in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tvmtraces.connection import Traces
    from tvmtraces.export.columns import Counted

_OF_ROCPD = {
    "arguments of calls": "base_argument",
    "code objects": "base_code_object",
    "kernel symbols": "base_symbol",
    "descriptions of counters": "base_pmc",
}
_SHOWN = {"dispatch": "kernels", "copy": "memory_copies", "allocation": "memory_allocations", "region": "regions"}
"""Tables, and the views that leave out those of their rows that refer to what is not there."""


def count_left_out(traces: Traces, counted: Counted) -> dict[str, int]:
    """Count the rows of each kind that are neither slices nor counter values nor flows."""
    left_out = {words: _count(traces, f"SELECT count(*) FROM {table}") for words, table in _OF_ROCPD.items()}  # noqa: S608
    left_out["counter values without a moment"] = _count(traces, "SELECT count(*) FROM base_counter") - counted.rows
    left_out["rows that refer to what is not there"] = sum(
        _count(traces, f"SELECT count(*) FROM base_{table}") - _count(traces, _format_shown(table, view))  # noqa: S608
        for table, view in _SHOWN.items()
    )
    left_out["records"] = _count(traces, "SELECT count(*) FROM records")
    return left_out


def _format_shown(table: str, view: str) -> str:
    of_operators = " - (SELECT count(*) FROM base_operator)" if table == "dispatch" else ""
    return f"SELECT (SELECT count(*) FROM {view}){of_operators}"  # noqa: S608 - our own words


def _count(traces: Traces, query: str) -> int:
    return int(traces.execute(query).fetchall()[0][0])
