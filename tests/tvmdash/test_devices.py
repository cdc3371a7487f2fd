"""The devices of a home: what a config may say of them, and what becomes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tvmdash.config_util import ConfigError
from tvmdash.errors import DashboardError
from tvmdash.machine import devices

LLVM = {"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 1}
PI: dict[str, Any] = {"tracker_host": "pi", "target": {"kind": "llvm", "mcpu": "cortex-a72"}}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"gpu": {}}, "$.devices.gpu: not a device. Use opencl, cuda, rocm, metal, vulkan"),
        ({"cpu": {}}, "$.devices.cpu: not a device."),
        ({"remote:": {}}, "$.devices.remote:: not a device."),
        ({"opencl": {"target": 3}}, "$.devices.opencl.target"),
        ({"opencl": {"tracker_host": "pi"}}, "$.devices.opencl.tracker_host: only remote devices have this field."),
        ({"remote:pi": {}}, "$.devices.remote:pi.tracker_host: required field is missing."),
        ({"remote:pi": {"tracker_host": "pi"}}, "$.devices.remote:pi.target: required field is missing."),
        ({"remote:pi": {**PI, "kind": "llvm"}}, "$.devices.remote:pi.kind"),
    ],
)
def test_what_names_no_device_is_said_with_its_place_and_what_to_write(value: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError) as error:
        devices.read_devices(value, "config.json")
    assert f"config.json: {fault}" in str(error.value)


def test_every_fault_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        devices.read_devices({"gpu": {}, "remote:pi": {}, "opencl": {"index": 1}}, "config.json")
    assert len(error.value.faults) == 4


def test_a_stage_finds_the_devices_that_the_home_names(monkeypatch: pytest.MonkeyPatch) -> None:
    read = devices.read_devices({"cuda:1": {"target": {"arch": "sm_90"}}, "remote:pi": {**PI, "key": "k"}}, "c")
    monkeypatch.setenv(devices.VARIABLE, devices.format_devices(read))
    assert {name: devices.find_device(name) for name in read} == read
    cuda, pi = read.values()
    assert (cuda.kind, cuda.index, cuda.tracker) == ("cuda", 1, None)
    assert (pi.kind, pi.tracker, pi.key) == ("cpu", ("pi", 9190), "k")
    with pytest.raises(DashboardError, match="device opencl: not a device of this home"):
        devices.find_device("opencl")


def test_without_a_home_a_kind_stands_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(devices.VARIABLE, raising=False)
    assert devices.find_device("opencl").kind == "opencl"
    with pytest.raises(DashboardError, match="device remote:pi"):
        devices.find_device("remote:pi")


def test_a_devices_target_has_the_processor_beside_it_and_what_the_config_adds() -> None:
    read = devices.read_devices({"cuda": {"target": {"arch": "sm_90"}}, "opencl": {}, "remote:pi": PI}, "c")
    assert read["opencl"].make_target(LLVM) == {"kind": "opencl", "host": LLVM}
    assert read["cuda"].make_target(LLVM) == {"kind": "cuda", "host": LLVM, "arch": "sm_90"}
    assert read["remote:pi"].make_target(LLVM) == PI["target"]
    assert json.loads(devices.format_devices(read))["opencl"] == {"target": {}}
