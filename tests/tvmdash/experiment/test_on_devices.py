"""The axis `device`: which points an experiment has where, and that those on the processor stay what they were."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tvmdash import config_util, devices
from tvmdash.exp_templates import Axis, Engine, EngineFacts, Experiment, Point
from tvmdash.experiment.on_devices import list_points
from tvmdash.experiment.points import group_points, name_values

FIELDS = {
    "include": ["device"],
    "levels": {"type": "list", "axis": "build_config.level", "default": [0, 3], "doc": "How."},
}


class Two(Experiment):
    """TVM and a rival."""

    engines = (
        Engine("tvm", facts=lambda: EngineFacts("1"), pairable=True),
        Engine("theirs", facts=lambda: EngineFacts("1")),
    )

    def target(self, point: Point, config: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"kind": "llvm", "mcpu": "x86-64-v3"}


def listed(tmp_path: Path, *asked: str) -> tuple[Experiment, dict[str, Any], list[Point]]:
    (tmp_path / "fields.json").write_text(json.dumps(FIELDS))
    experiment: Experiment = type("InFolder", (Two,), {"folder": tmp_path, "name": "toy"})()
    known = {**config_util.EXPERIMENT_FIELDS, **config_util.read_fields(tmp_path / "fields.json")}
    config = config_util.check({"active": True, **({"device": list(asked)} if asked else {})}, known, "config.json")
    return experiment, config, list_points(experiment, config)


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(devices.VARIABLE, raising=False)


def test_points_on_the_processor_are_named_as_if_there_were_no_devices(tmp_path: Path) -> None:
    experiment, config, points = listed(tmp_path)
    assert points == experiment.points(config)
    assert all("device" not in name_values(experiment.axes, point)["values"] for point in points)
    assert Axis("device", "runtime_config") in experiment.axes
    with_device = listed(tmp_path, "cpu", "opencl")[2]
    assert with_device[: len(points)] == points


def test_on_a_device_runs_what_tvm_compiles_in_processes_of_its_own(tmp_path: Path) -> None:
    experiment, config, points = listed(tmp_path, "cpu", "opencl", "cuda:1")
    moved = [point for point in points if point.device == "cuda:1"]
    assert [(point.engine, point.values["level"]) for point in moved] == [("tvm", 0), ("tvm", 3)]
    named = name_values(experiment.axes, moved[0])
    assert named["columns"]["runtime_config"] == {"threads": 1, "device": "cuda:1"}
    assert json.loads(moved[0].target) == {"kind": "cuda", "host": {"kind": "llvm", "mcpu": "x86-64-v3"}}
    groups = group_points(experiment, points, config)
    assert all(len({point.device for point in group.points}) == 1 for group in groups)
    assert experiment.clock(moved[0], config) == "wall"
    assert experiment.clock(points[0], config) == "cpu"


def test_without_the_processor_there_are_only_the_devices_points(tmp_path: Path) -> None:
    assert {(point.engine, point.device) for point in listed(tmp_path, "opencl")[2]} == {("tvm", "opencl")}
