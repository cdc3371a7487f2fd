"""What fits at once is what jsonschema finds no fault in."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import site_truth
from tvmdash import config_util, records, schema_fit

DATA = json.loads((records.SCHEMAS / "data_v1.json").read_text(encoding="utf-8"))
CONFIG = config_util.compile_schema(config_util.HOME_FIELDS)
ALL_FIELDS = config_util.compile_schema(
    {
        "flag": config_util.Field("bool", "x", default=True),
        "count": config_util.Field("int", "x", default=3, min=1, max=9),
        "share": config_util.Field("float", "x", default=None, min=0, nullable=True),
        "name": config_util.Field("str", "x", min=1),
        "size": config_util.Field("choice", "x", default="small", choices=("small", "large")),
        "names": config_util.Field("list", "x", default=[], min=1, of=config_util.Field("str", "x", min=2)),
        "limits": config_util.Field("map", "x", default={}, of=config_util.Field("int", "x", min=1)),
        "free": config_util.Field("any", "x", default=None),
    }
)
GOOD: dict[str, Any] = {
    "flag": False, "count": 9, "share": 0.5, "name": "a", "size": "large", "names": ["ab"], "limits": {"run": 1},
    "free": [{}],
}  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 11)
    | st.sampled_from([0.0, 1.0, 0.5])
    | st.sampled_from(["", "a", "ab", "small"])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "run"]), inner, max_size=2),
)


def night() -> dict[str, Any]:
    return copy.deepcopy(site_truth.Truth(60, 120).data("cnn_engines", 109))


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


def test_what_nights_and_configs_hold_fits_at_once() -> None:
    assert night()["failures"]
    assert schema_fit.fits(night(), DATA)
    assert schema_fit.fits(GOOD, ALL_FIELDS)
    assert schema_fit.fits({"share": None, "name": "a"}, ALL_FIELDS)
    assert schema_fit.fits({"tmp_data_dir": "a", "backup_dir": "b", "setup_dir": "c"}, CONFIG)


@given(st.sampled_from([*GOOD, "other"]), VALUES)
def test_a_config_fits_only_where_jsonschema_finds_no_fault(name: str, value: object) -> None:
    config = {**GOOD, name: value}
    assert not schema_fit.fits(config, ALL_FIELDS) or is_valid(config, ALL_FIELDS)


@given(st.data())
def test_data_fits_only_where_jsonschema_finds_no_fault(data: st.DataObject) -> None:
    whole = night()
    part: Any = whole
    for _ in range(data.draw(st.integers(1, 4))):
        keys = sorted(part) if isinstance(part, dict) else list(range(len(part)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(part[key], (dict, list)) or not part[key]:
            break
        holder, part = part, part[key]
    else:
        part = holder
    part[key] = data.draw(VALUES)
    assert not schema_fit.fits(whole, DATA) or is_valid(whole, DATA)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, True),
        ({"type": "number"}, False),
        ({"const": 1}, True),
        ({"enum": [0, "a"]}, False),
        ({"required": ["a"]}, {"b": 1}),
        ({"properties": {"a": {"type": "string"}}}, {"a": 1}),
        ({"additionalProperties": False}, {"a": 1}),
        ({"items": {"type": "null"}}, [None, 1]),
        ({"minItems": 1}, []),
        ({"minLength": 1}, ""),
        ({"pattern": "^a"}, "ba"),
        ({"minimum": 1}, 0),
        ({"maximum": 1}, 1.5),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, 1),
        ({"$ref": "#/$defs/b"}, 1),
        ({"items": False}, [1]),
    ],
)
def test_each_rule_refuses_what_breaks_it(schema: dict[str, Any], value: object) -> None:
    assert not schema_fit.fits(value, schema)


def test_a_rule_that_is_not_known_is_left_to_jsonschema() -> None:
    assert not schema_fit.fits(1, {"multipleOf": 1})
