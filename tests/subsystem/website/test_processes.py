"""The website's work in several processes, each test in a Python of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.subsystem.website.sites import CONFIG, REPO, Site, assert_whole, job, stamp
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, Home

WEBSITE = REPO / "subsystem" / "website"
CORES = "import os; os.sched_getaffinity = lambda pid: range({})\n"
"""So that a test sees the same on every machine."""
LEFT = """
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("nothing is left")
"""


def python(script: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The script in a Python that finds the website's modules."""
    paths = f"{WEBSITE}:{REPO / 'shared' / 'python'}"
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": paths, "LC_ALL": "C.UTF-8", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def in_parts(work: str, cores: int = 4, before: str = "") -> subprocess.CompletedProcess[str]:
    """What `in_parts` prints for 100 numbers; `work` is an expression of `part`."""
    call = f"""
import json, signal
from files import forked
here = os.getpid()
try:
    print(json.dumps(forked.in_parts(lambda part: {work}, range(100), least=10)))
finally:
{LEFT.replace(chr(10), chr(10) + "    ")}
"""
    return python(CORES.format(cores) + before + call)


def test_parts_are_worked_on_by_processes_and_come_back_in_order() -> None:
    done = in_parts("[os.getpid(), *part]")
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    parts: list[list[int]] = json.loads(told[0])
    assert [number for part in parts for number in part[1:]] == list(range(100))
    assert len({part[0] for part in parts}) == len(parts) == 4
    assert told[1] == "nothing is left"


@pytest.mark.parametrize(("work", "least"), [("len(part)", 1), ("[os.getpid() == here, len(part)]", 4)])
def test_a_process_with_threads_and_one_core_do_all_themselves(work: str, least: int) -> None:
    threads = "import threading; end = threading.Event(); threading.Thread(target=end.wait, daemon=True).start()\n"
    done = in_parts(work, cores=least, before=threads if least > 1 else "")
    assert json.loads(done.stdout.splitlines()[0]) == ([100] if least == 1 else [[True, 100]]), done.stderr


def test_what_goes_wrong_in_a_process_is_raised_with_its_place() -> None:
    done = in_parts("1 // (99 not in part)")
    assert "ZeroDivisionError: integer division or modulo by zero" in done.stderr
    assert "in a process that wrote a part of the site:" in done.stderr
    assert done.returncode == 1
    assert done.stdout == "nothing is left\n"


def test_a_fault_here_ends_the_other_processes() -> None:
    done = in_parts("signal.pause() if 0 not in part else 1 // 0")
    assert "ZeroDivisionError" in done.stderr
    assert done.stdout == "nothing is left\n"


def test_a_process_that_is_killed_is_told() -> None:
    done = in_parts("os.kill(os.getpid(), signal.SIGKILL) if 99 in part else 0")
    assert "DashboardError: A process that writes part of the site was killed" in done.stderr
    assert done.stdout == "nothing is left\n"


PUBLISH = """
import datetime, sys
from pathlib import Path
import publishing
from tvmdash.dashboard_info import Home
home, folder = Home(Path(sys.argv[1])), Path(sys.argv[2])
publishing.publish(home, home.read_night(home.night_stamps()[-1]), folder, datetime.datetime(2026, 11, 21, 5,
    tzinfo=datetime.timezone.utc))
"""


@pytest.fixture
def long_site(tmp_path: Path) -> Site:
    """With 150 nights, more than one process writes."""
    site = Site(Home(tmp_path / "home"))
    for ago in range(149, -1, -1):
        site.night(job("cnn", stamp(ago)), at=stamp(ago), state=COMPLETE)
    return site


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_several_processes_write_the_same_site_as_one(long_site: Site, tmp_path: Path) -> None:
    for cores in (1, 4):
        done = python(CORES.format(cores) + PUBLISH, long_site.home.root, tmp_path / f"by{cores}")
        assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "by1") == contents(tmp_path / "by4")
    assert len(list((tmp_path / "by4" / "nights").glob("*Z.html"))) == 150


def test_a_publish_whose_process_is_killed_fails_and_leaves_the_old_site(long_site: Site) -> None:
    long_site.published()
    before = contents(long_site.folder)
    for ago in range(150):
        long_site.night(job("cnn", stamp(ago), title="Another"), at=stamp(ago), state=COMPLETE)
    killed = """
import os, signal, sys, website
from pages import nights
here, write = os.getpid(), nights._write_night
def _write_night(context, page, new):
    if os.getpid() != here:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(context, page, new)
nights._write_night = _write_night
sys.exit(website.Website().main(sys.argv[1:]))
"""
    done = python(CORES.format(2) + killed, CONFIG, long_site.folder, long_site.home.root)
    assert done.returncode == 1
    assert "was killed" in common.read_json(long_site.folder / "status.json")["message"]
    assert {**contents(long_site.folder), "status.json": b""} == {**before, "status.json": b""}
    assert [path.name for path in long_site.folder.parent.iterdir()] == ["website"]
    assert_whole(long_site)
