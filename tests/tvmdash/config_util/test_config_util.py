"""The config language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tvmdash import config_util
from tvmdash.config_util import FIELD_SETS, HOME_FIELDS, ConfigError, Field
from tvmdash.config_util.fields import SAME
from tvmdash.errors import DashboardError

REPO = Path(__file__).resolve().parents[3]
FIELDS = {
    "active": Field("bool", "Whether."),
    "repeat": Field("int", "Samples.", default=10, min=1, max=99),
    "names": Field("list", "Networks.", default=[], of=Field("str", "A name.", min=1)),
    "mode": Field("choice", "How.", default="fast", choices=("fast", "slow")),
    "map": Field("map", "Seconds.", default={}, of=Field("int", "s", min=1)),
    "maybe": Field("str", "Or null.", default=None, nullable=True),
    "any": Field("any", "Anything.", default=None),
}


def faults(value: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config_util.check(value, FIELDS, "c.json")
    return list(caught.value.faults)


def test_defaults_are_filled_in_and_not_shared() -> None:
    first = config_util.check({"active": True}, FIELDS, "c")
    first["names"].append("vgg")
    assert config_util.check({"active": True}, FIELDS, "c")["names"] == []
    assert (first["repeat"], first["mode"], first["maybe"]) == (10, "fast", None)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({}, "c.json: $.active: required field is missing. Add it: Whether."),
        ([], "c.json: $: [] is not an object. Write {...} with the fields in it."),
        ({"active": 1}, "c.json: $.active: 1 is not true or false."),
        ({"active": True, "repeat": 0}, "c.json: $.repeat: 0 is less than 1. Use 1 or more."),
        ({"active": True, "repeat": 100}, "c.json: $.repeat: 100 is more than 99. Use 99 or less."),
        ({"active": True, "repeat": True}, "c.json: $.repeat: True is not a whole number."),
        ({"active": True, "repeat": 1.5}, "c.json: $.repeat: 1.5 is not a whole number."),
        ({"active": True, "reapet": 3}, "c.json: $.reapet: unknown field. Did you mean 'repeat'?"),
        ({"active": True, "names": ["a", 3]}, "c.json: $.names[1]: 3 is not a string."),
        ({"active": True, "mode": "fsat"}, "c.json: $.mode: 'fsat' is not a valid choice. Did you mean 'fast'?"),
        ({"active": True, "map": {"run": 0}}, "c.json: $.map.run: 0 is less than 1. Use 1 or more."),
        ({"active": True, "maybe": 3}, "c.json: $.maybe: 3 is not a string or null."),
    ],
)
def test_a_fault_is_said_with_place_value_and_remedy(value: Any, fault: str) -> None:
    assert faults(value) == [fault]


def test_a_field_that_resembles_none_lists_the_known_ones() -> None:
    assert "Known fields: active, any, map" in faults({"active": True, "zzzzzz": 1})[0]


def test_every_fault_is_said_at_once() -> None:
    assert len(faults({"repeat": "x", "mode": 3, "nams": [], "map": []})) == 5


def test_a_long_value_is_said_short() -> None:
    assert len(faults({"active": "x" * 10000})[0]) < 200


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "is not an object of fields"),
        ('{"include": "timing"}', r"\$\.include: 'timing' is not a list"),
        ('{"include": ["timin"]}', "is not one of: timing"),
        ('{"include": [{}]}', "is not one of"),
        ('{"X": {"type": "int"}}', "Use lower-case letters"),
        ('{"x": {"type": "integer"}}', r"\$\.x\.type: 'integer' is not one of"),
        ('{"x": {"type": {}}}', r"\$\.x\.type"),
        ('{"x": {"typ": "int"}}', "is not a field"),
        ('{"x": 3}', "is not a field"),
        ('{"x": {"type": "choice"}}', r"\$\.x\.choices"),
        ('{"x": {"type": "choice", "choices": "ab"}}', r"\$\.x\.choices"),
        ('{"x": {"type": "int", "max": []}}', r"\$\.x\.max: \[\] is not a number"),
        ('{"x": {"type": "list", "of": {"type": "lsit"}}}', r"\$\.x\.of\.type"),
        ('{"x": {"type": "int", "axis": "target"}}', r"\$\.x\.axis: 'target' is not one of workload_args, .*, engine"),
        ('{"x": {"type": "int", "axis": "workload"}}', r"\$\.x\.axis"),
        ('{"x": {"type": "int", "axis": {}}}', r"\$\.x\.axis"),
        ("{", "not JSON"),
    ],
)
def test_fields_that_are_wrong_are_refused_in_words(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "fields.json").write_text(text)
    with pytest.raises(DashboardError, match=words) as caught:
        config_util.read_fields(tmp_path / "fields.json")
    assert str(tmp_path / "fields.json") in str(caught.value)


def test_absent_fields_are_none_and_included_sets_come_first(tmp_path: Path) -> None:
    assert config_util.read_fields(tmp_path / "fields.json") == {}
    (tmp_path / "fields.json").write_text('{"include": ["timing"], "repeat": {"type": "int", "default": 3}}')
    fields = config_util.read_fields(tmp_path / "fields.json")
    assert set(fields) == set(FIELD_SETS["timing"])
    assert fields["repeat"].default == 3


def test_an_axis_brings_the_timing_with_it(tmp_path: Path) -> None:
    path = tmp_path / "fields.json"
    path.write_text('{"sizes": {"type": "list", "axis": "workload_args.size", "doc": "Rows."}}')
    fields = config_util.read_fields(path)
    assert set(fields) == {"sizes", *FIELD_SETS["timing"]}
    assert fields["sizes"].axis == "workload_args.size"


def test_a_field_of_an_included_name_changes_only_what_it_states(tmp_path: Path) -> None:
    path = tmp_path / "fields.json"
    path.write_text('{"include": ["timing"], "max_seconds": {"default": 2.5}}')
    changed, included = config_util.read_fields(path)["max_seconds"], FIELD_SETS["timing"]["max_seconds"]
    assert (changed.default, changed.smoke, changed.doc) == (2.5, included.smoke, included.doc)
    path.write_text('{"max_seconds": {"default": 2.5}}')
    with pytest.raises(DashboardError, match=r"\$\.max_seconds\.type"):
        config_util.read_fields(path)


def test_an_experiment_needs_tvm_unless_it_says_that_it_does_not(tmp_path: Path) -> None:
    path = tmp_path / "fields.json"
    assert config_util.read_needs_tvm(path)
    path.write_text('{"needs_tvm": false, "x": {"type": "int", "doc": "X."}}')
    assert not config_util.read_needs_tvm(path)
    assert list(config_util.read_fields(path)) == ["x"]
    path.write_text('{"needs_tvm": "no"}')
    with pytest.raises(DashboardError, match=r"\$\.needs_tvm: 'no' is not true or false"):
        config_util.read_needs_tvm(path)
    path.write_text('{"needs_tvm": {"type": "bool", "doc": "A field of that name."}}')
    assert config_util.read_needs_tvm(path)
    assert list(config_util.read_fields(path)) == ["needs_tvm"]


@pytest.mark.parametrize("name", config_util.RETIRED_HOME_FIELDS)
def test_whoever_reads_a_homes_config_takes_an_old_one_with_a_field_that_is_gone(tmp_path: Path, name: str) -> None:
    needed = {"tmp_data_dir": "tmp", "backup_dir": "backup", "setup_dir": "setup"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**needed, name: False}))
    read = config_util.read_config(path, HOME_FIELDS)
    assert read == config_util.check(needed, HOME_FIELDS, "c.json")
    with pytest.raises(ConfigError, match=f"{name}: unknown field"):
        config_util.check({"active": True, name: False}, config_util.SUBSYSTEM_FIELDS, "c.json")


@pytest.mark.parametrize(
    "fields", [HOME_FIELDS, config_util.EXPERIMENT_FIELDS, config_util.SUBSYSTEM_FIELDS, *FIELD_SETS.values()]
)
def test_our_own_fields_are_sound_documented_and_their_defaults_valid(fields: config_util.Fields) -> None:
    schema = config_util.compile_schema(fields)
    Draft202012Validator.check_schema(schema)
    for name, field in fields.items():
        assert field.doc.endswith("."), name
        if field.default is not config_util.REQUIRED:
            Draft202012Validator(field.schema()).validate(field.default)


def test_a_smoke_config_has_the_small_defaults_and_what_it_says_itself() -> None:
    fields = {
        "size": config_util.EXPERIMENT_FIELDS["size"],
        "repeat": Field("int", "Samples.", default=10, smoke=3),
        "names": Field("list", "Networks.", default=["a", "b"], smoke=["a"]),
        "same": Field("int", "Whatever.", default=1),
        "null": Field("str", "Or null.", default="x", nullable=True, smoke=None),
    }
    small = {"size": "smoke", "repeat": 3, "names": ["a"], "same": 1, "null": None}
    big = {"size": "nightly", "repeat": 10, "names": ["a", "b"], "same": 1, "null": "x"}
    assert config_util.check({"size": "smoke"}, fields, "c.json") == small
    assert config_util.check({}, fields, "c.json") == big
    assert config_util.check({"size": "smoke", "repeat": 7}, fields, "c.json")["repeat"] == 7


def test_minutes_are_read_beside_the_fields_and_are_none_of_them(tmp_path: Path) -> None:
    path = tmp_path / "fields.json"
    path.write_text('{"takes_minutes": {"smoke": 0.3, "nightly": 6}, "x": {"type": "int", "doc": "", "smoke": 1}}')
    assert config_util.read_takes_minutes(path) == {"smoke": 0.3, "nightly": 6}
    assert list(config_util.read_fields(path)) == ["x"]
    assert config_util.read_takes_minutes(tmp_path / "absent.json") == {}
    path.write_text('{"takes_minutes": {"weekly": 3}}')
    with pytest.raises(DashboardError, match="is not an object of minutes by size"):
        config_util.read_takes_minutes(path)


@pytest.mark.parametrize("path", sorted(Path(__file__).resolve().parents[3].glob("experiments/*/fields.json")), ids=str)
def test_the_smoke_defaults_of_every_experiment_are_valid_values(path: Path) -> None:
    fields = {**config_util.EXPERIMENT_FIELDS, **config_util.read_fields(path)}
    given = {"active": True, "size": "smoke"}
    config_util.check(config_util.check(given, fields, "c.json"), fields, "c.json")
    assert config_util.read_takes_minutes(path).keys() == {"smoke", "nightly"}


def test_what_is_said_for_a_size_counts_for_it_alone() -> None:
    fields = {**config_util.EXPERIMENT_FIELDS, "repeat": Field("int", "Samples.", default=10, smoke=3)}
    given = {"active": True, "nightly": {"repeat": 7, "title": "All"}, "smoke": {"title": "Few"}}
    nightly = config_util.check(given, fields, "c.json")
    smoke = config_util.check({**given, "size": "smoke"}, fields, "c.json")
    assert (nightly["repeat"], nightly["title"]) == (7, "All")
    assert (smoke["repeat"], smoke["title"]) == (3, "Few")
    assert not {"nightly", "smoke"} & {*nightly, *smoke}, "whoever reads a config sees its fields alone"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"repaet": 7}, "$.nightly.repaet: unknown field. Did you mean 'repeat'?"),
        ({"repeat": "7"}, "$.nightly.repeat: '7' is not a whole number."),
        ({"size": "smoke"}, "$.nightly.size: unknown field."),
        (7, "$.nightly: 7 is not an object."),
    ],
)
def test_what_is_said_for_a_size_is_checked_whatever_the_size_is(wrong: object, words: str) -> None:
    fields = {**config_util.EXPERIMENT_FIELDS, "repeat": Field("int", "Samples.", default=10, smoke=3)}
    with pytest.raises(ConfigError) as raised:
        config_util.check({"active": True, "size": "smoke", "nightly": wrong}, fields, "c.json")
    assert words in str(raised.value)


def test_an_experiments_own_field_of_the_name_of_a_size_is_its_own() -> None:
    fields = {**config_util.EXPERIMENT_FIELDS, "nightly": Field("bool", "Every night.", default=False)}
    assert config_util.check({"active": True, "nightly": True}, fields, "c.json")["nightly"] is True


@pytest.mark.parametrize("path", sorted(REPO.glob("sample-dashboard-home/config/experiments/*/config.json")), ids=str)
def test_smoke_makes_every_experiment_of_the_sample_home_small(path: Path) -> None:
    own = config_util.read_fields(REPO / "experiments" / path.parent.name / "fields.json")
    given = {**json.loads(path.read_text()), "size": "smoke"}
    config = config_util.check(given, {**config_util.EXPERIMENT_FIELDS, **own}, "c.json")
    sized = {name: field.smoke for name, field in own.items() if field.smoke is not SAME}
    assert {name: config[name] for name in sized} == sized
