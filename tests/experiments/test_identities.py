"""What each experiment's points are called in records: another name would begin other series and lose their history.

`pytest --update` writes the golden file anew, where other series are meant.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from typing import Any

import pytest

from tests.experiments.trying import EXPERIMENTS, modules
from tests.golden_files import Golden
from tvmdash import common, config_util
from tvmdash.exp_templates import Experiment
from tvmdash.experiment.points import group_points, name_values

SAMPLE = EXPERIMENTS.parent / "sample-dashboard-home" / "config" / "experiments"


def experiment_of(name: str) -> Experiment:
    """The experiment as its script makes it; its module is not kept, so it is told where its folder is."""
    module = vars(modules(name))[name]
    (own,) = [
        item
        for item in vars(module).values()
        if isinstance(item, type) and item.__module__ == name and issubclass(item, Experiment)
    ]
    found: Experiment = type(own.__name__, (own,), {"folder": EXPERIMENTS / name})()
    return found


def config_of(name: str, experiment: Experiment, given: Mapping[str, Any]) -> dict[str, Any]:
    """The checked config on a processor that does not depend on this machine."""
    fields = {**config_util.EXPERIMENT_FIELDS, **config_util.read_fields(EXPERIMENTS / name / config_util.FIELDS_FILE)}
    fixed = {"mcpu": "x86-64-v3"} if "mcpu" in fields else {}
    return config_util.check({**given, **fixed}, fields, name)


def points_of(name: str) -> dict[str, Any]:
    """By config: how many points, and a digest of all that names them, in order, with the processes that they share."""
    experiment = experiment_of(name)
    sample = SAMPLE / name / config_util.CONFIG_FILE
    configs = {"nightly": {"active": True}, "smoke": {"active": True, "size": "smoke"}}
    if sample.exists():
        configs["sample home"] = common.read_json(sample)
    return {label: _described(experiment, config_of(name, experiment, given)) for label, given in configs.items()}


def _described(experiment: Experiment, config: Mapping[str, Any]) -> dict[str, Any]:
    asked = config_util.structure(type(experiment), config, experiment._fields, experiment.name)
    points = experiment.points(asked)
    listed = [[name_values(experiment.axes, point), point.once] for point in points]
    groups = [
        [group.name, group.engine.name, dict(group.environment)] for group in group_points(experiment, points, asked)
    ]
    return {
        "points": len(points),
        "axes": [f"{axis.column}.{axis.name}" for axis in experiment.axes],
        "first": listed[0][0],
        "digest": _digest([listed, groups]),
        "config": _digest(dict(config)),
    }


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def test_points_keep_the_names_that_their_series_have(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    names = sorted(path.parent.name for path in EXPERIMENTS.glob("*/fields.json"))
    golden.values("points.json", {name: points_of(name) for name in names})
