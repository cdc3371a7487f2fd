"""The config of each of our jobs as its code knows it, and as its fields.json describes it: one and the same."""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize("file", FILES, ids=[path.parent.name for path in FILES])
def test_a_jobs_dataclass_and_its_fields_json_say_the_same(file: Path) -> None:
    kind = typed.config_class(class_of(file.parent))
    assert kind is not None, "the class names no dataclass"
    assert list(typed.find_disagreements(kind, fields_of(file))) == []
    assert typed.find_unread(kind, fields_of(file)) == [], f"are not in {kind.__name__}"
