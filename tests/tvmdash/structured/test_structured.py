"""A JSON value becomes a frozen dataclass or an error that names file, place and value; and the other way."""

from __future__ import annotations

import enum
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator

from tests.make_schemas import schema_of
from tvmdash.common import structured
from tvmdash.common.structured import Stamp, named, written_as
from tvmdash.errors import DashboardError

STAMP = "20261121T031500Z"


class Level(enum.StrEnum):
    """How bad."""

    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class Inner:
    """A part."""

    size: float
    is_break: bool = field(default=False, metadata=named("break"))
    way: Literal["up", "down"] = "up"

    @property
    @written_as("large")
    def is_large(self) -> bool:
        return self.size > 1


@dataclass(frozen=True)
class Whole:
    """Everything."""

    night: Stamp
    count: int
    level: Level
    versions: tuple[str, str]
    state: Literal["open", "closed"] = "open"
    until: Stamp | None = None
    low: float | None = None
    parts: tuple[Inner, ...] = ()
    by_name: Mapping[str, Inner] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    last: tuple[float | None, ...] = ()
    notes: tuple[str, ...] = ()


GOOD: dict[str, Any] = {
    "night": STAMP, "count": 3, "level": "bad", "versions": ["a", "b"], "low": 2,
    "parts": [{"size": 1.5, "break": True}], "by_name": {"x": {"size": 0}}, "more": {"anything": [1, None]},
}  # fmt: skip
PARSED = Whole(
    STAMP, 3, Level.BAD, ("a", "b"), low=2.0, parts=(Inner(1.5, is_break=True),), by_name={"x": Inner(0.0)},
    more={"anything": [1, None]},
)  # fmt: skip


def fault_of(value: Any) -> str:
    with pytest.raises(DashboardError) as caught:
        structured.from_json(Whole, value, "f.json", remedy="Delete it.")
    return str(caught.value)


def test_a_value_becomes_a_dataclass_with_the_defaults_of_what_is_missing() -> None:
    assert structured.from_json(Whole, GOOD, "f.json") == PARSED


def test_a_list_of_numbers_may_have_gaps_and_whole_numbers() -> None:
    found = structured.from_json(Whole, {**GOOD, "last": [1.5, None, 2], "notes": ["a"]}, "f.json")
    assert (found.last, found.notes) == ((1.5, None, 2.0), ("a",))
    assert structured.from_json(Whole, {**GOOD, "last": [1.5, None]}, "f.json").last == (1.5, None)


def test_names_that_a_newer_dashboard_added_are_passed_over() -> None:
    newer = {**GOOD, "added": 1, "parts": [{"size": 1.5, "break": True, "added": []}]}
    assert structured.from_json(Whole, newer, "f.json") == PARSED


def test_what_is_written_is_read_back_as_an_equal_value() -> None:
    written = json.loads(json.dumps(structured.to_json(PARSED)))
    assert written["parts"] == [{"size": 1.5, "break": True, "way": "up", "large": True}]
    assert structured.from_json(Whole, written, "f.json") == PARSED


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"count": True}, "$.count: True is not a whole number"),
        ({"count": 1.5}, "$.count: 1.5 is not a whole number"),
        ({"night": "yesterday"}, "$.night: 'yesterday' is not a stamp like 20261121T031500Z"),
        ({"night": "20261399T031500Z"}, "$.night: '20261399T031500Z' is not a stamp like 20261121T031500Z"),
        ({"until": 7}, "$.until: 7 is not a stamp like 20261121T031500Z"),
        ({"level": "worst"}, "$.level: 'worst' is not one of: good, bad"),
        ({"level": []}, "$.level: [] is not one of: good, bad"),
        ({"state": "ajar"}, "$.state: 'ajar' is not one of: open, closed"),
        ({"versions": ["a"]}, "$.versions: ['a'] is not a list of 2"),
        ({"versions": "ab"}, "$.versions: 'ab' is not a list"),
        ({"low": float("nan")}, "$.low: nan is not a finite number"),
        ({"low": float("inf")}, "$.low: inf is not a finite number"),
        ({"low": "2"}, "$.low: '2' is not a number"),
        ({"low": False}, "$.low: False is not a number"),
        ({"parts": {}}, "$.parts: {} is not a list"),
        ({"parts": [{"size": 1}, []]}, "$.parts[1]: [] is not an object"),
        ({"parts": [{"size": 1}, {}]}, "$.parts[1].size: is missing"),
        ({"parts": [{"size": 1, "break": 1}]}, "$.parts[0].break: 1 is not true or false"),
        ({"parts": [{"size": 1, "way": "aside"}]}, "$.parts[0].way: 'aside' is not one of: up, down"),
        ({"by_name": {"x": {"size": None}}}, "$.by_name.x.size: None is not a number"),
        ({"last": [1.5, None, "2"]}, "$.last[2]: '2' is not a number"),
        ({"last": [1.5, float("nan")]}, "$.last[1]: nan is not a finite number"),
        ({"last": [1.5, float("inf"), float("-inf")]}, "$.last[1]: inf is not a finite number"),
        ({"notes": ["a", 2]}, "$.notes[1]: 2 is not a text"),
        ({"more": []}, "$.more: [] is not an object"),
    ],
)
def test_a_wrong_value_is_refused_with_file_place_value_and_remedy(change: dict[str, Any], fault: str) -> None:
    assert fault_of({**GOOD, **change}) == f"f.json: {fault}. Delete it."


def test_a_part_of_a_file_is_named_by_its_path() -> None:
    with pytest.raises(DashboardError, match=r"^f\.json: \$\.all\[3\]\.size: 'x' is not a number\.$"):
        structured.from_json(Inner, {"size": "x"}, "f.json", at="$.all[3]")


def test_a_missing_field_and_a_value_that_is_no_object_are_refused() -> None:
    assert fault_of({name: item for name, item in GOOD.items() if name != "night"}) == (
        "f.json: $.night: is missing. Delete it."
    )
    assert fault_of([GOOD]).startswith("f.json: $: [{'night': ")
    assert fault_of(None) == "f.json: $: None is not an object. Delete it."


def test_a_number_beyond_the_range_of_floats_is_refused() -> None:
    assert fault_of({**GOOD, "low": 10**400}).startswith("f.json: $.low: 1000")


def test_the_schema_accepts_what_is_read_and_refuses_what_is_not() -> None:
    schema = schema_of(Whole, "f.json, version 1")
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert validator.is_valid(GOOD)
    assert validator.is_valid({"schema_version": 1, **json.loads(json.dumps(structured.to_json(PARSED)))})
    for change in ({"count": True}, {"night": "x"}, {"level": "worst"}, {"versions": ["a"]}, {"low": "2"}):
        assert not validator.is_valid({**GOOD, **change}), change
    assert schema["description"] == "Everything."
    assert schema["required"] == ["night", "count", "level", "versions"]
    assert schema["$defs"]["Inner"]["properties"].keys() == {"size", "break", "way", "large"}


def test_importing_what_reads_json_does_not_import_cattrs() -> None:
    code = "import sys, tvmdash.common.structured, tvmdash.verdict; sys.exit('cattrs' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
