"""The axis `device`: which points an experiment has where, and that those on the processor stay what they were."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tvmdash import config_util
from tvmdash.exp_templates import Axis, Engine, EngineFacts, Experiment, Point
from tvmdash.experiment import on_devices
from tvmdash.experiment.on_devices import list_engines, list_points
from tvmdash.experiment.points import group_points, name_values
from tvmdash.machine import devices
from tvmdash.machine.cuda import CudaCard

FIELDS = {
    "include": ["device"],
    "levels": {"type": "list", "axis": "build_config.level", "default": [0, 3], "doc": "How."},
}


class Two(Experiment):
    """TVM and a rival."""

    engines = (
        Engine("tvm", facts=lambda: EngineFacts("1"), pairable=True),
        Engine("theirs", facts=lambda: EngineFacts("1")),
        Engine("theirs cuda", facts=lambda: EngineFacts("1"), device="cuda", instead_of="theirs"),
    )

    def target(self, point: Point, config: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"kind": "llvm", "mcpu": "x86-64-v3"}


def listed(tmp_path: Path, *asked: str) -> tuple[Experiment, dict[str, Any], list[Point]]:
    (tmp_path / "fields.json").write_text(json.dumps(FIELDS))
    experiment: Experiment = type("InFolder", (Two,), {"folder": tmp_path, "name": "toy"})()
    known = {**config_util.EXPERIMENT_FIELDS, **config_util.read_fields(tmp_path / "fields.json")}
    config = config_util.check({"active": True, **({"device": list(asked)} if asked else {})}, known, "config.json")
    return experiment, config, list_points(experiment, config)


def tvms(tmp_path: Path) -> list[Point]:
    return [point for point in listed(tmp_path, "cuda")[2] if point.engine == "tvm"]


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(devices.VARIABLE, raising=False)
    monkeypatch.setattr(on_devices, "find_cuda_card", {0: CudaCard("NVIDIA H200", "sm_90", "0000:41:00.0")}.get)


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
    assert [point.values["level"] for point in moved if point.engine == "tvm"] == [0, 3]
    named = name_values(experiment.axes, moved[0])
    assert named["columns"]["runtime_config"] == {"threads": 1, "device": "cuda:1"}
    assert json.loads(moved[0].target) == {"kind": "cuda", "host": {"kind": "llvm", "mcpu": "x86-64-v3"}}
    groups = group_points(experiment, points, config)
    assert all(len({point.device for point in group.points}) == 1 for group in groups)
    assert experiment.clock(moved[0], config) == "wall"
    assert experiment.clock(points[0], config) == "cpu"


def test_rivals_that_are_made_for_a_kind_of_device_run_there_and_are_not_installed_without_it(tmp_path: Path) -> None:
    experiment, config, points = listed(tmp_path, "cpu", "opencl", "cuda:1")
    rivals = [(point.engine, point.device) for point in points if point.engine != "tvm"]
    assert rivals == [("theirs", "cpu")] * 2 + [("theirs cuda", "cuda:1")] * 2
    assert points[-1].target == "cuda"
    assert [engine.name for engine in list_engines(experiment, config)] == ["tvm", "theirs", "theirs cuda"]
    for asked in ((), ("opencl",)):
        experiment, config, points = listed(tmp_path, *asked)
        assert "theirs cuda" not in {engine.name for engine in list_engines(experiment, config)}
        assert "theirs cuda" not in {point.engine for point in points}


def test_a_card_is_compiled_for_as_what_it_is_unless_the_home_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [json.loads(point.target)["arch"] for point in tvms(tmp_path)] == ["sm_90", "sm_90"]
    monkeypatch.setenv(devices.VARIABLE, json.dumps({"cuda": {"target": {"arch": "sm_80"}}}))
    assert {json.loads(point.target)["arch"] for point in tvms(tmp_path)} == {"sm_80"}


def test_without_the_processor_there_are_only_the_devices_points(tmp_path: Path) -> None:
    assert {(point.engine, point.device) for point in listed(tmp_path, "opencl")[2]} == {("tvm", "opencl")}
