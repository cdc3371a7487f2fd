"""Versions of data.json: from every one ever written to the newest, one pure step at a time.

Every reader of a data.json (`records.read_data`, `records.exchange`) starts here. Version 1 is the newest with records
one by one; version 2, which `dashboard import` writes, is the same in columns and is read as version 1: common values
stand once, so that a night of thousands is hardly larger than its source. The formats of the ancestor and of other
tools are `dashboard import`'s. When version 3 comes: raise NEWEST, add the step from 1, schemas/data_v3.json, and a
golden file to tests/golden.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common.json_schema import Schema
from tvmdash.errors import DashboardError

IN_COLUMNS = 2
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
    return {**value, "schema_version": IN_COLUMNS, "records": [_pack_block(*block) for block in blocks.items()]}


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


NEWEST = 1
Step = Callable[[dict[str, Any]], dict[str, Any]]

STEPS: Mapping[int, Step] = {}
"""The step from each version but the newest to the next one."""


def migrate(value: common.Json, *, steps: Mapping[int, Step] = STEPS, newest: int = NEWEST) -> dict[str, Any]:
    """Migrate a data.json of any version to the newest, without changing the argument.

    DashboardError where its version is unknown. One that holds no records has no version and comes back unchanged.
    """
    if not isinstance(value, dict):
        raise DashboardError(f"$: {type(value).__name__} is not an object. Use the contents of a data.json.")
    if "records" not in value:
        return value
    if value.get("schema_version") == IN_COLUMNS > newest:
        value = unpack(value)
    version = value.get("schema_version")
    if isinstance(version, int) and version > newest:
        known = max(newest, IN_COLUMNS)
        raise DashboardError(f"$.schema_version: {version} is newer than {known}. Update the dashboard.")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= newest:
        raise DashboardError(f"$.schema_version: {version!r:.40} is not a whole number from 1 to {newest}.")
    for number in range(version, newest):
        value = {**steps[number](value), "schema_version": number + 1}
    return dict(value)
