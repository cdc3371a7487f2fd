"""Records in columns: version 2 of data.json, which `dashboard import` writes, is version 1 with its records so.

What many records have in common stands once, so that a night of thousands is hardly larger than what it came from.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common.json_schema import Schema
from tvmdash.errors import DashboardError

VERSION = 2
_SCHEMA = Path(__file__).parents[1] / "schemas" / "data_v2.json"
_LIST_VERSION = 1
_Path = tuple[str, ...]
_FEW = 3
"""Ratio of values to runs from which on a column is stored as runs."""


def pack(value: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a data.json of version 1 to version 2. Records with the same columns and entries come together."""
    blocks: dict[tuple[_Path, ...], list[list[Any]]] = {}
    for record in value["records"]:
        paths: list[_Path] = []
        items: list[Any] = []
        for column, item in record.items():
            if type(item) is dict and item:
                paths += [(column, name) for name in item]
                items += item.values()
            else:
                paths.append((column,))
                items.append(item)
        blocks.setdefault(tuple(paths), []).append(items)
    return {**value, "schema_version": VERSION, "records": [_pack_block(*block) for block in blocks.items()]}


def _pack_block(paths: Sequence[_Path], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    same, runs, columns = [], [], []
    for path, values in zip(paths, map(list, zip(*rows, strict=True)), strict=True):
        told = _find_runs(values)
        if len(told) == 1:
            same.append([list(path), values[0]])
        elif len(told) * _FEW <= len(values):
            runs.append([list(path), told])
        else:
            columns.append([list(path), values])
    return {"count": len(rows), "same": same, "runs": runs, "columns": columns}


def _find_runs(values: Sequence[Any]) -> list[list[Any]]:
    runs: list[list[Any]] = []
    for value in values:
        last = runs[-1][0] if runs else None
        # 1, 1.0 and true are equal, and are not the same
        if runs and (last is value or (last == value and repr(last) == repr(value))):
            runs[-1][1] += 1
        else:
            runs.append([value, 1])
    return runs


def unpack(value: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a data.json of version 2 to version 1; DashboardError names the place of a fault."""
    error = next(iter(_schema().errors(value)), None)
    if error is not None:
        raise DashboardError(f"{error.json_path}: {error.message[:300]}.")
    records = [record for at, block in enumerate(value["records"]) for record in _unpack_block(block, at)]
    return {**value, "schema_version": _LIST_VERSION, "records": records}


def _unpack_block(block: Mapping[str, Any], at: int) -> Iterator[dict[str, Any]]:
    count = block["count"]
    columns = [(path, values) for path, values in block["columns"]]
    for path, runs in block["runs"]:
        if sum(run[1] for run in runs) == count:  # before a list is made, which a wrong file could make long
            columns.append((path, [value for value, times in runs for _ in range(times)]))
        else:
            columns.append((path, []))
    for path, values in columns:
        if len(values) != count:
            raise DashboardError(f"$.records[{at}]: {path} has another number of values than the {count} of the block.")
    for number in range(count):
        record: dict[str, Any] = {}
        for path, item in block["same"]:
            _put(record, path, item)
        for path, values in columns:
            _put(record, path, values[number])
        yield record


def _put(record: dict[str, Any], path: Sequence[str], item: Any) -> None:
    if len(path) == 1:
        record[path[0]] = {} if item == {} else item
    elif isinstance(entries := record.setdefault(path[0], {}), dict):
        entries[path[1]] = item
    else:
        raise DashboardError(f"$.records: {path[0]} is both a value and an object.")


@functools.cache
def _schema() -> Schema:
    return Schema(common.read_json(_SCHEMA))
