"""The virtual environment of run_dashboard.sh: what it is made from, what can happen meanwhile, and its end."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboard.schedule import refusal
from tvmdash.dashboard_info import Home

DEADLINE_S = 180.0


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def silent_index() -> Iterator[socket.socket]:
    """A package index that takes calls and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE_S)
        yield server


def calling(server: socket.socket) -> dict[str, str]:
    url = f"http://127.0.0.1:{server.getsockname()[1]}/simple"
    return {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": url, "PIP_DEFAULT_TIMEOUT": "600"}


def test_a_missing_python_is_said_with_its_remedy(repo: Any) -> None:
    started = repo.start("home", TVMDASH_PYTHON="/nowhere/python3")
    assert started.exit_code == 2
    assert "/nowhere/python3 was not found" in started.stderr
    assert "apt install python3 python3-venv" in started.stderr
    assert len(started.stderr.splitlines()) == 1


@pytest.mark.parametrize("version", [(3, 8, 18), (3, 10, 19)])
def test_a_python_that_is_too_old_is_named_with_its_version(
    repo: Any, fake_python: Any, version: tuple[int, int, int]
) -> None:
    old = fake_python("python3", f"sys.version_info = {version}")
    started = repo.start("home", TVMDASH_PYTHON=str(old))
    assert started.exit_code == 2
    assert f"Python 3.11 to 3.14 is required, but only {old} ({'.'.join(map(str, version))})" in started.stderr


def test_a_fitting_python_behind_one_that_is_too_old_is_taken(ready_repo: Any, fake_python: Any) -> None:
    old = fake_python("python3", "sys.version_info = (3, 9, 1)")
    started = ready_repo.start("home", PATH=f"{old.parent}:{ready_repo.env['PATH']}")
    assert (started.exit_code, started.stderr) == (0, "")


def test_a_python_without_ensurepip_is_said_with_the_package_that_has_it(repo: Any, fake_python: Any) -> None:
    bare = fake_python("python3", "sys.modules['ensurepip'] = None\nsys.version_info = (3, 11, 2)")
    started = repo.start("home", TVMDASH_PYTHON=str(bare))
    assert started.exit_code == 2
    assert "apt install python3.11-venv" in started.stderr
    assert len(started.stderr.splitlines()) == 1
    assert repo.environments == []


def test_an_index_that_cannot_be_reached_is_said_with_the_end_of_pips_log(
    repo: Any, quick_python: dict[str, str]
) -> None:
    home = repo.path.parent / "home"
    (home / "config").mkdir(parents=True)
    started = repo.start(
        "home", PIP_NO_INDEX="0", PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_FIND_LINKS="", **quick_python
    )
    assert started.exit_code == 2
    refused = refusal.read(Home(home))
    assert refused is not None
    assert refused.reason.startswith("could not install the Python packages: ")
    assert "tvmdash-probe==1.0" in started.stderr, "the end of pip's log"
    assert "Check the network" in started.stderr
    (log,) = repo.path.glob(".venv/*.log")
    assert str(log) in started.stderr


def change_hash(repo: Any) -> None:
    hashes = repo.path / "requirements-hashes.txt"
    hashes.write_text(re.sub(r"sha256:\w+", f"sha256:{'0' * 64}", hashes.read_text()))


def test_a_package_whose_hash_is_another_is_not_installed_and_is_named(repo: Any, quick_python: dict[str, str]) -> None:
    change_hash(repo)
    started = repo.start("home", **quick_python)
    assert started.exit_code == 2
    assert "tvmdash-probe==1.0: the package index served a file whose hash is not in the list" in started.stderr
    assert "PIP_NO_CACHE_DIR=1" in started.stderr
    assert repo.environments == []


def test_hashes_can_be_switched_off_for_an_index_that_builds_its_own_wheels(
    repo: Any, quick_python: dict[str, str]
) -> None:
    change_hash(repo)
    started = repo.start("home", TVMDASH_REQUIRE_HASHES="0", **quick_python)
    assert started.exit_code == 0, started.stderr


def test_a_pin_that_was_changed_without_its_hashes_is_named(repo: Any) -> None:
    (repo.path / "requirements.txt").write_text("tvmdash-probe==1.0\nTvmdash_more==2.1; python_version < '4'\n")
    started = repo.start("home")
    assert started.exit_code == 2
    assert "requirements-hashes.txt differ: tvmdash-more==2.1 . Run tests/make_hashes.sh" in started.stderr
    assert repo.environments == []


def test_a_missing_list_of_hashes_is_said(repo: Any) -> None:
    (repo.path / "requirements-hashes.txt").unlink()
    started = repo.start("home")
    assert started.exit_code == 2
    assert "requirements-hashes.txt is missing" in started.stderr


def test_an_unknown_setting_for_hashes_is_refused(repo: Any) -> None:
    started = repo.start("home", TVMDASH_REQUIRE_HASHES="no")
    assert started.exit_code == 2
    assert "'no' is neither 0 nor 1" in started.stderr


def test_a_folder_that_cannot_be_written_is_said_with_the_setting_that_moves_it(repo: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    started = repo.start("home", TVMDASH_VENV_DIR=str(tmp_path / "file" / "below"))
    assert started.exit_code == 2
    assert "Not a directory. Set TVMDASH_VENV_DIR" in started.stderr


def may_mount(argv: list[str]) -> None:
    if subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")


def in_own_mounts(options: str, place: str, command: str) -> list[str]:
    return ["unshare", "-rm", "/bin/sh", "-c", f'mount -t tmpfs -o {options} none "{place}" && {command}']


def test_a_full_disk_is_called_so(repo: Any, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    may_mount(in_own_mounts("size=1m", str(tmp_path / "small"), "true"))
    start = f'TVMDASH_VENV_DIR="{tmp_path}/small" "{repo.script}" home'
    process = repo.popen(in_own_mounts("size=1m", str(tmp_path / "small"), start))
    _, stderr = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 2, stderr
    assert "is full" in stderr
    assert "Free 1 GB" in stderr


def test_a_read_only_checkout_runs_from_the_environment_it_has_and_makes_no_other(ready_repo: Any, repo: Any) -> None:
    mount = f'mount -o bind "{repo.path}" "{repo.path}" && mount -o remount,bind,ro "{repo.path}" && '
    argv = ["unshare", "-rm", "/bin/sh", "-c"]
    may_mount([*argv, mount + "true"])
    process = repo.popen([*argv, f'{mount} cd . && "{repo.script}" home'])
    _, stderr = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 2
    assert "Read-only file system. Set TVMDASH_VENV_DIR" in stderr
    shutil.copytree(ready_repo.path / ".venv", repo.path / ".venv", symlinks=True)
    process = repo.popen([*argv, f'{mount} cd . && "{repo.script}" home'])
    _, stderr = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, stderr) == (0, "")


@pytest.mark.slow  # it waits for a whole environment twice
def test_two_first_starts_at_once_set_up_once(repo: Any) -> None:
    processes = [repo.popen([str(repo.script), f"home{number}"]) for number in range(2)]
    outputs = [process.communicate(timeout=DEADLINE_S) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    said = "".join(stderr for _, stderr in outputs)
    assert said.count("setting up the Python packages") == 1


@pytest.mark.slow  # it makes an environment and a half
def test_a_set_up_killed_while_the_environment_is_made_is_repaired(repo: Any) -> None:
    process = repo.popen([str(repo.script), "home"])
    wait_until(lambda: any(repo.path.glob(".venv/*/pyvenv.cfg")))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=DEADLINE_S)
    assert repo.environments == []
    started = repo.start("home")
    assert started.exit_code == 0
    assert "did not finish; starting over" in started.stderr


@pytest.mark.slow  # it makes two environments
def test_a_start_waits_for_the_pip_of_a_killed_one_and_then_repairs(repo: Any, silent_index: socket.socket) -> None:
    first = repo.popen([str(repo.script), "home"], **calling(silent_index))
    call, _ = silent_index.accept()
    first.send_signal(signal.SIGKILL)
    second = repo.popen([str(repo.script), "home"])
    assert second.stderr is not None
    assert "waiting for another process" in second.stderr.readline()
    call.close()
    silent_index.close()
    _, stderr = second.communicate(timeout=DEADLINE_S)
    assert second.returncode == 0, stderr
    assert "did not finish; starting over" in stderr
    first.communicate(timeout=DEADLINE_S)


def test_an_interrupt_in_set_up_ends_it_with_130(
    repo: Any, quick_python: dict[str, str], silent_index: socket.socket
) -> None:
    process = repo.popen([str(repo.script), "home"], **calling(silent_index), **quick_python)
    call, _ = silent_index.accept()
    with call:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert repo.environments == []


@pytest.mark.slow  # it makes two environments
def test_changed_requirements_get_an_environment_of_their_own(ready_repo: Any, repo: Any) -> None:
    shutil.copytree(ready_repo.path / ".venv", repo.path / ".venv", symlinks=True)
    (repo.path / "requirements.txt").write_text("tvmdash-probe==1.0  # changed\n")
    assert repo.start("home").exit_code == 0
    assert len(repo.environments) == 2


def test_only_environments_that_are_old_and_free_are_removed(ready_repo: Any) -> None:
    root = ready_repo.environments[0].parent
    day_s = 24 * 3600

    def other(name: str, age_days: int) -> Path:
        place = root / f"3.11.2-x86_64-{name:0>12}"
        (place / "bin").mkdir(parents=True)
        lock = root / f"{place.name}.lock"
        lock.touch()
        os.utime(lock, (time.time() - age_days * day_s,) * 2)
        return place

    free, held, recent, foreign = other("a", 40), other("b", 40), other("c", 20), root / "mine.lock"
    foreign.touch()
    os.utime(foreign, (0, 0))
    try:
        with subprocess.Popen(
            ["flock", "-s", f"{held}.lock", "sh", "-c", "echo; read x"], stdin=-1, stdout=-1
        ) as holder:
            assert holder.stdout is not None
            holder.stdout.readline()
            started = ready_repo.start("home")
            holder.communicate(b"\n")
        assert started.exit_code == 0
        assert started.stderr == f"run_dashboard.sh: removed {free}, which was unused for 30 days.\n"
        assert not free.exists()
        assert not (root / f"{free.name}.lock").exists()
        assert all(place.exists() for place in (held, recent, foreign))
        assert len(ready_repo.environments) == 1
    finally:  # other tests start this copy as well
        for place in (free, held, recent):
            shutil.rmtree(place, ignore_errors=True)
            (root / f"{place.name}.lock").unlink(missing_ok=True)
        foreign.unlink()


def test_on_a_terminal_one_line_follows_the_set_up(repo: Any) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([str(repo.script), "home"], env=repo.env, stderr=theirs, start_new_session=True)
    os.close(theirs)
    shown = ""
    while "\r\x1b[K  " not in shown:
        shown += os.read(ours, 4096).decode()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(DEADLINE_S)
    os.close(ours)
    assert "setting up the Python packages" in shown
