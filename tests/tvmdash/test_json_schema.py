"""The validator that is quick and the one that explains agree."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.tvmdash.records.test_records import data, record
from tvmdash import common, config_util
from tvmdash.common.json_schema import Schema
from tvmdash.config_util.schema import compile_schema
from tvmdash.records.record import SCHEMAS

DATA = common.read_json(SCHEMAS / "data_v1.json")
CONFIG = compile_schema(config_util.FIELD_SETS["timing"])
NIGHT = data(record(), failures=[])
ODD = st.sampled_from([None, True, 0, -1, 1.0, 1.5, 2**70, -0.0, math.nan, math.inf, "", "1", "ä\n", [], [1, "a"], {}])


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each value in `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def with_odd(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """`value` with `odd` at `path`."""
    changed = copy.deepcopy(value)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = odd
    return changed


@given(path=st.sampled_from(list(places(NIGHT))), odd=ODD)
def test_what_is_wrong_with_a_record_is_what_jsonschema_says(path: tuple[Any, ...], odd: Any) -> None:
    _compare(DATA, with_odd(NIGHT, path, odd))


@given(name=st.sampled_from([*CONFIG["properties"], "nothing"]), odd=ODD)
def test_what_is_wrong_with_a_config_is_what_jsonschema_says(name: str, odd: Any) -> None:
    _compare(CONFIG, {name: odd})


def test_whole_files_are_valid() -> None:
    assert list(Schema(DATA).errors(NIGHT)) == list(Schema(CONFIG).errors({})) == []


@pytest.mark.parametrize("value", [{"size": {1, 2}}, {"size": object()}, {1: 2}])
def test_what_json_cannot_hold_is_left_to_jsonschema(value: Any) -> None:
    _compare({"properties": {"size": {"type": "string"}}}, value)


def _compare(schema: dict[str, Any], value: Any) -> None:
    wanted = [str(error) for error in Draft202012Validator(schema).iter_errors(value)]
    assert [str(error) for error in Schema(schema).errors(value)] == wanted
