"""The runtime of a device beside a wheel: built from a small repository with TVM's shape, by the real compiler."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import Artifact, ArtifactSpec, python_tag, read_artifact, write_manifest
from dashboard.artifacts.runtimes import recipes
from dashboard.artifacts.runtimes.runtimes import RuntimeRequest, find_lacking, provide_runtimes
from dashboard.artifacts.runtimes.survey import survey
from dashboard.plan.artifact_names import ArtifactFinder
from dashboard.plan.home_config import read_home_config
from tests.cards.stand_in import Driver, make_driver
from tests.dashboard import homes
from tests.dashboard.package_index import HEALTHY, write_wheel
from tests.dashboard.standin import git

RECIPE = recipes.Recipe(("src/one.cc", "src/two.cc"), ("include", "src"), ("LEVEL=2",), (), "stdio.h", ("g++",))
SOURCES = {
    "src/one.cc": '#include <shared.h>\nextern "C" int one() { return LEVEL + shared(); }\n',
    "src/two.cc": '#include <shared.h>\nextern "C" int two() { return 2; }\n',
    "include/shared.h": "inline int shared() { return 1; }\n",
    "docs/large.txt": "not needed\n",
}
FACTS = {"python": python_tag(), "machine": platform.machine(), "tvm_ffi": "0.1.0"}
TVM = """
import os, pathlib
def get_global_func(name, allow_missing):
    folders = map(pathlib.Path, os.environ["LD_LIBRARY_PATH"].split(":"))
    there = any((folder / "libtvm_runtime_opencl.so").exists() for folder in folders)
    loaded = name == "device_api.opencl" and there and LOADS
    return print if loaded or name.startswith("target.build") else None
class device:
    exist = False
    def __init__(self, kind, index): pass
LOADS = True
"""


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote"
    for name, text in SOURCES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "--quiet")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "release")
    git(folder, "tag", "v0.9.0")
    return folder


@pytest.fixture
def wheel(tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """A wheel of that release whose libraries are empty."""
    for module in ("runtimes", "survey"):
        monkeypatch.setattr(f"dashboard.artifacts.runtimes.{module}.RECIPES", {"opencl": RECIPE})
    path = tmp_path / "artifacts" / "wheel-0.9.0"
    site = path / "site"
    (site / "tvm_ffi" / "include").mkdir(parents=True)
    (site / "tvm.py").write_text(TVM)
    for name in ("libtvm_runtime.so", "libtvm_ffi.so"):
        subprocess.run(["c++", "-shared", "-x", "c", "/dev/null", "-o", str(site / name)], check=True)
    sizes = {f"site/{name}": (site / name).stat().st_size for name in ("libtvm_runtime.so", "libtvm_ffi.so")}
    commit = git(remote, "rev-parse", "v0.9.0")[:9]
    artifact = Artifact(path.name, "wheel", "0.9.0", commit, path, (site,), (site,), FACTS, {}, sizes)
    write_manifest(artifact)
    return artifact


@pytest.fixture
def build(tmp_path: Path, remote: Path) -> Callable[[Artifact], list[str]]:
    request = RuntimeRequest(("opencl",), str(remote), tmp_path / "logs")
    return lambda artifact: list(provide_runtimes(artifact, request))


def test_a_wheel_gets_the_runtime_that_it_lacks_and_keeps_where_it_came_from(
    wheel: Artifact, build: Callable[[Artifact], list[str]]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in wheel.path.rglob("*") if path.is_file()}
    assert find_lacking(wheel, ("opencl", "rocm")) == ["opencl"]
    assert build(wheel) == []
    (folder,) = read_artifact(wheel.path).runtimes
    assert folder in wheel.loader_path
    assert folder not in wheel.library_path
    assert (folder / "libtvm_runtime_opencl.so").is_file()
    kept = json.loads((folder / "runtime.json").read_text())
    assert kept["commit"].startswith(wheel.commit)
    assert set(kept["source_sha256"]) == set(RECIPE.files)
    assert set(kept["seconds"]) == {"fetch", "compile", "health"}
    assert all(path.stat().st_mtime_ns == moment for path, moment in before.items())


def test_what_is_there_is_not_built_again(
    wheel: Artifact, build: Callable[[Artifact], list[str]], remote: Path
) -> None:
    assert build(wheel) == []
    git(remote, "tag", "-d", "v0.9.0")
    assert find_lacking(wheel, ("opencl",)) == []
    assert build(wheel) == []


def test_a_build_from_source_has_its_own(wheel: Artifact) -> None:
    assert find_lacking(replace(wheel, provider="git"), ("opencl",)) == []


def test_the_source_of_another_commit_is_refused(
    wheel: Artifact, build: Callable[[Artifact], list[str]], remote: Path
) -> None:
    git(remote, "commit", "--quiet", "--allow-empty", "-m", "moved")
    git(remote, "tag", "-f", "v0.9.0")
    (said,) = build(wheel)
    assert "cannot use opencl" in said
    assert f"the wheel was built from {wheel.commit}" in said
    assert wheel.runtimes == ()


def test_without_the_source_the_sentence_names_remote_and_tag(
    wheel: Artifact, build: Callable[[Artifact], list[str]], remote: Path
) -> None:
    git(remote, "tag", "-d", "v0.9.0")
    (said,) = build(wheel)
    assert "refs/tags/v0.9.0" in said


def test_what_does_not_compile_says_the_compilers_first_error_and_what_it_needs(
    wheel: Artifact, build: Callable[[Artifact], list[str]], remote: Path
) -> None:
    (remote / "include" / "shared.h").write_text("#include <CL/not_there.h>\n")
    git(remote, "commit", "--quiet", "-am", "needs more")
    git(remote, "tag", "-f", "v0.9.0")
    fresh = replace(wheel, commit=git(remote, "rev-parse", "HEAD"))
    (said,) = build(fresh)
    assert "CL/not_there.h" in said
    assert RECIPE.install in said
    assert wheel.runtimes == ()


def test_a_library_that_tvm_does_not_load_is_not_kept(wheel: Artifact, build: Callable[[Artifact], list[str]]) -> None:
    (wheel.pythonpath[0] / "tvm.py").write_text(TVM.replace("LOADS = True", "LOADS = False"))
    (said,) = build(wheel)
    assert "could not load libtvm_runtime_opencl.so" in said
    assert wheel.runtimes == ()


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.artifacts.runtimes.survey.list_driver_devices", lambda _: ["GPU (1.2)"])


def test_a_survey_without_a_driver_names_the_command_that_installs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    found = survey("opencl", 0, None, "/tvm")
    assert found.is_fault
    assert "apt install pocl-opencl-icd" in found.text
    assert survey("metal", 0, None, "/tvm").text == "no driver is installed (available on macOS only)."


def test_a_survey_says_what_the_driver_shows_and_what_the_next_night_does(
    wheel: Artifact, remote: Path, shown: None
) -> None:
    assert survey("opencl", 0, None, "/tvm").text.startswith("the driver reports GPU (1.2); the first night tests")
    assert survey("opencl", 1, None, "/tvm").text == "the driver reports only 1: GPU (1.2); numbering starts at 0."
    found = survey("opencl", 0, wheel, str(remote))
    assert not found.is_fault
    assert found.text == f"the driver reports GPU (1.2); the next night builds its runtime for TVM 0.9.0 from {remote}."
    git(remote, "tag", "-d", "v0.9.0")
    found = survey("opencl", 0, wheel, str(remote))
    assert found.is_fault
    assert f"its source cannot be reached: {remote}: could not fetch refs/tags/v0.9.0" in found.text


def test_a_survey_asks_the_tvm_that_has_a_runtime(
    wheel: Artifact, build: Callable[[Artifact], list[str]], shown: None
) -> None:
    assert build(wheel) == []
    found = survey("opencl", 0, wheel, "/tvm")
    assert found.is_fault
    assert found.text == "the driver reports GPU (1.2); TVM 0.9.0 does not detect it."
    (wheel.pythonpath[0] / "tvm.py").write_text(TVM.replace("LOADS = True", "LOADS = False"))
    assert f"does not load; delete {wheel.path / 'devices' / 'opencl'}" in survey("opencl", 0, wheel, "/tvm").text
    assert "the next night installs nvidia-cuda-runtime==13.0.96 " in survey("cuda", 0, wheel, "/tvm").text
    assert survey("rocm", 0, wheel, "/tvm").text.endswith(" with USE_ROCM on.")


def test_a_tvm_that_is_investigated_gets_the_runtimes_of_the_homes_devices(
    wheel: Artifact, remote: Path, tmp_path: Path
) -> None:
    home = homes.make_home(tmp_path / "its", wheel.path.parent, devices={"opencl": {}}, tvm_source=str(remote))
    config, spec = read_home_config(home.home), ArtifactSpec("pypi", "0.9.0")
    with ArtifactFinder(config, tmp_path / "logs", rebuild=False).provide(spec) as provided:
        assert (provided.note, provided.artifact.runtimes) == ("", ())
    with ArtifactFinder(config, tmp_path / "logs").provide(spec) as provided:
        assert [folder.name for folder in provided.artifact.runtimes] == ["opencl"]
        assert provided.note == ""


CUDA_TVM = """
import ctypes, os, pathlib
ctypes.CDLL("libcuda.so.1")
root = pathlib.Path(os.environ["CUDA_PATH"])
ctypes.CDLL(str(root / "lib" / "libcudart.so.13"))
import cuda.bindings.nvrtc
(headers,) = root.glob("targets/*-linux/include")
assert (headers / "cccl" / "cuda" / "std" / "cstdint").is_file()
assert str(root / "lib") in os.environ["LD_LIBRARY_PATH"].split(":")
def get_global_func(name, allow_missing): return print if name.endswith("cuda") else None
class device:
    exist = False
    def __init__(self, kind, index): pass
"""
PINS = {"nvidia-cuda-runtime": "13.0.1", "cuda-bindings": "13.0.2"}


@pytest.fixture
def cuda_wheel(wheel: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """A wheel that asks for CUDA as TVM's does; the index has small packages with the layout of NVIDIA's."""
    make_driver(tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    for module in ("recipes", "runtimes"):
        monkeypatch.setattr(f"dashboard.artifacts.runtimes.{module}.PACKAGES", {"cuda": PINS})
    index, library = tmp_path / "index", (wheel.pythonpath[0] / "libtvm_runtime.so").read_bytes()
    index.mkdir()
    files = {f"nvidia/cu13/{name}": "" for name in ("include/cccl/cuda/std/cstdint", "include/cuda_runtime.h")}
    write_wheel(index, "nvidia_cuda_runtime", "13.0.1", {**files, "nvidia/cu13/lib/libcudart.so.13": library})
    write_wheel(index, "cuda_bindings", "13.0.2", {"cuda/bindings/nvrtc.py": ""})
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(name, value)
    (wheel.pythonpath[0] / "tvm.py").write_text(CUDA_TVM)
    return replace(wheel, library_path=(*wheel.library_path, tmp_path))


def test_a_wheel_gets_cuda_from_the_package_index(cuda_wheel: Artifact, build: Callable[[Artifact], list[str]]) -> None:
    assert find_lacking(cuda_wheel, ["cuda"]) == ["cuda"]
    assert "the next night installs nvidia-cuda-runtime==13.0.1 " in survey("cuda", 0, cuda_wheel, "").text
    said = list(provide_runtimes(cuda_wheel, RuntimeRequest(("cuda",), "", cuda_wheel.path / "logs")))
    assert said == []
    (folder,) = cuda_wheel.runtimes
    kept = json.loads((folder / "runtime.json").read_text())
    assert (kept["packages"], set(kept["seconds"])) == (PINS, {"install", "health"})
    assert find_lacking(cuda_wheel, ["cuda"]) == []
    assert folder in cuda_wheel.import_path
    found = survey("cuda", 0, cuda_wheel, "")
    assert found.text == "the driver reports NVIDIA H200 that is not there; TVM 0.9.0 does not detect it."


def test_without_a_card_no_packages_are_installed_and_the_driver_is_named(
    cuda_wheel: Artifact, build: Callable[[Artifact], list[str]], tmp_path: Path
) -> None:
    Driver(tmp_path).set(count=0)
    (said,) = provide_runtimes(cuda_wheel, RuntimeRequest(("cuda",), "", cuda_wheel.path / "logs"))
    assert (
        "cannot use cuda because its runtime could not be obtained: no driver reports a device (NVIDIA's driver;"
        in said
    )
    assert survey("cuda", 0, cuda_wheel, "").text.startswith("the driver reports no device (NVIDIA's driver;")
    assert cuda_wheel.runtimes == ()


NIGHTLY = """
def get_global_func(name, allow_missing):
    import ctypes, os, pathlib
    if name.endswith("cuda") and "CUDA_PATH" in os.environ:
        ctypes.CDLL(str(pathlib.Path(os.environ["CUDA_PATH"]) / "lib" / "libcudart.so.13"))
        return print
class device:
    exist = False
    def __init__(self, kind, index): pass
"""


def test_a_nightly_wheel_for_cuda_gets_what_it_needs_where_the_home_has_the_device(
    cuda_wheel: Artifact, tmp_path: Path
) -> None:
    page = tmp_path / "page"
    page.mkdir()
    files = {"tvm/__init__.py": HEALTHY + NIGHTLY, "tvm/_version.py": "__commit_id__ = None\n", "tvm/libtvm.so": "x"}
    needs = ("apache-tvm-ffi>=0.1.13", "nvidia-cuda-runtime==13.0.1")
    write_wheel(page, "mlc_ai_nightly_cu130", "0.26.dev201", files, needs)
    write_wheel(tmp_path / "index", "apache_tvm_ffi", "0.1.14", {"tvm_ffi/__init__.py": '__version__ = "0.1.14"\n'})
    home = homes.make_home(tmp_path / "its", Path("../shelf"), tvm_remote=f"wheel:mlc-ai-nightly-cu130,{page}")
    for devices, kinds in (({}, []), ({"cuda": {}}, ["cuda"])):
        home.configure(devices=devices)
        config = read_home_config(home.home)
        with ArtifactFinder(config, tmp_path / "logs").provide(config.tvm) as provided:
            assert [folder.name for folder in provided.artifact.runtimes] == kinds
            assert (provided.artifact.version, provided.note) == ("0.26.dev201", "")
