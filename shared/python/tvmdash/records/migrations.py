"""From every version of data.json ever written to the newest, one pure step at a time.

Whoever reads a data.json (`records.read_data`, `records.exchange`) comes by here. Version 1 is the newest that holds
records one by one; version 2 is the same in columns (`table`), and is read as version 1. What the ancestor and other
tools wrote are formats of their own: `dashboard import` reads them. When version 3 comes: raise NEWEST, add the step
from 1, schemas/data_v3.json, and a golden file to tests/golden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.records.table import VERSION as IN_COLUMNS
from tvmdash.records.table import unpack

NEWEST = 1
Step = Callable[[dict[str, Any]], dict[str, Any]]

STEPS: Mapping[int, Step] = {}
"""For each version but the newest, the step to the next one."""


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
