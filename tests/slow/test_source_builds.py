"""`bisect` and `try` of builds from source: real commits of TVM, and a planted one that slows generated code.

Real: the trees, titles, authors and dates of three commits, how each is fetched, checked out, built and proved, and
what is measured. Planted: TVM's C++ is not compiled, which takes hours. CMake copies the libraries of the release that
the three became, and tvm-ffi is its wheel's: both stand in the tree instead of CMakeLists.txt and the submodules, so
that the commits have other digits here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts import provide
from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from tests.dashboard import homes
from tests.dashboard.homes import HomeForTests
from tests.slow.nightly_page import call
from tests.slow.test_nightly_wheels import SLOW

sys.path.insert(0, str(Path(__file__).parent))
import real_tvm

CLONE = os.environ.get(real_tvm.MIRROR, "")
RELEASE = "0.26.0"
COMMITS = (
    "68ba2b31c2a6d202fcd44e5780ef10ce08721dd5",
    "f3bff33a0e03665522bf28ed20cfb70df1eac89b",
    "c7b458e946bc4266915da582457476bdcd9705ae",
)
"""The last ones before the release, whose Python and C++ fit its libraries."""
CULPRIT = "Optimise nothing that LLVM compiles"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CLONE, reason=f"{real_tvm.MIRROR} is not set: give a clone of apache/tvm (CONTRIBUTING.md)"),
]
_CMAKE = """cmake_minimum_required(VERSION 3.18)
project(tvm NONE)
file(GLOB LIBRARIES "{site}/tvm/lib/*.so")
file(MAKE_DIRECTORY ${{CMAKE_BINARY_DIR}}/lib)
add_custom_target(tvm ALL COMMAND ${{CMAKE_COMMAND}} -E copy ${{LIBRARIES}} ${{CMAKE_BINARY_DIR}}/lib)
"""
_SETUP = """import shutil
from setuptools import setup
shutil.copytree("{ffi}/tvm_ffi", "tvm_ffi", dirs_exist_ok=True)
setup(name="apache-tvm-ffi", version="{version}", packages=["tvm_ffi"], package_data={{"tvm_ffi": ["**/*"]}})
"""
_PROJECT = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'


@dataclass(frozen=True)
class History:
    """A bare repository that grows from the trees of a clone. planted: files that stand in each tree, by path."""

    path: Path
    planted: Mapping[str, str]

    def git(self, *words: str, text: str | None = None, **env: str) -> str:
        argv = ["git", "-c", "safe.directory=*", *words]
        return subprocess.run(
            argv, cwd=self.path, input=text, env={**os.environ, "GIT_INDEX_FILE": "planted", **env},
            check=True, capture_output=True, text=True, timeout=300,
        ).stdout.strip()  # fmt: skip

    def commit(
        self, original: str, title: str = "", edits: Mapping[str, str] | None = None, *, branch: str = "main"
    ) -> str:
        """The tree of a real commit with what is planted, on main or a branch off it; the new commit."""
        parent = self.git("for-each-ref", "--format=%(objectname)", "refs/heads/main")
        self.git("read-tree", original)
        links = [line.split("\t")[1] for line in self.git("ls-files", "-s").splitlines() if line.startswith("160000")]
        self.git("rm", "-q", "--cached", "--", *links, ".gitmodules")
        for name, content in {**self.planted, **(edits or {})}.items():
            blob = self.git("hash-object", "-w", "--stdin", text=content)
            self.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
        subject, who, address, when = self.git("log", "-1", "--format=%s%n%an%n%ae%n%cI", original).splitlines()
        who, address = ("Planted", "planted@example.org") if title else (who, address)
        author = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in (
            ("NAME", who), ("EMAIL", address), ("DATE", when))}  # fmt: skip
        parents = ["-p", parent] if parent else []
        made = self.git("commit-tree", self.git("write-tree"), *parents, "-m", title or subject, **author)
        self.git("update-ref", f"refs/heads/{branch}", made)
        return made


@dataclass(frozen=True)
class Planted:
    """A home whose TVM is built from the history, after a night. commits: of main, by title; patch: off its end."""

    home: HomeForTests
    commits: Mapping[str, str]
    patch: str


def plant(path: Path, release: Artifact) -> tuple[History, dict[str, str], str]:
    """Main: two real commits, the planted one, and the third real one. The patch plants the same off the first."""
    path.mkdir()
    ffi = release.path / "ffi"
    (info,) = ffi.glob("apache_tvm_ffi-*.dist-info")
    version = info.name.removesuffix(".dist-info").rpartition("-")[2]
    history = History(path, {
        "CMakeLists.txt": _CMAKE.format(site=release.path / "site"),
        "3rdparty/tvm-ffi/setup.py": _SETUP.format(ffi=ffi, version=version),
        "3rdparty/tvm-ffi/pyproject.toml": _PROJECT,
    })  # fmt: skip
    history.git("init", "--quiet", "--bare", "--initial-branch=main", ".")
    (path / "objects" / "info" / "alternates").write_text(history.git("-C", CLONE, "rev-parse", "--absolute-git-dir"))
    with (path / "objects" / "info" / "alternates").open("a") as file:
        file.write("/objects\n")
    slow = {
        f"python/{name}": edit(history.git("show", f"{COMMITS[1]}:python/{name}") + "\n") for name, edit in SLOW.items()
    }
    made = [history.commit(COMMITS[0])]
    patch = history.commit(COMMITS[0], "Try less", slow, branch="patch")
    made += [history.commit(COMMITS[1]), history.commit(COMMITS[1], CULPRIT, slow)]
    made.append(history.commit(COMMITS[2], edits=slow))
    return history, {history.git("log", "-1", "--format=%s", one): one for one in made}, patch


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    folder = tmp_path_factory.mktemp("source")
    shelf = folder / "shelf"
    with provide.provide(
        ArtifactSpec("pypi", RELEASE), shelf, rebuild=True, log_folder=folder / "logs", timeout_s=900.0
    ) as got:
        history, commits, patch = plant(folder / "tvm.git", got.artifact)
    home = homes.make_home(
        folder / "lab", shelf, tvm_remote=str(history.path), tvm_branch="main", tvm_options={"USE_LLVM": "OFF"},
        candidates_may_read=[str(got.artifact.path)],  # whence the patch's CMake copies what it does not compile
    )  # fmt: skip
    config = {"active": True, "size": "smoke", "networks": ["mlp"], "opt_levels": [3]}
    homes.write(home.home.config("experiment", "relax_opt") / "config.json", config)
    print(call(home, "run"))
    return Planted(home, commits, patch)


def newest_trial(home: HomeForTests) -> Any:
    return homes.read(max((home.path / "results" / "tries").glob("*.json")))


def test_the_planted_commit_is_found_among_real_ones(planted: Planted) -> None:
    first, *_, last = planted.commits.values()
    ends = ("--good", f"git:{first}", "--bad", f"git:{last}", "--budget", "15m")
    print(call(planted.home, "bisect", "relax_opt", "mlp run time (variant default)", *ends))
    trial = newest_trial(planted.home)
    found, (series,) = trial["bisection"], trial["series"]
    assert (found["answer"], [one["title"] for one in found["suspects"]]) == ("found", [CULPRIT])
    assert [trial[side]["commit"] for side in ("base", "candidate")] == [first, last]
    assert found["builds"] >= 1, "what lies between the ends is built for the search"
    low, high = series["change"]["low"], series["change"]["high"]
    assert 0.2 < low <= high < 2 * (1 + low), "so large a step is known well by a dozen pairs"


def test_a_planted_patch_is_told_against_the_commit_that_it_left_main_at(planted: Planted) -> None:
    """Nobody names the base; the patch is a guest's code, built and run in the sandbox where the machine has one."""
    print(call(planted.home, "try", "git:patch", "--until", "5%", "--budget", "6m"))
    trial = newest_trial(planted.home)
    first, *_ = planted.commits.values()
    assert (trial["candidate"]["commit"], trial["base"]["commit"]) == (planted.patch, first)
    assert trial["base"]["note"] == "its merge base with main"
    times = [one for one in trial["series"] if one["metric"] == "run_time"]
    assert times
    for one in times:
        assert (one["change"]["standing"], one["change"]["low"] > 0.2) == ("worse", True), one["name"]
