"""The config of each of our jobs as its code knows it, and as its fields.json describes it: one and the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.subsystem.scripts import load
from tvmdash import config_util
from tvmdash.config_util import typed
from tvmdash.subsys_templates import Subsystem

REPO = Path(__file__).resolve().parent.parent
SUBSYSTEMS = sorted(path.parent.name for path in (REPO / "subsystem").glob("*/fields.json"))


def class_of(name: str) -> type:
    """The subsystem's class."""
    own = [item for item in vars(load(name)).values() if isinstance(item, type) and issubclass(item, Subsystem)]
    (found,) = set(own) - {Subsystem}
    return found


def faults(job: type, fields: config_util.Fields) -> list[str]:
    """Where the job's dataclass and its fields do not say the same."""
    kind = typed.config_class(job)
    if kind is None:
        return [f"{job.__name__} names no dataclass"]
    return [
        *typed.disagreements(kind, fields),
        *(f"{name} is not in {kind.__name__}" for name in typed.unread(kind, fields)),
    ]


@pytest.mark.parametrize("name", SUBSYSTEMS)
def test_a_subsystems_dataclass_and_its_fields_json_say_the_same(name: str) -> None:
    own = config_util.read_fields(REPO / "subsystem" / name / config_util.FIELDS_FILE)
    assert faults(class_of(name), {**config_util.SUBSYSTEM_FIELDS, **own}) == []
