"""The queue of tries: what waits is measured once; what was stopped goes on; what is broken costs only itself."""

from __future__ import annotations

import getpass
import re
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dashboard.cli.arguments import HELD, OK_CODE, SOME_FAILED, USAGE
from dashboard.cli.main import main
from dashboard.trials import queue
from tests.dashboard import homes
from tests.dashboard import remeasure_homes as labs
from tests.dashboard.remeasure_homes import NAME, Lab
from tvmdash.common import structured
from tvmdash.common.files import lock
from tvmdash.dashboard_info import Home
from tvmdash.trials import files
from tvmdash.trials.trial import Trial, TrialRequest, TrialState, TrialTvm

REQUEST = TrialRequest("pypi:0.27.0", "ada", "20261121T031500Z", "pypi:0.26.0", until=0.02, rebuild=False)
SIDES = (TrialTvm("pypi:0.27.0", "new", "0.27.0"), TrialTvm("pypi:0.26.0", "old", "0.26.0"))


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """One whose times are known after one run where they scatter little."""
    return labs.make_lab_for_tries(tmp_path / "lab", pairs=10)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.nights.mkdir(parents=True)
    return made


def work(lab: Lab) -> homes.Finished:
    return lab.home.run("work", verb="tries")


def hang_at_the_second_run(lab: Lab) -> None:
    """Five pairs are not enough, and the second run is the first that names points."""
    labs.measure_in_turn(lab, pairs=5)
    lab.change(sigma=0.2, hang=True)


def read_tries(home: Home) -> dict[str, Trial]:
    """By the stamp."""
    return {path.stem: structured.from_json(Trial, homes.read(path), path) for path in files.list_files(home)}


def read_queue(home: Home) -> list[str]:
    return [waiting.id for waiting in files.list_requests(home)]


def change_request(home: Home, name: str, **fields: Any) -> None:
    path = files.queue_of(home) / f"{name}.json"
    homes.write(path, {**homes.read(path), **fields})


def list_tries(home: Home, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The lines of `tries`."""
    assert main(["tries", str(home.root), *words]) == OK_CODE
    return capsys.readouterr().out.splitlines()


def test_a_request_waits_until_it_is_measured_and_what_cannot_be_costs_only_itself(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    home, who = lab.home.home, getpass.getuser()
    broken, absent = files.add(home, REQUEST), files.add(home, replace(REQUEST, candidate="pypi:0.28.0"))
    change_request(home, broken, until="soon")
    asked = ("pypi:0.27.0", "--against", "pypi:0.26.0", "--until", "2%", "--no-rebuild-tvm", "--queue")
    queued = lab.home.run(*asked, verb="try")
    good = read_queue(home)[-1]
    assert (queued.code, f"{good} is queued." in queued.output, lab.runs()) == (OK_CODE, True, [])
    rows = list_tries(home, capsys)[1:]
    assert re.match(rf"{broken}  broken .*{broken}.json: \$.until: 'soon'", rows[0])
    assert rows[2].split() == [good, "queued", "pypi:0.27.0", "pypi:0.26.0", who]
    done = work(lab)
    assert done.code == SOME_FAILED, done.output
    assert "speed $.mlp +10" in done.output
    assert f"{broken}.json: $.until: 'soon'" in done.output
    assert (list(read_tries(home)), read_queue(home)) == ([good], [broken, absent])
    assert read_tries(home)[good].requests[good].by == who
    states = [row.split()[1] for row in list_tries(home, capsys)[1:]]
    assert states == ["broken", "failed", "done"]


def test_what_failed_waits_until_a_person_resumes_it(lab: Lab) -> None:
    home = lab.home.home
    name = files.add(home, replace(REQUEST, candidate="pypi:0.28.0"))
    assert name in work(lab).output
    again = work(lab)
    assert (again.code, name in again.output) == (OK_CODE, False)
    labs.put_artifact(lab.home.root / "shelf", "0.28.0")
    resumed = lab.home.run("resume", name, verb="tries")
    assert resumed.code == OK_CODE, resumed.output
    assert "Candidate: pypi:0.28.0" in resumed.output
    assert (list(read_tries(home)), read_queue(home)) == ([name], [])


def test_what_a_killed_worker_measured_counts_whatever_the_names_mean_by_now(lab: Lab) -> None:
    home = lab.home.home
    hang_at_the_second_run(lab)
    name = files.add(home, replace(REQUEST, candidate="pypi:latest", fresh=True, until=0.6))
    process = lab.home.start("work", verb="tries")
    with homes.killed_at_end(process):
        homes.wait_for((lab.home.root / "hangs").exists, "the second run")
    before = read_tries(home)[name]
    assert (before.state, before.runs, read_queue(home)) == (TrialState.RUNNING, {NAME: 1}, [name])
    labs.put_artifact(lab.home.root / "shelf", "0.28.0")
    lab.change(hang=False, sigma=0.0001)
    assert work(lab).code == OK_CODE
    ((stamp, after),) = read_tries(home).items()
    assert (stamp, after.state, after.candidate.version) == (name, TrialState.DONE, "0.27.0")
    assert all(new.runs[:1] == old.runs for new, old in zip(after.series, before.series, strict=True))


def test_one_that_is_cancelled_while_it_runs_keeps_what_it_measured_and_the_next_one_follows(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    home = lab.home.home
    hang_at_the_second_run(lab)
    first, second = (files.add(home, replace(REQUEST, until=until)) for until in (0.01, 0.9))
    process = lab.home.start("work", verb="tries")
    with homes.killed_at_end(process):
        homes.wait_for((lab.home.root / "hangs").exists, "the second run")
        assert f"{first}  running" in list_tries(home, capsys)[-2]
        lab.change(hang=False, sigma=0.0001)
        assert main(["tries", str(home.root), "cancel", first]) == OK_CODE
        assert "its measurements are kept" in capsys.readouterr().out
        output, _ = process.communicate(timeout=300)
    assert process.returncode == OK_CODE, output
    ((stamp, done),) = read_tries(home).items()
    assert (stamp, done.state, sorted(done.requests)) == (first, TrialState.DONE, [first, second]), (
        "it went on from there"
    )
    assert f"{first} was cancelled." in output
    assert not read_queue(home)


def test_a_worker_that_is_interrupted_leaves_its_request_in_the_queue(lab: Lab) -> None:
    hang_at_the_second_run(lab)
    name = files.add(lab.home.home, REQUEST)
    process = lab.home.start("work", verb="tries")
    with homes.killed_at_end(process):
        homes.wait_for((lab.home.root / "hangs").exists, "the second run")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)
    assert process.returncode == 130
    assert (read_queue(lab.home.home), read_tries(lab.home.home)[name].state) == ([name], TrialState.INTERRUPTED)


def test_the_budget_counts_what_was_measured_before_and_who_wants_more_resumes_it_by_its_id(lab: Lab) -> None:
    home = lab.home.home
    lab.change(sigma=0.001)
    name = files.add(home, replace(REQUEST, until=0.9))
    assert work(lab).code == OK_CODE
    path = home.tries / f"{name}.json"
    homes.write(path, {**homes.read(path), "state": "running", "measured_s": 7200.5})
    files.add(home, replace(REQUEST, until=0.0001), name)
    runs = len(lab.runs())
    assert work(lab).code == OK_CODE
    assert (read_tries(home)[name].state, len(lab.runs())) == (TrialState.OVER, runs)
    resumed = lab.home.run("resume", name, "--until", "90%", verb="tries")
    assert resumed.code == OK_CODE, resumed.output
    after = read_tries(home)[name]
    assert (after.state, len(lab.runs()), len(after.requests)) == (TrialState.DONE, runs, 2)
    assert not read_queue(home)


def stays_held(path: Path) -> bool:
    """Whether it is held for a while: who looks whether somebody waits holds it for an instant."""
    return all(time.sleep(0.02) is None and lock.is_held(path) for _ in range(10))


def test_who_waits_at_a_terminal_comes_before_the_rest_of_the_queue(home: Home) -> None:
    order, threads = [], []

    def wait(name: str, *, lets_others_pass: bool) -> None:
        with queue.take_turn(home, lets_others_pass=lets_others_pass):
            order.append(name)

    with queue.take_turn(home):
        for name, lets_others_pass in (("worker", True), ("person", False)):
            threads.append(threading.Thread(target=wait, args=(name,), kwargs={"lets_others_pass": lets_others_pass}))
            threads[-1].start()
        homes.wait_for(lambda: stays_held(home.tries / ".waiting"), "the person")
    for thread in threads:
        thread.join()
    assert order == ["person", "worker"]


def test_no_id_is_given_twice_also_within_one_second_and_after_its_request_has_gone(home: Home) -> None:
    given = []
    for is_begun in (True, False, True):
        given.append(files.begin(home, request=REQUEST)[0] if is_begun else files.add(home, REQUEST))
        files.take_away(home, given[-1])
    assert len(set(given)) == 3
    assert given == sorted(given)


@pytest.mark.parametrize("last", [b"\xff\xfe", b"99991231T235959Z", b"", b"yesterday"])
def test_ids_are_given_whatever_the_note_of_the_last_one_says(home: Home, last: bytes) -> None:
    files.add(home, REQUEST)
    (files.queue_of(home) / ".last").write_bytes(last)
    files.add(home, REQUEST)
    assert len(read_queue(home)) == 2


def test_a_second_worker_leaves_the_queue_to_the_first(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    files.add(home, REQUEST)
    held = lock.take(files.queue_of(home) / ".worker", "since noon")
    assert held is not None
    with held:
        assert main(["tries", str(home.root), "work"]) == HELD
    assert "already running its queue" in capsys.readouterr().err
    assert len(read_queue(home)) == 1


def test_a_request_that_waits_can_be_taken_out_by_the_beginning_of_its_id(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = files.add(home, REQUEST), files.add(home, REQUEST)
    assert first < second, "also within one second"
    assert main(["tries", str(home.root), "cancel", first[:4]]) == USAGE
    assert f"could be {first}, {second}." in capsys.readouterr().err
    assert main(["tries", str(home.root), "cancel", second]) == OK_CODE
    assert read_queue(home) == [first]
    assert main(["tries", str(home.root), "show", first]) == OK_CODE
    shown = capsys.readouterr().out
    for part in ("ada, 2026-11-21 03:15 UTC", "all", "±2 %", "2 h"):
        assert part in shown
    assert main(["tries", str(home.root), "show", "2020"]) == USAGE
    assert "has no try with that ID" in capsys.readouterr().err


def test_what_is_known_to_be_wrong_does_not_wait(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    for words, told in (
        (["nothing"], "nothing: not an artifact name"),
        (["pypi:0.27.0", "--experiments", "fast"], "--experiments: fast is not an active experiment of"),
        (["pypi:0.27.0", "--fail-over", "1%"], "--queue does not wait for the result"),
    ):
        assert main([*lab.home.command("try")[3:], *words, "--queue"]) == USAGE
        assert told in capsys.readouterr().err
    assert not read_queue(lab.home.home)


def test_of_many_tries_the_last_are_listed_and_all_that_wait(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    name = files.add(home, replace(REQUEST, asked_by="\x1b[31mada\nlovelace"))
    for number in range(30):
        stamp = f"2099110{1 + number // 10}T0000{number % 10}0Z"
        done = Trial(stamp, TrialState.RUNNING, *SIDES, 0.01, "vm (AMD)", {"e": "f"}, errors={"e": "it crashed"})
        homes.write(home.tries / f"{stamp}.json", structured.to_json(done))
    homes.write(home.tries / "20991104T000000Z.json", {"stamp": 1})
    lines = list_tries(home, capsys)
    assert len(lines) == 1 + 1 + 20 + 1
    assert re.match(rf"{name}  queued", lines[1])
    assert lines[2].split()[1:4] == ["interrupted", "pypi:0.27.0", "pypi:0.26.0"]
    assert lines[2].endswith("no conclusion; e failed")
    assert "20991104T000000Z  broken" in lines[-2]
    assert lines[-1].startswith("11 older tries")
    assert not set("\x1b") & set("".join(lines))
    assert len(list_tries(home, capsys, "list", "--all")) == 1 + 32
    shutil.rmtree(home.tries)
    assert list_tries(home, capsys) == ["No tries yet."]
