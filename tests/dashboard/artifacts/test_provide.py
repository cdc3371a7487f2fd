"""The wheel provider on the real package index: one TVM is installed once a run and shared by these tests."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import dashboard
from dashboard.artifacts import artifact_store, proof
from dashboard.artifacts.artifact import MANIFEST, Artifact, ArtifactError, ArtifactSpec, write_manifest
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.provide import Provided, provide
from dashboard.artifacts.spec import check_spec, provider_of
from dashboard.artifacts.wheel import package_index, wheel_provider
from dashboard.process import process
from tests.dashboard.package_index import HEALTHY, NOWHERE, make_index

VERSION = "0.27.0.post1"
COMMIT = "7b5acb32b"
EXACT = ArtifactSpec("pypi", VERSION)
LATEST = ArtifactSpec("pypi", "latest")
TIMEOUT_S = 400.0
PROVIDE = f"""
import sys
from pathlib import Path
from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.artifacts.provide import provide
folder, logs = map(Path, sys.argv[1:])
with provide({EXACT!r}, folder, rebuild=True, log_folder=logs, timeout_s={TIMEOUT_S}) as provided:
    print(provided.artifact.path)
"""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """The artifact of VERSION, in a folder for this run or in TVMDASH_TEST_ARTIFACTS, which outlives it."""
    kept = os.environ.get("TVMDASH_TEST_ARTIFACTS")
    base = tmp_path_factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = Path(kept) if kept else run / "shared-artifacts"
    logs = tmp_path_factory.mktemp("artifact-logs")
    with provide(EXACT, folder, rebuild=True, log_folder=logs, timeout_s=TIMEOUT_S) as provided:
        return provided.artifact


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NOWHERE.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def copied(built: Artifact, tmp_path: Path) -> Path:
    """A folder of its own that holds `built`, by links: it may lie on another disk."""
    folder = tmp_path / "artifacts"
    shutil.copytree(built.path, folder / built.key, copy_function=os.symlink)
    return folder


def ask(spec: ArtifactSpec, folder: Path, *, rebuild: bool = True) -> Provided:
    return provide(spec, folder, rebuild=rebuild, log_folder=folder.parent / "logs", timeout_s=TIMEOUT_S)


def ask_elsewhere(folder: Path, logs: Path) -> subprocess.Popen[str]:
    root = Path(dashboard.__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'shared/python'}"}
    argv = [sys.executable, "-c", PROVIDE, str(folder), str(logs)]
    return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True)


def test_a_built_artifact_names_what_determines_it(built: Artifact) -> None:
    ffi = built.facts["tvm_ffi"]
    assert built.key.startswith(f"wheel-{VERSION}-ffi-{ffi}-cp3")
    assert (built.provider, built.version, built.commit) == ("wheel", VERSION, COMMIT)
    assert all(folder.is_dir() for folder in (*built.pythonpath, *built.library_path))


def test_a_process_with_the_artifacts_paths_imports_that_tvm(built: Artifact) -> None:
    script = "import tvm; print(tvm.__version__, tvm.__file__)"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, built.pythonpath))}
    output = subprocess.run([sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True)
    version, file = output.stdout.strip().split(maxsplit=1)
    assert version == VERSION
    assert built.path in Path(file).parents


@pytest.mark.usefixtures("no_index")
@pytest.mark.parametrize("rebuild", [True, False])
def test_an_exact_version_that_is_built_needs_no_network(copied: Path, rebuild: bool) -> None:
    with ask(EXACT, copied, rebuild=rebuild) as provided:
        assert provided.artifact.path.parent == copied
        assert provided.note == ""
    assert list((copied.parent / "logs").iterdir()) == []


@pytest.mark.usefixtures("no_index")
def test_an_artifact_at_hand_does_not_wait_for_its_builder(copied: Path) -> None:
    with artifact_store.claim(copied, wheel_provider.base_of(EXACT), LockDeadline(5)):
        provide(EXACT, copied, rebuild=True, log_folder=copied.parent, timeout_s=0.2).lease.release()


@pytest.mark.usefixtures("no_index")
def test_without_rebuild_latest_is_the_newest_at_hand(copied: Path, built: Artifact) -> None:
    for version in ("0.9.0", "0.27.0"):
        older = replace(built, key=f"wheel-{version}", version=version, path=copied / f"wheel-{version}")
        shutil.copytree(built.path, older.path, copy_function=os.symlink)
        write_manifest(replace(older, pythonpath=(older.path / "site",), library_path=(older.path / "site",)))
    with ask(LATEST, copied, rebuild=False) as provided:
        assert provided.artifact.version == VERSION


@pytest.mark.usefixtures("no_index")
def test_without_rebuild_and_without_an_artifact_the_remedy_is_said(copied: Path) -> None:
    with pytest.raises(ArtifactError, match=r"no tested TVM for 0.26.0 of pypi. Run once without --no-rebuild-tvm"):
        ask(ArtifactSpec("pypi", "0.26.0"), copied, rebuild=False)


@pytest.mark.usefixtures("no_index")
def test_where_the_index_is_out_of_reach_latest_is_the_newest_at_hand_and_that_is_said(copied: Path) -> None:
    with ask(LATEST, copied) as provided:
        assert provided.artifact.version == VERSION
        assert f"measured {VERSION} instead: pip index apache-tvm: Could not fetch URL" in provided.note


@pytest.mark.usefixtures("no_index")
def test_where_the_index_is_out_of_reach_and_nothing_is_at_hand_there_is_no_tvm(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"pip index apache-tvm: Could not fetch URL.*no earlier TVM"):
        ask(LATEST, tmp_path / "artifacts")


def test_an_artifact_with_a_broken_manifest_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in make_index(tmp_path / "index", {"0.9.0": HEALTHY}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(wheel_provider, "KNOWN_GOOD_FFI", {"0.9.0": ("0.1.14",)})
    spec, folder = ArtifactSpec("pypi", "0.9.0"), tmp_path / "artifacts"
    with ask(spec, folder) as provided:
        manifest = provided.artifact.path / MANIFEST
    manifest.write_text('{"schema_version": 1')
    assert artifact_store.artifacts_in(folder) == []
    with ask(spec, folder) as provided:
        assert artifact_store.artifacts_in(folder) == [provided.artifact]
    assert sorted(path.name for path in folder.iterdir()) == [".building", ".locks", provided.artifact.key]
    assert not any((folder / ".building").iterdir())


def test_a_version_that_the_index_lacks_is_told_with_the_newest_that_it_has(tmp_path: Path) -> None:
    words = r"^apache-tvm 0\.999\.0 is not available for Python 3\.\d+ on \w+\. The newest versions are \d.*\d\.$"
    with pytest.raises(ArtifactError, match=words) as told:
        ask(ArtifactSpec("pypi", "0.999.0"), tmp_path / "artifacts")
    assert VERSION in str(told.value)
    assert "index" not in str(told.value)


@pytest.mark.usefixtures("no_index")
def test_without_an_index_no_version_is_said_not_to_exist(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"pip download apache-tvm==0.999.0: .*Check that this machine can reach"):
        ask(ArtifactSpec("pypi", "0.999.0"), tmp_path / "artifacts")


@pytest.mark.parametrize(
    "branch",
    ["--evil", "1;rm", "", "1.0 --pre", "newest", "0.27.0\n", "../x", "1!0.27", "0.27+local", "v0.27", "\u0663.1"],
)
def test_a_branch_that_is_no_version_is_refused_before_anything_is_touched(tmp_path: Path, branch: str) -> None:
    spec = ArtifactSpec("pypi", branch)
    with pytest.raises(ArtifactError, match='neither "latest" nor a version'):
        ask(spec, tmp_path / "artifacts")
    with pytest.raises(ArtifactError, match='neither "latest" nor a version'):
        check_spec(spec)
    assert list(tmp_path.iterdir()) == []


def test_a_remote_that_is_not_the_index_is_gits() -> None:
    assert provider_of(ArtifactSpec("https://github.com/apache/tvm", "main")) == "git"
    assert provider_of(LATEST) == "wheel"


def test_a_folder_that_cannot_stand_on_a_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot be on PYTHONPATH"):
        ask(EXACT, tmp_path / "a:b")


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match=r"artifacts: Not a directory"):
        provide(EXACT, tmp_path / "file" / "artifacts", rebuild=True, log_folder=tmp_path, timeout_s=TIMEOUT_S)


@pytest.mark.slow  # it installs a TVM; test_git.py asks the same of a small build
def test_two_nights_that_want_the_same_tvm_build_it_once(tmp_path: Path) -> None:
    folder, logs = tmp_path / "artifacts", [tmp_path / "logs-1", tmp_path / "logs-2"]
    nights = [ask_elsewhere(folder, log) for log in logs]
    answers = [night.communicate(timeout=2 * TIMEOUT_S)[0] for night in nights]
    assert [night.returncode for night in nights] == [0, 0]
    assert answers[0] == answers[1]
    assert sum(any(log.iterdir()) for log in logs) == 1


@pytest.mark.usefixtures("no_index")
def test_a_build_that_is_killed_leaves_nothing_that_counts_and_the_next_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "artifacts"
    with monkeypatch.context() as reachable:
        for name in NOWHERE:
            reachable.delenv(name)
        night = ask_elsewhere(folder, tmp_path / "logs")
    wait_for_child(night, folder)
    kill_with_descendants(night.pid)
    night.communicate(timeout=TIMEOUT_S)
    assert any((folder / ".building").iterdir())
    assert artifact_store.artifacts_in(folder) == []
    with pytest.raises(ArtifactError, match="No matching distribution"):
        ask(ArtifactSpec("pypi", "0.26.0"), folder)
    assert not any((folder / ".building").iterdir())


def wait_for_child(night: subprocess.Popen[str], folder: Path) -> None:
    """Return as soon as `night` has begun to build in `folder`."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if children_of(night.pid) and any(folder.glob(".building/*/*/scratch")):
            return
        time.sleep(0.02)
    raise AssertionError("the night did not begin to build")


def children_of(pid: int) -> list[int]:
    """The processes that the threads of `pid` have started."""
    listed: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        listed += map(int, children.read_text().split())
    return listed


def kill_with_descendants(pid: int) -> None:
    """Each is stopped before its children are listed, so that none is started unseen."""
    os.kill(pid, signal.SIGSTOP)
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "TZX":
        time.sleep(0.001)
    for child in children_of(pid):
        kill_with_descendants(child)
    os.kill(pid, signal.SIGKILL)


@pytest.fixture
def newest_ffi(tmp_path: Path) -> Path:
    """A folder with the tvm-ffi that pip alone would choose in November 2026."""
    target, log = tmp_path / "ffi", tmp_path / "pip.log"
    deadline = LockDeadline(TIMEOUT_S)
    package_index.install(
        wheel_provider.FFI, "0.1.15.post2", target, scratch=tmp_path / "scratch", log=log, deadline=deadline
    )
    return target


def test_the_pair_that_a_plain_install_gives_is_refused_with_its_signal(built: Artifact, newest_ffi: Path) -> None:
    scratch = newest_ffi.parent
    with pytest.raises(ArtifactError, match="in step save_json: killed by SIGSEGV"):
        proof.prove(
            (built.path / "site", newest_ffi),
            (),
            scratch=scratch,
            log=scratch / "health.log",
            deadline=LockDeadline(300),
        )


@pytest.mark.slow  # it installs a TVM and three tvm-ffi, and proves each pair
def test_a_pair_that_nobody_knows_is_searched_newest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel_provider, "KNOWN_GOOD_FFI", {})
    with ask(EXACT, tmp_path / "artifacts") as provided:
        artifact = provided.artifact
    assert artifact.facts["tvm_ffi"] == "0.1.14.post1"
    assert "killed by SIGSEGV" in artifact.refused["apache-tvm-ffi 0.1.15.post2"]
    assert "apache-tvm-ffi 0.1.14.post0" not in artifact.refused


def put_tvm(folder: Path, content: str) -> Path:
    (folder / "tvm").mkdir(parents=True)
    (folder / "tvm" / "__init__.py").write_text(content)
    (folder / "tvm_ffi.py").write_text("")
    return folder


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("raise OSError('undefined symbol: _ZN3tvm')", "in step import: exit status 1: OSError: undefined symbol"),
        ("import os; os.abort()", "in step import: killed by SIGABRT"),
        ("import time; time.sleep(60)", "in step import: timed out after"),
        ("import os; os._exit(0)", "the check succeeded but wrote no readable result"),
        ("print('{}', flush=True); import os; os._exit(0)", "the check succeeded but wrote no readable result"),
    ],
)
def test_a_sick_tvm_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, words: str
) -> None:
    monkeypatch.setattr(process, "subprocess", subprocess)  # what ends at once is gone before anybody looks at a fork
    site = put_tvm(tmp_path / "site", content)
    with pytest.raises(ArtifactError, match=words):
        proof.prove((site,), (), scratch=tmp_path, log=tmp_path / "health.log", deadline=LockDeadline(2))


def test_a_tvm_that_comes_from_elsewhere_is_not_taken_for_the_artifact(tmp_path: Path) -> None:
    said = {"tvm_file": "/venv/tvm/__init__.py", "tvm_version": "1", "tvm_ffi_version": "1", "numpy_version": "2"}
    with pytest.raises(
        ArtifactError, match=r"it imported another TVM, /venv/tvm/__init__.py. Uninstall apache-tvm from"
    ):
        proof.parse_health(json.dumps({**said, "commit": None}), [tmp_path / "site"], tmp_path / "health.log")


def test_a_requirement_that_the_running_python_lacks_is_named(tmp_path: Path) -> None:
    info = tmp_path / "apache_tvm-1.0.dist-info"
    info.mkdir()
    needs = ("numpy>=99", "surely-not-there", "pytest", 'xgboost; extra == "all"', "apache-tvm-ffi>=0.1")
    lines = ["Metadata-Version: 2.1", "Name: apache-tvm", "Version: 1.0", *(f"Requires-Dist: {need}" for need in needs)]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    found = wheel_provider.read_distribution(tmp_path, wheel_provider.TVM)
    with pytest.raises(
        ArtifactError, match=r"needs numpy>=99: 2\.\S+ is installed; surely-not-there: not installed\. "
    ):
        wheel_provider.check(found, provided=frozenset((wheel_provider.FFI,)))


def test_an_artifact_for_another_python_does_not_satisfy(built: Artifact) -> None:
    other = replace(built, facts={**built.facts, "python": "cp39"})
    assert wheel_provider.satisfies(built, EXACT)
    assert not wheel_provider.satisfies(other, EXACT)
    assert not wheel_provider.satisfies(built, ArtifactSpec("pypi", "0.27.0"))
