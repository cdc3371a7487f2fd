"""The git provider on a small project with TVM's shape, with real git, CMake, Ninja and pip."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import Artifact, ArtifactError, ArtifactSpec
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git import cmake, git_provider
from dashboard.artifacts.git import names as git_names
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.provide import provide
from dashboard.artifacts.spec import check_spec
from tests.dashboard import remeasure_homes, standin

REPO = Path(__file__).resolve().parents[3]
TIMEOUT_S = 300.0
OPTIONS = (("USE_LLVM", "OFF"),)
PROVIDE = f"""
import sys
from pathlib import Path
from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.artifacts.provide import provide
remote, folder, logs = sys.argv[1:]
spec = ArtifactSpec(remote, "main", {OPTIONS!r})
with provide(spec, Path(folder), rebuild=True, log_folder=Path(logs), timeout_s={TIMEOUT_S}) as provided:
    print(provided.artifact.key)
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build tools from the package index, installed once."""
    kept = os.environ.get("TVMDASH_TEST_ARTIFACTS")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("tools")
    logs = tmp_path_factory.mktemp("tool-logs")
    return cmake.install_tools(BuildContext(folder, logs, LockDeadline(TIMEOUT_S))).parent


@pytest.fixture
def context(tmp_path: Path, tools: Path) -> BuildContext:
    folder, logs = tmp_path / "artifacts", tmp_path / "logs"
    folder.mkdir()
    logs.mkdir()
    (folder / ".tools").symlink_to(tools)
    return BuildContext(folder, logs, LockDeadline(TIMEOUT_S))


@pytest.fixture(scope="module")
def first_remotes(tmp_path_factory: pytest.TempPathFactory) -> standin.Remotes:
    return standin.make(tmp_path_factory.mktemp("first") / "remotes")


@pytest.fixture
def remotes(tmp_path: Path, first_remotes: standin.Remotes) -> standin.Remotes:
    return first_remotes.copy(tmp_path / "remotes")


def spec_of(remotes: standin.Remotes, branch: str = "main") -> ArtifactSpec:
    return ArtifactSpec(str(remotes.tvm), branch, OPTIONS)


def built(spec: ArtifactSpec, context: BuildContext, *, rebuild: bool = True) -> tuple[Artifact, str]:
    with provide(spec, context.folder, rebuild=rebuild, log_folder=context.log_folder, timeout_s=TIMEOUT_S) as provided:
        return provided.artifact, provided.note


@pytest.mark.parametrize(
    "remote",
    ["ext::sh -c id", "-uroot", "--upload-pack=id", "https://host/a\nb", "relative/path", "ftp://host/x", "", "a::b"],
)
def test_a_remote_that_git_could_run_or_take_for_an_option_is_refused(remote: str) -> None:
    with pytest.raises(ArtifactError, match="tvm_remote"):
        git_names.check_remote(remote)


@pytest.mark.parametrize(
    "revision", ["-main", "a..b", "main^", "main~1", "a b", "a\0b", "@{u}", "x/.y", "a//b", "a.lock", "", "a:b", "/a"]
)
def test_a_revision_that_is_more_than_a_name_is_refused(revision: str) -> None:
    with pytest.raises(ArtifactError, match="tvm_branch"):
        check_spec(ArtifactSpec("https://example.org/tvm", revision))


@pytest.mark.parametrize(
    "revision", ["main", "v0.27.0", "refs/tags/v1", "pull/123", "a1b2c3d", "user/feature-x", "0" * 40]
)
def test_names_of_branches_tags_commits_and_pull_requests_are_taken(revision: str) -> None:
    check_spec(ArtifactSpec("git@example.org:apache/tvm.git", revision))


def test_an_option_that_is_none_of_cmakes_is_refused() -> None:
    with pytest.raises(ArtifactError, match="tvm_options"):
        check_spec(ArtifactSpec("https://example.org/tvm", "main", (("-DX", "1"),)))
    with pytest.raises(ArtifactError, match=r"tvm_options\.USE_LLVM"):
        check_spec(ArtifactSpec("https://example.org/tvm", "main", (("USE_LLVM", "a\nb"),)))


def test_a_branch_is_built_proved_and_then_taken_from_the_shelf(
    remotes: standin.Remotes, context: BuildContext
) -> None:
    commit = remotes.commit("Say more", day=2)
    artifact, note = built(spec_of(remotes), context)
    assert (artifact.commit, note, artifact.provider) == (commit, "", "git")
    assert artifact.version == f"0.27.0.post1+g{commit[:9]}"
    assert artifact.facts["title"] == "Say more"
    assert artifact.facts["committed_utc"] == "20260802T120000Z"
    paths = os.pathsep.join(map(str, artifact.pythonpath))
    argv = [sys.executable, "-c", "import tvm, tvm_ffi; print(tvm._version.__commit_id__, tvm_ffi.answer())"]
    said = subprocess.run(argv, env={"PYTHONPATH": paths}, capture_output=True, text=True, check=True)
    assert said.stdout.split() == [commit, "42"]
    assert not list((context.folder / ".building").glob("*"))
    before = artifact.path.stat().st_ino
    assert built(spec_of(remotes), context)[0].path.stat().st_ino == before
    assert built(spec_of(remotes), context, rebuild=False)[0].key == artifact.key
    shutil.rmtree(context.folder / ".mirrors")
    shutil.rmtree(remotes.folder)
    assert built(spec_of(remotes, commit), context) == (artifact, ""), "a whole commit on the shelf needs no source"


@pytest.mark.slow  # three builds
def test_each_commit_and_each_set_of_options_is_an_artifact_of_its_own(
    remotes: standin.Remotes, context: BuildContext
) -> None:
    first, _ = built(spec_of(remotes), context)
    slow, _ = built(replace(spec_of(remotes), options=(*OPTIONS, ("USE_SLOW", "ON"))), context)
    remotes.commit("Touch the source", {"src/product.cc": "// more\n"}, day=3)
    second, _ = built(spec_of(remotes), context)
    assert len({first.key, slow.key, second.key}) == 3
    assert {artifact.key for artifact in artifact_store.artifacts_in(context.folder)} == {
        first.key,
        slow.key,
        second.key,
    }
    assert git_provider.rank(second) > git_provider.rank(first)  # type: ignore[operator]
    again, _ = built(spec_of(remotes, str(first.commit)), context)
    assert again.key == first.key


def libraries_of(artifact: Artifact) -> dict[str, bytes]:
    """The bytes of everything that a process maps of it, by name."""
    return {path.name: path.read_bytes() for path in artifact.path.rglob("*.so")}


@pytest.mark.slow  # two builds
def test_commits_that_change_no_code_are_the_same_bytes_to_run(remotes: standin.Remotes, context: BuildContext) -> None:
    first, _ = built(spec_of(remotes), context)
    remotes.commit("Say more", {"README.md": "More.\n"}, day=3)
    second, _ = built(spec_of(remotes), context)
    assert first.key != second.key
    assert set(libraries_of(first)) >= {"libtvm_runtime.so", "libtvm_compiler.so"}
    assert libraries_of(first) == libraries_of(second)


@pytest.fixture
def decorator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pip finds the package that old trees import in a folder, and asks no index."""
    wheel = tmp_path / "wheels" / f"decorator-{git_provider.NEEDS_BEFORE_FFI['decorator']}-py3-none-any.whl"
    wheel.parent.mkdir()
    info = f"decorator-{git_provider.NEEDS_BEFORE_FFI['decorator']}.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("decorator.py", f'__version__ = "{git_provider.NEEDS_BEFORE_FFI["decorator"]}"\n')
        version = f"Name: decorator\nVersion: {git_provider.NEEDS_BEFORE_FFI['decorator']}\n"
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\n{version}")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))


@pytest.mark.usefixtures("decorator")
def test_a_tree_from_before_tvm_ffi_is_built_with_vtas_simulator(tmp_path: Path, context: BuildContext) -> None:
    remotes = standin.make_relay_era(tmp_path / "remotes")
    with_vta = (*OPTIONS, ("USE_VTA_FSIM", "ON"))
    artifact, _ = built(replace(spec_of(remotes, "v0.18.0"), options=with_vta), context)
    assert artifact.version.startswith("0.18.0+g")
    assert artifact.facts["tvm_ffi"] == "none"
    assert {Path(name).name for name in artifact.sizes_bytes} == {"libtvm.so", "libvta_fsim.so"}
    environment = {
        "PYTHONPATH": os.pathsep.join(map(str, artifact.pythonpath)),
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, artifact.library_path)),
    }
    argv = [sys.executable, "-c", "import tvm, vta; print(tvm.__version__, vta.LIBRARY.vta_block(), vta.CONFIG)"]
    said = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "0.18.0 16 {'TARGET': 'sim', 'LOG_BLOCK': 4}"


@pytest.mark.usefixtures("decorator")
def test_vtas_package_is_left_out_of_a_build_without_its_simulator(tmp_path: Path, context: BuildContext) -> None:
    artifact, _ = built(spec_of(standin.make_relay_era(tmp_path / "remotes"), "v0.18.0"), context)
    assert [folder.relative_to(artifact.path).as_posix() for folder in artifact.pythonpath] == ["tree/python", "needs"]


def test_tags_short_commits_and_pull_requests_are_found(remotes: standin.Remotes, context: BuildContext) -> None:
    tagged = standin.git(remotes.tvm, "rev-parse", "HEAD")
    standin.git(remotes.tvm, "checkout", "--quiet", "-b", "theirs")
    proposed = remotes.commit("Propose")
    standin.git(remotes.tvm, "update-ref", "refs/pull/7/head", proposed)
    standin.git(remotes.tvm, "checkout", "--quiet", "main")
    standin.git(remotes.tvm, "branch", "-D", "theirs")
    newest = remotes.commit("Go on", day=2)
    wanted = {"v0.27.0": tagged, "refs/tags/v0.27.0": tagged, newest[:9]: newest, "pull/7": proposed, "main": newest}
    for revision, commit in wanted.items():
        assert git_provider.resolve(spec_of(remotes, revision), context).branch == commit
    with pytest.raises(ArtifactError, match="has no branch, tag or commit 'nowhere'"):
        git_provider.resolve(spec_of(remotes, "nowhere"), context)


def test_a_name_of_a_branch_and_a_tag_that_differ_must_be_said_in_full(
    remotes: standin.Remotes, context: BuildContext
) -> None:
    standin.git(remotes.tvm, "branch", "v0.27.0")
    assert git_provider.resolve(spec_of(remotes, "v0.27.0"), context).branch  # both are the same commit
    remotes.commit("Go on", day=2)
    standin.git(remotes.tvm, "branch", "-f", "v0.27.0", "main")
    with pytest.raises(ArtifactError, match="both a branch and a tag"):
        git_provider.resolve(spec_of(remotes, "v0.27.0"), context)


def test_with_the_remote_out_of_reach_the_newest_of_the_branch_is_measured_and_said(
    remotes: standin.Remotes, context: BuildContext
) -> None:
    artifact, _ = built(spec_of(remotes), context)
    remotes.tvm.rename(remotes.folder / "away")
    again, note = built(spec_of(remotes), context)
    assert again.key == artifact.key
    assert "Could not look up " in note
    assert built(spec_of(remotes, str(artifact.commit)), context) == (artifact, "")  # exact: asks nobody
    with pytest.raises(ArtifactError, match="no earlier TVM"):
        built(spec_of(remotes, "other"), context)


def test_a_build_that_fails_gives_the_compilers_first_error_and_no_artifact(
    remotes: standin.Remotes, context: BuildContext
) -> None:
    good = remeasure_homes.put_artifact(context.folder, "0.26.0")
    remotes.commit("Break it", {"src/product.cc": "int broken = undeclared_name;\n"}, day=2)
    with pytest.raises(ArtifactError, match=r"compile failed: .*product\.cc.*error: .*undeclared_name"):
        built(spec_of(remotes), context)
    assert [artifact.key for artifact in artifact_store.artifacts_in(context.folder)] == [good.key]
    assert not list((context.folder / ".building").glob("*"))


def test_a_build_whose_answers_are_wrong_is_refused(remotes: standin.Remotes, context: BuildContext) -> None:
    wrong = (
        "_main = lambda x, weight: _Tensor(x.array)\n"
        "relax.VirtualMachine = lambda executable, device: {'main': _main}\n"
    )
    remotes.commit("Compute nonsense", {"python/tvm/__init__.py": wrong})
    with pytest.raises(ArtifactError, match="in step run"):
        built(spec_of(remotes), context)
    assert artifact_store.artifacts_in(context.folder) == []


WAIT = 'if(EXISTS "{hold}")\n  file(TOUCH "{hold}.here")\n  execute_process(COMMAND sleep 600)\nendif()\n'


def _hold(remotes: standin.Remotes, step: str, hold: Path) -> None:
    """Commit what makes `step` hang while the file `hold` is there."""
    waiting = WAIT.format(hold=hold)
    if step == "configure":
        remotes.commit("Hang", {"CMakeLists.txt": waiting})
    elif step == "compile":
        command = f"test ! -e {hold} || (touch {hold}.here && sleep 600)"
        rule = f'add_custom_command(TARGET tvm_compiler POST_BUILD COMMAND sh -c "{command}" VERBATIM)\n'
        remotes.commit("Hang", {"CMakeLists.txt": rule})
    elif step == "install":
        path = remotes.folder / "tvm-ffi" / "CMakeLists.txt"
        path.write_text(path.read_text() + waiting)
        standin.git(path.parent, "commit", "--quiet", "-am", "Hang")
        standin.git(remotes.tvm / "3rdparty" / "tvm-ffi", "pull", "--quiet")
        remotes.commit("Take the new tvm-ffi")


@pytest.fixture
def patient_git(tmp_path: Path) -> Path:
    """A folder for PATH whose git hangs in a fetch while a file is there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    hold = tmp_path / "hold"
    program = folder / "git"
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    lines = (
        f'case "$*" in *" fetch "*) if test -e {hold}; then touch {hold}.here; sleep 600; fi;; esac\nexec {real} "$@"\n'
    )
    program.write_text(f"#!/bin/sh\n{lines}")
    program.chmod(0o755)
    return folder


def _start(remotes: standin.Remotes, context: BuildContext, path: Path) -> subprocess.Popen[str]:
    environment = {
        "PATH": f"{path}{os.pathsep}{os.environ['PATH']}",
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": f"{REPO}{os.pathsep}{REPO / 'shared' / 'python'}",
    }
    argv = [sys.executable, "-c", PROVIDE, str(remotes.tvm), str(context.folder), str(context.log_folder)]
    return subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _processes_with(text: str) -> Iterator[int]:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (entry / "environ").read_bytes():
                yield int(entry.name)
        except OSError:
            continue


@pytest.mark.parametrize(
    "step", ["compile", *(pytest.param(step, marks=pytest.mark.slow) for step in ("fetch", "configure", "install"))]
)
def test_a_build_killed_in_any_step_leaves_nothing_and_the_next_one_succeeds(
    remotes: standin.Remotes, context: BuildContext, patient_git: Path, tmp_path: Path, step: str
) -> None:
    hold = tmp_path / "hold"
    _hold(remotes, step, hold)
    hold.touch()
    night = _start(remotes, context, patient_git)
    there = Path(f"{hold}.here")
    limit = time.monotonic() + TIMEOUT_S
    while not there.exists():
        assert night.poll() is None, night.communicate()
        assert time.monotonic() < limit
        time.sleep(0.02)
    night.kill()
    night.communicate()
    hold.unlink()
    for pid in _processes_with(f"{tmp_path}/bin"):  # what a whole night's watchdog would end
        os.kill(pid, signal.SIGKILL)
    assert artifact_store.artifacts_in(context.folder) == []
    artifact, note = built(spec_of(remotes), context)
    assert (artifact.commit, note) == (standin.git(remotes.tvm, "rev-parse", "HEAD"), "")
    assert not list((context.folder / ".building").glob("*"))


def test_two_nights_that_want_the_same_commit_build_it_once(
    remotes: standin.Remotes, context: BuildContext, patient_git: Path
) -> None:
    nights = [_start(remotes, context, patient_git) for _ in range(2)]
    said = [night.communicate(timeout=TIMEOUT_S) for night in nights]
    assert [night.returncode for night in nights] == [0, 0], said
    assert len({out for out, _ in said}) == 1
    assert len(artifact_store.artifacts_in(context.folder)) == 1


def test_commits_between_two_nights_are_known_with_author_and_title(
    remotes: standin.Remotes, context: BuildContext
) -> None:
    old = standin.git(remotes.tvm, "rev-parse", "HEAD")
    remotes.commit("One", day=2)
    new = remotes.commit("Two", day=3)
    mirror = Mirror.of(context.folder, str(remotes.tvm))
    mirror.fetch(context)
    found = mirror.commits(old, new)
    assert [(commit.title, commit.author, commit.committed[:10]) for commit in found] == [
        ("Two", "Ada", "2026-08-03"),
        ("One", "Ada", "2026-08-02"),
    ]


def test_a_mirror_is_never_lost_when_its_remote_is(remotes: standin.Remotes, context: BuildContext) -> None:
    mirror = Mirror.of(context.folder, str(remotes.tvm))
    mirror.fetch(context)
    head = mirror.resolve("main")
    remotes.tvm.rename(remotes.folder / "away")
    (mirror.path / "packed-refs.lock").touch()  # as a git that was killed leaves it
    with pytest.raises(ArtifactError, match="git fetch: fatal"):
        mirror.fetch(context)
    assert mirror.resolve("main") == head
    (remotes.folder / "away").rename(remotes.tvm)
    newer = remotes.commit("Go on")
    mirror.fetch(context)
    assert mirror.resolve("main") == newer


@pytest.mark.parametrize(
    ("url", "remote", "meant"),
    [
        ("../ffi", "https://host/apache/tvm", "https://host/apache/ffi"),
        ("./ffi.git", "/srv/git/tvm", "/srv/git/tvm/ffi.git"),
        ("../ffi", "git@host:apache/tvm.git", "git@host:apache/ffi"),
        ("https://other/ffi", "/srv/git/tvm", "https://other/ffi"),
    ],
)
def test_a_submodules_relative_url_is_meant_from_its_remote(url: str, remote: str, meant: str) -> None:
    assert git_provider.make_absolute_url(url, remote) == meant


@pytest.mark.parametrize("url", ["ext::sh -c id", "-x", "file:///etc", "/etc/secret"])
def test_a_submodule_that_points_where_it_must_not_is_refused(url: str) -> None:
    with pytest.raises(ArtifactError, match="a submodule's remote"):
        git_provider.make_absolute_url(url, "https://host/tvm")


def test_the_doctor_names_what_is_missing_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    told = "\n".join(cmake.find_missing({"USE_CUDA": "ON"}))
    for words in ("apt install git", "apt install g++", "llvm-15-dev", "nvcc"):
        assert words in told
    with pytest.raises(ArtifactError, match="cannot be built from source"):
        cmake.check_tools({})


@pytest.mark.parametrize(
    ("described", "version"),
    [
        ("v0.27.0-0-g1b565e7c3", "0.27.0+g1b565e7c3"),
        ("v0.27.0-12-g1b565e7c3", "0.27.0.post12+g1b565e7c3"),
        ("v0.28.0.rc0-3-g1b565e7c3", "0.28.0rc0.post3+g1b565e7c3"),
        ("1b565e7c3", "0+g1b565e7c3"),
    ],
)
def test_the_version_says_the_tag_before_and_the_commit(described: str, version: str) -> None:
    assert git_provider.format_python_version(described) == version


def test_the_first_error_of_a_log_is_told_not_the_last(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("[1/2] cc\na.cc:3:1: error: first\nb.cc:4:1: error: second\nninja: build stopped\n")
    assert cmake.find_first_error(log) == "a.cc:3:1: error: first"
