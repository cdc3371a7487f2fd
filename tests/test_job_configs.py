"""A config field is described once, in fields.json or a table of the library; the dataclasses are made from there."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path

import pytest

from tests import make_config_classes
from tests.experiments.test_identities import experiment_of
from tests.subsystem.scripts import load
from tvmdash import config_util
from tvmdash.config_util import typed
from tvmdash.config_util.fields import OF_A_SIZE
from tvmdash.subsys_templates import Subsystem

REPO = Path(__file__).resolve().parent.parent
FILES = sorted(path for kind in ("experiments", "subsystem") for path in (REPO / kind).glob("*/fields.json"))


def class_of(folder: Path) -> type:
    """The class of the experiment or of the subsystem in this folder."""
    if folder.parent.name == "experiments":
        return type(experiment_of(folder.name))
    items = vars(load(folder.name)).values()
    (found,) = {item for item in items if isinstance(item, type) and issubclass(item, Subsystem)} - {Subsystem}
    return found


def fields_of(file: Path) -> config_util.Fields:
    """What a checked config of the job holds."""
    is_experiment = file.parent.parent.name == "experiments"
    shared = config_util.EXPERIMENT_FIELDS if is_experiment else config_util.SUBSYSTEM_FIELDS
    fields = {**shared, **config_util.read_fields(file)}
    return {name: field for name, field in fields.items() if name not in OF_A_SIZE}


def test_the_config_dataclasses_are_what_the_fields_say() -> None:
    made = make_config_classes.outputs()
    stale = [str(path) for path, text in made.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run: tests/python.sh tests/make_config_classes.py"


@pytest.mark.parametrize("file", FILES, ids=[path.parent.name for path in FILES])
def test_a_jobs_class_gets_every_field_of_its_config(file: Path) -> None:
    kind = typed.config_class(class_of(file.parent))
    assert kind is not None, "the class names no dataclass"
    assert list(typed.find_disagreements(kind, fields_of(file))) == []
    assert typed.find_unread(kind, fields_of(file)) == [], f"are not in {kind.__name__}"


def test_no_config_dataclass_repeats_a_default() -> None:
    repeated = [text for path in make_config_classes.outputs() for text in _list_defaults(path)]
    assert repeated == [], "fields.json says the default"


def _list_defaults(path: Path) -> list[str]:
    """The fields with a default in the config dataclasses of a module."""
    names = {
        name for file in FILES if path.is_relative_to(file.parent) for name in config_util.read_fields(file)
    } or set(config_util.EXPERIMENT_FIELDS)
    classes = [item for item in ast.walk(ast.parse(path.read_bytes())) if isinstance(item, ast.ClassDef)]
    fields = {kind.name: [item for item in kind.body if isinstance(item, ast.AnnAssign)] for kind in classes}
    return [
        f"{path.name}:{item.lineno}: {ast.unparse(item)}"
        for kind, items in fields.items()
        if kind.endswith("Config") or (items and _are_all(items, names))
        for item in items
        if item.value is not None
    ]


def _are_all(items: list[ast.AnnAssign], names: set[str]) -> bool:
    return {ast.unparse(item.target) for item in items} <= names


def test_what_three_jobs_describe_in_the_same_words_is_a_set_of_fields() -> None:
    described = Counter(
        (name, json.dumps(item, sort_keys=True))
        for file in FILES
        for name, item in json.loads(file.read_text(encoding="utf-8")).items()
        if isinstance(item, dict) and "type" in item
    )
    assert [name for (name, _), count in described.items() if count > 2] == [], 'add it to FIELD_SETS, and "include" it'
