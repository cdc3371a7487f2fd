"""CUDA: a whole night on a card, with the rivals on it, where one is here; without one, all that comes before the card.

The night writes its figures to .test-cache/on_cuda.md. It takes 8 GB of disk and, of the index, 4 GB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts.artifact import Artifact
from dashboard.artifacts.runtimes.runtimes import RuntimeRequest, provide_runtimes
from dashboard.artifacts.runtimes.survey import survey
from tests.cards.stand_in import make_driver
from tvmdash import records
from tvmdash.dashboard_info import Home
from tvmdash.machine import telemetry
from tvmdash.machine.cuda import CudaCard, find_cuda_card
from tvmdash.records import Record

pytestmark = pytest.mark.slow
REPO = Path(__file__).resolve().parents[2]
FIGURES = REPO / ".test-cache" / "on_cuda.md"
NIGHT_S = 3 * 3600
EXPERIMENTS: Mapping[str, Mapping[str, Any]] = {
    "cnn_comp": {"engines": ["tvm untuned", "onnxruntime", "torch eager", "torch compile"], "max_minutes": 20},
    "operators": {"max_minutes": 15},
    "transformer": {"max_minutes": 15},
}
FOLDERS = {"tmp_data_dir": "tmp", "backup_dir": "backup", "setup_dir": "setup"}
HEAD = "| point | engine | ms | kernels, ms | copies, ms | mJ a call | largest error |"
COMPILE = """
import json, sys
from tvmdash.networks import make_weights, mlp
from tvmdash.relax_util import CompileOptions, compile_module
from tvmdash.relax_util.lowering import lower
target = {"kind": "cuda", "arch": "sm_90", "host": {"kind": "llvm"}}
compiled = compile_module(lower(mlp(), make_weights(mlp(), 0)), CompileOptions(target))
import tvm
from tvmdash.relax_util.on_device import code_of_device
print(json.dumps([len(code_of_device(compiled.executable.mod)[0]), tvm.cuda(0).exist]))
"""


def dashboard(*words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{REPO}:{REPO / 'shared' / 'python'}"}
    argv = [sys.executable, "-m", "dashboard", *words]
    done = subprocess.run(argv, cwd=REPO, env=environment, capture_output=True, text=True, timeout=NIGHT_S, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def card() -> CudaCard:
    found = find_cuda_card(0)
    if found is None:
        pytest.skip("no card of CUDA is here: NVIDIA's driver shows none, or there is no driver")
    return found


@pytest.fixture(scope="module")
def night(card: CudaCard, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """As a user has it: the device added by the command, one night, another one."""
    home = Home(tmp_path_factory.mktemp("cuda") / "home")
    home.config_file.parent.mkdir(parents=True)
    home.config_file.write_text(json.dumps(FOLDERS))
    for name, config in EXPERIMENTS.items():
        path = home.config("experiment", name) / "config.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"active": True, **config}))
    for name in ("telemetry", "stat_alerts", "website"):
        path = home.config("subsystem", name) / "config.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"active": True}))
    assert f"the driver reports {card.model}" in dashboard("devices", str(home.root), "--add", "cuda")
    dashboard("run", str(home.root))
    assert "computes correctly on it" in dashboard("devices", str(home.root))
    return home


def measured(home: Home) -> Iterator[tuple[str, records.NightData]]:
    for name in EXPERIMENTS:
        yield name, records.read_data(home.data_file(name, home.night_stamps()[-1]), name)


def test_each_engine_answers_rightly_on_the_card(night: Home, card: CudaCard) -> None:
    engines: dict[str, set[str]] = {}
    for name, data in measured(night):
        assert not [failure for failure in data.failures if failure.values.get("device") == "cuda"]
        on_card = [record for record in data.records if record.runtime_config.get("device") == "cuda"]
        engines[name] = {record.engine for record in on_card}
        for record in on_card:
            info = record.additional_info
            assert info["max_error"] <= info["tolerance"]
            assert info["device"]["model"] == record.hw_model == card.model
            assert info["device"]["driver"]
            assert ("energy" in info) != ("energy_unknown" in info)
            assert record.engine != "tvm" or json.loads(record.target)["arch"] == card.arch
    write_figures(night, card)
    assert engines == {
        "cnn_comp": {"tvm", "onnxruntime cuda", "torch cuda"},
        "operators": {"tvm", "onnxruntime cuda"},
        "transformer": {"tvm", "torch cuda"},
    }


def test_the_card_is_in_the_telemetry(night: Home) -> None:
    for name in EXPERIMENTS:
        read = telemetry.read(telemetry.file(night.root, name, night.night_stamps()[-1]))
        assert max(value or 0.0 for value in read.column("gpu_percent.0")) > 0
        assert any(value for value in read.column("gpu_power_w.0"))


def write_figures(home: Home, card: CudaCard) -> None:
    rows = [f"# {card.model} ({card.arch}), night {home.night_stamps()[-1]}", "", f"Page: {home.root}", ""]
    rows += [HEAD, "|---|---|---|---|---|---|---|"]
    for _, data in measured(home):
        rows += [row_of(record) for record in data.records if record.runtime_config.get("device") == "cuda"]
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.write_text("\n".join(rows) + "\n")


def row_of(record: Record) -> str:
    info = record.additional_info
    point = " ".join(map(str, [record.workload, *record.workload_args.values(), *record.build_config.values()]))
    names = ("execution_elapsed_ms_median", "device_time", "transfer_time", "energy", "max_error")
    cells = ["" if info.get(name) is None else f"{info[name]:.4g}" for name in names]
    return f"| {' | '.join([point, record.engine, *cells])} |"


def test_all_that_comes_before_the_card_runs_without_one(tvm_artifact: Artifact, tmp_path: Path) -> None:
    """NVIDIA's real packages and TVM's real runtime, on a driver that names a card and drives nothing."""
    folder = tmp_path / "driver"
    folder.mkdir()
    driver = make_driver(folder)
    copy = tmp_path / tvm_artifact.key
    copy.mkdir()
    for item in tvm_artifact.path.iterdir():
        if item.name != "devices":
            (copy / item.name).symlink_to(item)
    artifact = replace(tvm_artifact, path=copy, library_path=(*tvm_artifact.library_path, folder))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LD_LIBRARY_PATH", str(folder))
        assert list(provide_runtimes(artifact, RuntimeRequest(("cuda",), "", tmp_path / "logs"))) == []
        assert survey("cuda", 0, artifact, "").text.endswith("does not detect it.")
    environment = {
        **driver.environment,
        **artifact.variables,
        "PYTHONPATH": os.pathsep.join(map(str, (REPO / "shared" / "python", *artifact.import_path))),
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, artifact.loader_path)),
    }
    argv = [sys.executable, "-c", COMPILE]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    size, exists = json.loads(done.stdout.splitlines()[-1])
    assert size > 10_000
    assert exists is False
