"""remote_device: through a real tracker and a real server; what is away fails alone; nothing stays behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.homes import wait_for
from tests.experiments.trying import EXPERIMENTS, Tried, config_of, modules
from tests.tvmdash.networks.test_networks import count_parameters
from tvmdash import config_util, networks, records, relax_util
from tvmdash.errors import DashboardError
from tvmdash.experiment import engine_store
from tvmdash.relax_util import CompileOptions, linking, lowering, rpc

pytestmark = pytest.mark.usefixtures("tvm_artifact")
OWN = modules("remote_device")
MARK = "TVMDASH_TEST_REMOTE"
TARGET = {"kind": "llvm", "mcpu": "x86-64"}
HOST = "127.0.0.1"


def parsed(**devices: dict[str, object]) -> dict[str, object]:
    found: dict[str, object] = OWN.remote_device.devices(devices, {"kind": "llvm"}, "own")
    return found


def a_device(name: str, **more: object) -> object:
    return parsed(**{name: {"tracker_host": HOST, "target": "llvm", **more}})[name]


def living(mark: str) -> list[int]:
    """Processes that were given the mark in their environment and have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            marked = f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if marked:
            found.append(int(folder.name))
    return found


def all_ended(mark: str) -> bool:
    """Whether they end; they were sent SIGKILL already."""
    deadline = time.monotonic() + 120
    while living(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not living(mark)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    found = Tried(tmp_path_factory.mktemp("remote_device"), "remote_device", {"wait_seconds": 30})
    found.set_up()
    return found


@pytest.fixture(scope="module")
def board(tried: Tried) -> Iterator[tuple[str, int]]:
    """A tracker elsewhere, with the device `board`."""
    place = engine_store.find(tried.code / "setup", OWN.remote_device.TVM).path
    path = os.pathsep.join([place, *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "TVM_NUM_THREADS": "1", MARK: "board"}
    with OWN.loopback.loopback("board", environment) as address:
        yield address
    assert all_ended("board")


@pytest.fixture(scope="module")
def data(tried: Tried, board: tuple[str, int]) -> records.NightData:
    with socket.socket() as nobody:
        nobody.bind((HOST, 0))  # bound and not listening: connections are refused
        there = {"tracker_host": HOST, "target": TARGET}
        devices = {
            "sim": {},
            "board": {**there, "tracker_port": board[1]},
            "away": {**there, "tracker_port": nobody.getsockname()[1]},
        }
        config = tried.root / "config" / "config.json"
        config.write_text(json.dumps({"active": True, "size": "smoke", "wait_seconds": 30, "devices": devices}))
        return tried.night(by_script=True, **{MARK: "night"})


def test_networks_and_layers_answer_rightly_on_this_machine_and_on_a_named_device(data: records.NightData) -> None:
    measured = {(record.runtime_config["device"], record.workload): record for record in data.records}
    workloads = ("network.mlp", "layer.resnet18_c5")
    assert set(measured) == {(device, workload) for device in ("sim", "board") for workload in workloads}
    for record in data.records:
        info = record.additional_info
        assert 0 <= info["max_error"] <= info["tolerance"]
        assert info["device_threads"] == 1
        assert min(info["library_bytes"], info["upload_ms"], info["round_trip_ms"]) > 0
    assert '"mcpu": "x86-64"' in measured["board", "network.mlp"].target


def test_a_device_that_is_away_fails_its_own_points_and_says_so(data: records.NightData) -> None:
    assert {failure.values["device"] for failure in data.failures} == {"away"}
    assert len(data.failures) == 2
    for failure in data.failures:
        assert "device away: the tracker 127.0.0.1:" in failure.error
        assert "does not answer: [Errno 111]" in failure.error


def test_nothing_of_the_loopback_outlives_the_run_stage(data: records.NightData) -> None:
    assert data.records
    assert all_ended("night")


def test_the_words_compare_the_devices_and_name_the_one_that_is_away(tried: Tried, data: records.NightData) -> None:
    assert data.failures
    text = tried.told()
    assert "- board against sim: " in text
    assert "away" in text


def test_a_tracker_without_the_device_is_told_with_what_it_has(board: tuple[str, int]) -> None:
    with pytest.raises(DashboardError, match=r"has no device 'pi'; it has: board \(4 s"):
        rpc.session("pi", "pi", board, 4.0)


def test_a_tracker_that_says_nothing_costs_no_more_than_the_wait_and_that_once() -> None:
    with socket.create_server((HOST, 0)) as silent:
        address = silent.getsockname()
        errors = []
        for _ in range(2):
            with pytest.raises(DashboardError, match="does not speak the tracker protocol") as caught:
                rpc.session("mute", "mute", address, 0.5)
            errors.append(caught.value)
    assert errors[0] is errors[1]


STAND_IN = """
import subprocess
class Tracker:
    def __init__(self, host, port, port_end, silent):
        self.port = port
        self.worker = subprocess.Popen(["sleep", "600"])
Server = lambda *arguments, **named: subprocess.Popen(["sleep", "600"])
"""


def test_when_its_starter_is_killed_the_loopback_ends_with_all_its_processes(tmp_path: Path) -> None:
    (tmp_path / "tvm" / "rpc").mkdir(parents=True)
    for name in ("__init__", "rpc/__init__", "rpc/server", "rpc/tracker"):
        (tmp_path / "tvm" / f"{name}.py").write_text(STAND_IN)
    starter = (
        "import os, sys, time, loopback\n"
        "with loopback.loopback('sim', os.environ) as address:\n"
        "    print(address[1], flush=True)\n"
        "    time.sleep(600)\n"
    )
    path = os.pathsep.join([str(tmp_path), str(EXPERIMENTS / "remote_device"), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, MARK: "killed"}
    with subprocess.Popen([sys.executable, "-c", starter], env=environment, stdout=subprocess.PIPE) as process:
        try:
            assert int(process.stdout.readline()) > 0
            wait_for(lambda: len(living("killed")) == 4, "the starter, the guard, the tracker's worker and the server")
        finally:
            process.kill()
    assert all_ended("killed")


def test_a_server_that_ends_at_once_is_told(tmp_path: Path) -> None:
    (tmp_path / "tvm.py").write_text("raise ImportError('no tornado')")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    with pytest.raises(DashboardError, match="ended before it came up"):  # noqa: SIM117
        with OWN.loopback.loopback("sim", {**os.environ, "PYTHONPATH": path}):
            pass


def test_a_loopback_that_did_not_come_up_costs_its_device_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVMDASH_LOOPBACK", '"the loopback server ended"')
    with pytest.raises(DashboardError, match="device sim: the loopback server ended"):
        OWN.remote_device._address(parsed(sim={})["sim"])


def test_a_device_has_defaults_and_this_machine_its_own() -> None:
    found = parsed(sim={}, pi={"tracker_host": "10.0.0.5", "target": {"kind": "llvm", "mcpu": "cortex-a72"}})
    sim, pi = found["sim"], found["pi"]
    assert (sim.is_loopback, sim.key, sim.target) == (True, "own", '{"kind": "llvm"}')
    assert (pi.is_loopback, pi.key, pi.tracker_port, pi.kind) == (False, "pi", 9190, "cpu")


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ({"tracker_hots": "a"}, r"\$\.devices\.pi\.tracker_hots: unknown field"),
        ({"tracker_host": "a", "target": "llvm", "tracker_port": "9190"}, "'9190' is not a valid int"),
        ({"tracker_host": ""}, "'' is not a valid str"),
        ({"tracker_host": "a"}, r"\$\.devices\.pi\.target: required field is missing"),
    ],
)
def test_a_wrong_device_is_named_with_its_field(device: dict[str, object], words: str) -> None:
    with pytest.raises(DashboardError, match=words):
        parsed(pi=device)
    with pytest.raises(DashboardError, match=r"\$\.devices: no device given"):
        parsed()


def test_the_layers_are_resnets_convolutions_each_once() -> None:
    layers = OWN.remote_device.layers()
    assert list(layers) == [f"resnet18_c{number}" for number in range(1, 12)]
    assert layers["resnet18_c1"].input_shape == (3, 224, 224)
    assert sum(map(count_parameters, layers.values())) < count_parameters(networks.resnet18())
    fields = config_util.read_fields(EXPERIMENTS / "remote_device" / "fields.json")
    assert fields["layers"].of.max == len(layers)


def test_a_cross_compiler_that_is_not_there_is_named() -> None:
    with pytest.raises(DashboardError, match=r"\$\.devices\.pi\.cc: no-such-cc --sysroot /x cannot link"):
        linking._links_with("pi", "no-such-cc --sysroot /x")("out.so", ["in.o"])


def test_any_experiment_that_takes_devices_runs_on_one_behind_a_tracker(board: tuple[str, int], tmp_path: Path) -> None:
    there = {"tracker_host": HOST, "tracker_port": board[1], "target": TARGET}
    devices = {"remote:board": there, "remote:other": {**there, "key": "other"}}
    config = {"networks": ["mlp"], "engines": ["tvm untuned"], "device": list(devices)}
    tried = Tried(tmp_path / "night", "cnn_comp", config)
    (tried.code / "setup").mkdir()
    data = tried.measured(TVMDASH_DEVICES=json.dumps(devices), TVMDASH_REMOTE_WAIT_S="1")
    (record,) = data.records
    assert (record.hw_model, record.labels["runtime_config"]) == ("board", {"threads": 1, "device": "remote:board"})
    assert json.loads(record.target) == TARGET
    info = record.additional_info
    assert 0 <= info["max_error"] <= info["tolerance"]
    assert info["transfer_time"] > 0
    assert "device_time" not in info
    (failure,) = data.failures
    assert failure.values["device"] == "remote:other"
    assert "has no device 'other'; it has: board (1 s, TVMDASH_REMOTE_WAIT_S)" in failure.error


EM_AARCH64 = 183


def test_what_a_device_of_another_architecture_is_sent_is_code_for_it(tmp_path: Path) -> None:
    network, weights, _, _ = OWN.remote_device.problem("mlp", 0)
    target = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72"}
    compiled = relax_util.compile_module(lowering.lower(network, weights), CompileOptions(target))
    path = OWN.remote_device._linked(compiled, a_device("pi", target=target), tmp_path / "mlp")
    with tarfile.open(path) as archive:
        heads = [archive.extractfile(member).read(20) for member in archive.getmembers()]
    assert heads
    assert {(head[:4], int.from_bytes(head[18:20], "little")) for head in heads} == {(b"\x7fELF", EM_AARCH64)}


def test_a_wrong_answer_of_a_device_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    script = OWN.remote_device
    config = config_of(script.RemoteDevice, "remote_device", devices={"sim": {}}, networks=["mlp"], layers=[])
    answers = [OWN.remote_device.problem("mlp", 0)[3], OWN.remote_device.problem("mlp", 0)[3] * 1.001]
    sent = OWN.remote_device.Sent(lambda: answers[0], lambda number, repeat: [1] * repeat, 1, 1.0, 1)
    monkeypatch.setenv("TVMDASH_LOOPBACK", '["127.0.0.1", 1]')
    monkeypatch.setattr(script, "session", lambda *_: None)
    monkeypatch.setattr(script, "send", lambda *_: sent)
    experiment = script.RemoteDevice()
    prepared = experiment.prepare(experiment.points(config)[0], config, 0)
    assert prepared.check()["max_error"] == 0
    answers.reverse()
    with pytest.raises(DashboardError, match="wrong answer"):
        prepared.check()
