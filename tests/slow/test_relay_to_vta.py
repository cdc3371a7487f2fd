"""relay_to_vta on the last TVM that has Relay and VTA, built from source: two hours, where it is not built yet.

CONTRIBUTING.md says what it needs and how it is called.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import real_tvm

from dashboard.artifacts import artifact_store
from dashboard.artifacts.git import git_provider
from tests.dashboard import homes
from tests.dashboard.homes import HomeForTests
from tvmdash import records

REMOTE = os.environ.get(real_tvm.MIRROR, "")
OPTIONS = "TVMDASH_SLOW_VTA_OPTIONS"
MEASURING_S = 1800.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not REMOTE,
        reason=f"{real_tvm.MIRROR} is not set: give a clone of apache/tvm, two hours (CONTRIBUTING.md)",
    ),
]


def measured(home: HomeForTests, **config: Any) -> tuple[int, records.NightData]:
    """The exit code of a night of relay_to_vta alone, and what it measured."""
    built = json.loads(os.environ.get(OPTIONS, "{}")) or {"USE_LLVM": real_tvm.newest_llvm(), "USE_VTA_FSIM": "ON"}
    tvm = {"tvm_remote": REMOTE, "tvm_branch": "refs/tags/v0.18.0", "tvm_options": built}
    config = {"active": True, "size": "smoke", **tvm, **config}
    homes.write(home.home.config("experiment", "relay_to_vta") / "config.json", config)
    environment = {**homes.environment(), "HOME": os.environ.get("HOME", "/tmp")}  # git's own settings are the caller's
    argv = [sys.executable, "-m", "dashboard", "run", str(home.path)]
    timeout_s = git_provider.TIMEOUT_S + MEASURING_S
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)
    data = home.home.data("relay_to_vta")
    stamps = sorted(records.data_stamps(data))
    assert stamps, done.stdout + done.stderr
    return done.returncode, records.read_data(data / f"data_{stamps[-1]}.json", "relay_to_vta")


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get(real_tvm.ARTIFACTS)
    return Path(given).absolute() if given else tmp_path_factory.mktemp("artifacts")


@pytest.fixture
def home(tmp_path: Path, artifacts: Path) -> HomeForTests:
    return homes.make_home(tmp_path / "lab", artifacts)


def test_a_night_measures_resnets_layers_on_the_simulator(home: HomeForTests) -> None:
    code, night = measured(home, layers=[9, 11])
    assert (code, night.failures) == (0, ())
    by_layer = {record.workload: record.additional_info for record in night.records}
    assert by_layer.keys() == {"layer.resnet18_c9", "layer.resnet18_c11"}
    for info in by_layer.values():
        assert info["max_error"] == 0.0
        assert info["execution_elapsed_ms_median"] > 0
        counts = info["simulator"]
        assert counts["gemm_counter"] == info["macs"] / 256, "the matrix unit does 16 x 16 at once"
        assert info["memory_traffic"] == sum(count for name, count in counts.items() if name.endswith("_nbytes"))


@contextlib.contextmanager
def a_board(home: HomeForTests, artifacts: Path, log: Path) -> Iterator[int]:
    """The port of a tracker that has a `pynq`; it needs what an earlier night of the home has set up."""
    (artifact,) = [one for one in artifact_store.artifacts_in(artifacts) if one.version.startswith("0.18.0")]
    (engine,) = (home.root / "setup" / ".engines").glob("tvm-*")
    path = os.pathsep.join(map(str, (engine, *artifact.pythonpath)))
    libraries = os.pathsep.join(map(str, artifact.library_path))
    with log.open("w") as said:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("vta_board.py"))],
            env={**os.environ, "PYTHONPATH": path, "LD_LIBRARY_PATH": libraries},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def test_a_board_is_told_its_geometry_programmed_and_measured_through_the_tracker(
    home: HomeForTests, artifacts: Path, tmp_path: Path
) -> None:
    measured(home)
    bitstream = tmp_path / "pynq.bit"
    bitstream.write_bytes(b"\0")
    with a_board(home, artifacts, tmp_path / "board.log") as port:
        at = {"tracker_host": "127.0.0.1", "tracker_port": port, "wait_seconds": 30.0}
        own = {"host_targets": {"pynq": "llvm"}, "bitstreams": {"pynq": str(bitstream)}}
        code, night = measured(home, targets=["sim", "pynq", "ultra96"], **at, **own)
    (failure,) = night.failures
    assert code == 1
    assert "has no device 'ultra96'; it has: pynq" in failure.error
    here, there = (
        next(record.additional_info for record in night.records if record.labels["runtime_config"] == {"device": name})
        for name in ("sim", "pynq")
    )
    assert there["max_error"] == 0.0
    assert there["simulator"] == here["simulator"], "the stand-in is the same hardware"
    asked = (tmp_path / "board.log").read_text()
    assert '"TARGET": "pynq"' in asked
    assert "programmed pynq.bit" in asked
