"""A job's config as the dataclass that its class names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from tvmdash import common
from tvmdash.config_util import EXPERIMENT_FIELDS, FIELD_SETS, SUBSYSTEM_FIELDS, Field, JobConfig, typed
from tvmdash.errors import DashboardError
from tvmdash.experiment.config import MeasuringConfig
from tvmdash.subsys_templates import Subsystem

FIELDS = {
    "names": Field("list", "Names.", of=Field("str", "A name.")),
    "limits": Field("map", "Limits.", of=Field("list", "By level.", of=Field("float", "Limit."))),
    "mode": Field("choice", "How.", choices=("fast", "slow")),
    "level": Field("choice", "Level.", choices=(0, 3)),
    "seed": Field("int", "Seed.", default=None, nullable=True),
    "scores": Field("list", "Scores.", of=Field("any", "An object.")),
}


@dataclass(frozen=True, kw_only=True)
class Right(JobConfig):
    names: tuple[str, ...]
    limits: Mapping[str, tuple[float, ...]]
    mode: Literal["fast", "slow"]
    level: int
    seed: int | None
    scores: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Wrong(JobConfig):
    names: tuple[int, ...]
    limits: Mapping[str, float]
    mode: Literal["fast"]
    level: str
    seed: int
    scores: tuple[str, ...]
    more: int


class Typed(Subsystem[Right]):
    pass


class Mistyped(Subsystem[Wrong]):
    pass


class Heir(Typed):
    pass


class Plain(Subsystem):
    pass


class Bare(Subsystem[JobConfig]):
    pass


ALL = {**SUBSYSTEM_FIELDS, **FIELDS}
VALUES = {
    **{name: field.default for name, field in SUBSYSTEM_FIELDS.items()},
    "active": True,
    "names": ["mlp"],
    "limits": {"a": [1, 2.5]},
    "mode": "slow",
    "level": 3,
    "seed": None,
    "scores": [{"title": ["one"]}],
}


def test_a_config_is_the_dataclass_that_the_class_names() -> None:
    config = typed.structure(Typed, VALUES, ALL, "fields.json")
    assert config == Right(
        active=True, title="", description="", notify=(), priority=0, timeouts={}, env={},
        names=("mlp",), limits={"a": (1, 2.5)}, mode="slow", level=3, seed=None, scores=({"title": ["one"]},),
    )  # fmt: skip


def test_a_class_inherits_the_dataclass_of_its_base() -> None:
    assert typed.config_class(Heir) is Right


def test_a_class_that_names_no_dataclass_gets_the_mapping_itself() -> None:
    assert typed.structure(Plain, VALUES, ALL, "fields.json") is VALUES


def test_each_disagreement_names_the_file_the_field_and_what_to_write() -> None:
    with pytest.raises(DashboardError) as caught:
        typed.structure(Mistyped, VALUES, ALL, "mine/fields.json")
    assert str(caught.value).splitlines() == [
        "mine/fields.json: $.names: Wrong.names is of another type. Make it `tuple[str, ...]`.",
        "mine/fields.json: $.limits: Wrong.limits is of another type. Make it `Mapping[str, tuple[float, ...]]`.",
        "mine/fields.json: $.mode: Wrong.mode is of another type. Make it `str`.",
        "mine/fields.json: $.level: Wrong.level is of another type. Make it `int`.",
        "mine/fields.json: $.seed: Wrong.seed is of another type. Make it `int | None`.",
        "mine/fields.json: $.scores: Wrong.scores is of another type. Make it `tuple[Any, ...]`.",
        (
            "mine/fields.json: $.more: the dataclass has Wrong.more, but no such field is declared. "
            "Declare it, or take it out of Wrong."
        ),
    ]


def test_a_field_of_a_set_that_is_not_included_is_told_as_that() -> None:
    (fault, *_) = typed.find_disagreements(MeasuringConfig, SUBSYSTEM_FIELDS)
    assert fault == (
        '$.number: the dataclass has MeasuringConfig.number, but no such field is declared. Add "include": ["timing"].'
    )


def test_a_whole_number_is_a_number() -> None:
    minutes = {name: Field("int", "Minutes.") for name in ("max_minutes", "process_minutes")}
    assert list(typed.find_disagreements(MeasuringConfig, {**FIELD_SETS["timing"], **minutes})) == []


def test_a_dataclass_may_say_what_it_expects_of_a_field_of_any_type() -> None:
    kind = make_dataclass("Plain", [("tvm_remote", str | None), ("scores", tuple[Any, ...])])
    fields = {**EXPERIMENT_FIELDS, "scores": Field("any", "Scores.")}
    assert list(typed.find_disagreements(kind, fields)) == []


def test_fields_that_the_dataclass_lacks_are_known() -> None:
    assert typed.find_unread(JobConfig, ALL) == list(FIELDS)


def test_the_template_loads_the_dataclass(tmp_path: Path) -> None:
    common.write_json(tmp_path / "config.json", {"active": True, "title": "Mine"})
    config = Bare().load_config(tmp_path)
    assert config == JobConfig(active=True, title="Mine", description="", notify=(), priority=0, timeouts={}, env={})
