"""A module on a device: the code that drives OpenCL and others, on the processor as TVM has it among its devices."""

from __future__ import annotations

import numpy as np
import pytest

from tvmdash import relax_util
from tvmdash.errors import DashboardError
from tvmdash.machine import devices
from tvmdash.machine.devices import Device
from tvmdash.networks import make_input, make_weights, mlp, reference
from tvmdash.networks.accuracy import check_answer
from tvmdash.relax_util import CompileOptions, Loaded, on_device
from tvmdash.relax_util.lowering import lower

pytestmark = pytest.mark.usefixtures("tvm_artifact")
NAME = "opencl"


@pytest.fixture(scope="module")
def network():
    net = mlp()
    weights, x = make_weights(net, 0), make_input(net, 0)
    compiled = relax_util.compile_module(lower(net, weights), CompileOptions())
    return compiled, x, reference(net, weights, x)


@pytest.fixture
def stand_in(monkeypatch):
    """The processor under the name of another device."""
    monkeypatch.setattr(on_device, "find_device", lambda name: Device(name, "cpu"))
    on_device.open_device.cache_clear()
    yield NAME
    on_device.open_device.cache_clear()


def test_a_module_answers_and_is_timed_on_a_device_whose_clock_and_transfers_stand_apart(network, stand_in):
    compiled, x, expected = network
    loaded = Loaded(compiled, stand_in)
    check_answer(loaded.run(x), expected)
    assert loaded.called_from == "Python"
    elapsed = loaded.timer(x)(3, 2)
    assert [nanoseconds > 0 for nanoseconds in elapsed] == [True, True]
    facts = loaded.device_facts(x)
    assert facts["device"]["name"] == NAME
    assert facts["transfer_time"] > 0
    assert 0 < facts["device_time"] < 1000
    assert {span.repetition for span in loaded.profile(x, 2)} == {0, 1}


def test_on_the_processor_there_is_nothing_to_say_of_a_device(network):
    compiled, x, _ = network
    loaded = Loaded(compiled)
    assert (loaded.device_facts(x), loaded.called_from) == ({}, "C++")


def test_a_device_that_tvm_does_not_drive_is_named_with_what_to_do(network, monkeypatch):
    monkeypatch.delenv(devices.VARIABLE, raising=False)
    on_device.open_device.cache_clear()
    with pytest.raises(DashboardError, match=r"^device metal: this TVM has no runtime for metal.*dashboard check HOME"):
        Loaded(network[0], "metal")


@pytest.mark.parametrize("name", ["lost", "out of memory"])
def test_what_a_driver_says_in_the_middle_of_a_measurement_is_told_of_the_device(network, stand_in, name):
    def fail(*_):
        raise RuntimeError(f"CL_{name}")

    loaded = Loaded(network[0], stand_in)
    loaded.machine = {"main": fail}
    with pytest.raises(DashboardError, match=f"device {NAME}: RuntimeError: CL_{name}"):
        loaded.run(network[1])
    with pytest.raises(DashboardError, match=f"device {NAME}: RuntimeError: CL_{name}"):
        loaded.timer(np.zeros((1, 784), np.float32))(1, 1)
