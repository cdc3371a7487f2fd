"""Experiments on a real OpenCL device, which PoCL is on a machine without another one.

They need a driver (Debian, Ubuntu: apt install pocl-opencl-icd opencl-headers ocl-icd-opencl-dev) and, as TVM's wheel
has no runtime for OpenCL, the source of its release: TVMDASH_TEST_TVM_SOURCE names a git remote that has its tag.
"""

from __future__ import annotations

import array
import contextlib
import os
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import Artifact
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.runtimes.abilities import find_abilities
from dashboard.artifacts.runtimes.runtimes import RuntimeRequest, find_lacking, provide_runtimes
from tests.experiments import trying
from tvmdash import records
from tvmdash.measure.capture_format import NAME_TYPE

SOURCE = "TVMDASH_TEST_TVM_SOURCE"
BOTH = {"device": ["cpu", "opencl"]}


@dataclass(frozen=True)
class OpenCl:
    """What the loader finds TVM's runtime by, and what the driver calls its first device."""

    loader_path: str
    model: str


@pytest.fixture(scope="module")
def opencl(tvm_artifact: Artifact, tmp_path_factory: pytest.TempPathFactory) -> OpenCl:
    logs = tmp_path_factory.mktemp("logs")
    if find_lacking(tvm_artifact, ["opencl"]):
        if SOURCE not in os.environ:
            pytest.skip(
                f"TVM {tvm_artifact.version} has no OpenCL runtime, and {SOURCE} names no git remote to build it from"
            )
        for said in provide_runtimes(tvm_artifact, RuntimeRequest(("opencl",), os.environ[SOURCE], logs)):
            pytest.skip(said)
    with tempfile.TemporaryDirectory() as scratch:
        context = BuildContext(tvm_artifact.path.parent, logs, LockDeadline(120))
        can = find_abilities(tvm_artifact, "opencl", 0, context, Path(scratch))
    if not can.model:
        pytest.skip("no OpenCL driver shows a device here (Debian, Ubuntu: apt install pocl-opencl-icd)")
    assert can.max_error is not None
    assert can.max_error < 1e-4
    return OpenCl(os.pathsep.join(map(str, tvm_artifact.loader_path)), can.model)


def measured(
    root: Path, experiment: str, opencl: OpenCl, config: dict[str, object], *, set_up: bool = False, **variables: str
) -> records.NightData:
    """What the run and analyze stages leave; processes of its own import TVM with the runtime of the device."""
    tried = trying.Tried(root, experiment, {**BOTH, **config})
    if set_up:
        tried.set_up()
    else:
        (tried.code / "setup").mkdir()
    run = tried.stage("run", "raw", LD_LIBRARY_PATH=opencl.loader_path, **variables)
    return tried.analyzed(run)


def on(data: records.NightData, device: str) -> dict[str, records.Record]:
    found = [record for record in data.records if record.engine == "tvm"]
    return {
        record.labels["workload"]: record for record in found if record.runtime_config.get("device", "cpu") == device
    }


def test_a_network_answers_rightly_on_the_device_and_is_timed_there(opencl: OpenCl, tmp_path: Path) -> None:
    data = measured(tmp_path / "night", "cnn_comp", opencl, {"networks": ["mlp"], "engines": ["tvm untuned"]})
    assert data.failures == ()
    here, there = on(data, "cpu")["network.mlp"], on(data, "opencl")["network.mlp"]
    info = there.additional_info
    assert info["max_error"] <= info["tolerance"]
    assert info["device"]["model"] == there.hw_model == opencl.model != here.hw_model
    assert info["device"]["driver"]
    assert 0 < info["device_time"] < 100
    assert 0 < info["transfer_time"] < 100
    assert there.execution_elapsed_ms_mean > 0
    assert not {"device", "device_time", "transfer_time"} & here.additional_info.keys()
    ids = {value.key.id for value in data.values()}
    assert len(ids) == len(list(data.values()))


def test_a_device_that_is_not_there_costs_its_own_points_and_says_which(opencl: OpenCl, tmp_path: Path) -> None:
    config = {"networks": ["mlp"], "engines": ["tvm untuned"]}
    data = measured(tmp_path / "night", "cnn_comp", opencl, config, OCL_ICD_VENDORS=str(tmp_path))
    assert list(on(data, "cpu")) == ["network.mlp"]
    (failure,) = data.failures
    assert failure.values["device"] == "opencl"
    assert "device opencl: TVM's runtime for opencl detects no device with number 0" in failure.error


def test_a_device_out_of_memory_costs_the_point_that_is_too_large_and_says_which(
    opencl: OpenCl, tmp_path: Path
) -> None:
    """With 1 GB in all, PoCL gives 256 MB at once; the decoder's table of tokens has 287 MB."""
    config = {
        "models": ["attention", "decoder"],
        "phases": ["prefill"],
        "shapes": ["static"],
        "lengths": [8],
        "layers": 1,
        "width": 1024,
        "vocabulary": 70_000,
        "device": ["opencl"],
        "processes": 1,
        "max_processes": 1,
    }
    data = measured(tmp_path / "night", "transformer", opencl, config, POCL_MEMORY_LIMIT="1")
    assert set(on(data, "opencl")) == {"transformer.attention"}
    (failure,) = (failure for failure in data.failures if failure.values.get("engine") != "torch")
    assert (failure.workload, failure.values["device"]) == ("transformer.decoder", "opencl")
    assert "device opencl: " in failure.error
    assert "CL_INVALID_BUFFER_SIZE" in failure.error


@pytest.mark.parametrize(
    ("experiment", "config"),
    [
        ("operators", {"operators": ["dense", "softmax"]}),
        ("rnn_comp", {"kinds": ["gru"], "forms": ["cell"], "engines": ["tvm"]}),
        ("transformer", {"models": ["attention"], "phases": ["prefill"], "shapes": ["static"], "lengths": [8]}),
    ],
)
def test_what_takes_devices_runs_on_it(
    experiment: str, config: dict[str, object], opencl: OpenCl, tmp_path: Path
) -> None:
    data = measured(tmp_path / "night", experiment, opencl, config)
    there = on(data, "opencl")
    assert there.keys() == {name for name in on(data, "cpu") if not name.startswith("machine.")}
    for record in there.values():
        assert record.additional_info["max_error"] <= record.additional_info["tolerance"]
        assert "roofline_percent" not in record.additional_info


def test_a_language_model_answers_rightly_on_the_device_in_both_phases(opencl: OpenCl, tmp_path: Path) -> None:
    config = {"device": ["opencl"], "variants": ["recipe"], "depths": [40], "processes": 1, "max_processes": 1}
    data = measured(tmp_path / "night", "llm", opencl, config, set_up=True)
    assert data.failures == ()
    steps = [(record.workload_args["phase"], record.workload_args["batch"]) for record in data.records]
    assert steps == [("prefill", 1), ("decode", 1), ("decode", 2)]
    for record in data.records:
        info = record.additional_info
        assert info["max_error"] <= info["tolerance"]
        assert info["device"]["model"] == record.hw_model == opencl.model
        assert not {"flops_percent", "bandwidth_percent"} & info.keys(), "those are shares of the processor's limits"


def test_kernels_on_the_device_are_operators_of_its_traces(opencl: OpenCl, tmp_path: Path) -> None:
    config = {"device": ["opencl"], "networks": ["mlp"], "changes": ["-FoldConstant"], "profile_repeats": 2}
    data = measured(tmp_path / "night", "pass_comparison", opencl, config)
    assert {record.build_config["passes"] for record in data.records} == {"unchanged", "-FoldConstant"}
    seen = [names_of_operators(path) for path in (tmp_path / "night" / "raw").rglob("raw_*.db")]
    assert all(any("matmul" in name for name in names) for names in seen)


def names_of_operators(path: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        runs = database.execute("SELECT names FROM runs").fetchall()
        names = dict(database.execute("SELECT id, name FROM names"))
    return {names[number] for (packed,) in runs for number in array.array(NAME_TYPE, packed)}
