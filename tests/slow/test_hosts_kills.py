"""Random kills of everything that takes part in a night on a real Slurm: no two loads on a node, nothing lost."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard import homes, host_homes
from tests.dashboard.homes import HomeForTests
from tests.slow import slurm_cluster
from tests.slow.slurm_cluster import Cluster
from tests.slow.test_hosts_slurm import NODES, add_nodes, list_marked

KILLS = int(os.environ.get("TVMDASH_KILLS", "20"))
LONGEST_S = 5.0
RUN = """
exec 9>>"{root}/$TVMDASH_JOB.load"
flock -n 9 || echo "$TVMDASH_JOB in $TVMDASH_NIGHT" >> "{root}/overlaps"
sleep 0.5
"""
"""While it runs it holds a lock; a second load at the same time would not get it."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    missing = slurm_cluster.find_missing()
    if missing:
        pytest.skip(f"there is no Slurm here: {', '.join(missing)} missing (Debian: apt install slurm-wlm munge)")
    with slurm_cluster.started(tmp_path_factory.mktemp("slurm"), len(NODES)) as started:
        yield started


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    made = homes.make_home(tmp_path, tmp_path / "artifacts")
    run = homes.good("run", RUN.replace("{root}", str(made.root)))
    homes.write(
        made.experiment("plain", config={"hosts": ["local", *NODES]}, run=run) / "fields.json", {"needs_tvm": False}
    )
    return made


def test_no_kill_makes_two_loads_or_loses_a_number(home: HomeForTests, cluster: Cluster) -> None:
    env, rng = add_nodes(home, cluster, patience_minutes=2), random.Random(17)
    counts: dict[str, int] = {}
    for _ in range(KILLS):
        with homes.killed_at_end(home.start(env=env)) as night:
            time.sleep(rng.uniform(0, LONGEST_S))
            what = rng.choice(("night", "worker", "srun", "stage", "slurmd", "slurmctld"))
            counts[what] = counts.get(what, 0) + kill(what, home, cluster, night.pid, rng)
            night.wait(homes.DEADLINE_S)
        homes.wait_for(lambda: not list_marked(home), "every process of the night has ended", 15.0)
        if what != "slurmctld":  # it may have forgotten that the jobs ended; the next night ends them
            cluster.wait_until_idle()
    done = home.run_with(env)
    assert done.code == 0, done.output
    assert not (home.root / "overlaps").exists(), (home.root / "overlaps").read_text()
    for node in NODES:
        there = read_data(host_homes.folder(home, node) / "home", node)
        assert there.items() <= read_data(home.path, node).items()
        assert len(there) == len(set(there))
    print(f"kills that hit: {counts}; nights with data by node: {[len(read_data(home.path, node)) for node in NODES]}")


def kill(what: str, home: HomeForTests, cluster: Cluster, night: int, rng: random.Random) -> bool:
    """Kill one of these; whether there was one. A daemon is started again."""
    if what == "slurmctld":
        cluster.stop(what)
        time.sleep(rng.uniform(0, 2))
        cluster.start_controller()
        return True
    if what == "slurmd":
        node = rng.choice(NODES)
        cluster.stop(node)
        time.sleep(rng.uniform(0, 2))
        cluster.start_node(node)
        return True
    marked = list_marked(home)
    pids = {
        "night": [night],
        "worker": [pid for node in NODES for pid in host_homes.find_workers(home, node)],
        "srun": [pid for pid in marked if read_name(pid) == "srun"],
        "stage": [pid for pid in marked if read_name(pid) in ("sh", "run.sh", "sleep", "analyze.sh")],
    }[what]
    if pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(pids), signal.SIGKILL)
    return bool(pids)


def read_name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def read_data(root: Path, node: str) -> dict[str, bytes]:
    """By stamp, what the experiment measured on that node."""
    folder = root / "results" / "experiments" / "data" / f"plain~{node}"
    return {path.name: path.read_bytes() for path in folder.glob("data_*.json")}
