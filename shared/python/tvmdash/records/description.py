"""Descriptive entries of a record's columns beside its identity: the engine's build, system, inputs, operators.

`additional_info.described` names these entries by column; a record without it, as all were until November 2026, has
none. An entry that an axis varies is never among them. So what a record tells may grow while its series stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FACT = "described"
SAMPLES = "execution_elapsed_ms_samples"
"""Entry of additional_info with every sample, a list for each process, where they are known."""
COLUMNS = ("workload_args", "engine_config", "build_config", "runtime_config")
"""Columns that may hold identity and description."""
DEFINITION = "definition"
"""Entry of additional_info with the hash of an operator's computation; its first digits end the workload's name."""
_DIGITS = 12
Columns = Mapping[str, Mapping[str, Any]]


def describe(identity: Columns, told: Columns) -> tuple[dict[str, dict[str, Any]], dict[str, list[str]]]:
    """Return the columns with descriptive entries added, and the names of these; drop empty and unknown entries."""
    added = {
        column: {name: value for name, value in told.get(column, {}).items() if value and name not in identity[column]}
        for column in COLUMNS
    }
    columns = {column: {**identity[column], **added[column]} for column in COLUMNS}
    return columns, {column: sorted(names) for column, names in added.items() if names}


def select_identity(columns: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a record with this additional_info, without descriptive entries."""
    described = info.get(FACT) or {}
    kept = {
        column: {name: item for name, item in columns[column].items() if name not in names}
        for column, names in described.items()
        if column in COLUMNS
    }
    workload = columns["workload"].removesuffix(_end_of_name(info.get(DEFINITION)))
    return {**columns, **kept, "workload": workload}


def name_workload(workload: str, definition: str | None) -> str:
    """Return the workload's name with the first digits of its definition's hash, as apache/tvm#4304 writes it."""
    return f"{workload}{_end_of_name(definition)}"


def _end_of_name(definition: object) -> str:
    return f":{definition[:_DIGITS]}" if isinstance(definition, str) and definition else ""


def name_version(version: str, commit: str) -> str:
    """Return the engine's version with its commit where one is known, in the form of apache/tvm#4304."""
    return f"{version}:{commit}" if commit and commit != version else version
