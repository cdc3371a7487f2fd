"""The runtime of a device beside a wheel: built from a small repository with TVM's shape, by the real compiler."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import Artifact, read_artifact, write_manifest
from dashboard.artifacts.runtimes import recipes
from dashboard.artifacts.runtimes.runtimes import RuntimeRequest, find_lacking, provide_runtimes
from tests.dashboard.standin import git

RECIPE = recipes.Recipe(("src/one.cc", "src/two.cc"), ("include", "src"), ("LEVEL=2",), (), ("g++",))
SOURCES = {
    "src/one.cc": '#include <shared.h>\nextern "C" int one() { return LEVEL + shared(); }\n',
    "src/two.cc": '#include <shared.h>\nextern "C" int two() { return 2; }\n',
    "include/shared.h": "inline int shared() { return 1; }\n",
    "docs/large.txt": "not needed\n",
}
TVM = """
import os, pathlib
def get_global_func(name, allow_missing):
    folders = map(pathlib.Path, os.environ["LD_LIBRARY_PATH"].split(":"))
    there = any((folder / "libtvm_runtime_opencl.so").exists() for folder in folders)
    return print if there and LOADS or name.startswith("target.build") else None
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
    for module in ("making", "runtimes"):
        monkeypatch.setattr(f"dashboard.artifacts.runtimes.{module}.RECIPES", {"opencl": RECIPE})
    path = tmp_path / "artifacts" / "wheel-0.9.0"
    site = path / "site"
    (site / "tvm_ffi" / "include").mkdir(parents=True)
    (site / "tvm.py").write_text(TVM)
    for name in ("libtvm_runtime.so", "libtvm_ffi.so"):
        subprocess.run(["c++", "-shared", "-x", "c", "/dev/null", "-o", str(site / name)], check=True)
    sizes = {f"site/{name}": (site / name).stat().st_size for name in ("libtvm_runtime.so", "libtvm_ffi.so")}
    commit = git(remote, "rev-parse", "v0.9.0")[:9]
    artifact = Artifact(path.name, "wheel", "0.9.0", commit, path, (site,), (site,), {}, {}, sizes)
    write_manifest(artifact)
    return artifact


@pytest.fixture
def build(tmp_path: Path, remote: Path) -> Callable[[Artifact], list[str]]:
    request = RuntimeRequest(("opencl", "cuda"), str(remote), tmp_path / "logs")
    return lambda artifact: list(provide_runtimes(artifact, request))


def test_a_wheel_gets_the_runtime_that_it_lacks_and_keeps_where_it_came_from(
    wheel: Artifact, build: Callable[[Artifact], list[str]]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in wheel.path.rglob("*") if path.is_file()}
    assert find_lacking(wheel, ("opencl", "cuda")) == ["opencl"]
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
    assert "drives no opencl" in said
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
    assert "does not load libtvm_runtime_opencl.so" in said
    assert wheel.runtimes == ()
