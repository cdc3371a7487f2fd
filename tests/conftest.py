"""What all tests share: the real TVM that `tests/run.sh` fetched."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import artifact_for_tests
from time_limit import pytest_runtest_call, pytest_runtest_protocol, pytest_runtest_setup, pytest_runtest_teardown

from dashboard.artifacts.artifact import Artifact

__all__ = ["pytest_runtest_call", "pytest_runtest_protocol", "pytest_runtest_setup", "pytest_runtest_teardown"]
"""Every test has a time-out."""
pytest_plugins = ["costs", "golden_files"]
os.environ.pop("PYTHONSAFEPATH", None)  # run.sh sets it for pytest itself; a night's stages do not have it
os.environ["SLURMD_NODENAME"] = f"tests-{os.getpid()}"  # the nights of other workers are as if on other machines
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # so starts what stands before & in a script; programs inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["TVM_BIND_THREADS"] = "0"  # else TVM's first use keeps this process, and all it starts later, on one core
os.environ.setdefault("TVMDASH_ARTIFACTS", str(artifact_for_tests.shelf_folder()))  # for what `smoke` tries
_CORES = os.sched_getaffinity(0)
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")
_ARTIFACT = artifact_for_tests.find()
if _ARTIFACT:
    sys.path[:0] = [str(folder) for folder in _ARTIFACT.pythonpath]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """All that collection makes stays: to look through it for garbage takes a third of its time, and some of later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    for path in Path("/run/lock").glob(f"tvm-dashboard.tests-{os.getpid()}[!0-9]*"):  # not those of process 1234 by 123
        path.unlink()


@pytest.fixture(scope="module", autouse=True)
def _cores_are_left_alone() -> Iterator[None]:
    """What runs after a module must have all cores again, or the suite takes twice as long and nobody knows why."""
    yield
    assert os.sched_getaffinity(0) == _CORES


@pytest.fixture(scope="session")
def tvm_artifact() -> Artifact:
    """The TVM that tests in this process import."""
    if not _ARTIFACT:
        pytest.fail(f"{artifact_for_tests.shelf_folder()} holds no TVM. Run tests/run.sh once; it fetches one.")
    return _ARTIFACT


@pytest.fixture(scope="session")
def tvm_artifact_folder(tvm_artifact: Artifact) -> Path:
    """The folder of artifacts, as a home's config names it, that a night may take `tvm_artifact` from."""
    return tvm_artifact.path.parent


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder that is not in /dev/shm, where run.sh has tests write: a sandbox has a /dev/shm of its own."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder).resolve()
