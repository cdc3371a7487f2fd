"""Hosts that are nodes of a real Slurm: nights, and each fault that a cluster has."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import homes, host_homes
from tests.dashboard.homes import HomeForTests
from tests.slow import slurm_cluster
from tests.slow.slurm_cluster import Cluster

pytestmark = pytest.mark.slow
NODES = ("n1", "n2", "n3")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with slurm_cluster.started_or_skipped(tmp_path_factory.mktemp("slurm"), len(NODES)) as started:
        yield started


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    made = homes.make_home(tmp_path, tmp_path / "artifacts")
    homes.write(made.experiment("plain", config={"hosts": list(NODES)}) / "fields.json", {"needs_tvm": False})
    return made


def add_nodes(home: HomeForTests, cluster: Cluster, **fields: Any) -> dict[str, str]:
    """Make each node a host of the home; the environment of a night on it."""
    return slurm_cluster.add_nodes(home, cluster, *NODES, **fields)


def read_hosts(home: HomeForTests) -> dict[str, dict[str, Any]]:
    return {host["name"]: host for host in home.last()["hosts"]}


def list_marked(home: HomeForTests) -> list[int]:
    """The processes of a night of the home or of a host's home."""
    begin = b"TVMDASH_STAGE_ID=" + os.fsencode(home.root)
    return [pid for pid in homes.pids() if any(item.startswith(begin) for item in homes.environment_of(pid))]


def test_each_node_measures_its_share_and_all_comes_home(home: HomeForTests, cluster: Cluster) -> None:
    env = add_nodes(home, cluster)
    for _ in range(2):
        done = home.run_with(env)
        assert done.code == 0, done.output
    assert {name: host["node"] for name, host in read_hosts(home).items()} == {name: name for name in NODES}
    for name in NODES:
        assert len(list(home.home.data(f"plain~{name}").iterdir())) == 2
    cluster.wait_until_idle()


@pytest.mark.parametrize("state", ["DRAIN", "DOWN"])
def test_a_node_that_is_drained_or_down_is_named_and_the_others_measure(
    state: str, home: HomeForTests, cluster: Cluster
) -> None:
    env = add_nodes(home, cluster, patience_minutes=1)
    cluster.call("scontrol", "update", "NodeName=n2", f"State={state}", "Reason=test")
    try:
        done = home.run_with(env)
    finally:
        cluster.call("scontrol", "update", "NodeName=n2", "State=RESUME")
    assert done.code == 1
    hosts = read_hosts(home)
    assert {name: host["state"] for name, host in hosts.items()} == {"n1": "measured", "n2": "away", "n3": "measured"}
    assert "n2: connection closed. Last output: srun: " in hosts["n2"]["why"]
    assert hosts["n2"]["why"].endswith(" Look at: sinfo -N -l -n n2")
    cluster.wait_until_idle()


def test_a_node_that_others_use_is_waited_for_as_long_as_the_config_says(home: HomeForTests, cluster: Cluster) -> None:
    env = add_nodes(home, cluster, patience_minutes=1)
    blocker = subprocess.Popen(["srun", "-w", "n3", "--exclusive", "sleep", "20"], env={**os.environ, **cluster.env})
    time.sleep(2)
    begun = time.monotonic()
    done = home.run_with(env)
    assert blocker.wait() == 0
    assert done.code == 0, done.output
    assert time.monotonic() - begun > 10
    assert {host["state"] for host in read_hosts(home).values()} == {"measured"}
    cluster.wait_until_idle()


def test_what_takes_longer_than_its_time_is_ended_and_named(home: HomeForTests, cluster: Cluster) -> None:
    homes.write(
        home.experiment("slow", config={"hosts": ["n1"]}, run=homes.good("run", "sleep 400")) / "fields.json",
        {"needs_tvm": False},
    )
    env = add_nodes(home, cluster, time_limit_minutes=1, patience_minutes=1)
    done = home.run_with(env)
    assert done.code == 1
    hosts = read_hosts(home)
    assert hosts["n1"]["state"] == "lost"
    assert hosts["n2"]["state"] == "measured"
    assert not host_homes.find_workers(home, "n1")
    cluster.wait_until_idle()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_when_the_night_ends_early_nothing_of_it_lives_on_a_node(
    home: HomeForTests, cluster: Cluster, number: signal.Signals
) -> None:
    run = homes.good("run", f'touch "{home.root}/began"; while [ ! -e "{home.root}/go" ]; do sleep 0.05; done')
    homes.write(home.experiment("slow", config={"hosts": ["n1"]}, run=run) / "fields.json", {"needs_tvm": False})
    env = add_nodes(home, cluster)
    with homes.killed_at_end(home.start(env=env)) as night:
        homes.wait_for((home.root / "began").exists, "the node measures")
        os.kill(night.pid, number)
        night.wait(homes.DEADLINE_S)
        homes.wait_for(lambda: not list_marked(home), "every process of the night has ended", 10.0)
    cluster.wait_until_idle()
    (home.root / "go").touch()
    done = home.run_with(env)
    assert done.code == 0, done.output
    assert read_hosts(home)["n1"]["late"] == [home.stamps()[0]]
    cluster.wait_until_idle()


def test_a_controller_that_does_not_answer_is_named(home: HomeForTests, cluster: Cluster) -> None:
    env = add_nodes(home, cluster, patience_minutes=1)
    cluster.stop("slurmctld")
    try:
        done = home.run_with(env)
    finally:
        cluster.start_controller()
    assert done.code == 1
    assert {host["state"] for host in read_hosts(home).values()} == {"away"}
    assert all("srun: error" in host["why"] for host in read_hosts(home).values())
    cluster.wait_until_idle()
