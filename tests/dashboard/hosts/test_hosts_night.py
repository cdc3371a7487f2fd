"""Nights on several hosts: real workers, reached by what stands in for ssh."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from dashboard.night.context import night_mark
from tests.dashboard import homes, host_homes
from tests.dashboard.homes import HomeForTests

WAITS = homes.good("run", 'touch "{root}/began-$TVMDASH_JOB"; while [ ! -e "{root}/go" ]; do sleep 0.05; done')


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    """A home whose one experiment is measured here and on the host box."""
    made = homes.make_home(tmp_path, tmp_path / "artifacts")
    add_experiment(made)
    return made


def add_experiment(
    home: HomeForTests, name: str = "plain", *, hosts: tuple[str, ...] = ("local", "box"), **scripts: str
) -> None:
    folder = home.experiment(name, config={"hosts": list(hosts)}, **scripts)
    homes.write(folder / "fields.json", {"needs_tvm": False})


def list_processes_of(home: HomeForTests) -> list[int]:
    """Those that carry a mark of a night of the home or of one of its hosts' homes."""
    marks = [
        os.fsencode(f"TVMDASH_STAGE_ID={night_mark(home.home, '')}"),
        os.fsencode(f"TVMDASH_STAGE_ID={home.root}/hosts"),
    ]
    return [
        pid
        for pid in homes.pids()
        for mark in marks
        if any(item.startswith(mark) for item in homes.environment_of(pid))
    ]


def read_host(home: HomeForTests) -> dict[str, object]:
    (host,) = home.last()["hosts"]
    return dict(host)


def test_what_a_host_measured_comes_home_as_a_job_of_its_own(home: HomeForTests) -> None:
    env = host_homes.add_hosts(home, "box")
    assert home.run_with(env).code == 0
    assert home.states("plain~box") == home.states("plain")
    stamp = home.stamps()[-1]
    data = homes.read(home.home.data_file("plain~box", stamp))
    assert (data["value"], data["timestamp"], data["night"]["machine"]) == (1.5, stamp, "box")
    assert home.home.graph("plain~box").joinpath("graph.svg").read_text() == f"graph of {stamp}\n"
    assert (read_host(home)["state"], read_host(home)["why"]) == ("measured", "")
    there = host_homes.folder(home, "box")
    assert (there / "acknowledged" / stamp).is_file()
    assert not list((there / "outbox").iterdir())


def test_nothing_comes_home_while_it_would_disturb_what_is_measured_here(home: HomeForTests) -> None:
    env = host_homes.add_hosts(home, "box")
    there, arrived = host_homes.folder(home, "box"), home.root / "arrived"
    measured = f"{there}/home/results/experiments/data/*/data_*.json"
    look = (
        f'until ls {measured} 2>/dev/null; do sleep 0.02; done; sleep 0.5; ls {there}/acknowledged >"{arrived}" || true'
    )
    add_experiment(home, "ours", hosts=("local",), run=homes.good("run", look))
    assert home.run_with(env).code == 0
    assert arrived.read_text() == ""
    assert (there / "acknowledged" / home.stamps()[-1]).is_file()


def test_a_host_is_not_told_what_it_does_not_need(home: HomeForTests) -> None:
    add_experiment(home, "ours", hosts=("local",))
    home.subsystem("website", config={"notify": ["U012"]})
    home.configure(heartbeat_url="http://127.0.0.1:9/secret-1", website_url="http://127.0.0.1:9/")
    env = host_homes.add_hosts(home, "box")
    assert home.run_with({**env, "SLACK_TOKEN": "secret-2"}).code == 0
    there = host_homes.folder(home, "box")
    assert sorted(path.name for path in (there / "home" / "config" / "experiments").iterdir()) == ["plain"]
    assert not (there / "home" / "config" / "subsystem").exists()
    text = "".join(path.read_text(errors="replace") for path in (there / "home").rglob("*") if path.is_file())
    assert "secret" not in text


def test_a_host_gets_the_code_once_and_what_it_measured_is_kept_by_night(home: HomeForTests) -> None:
    env = host_homes.add_hosts(home, "box")
    for _ in range(2):
        assert home.run_with(env).code == 0
    assert len(home.stamps()) == 2
    assert [path.name for path in sorted(home.home.data("plain~box").iterdir())] == [
        f"data_{stamp}.json" for stamp in home.stamps()
    ]
    assert len(list((host_homes.folder(home, "box") / "code").iterdir())) == 1


def test_a_host_that_is_away_costs_its_own_jobs_and_is_named(home: HomeForTests) -> None:
    env = host_homes.add_hosts(home, "box")
    (home.root / "hosts" / "box.away").touch()
    done = home.run_with(env)
    assert done.code == 1
    assert "plain~box blocked" in done.output
    assert home.states("plain")["summarize"] == "ok"
    assert set(home.states("plain~box").values()) == {"ok", "blocked"}
    step = home.status("plain~box", "run")
    assert "box: connection closed. Last output: ssh: connect to host box port 22: No route to host" in step["message"]
    assert step["message"].endswith("host-box.log) Try: ssh box true")
    assert (step["reason"], step["subject"]) == ("host_away", "box")
    assert read_host(home)["state"] == "away"


def test_a_stage_that_fails_on_a_host_fails_its_job_with_its_log(home: HomeForTests) -> None:
    add_experiment(home, "bad", hosts=("box",), run="#!/bin/sh\necho it is broken; exit 3\n")
    assert home.run_with(host_homes.add_hosts(home, "box")).code == 1
    assert home.states("bad~box") == {
        "precheck": "ok", "run": "failed", "analyze": "blocked", "visualize": "blocked", "summarize": "blocked"
    }  # fmt: skip
    assert "it is broken" in home.log("bad~box", "run").read_text()
    assert home.states("plain~box")["summarize"] == "ok"


def test_hosts_measure_side_by_side_and_each_alone(home: HomeForTests) -> None:
    run = WAITS.replace("{root}", str(home.root))
    add_experiment(home, "both", hosts=("box", "desk"), run=run)
    env = host_homes.add_hosts(home, "box", "desk")
    with homes.killed_at_end(home.start(env=env)) as night:
        homes.wait_for(lambda: len(list(home.root.glob("began-both*"))) == 2, "both hosts measure")
        (home.root / "go").touch()
        assert night.wait(homes.DEADLINE_S) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_when_the_night_ends_early_nothing_of_it_lives_on_a_host(home: HomeForTests, number: signal.Signals) -> None:
    run = WAITS.replace("{root}", str(home.root))
    add_experiment(home, "long", hosts=("box",), run=run)
    env = host_homes.add_hosts(home, "box")
    with homes.killed_at_end(home.start(env=env)) as night:
        homes.wait_for(lambda: list(home.root.glob("began-long~box")), "the host measures")
        os.kill(night.pid, number)
        night.wait(homes.DEADLINE_S)
        homes.wait_for(lambda: not list_processes_of(home), "every process of the night has ended", 10.0)
    (home.root / "go").touch()
    assert home.run_with(env).code == 0
    first, second = home.stamps()
    assert home.home.data_file("plain~box", second).is_file()
    host = read_host(home)
    assert (host["state"], host["late"]) == ("measured", [first])


def test_what_was_measured_before_the_worker_was_killed_comes_home_with_the_next_night(home: HomeForTests) -> None:
    home.configure(randomize=False)
    run = WAITS.replace("{root}", str(home.root))
    add_experiment(home, "slow", hosts=("box",), run=run)
    env = host_homes.add_hosts(home, "box")
    with homes.killed_at_end(home.start(env=env)) as night:
        homes.wait_for(lambda: list(home.root.glob("began-slow~box")), "the host measures")
        (worker,) = host_homes.find_workers(home, "box")
        os.kill(worker, signal.SIGKILL)
        assert night.wait(homes.DEADLINE_S) == 1
    assert read_host(home)["state"] == "lost"
    homes.wait_for(lambda: not list_processes_of(home), "every process of the host's night has ended", 10.0)
    (home.root / "go").touch()
    assert home.run_with(env).code == 0
    first, second = home.stamps()
    assert read_host(home)["late"] == [first]
    assert f"box delivered its measurements of {first}." in home.last()["notes"]
    stamps = [path.name for path in sorted(home.home.data("slow~box").iterdir())]
    assert stamps == [f"data_{second}.json"]


def test_a_machine_measures_for_one_home_at_a_time(home: HomeForTests, tmp_path: Path) -> None:
    other = homes.make_home(tmp_path / "other", tmp_path / "other" / "artifacts")
    run = WAITS.replace("{root}", str(other.root))
    homes.write(other.experiment("long", run=run) / "fields.json", {"needs_tvm": False})
    env = host_homes.add_hosts(home, "box")
    with homes.killed_at_end(other.start(env={"SLURMD_NODENAME": f"{os.environ['SLURMD_NODENAME']}-box"})) as night:
        homes.wait_for(lambda: list(other.root.glob("began-long")), "the other home measures")
        home.configure(hosts={"box": {**homes.read(home.home.config_file)["hosts"]["box"], "patience_minutes": 1}})
        with homes.killed_at_end(home.start(env=env)) as waiting:
            time.sleep(1)
            assert waiting.poll() is None
            (other.root / "go").touch()
            assert night.wait(homes.DEADLINE_S) == 0
            assert waiting.wait(homes.DEADLINE_S) == 0


def test_plan_says_which_host_measures_what(home: HomeForTests) -> None:
    add_experiment(home, "away", hosts=("box",))
    env = host_homes.add_hosts(home, "box")
    assert home.run_with(env).code == 0
    said = home.run_with(env, verb="plan").output
    assert "Host box (ssh box): away, plain (at most 8 h)." in said
    assert "run:       plain (at most" in said
    assert "  Together on box, at the same time, " in said


def test_check_says_of_each_host_what_is_in_the_way(home: HomeForTests) -> None:
    add_experiment(home, hosts=("box", "desk", "full"))
    env = host_homes.add_hosts(home, "box", "desk", "full", "unused")
    for name in ("desk", "unused"):
        (home.root / "hosts" / f"{name}.away").touch()
    hosts = homes.read(home.home.config_file)["hosts"]
    home.configure(hosts={**hosts, "full": {**hosts["full"], "folder": "/proc/tvm"}})
    done = home.run_with(env, verb="check")
    assert done.code == 2
    lines = [line for line in done.output.splitlines() if line.startswith("Host ")]
    assert len(lines) == 3, done.output
    assert lines[0].startswith(
        "Host desk: cannot be reached: ssh: connect to host desk port 22: No route to host. Try: ssh desk true"
    )
    assert lines[1] == (
        "Host full: /proc/tvm cannot be created or written. Change its owner, or set "
        "$.hosts.full.folder to another folder."
    )
    assert lines[2].startswith("Host full: /proc/tvm: only 0.0 GB free")
