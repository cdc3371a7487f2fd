"""Random kills of everything that takes part in a night on a real Slurm: no two loads on a node, nothing lost."""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen

import pytest

from tests.dashboard import homes, host_homes
from tests.dashboard.homes import HomeForTests
from tests.slow import slurm_cluster
from tests.slow.slurm_cluster import Cluster
from tests.slow.test_hosts_slurm import NODES, add_nodes, list_marked

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("TVMDASH_KILLS", "20"))
"""How many kills there are; each home has at most KILLS_A_HOME of them, and is then checked."""
KILLS_A_HOME = 60
KINDS = ("night", "worker", "srun", "stage", "slurmd", "slurmctld")
LAST_PROCESS_S = 10.0
RUN = """
exec 9>>"{root}/$TVMDASH_JOB.load"
flock -n -E 75 9 || [ $? != 75 ] || echo "$TVMDASH_JOB in $TVMDASH_NIGHT" >> "{root}/overlaps"
sleep 1
"""
"""While it runs it holds a lock; a second load at the same time would not get it, and not because flock was killed."""
MEASURED = """echo "$TVMDASH_NIGHT" >> "{root}/$TVMDASH_JOB.measured"\n"""
"""The last line of `run`: from here on the number must not be lost."""
JOBS = ("plain", *(f"plain~{node}" for node in NODES))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with slurm_cluster.started_or_skipped(tmp_path_factory.mktemp("slurm"), len(NODES)) as started:
        yield started


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    made = homes.make_home(tmp_path, tmp_path / "artifacts")
    run = (homes.good("run", RUN) + MEASURED).replace("{root}", str(made.root))
    homes.write(
        made.experiment("plain", config={"hosts": ["local", *NODES]}, run=run) / "fields.json", {"needs_tvm": False}
    )
    return made


@dataclass
class Killer:
    """Kills what takes part in nights. hits: by kind. spoiled: job and night of each stage that it killed."""

    home: HomeForTests
    cluster: Cluster
    rng: random.Random
    hits: Counter[str] = field(default_factory=Counter)
    spoiled: set[tuple[str, str]] = field(default_factory=set)

    def strike(self, night: Popen[str]) -> str:
        """Kill something at random while the night goes on; its kind, empty where the night had ended.

        A daemon is started again.
        """
        for what in self.rng.sample(KINDS, len(KINDS)):
            if night.poll() is None and self._kill(what, night.pid):
                self.hits[what] += 1
                return what
        return ""

    def _kill(self, what: str, night: int) -> bool:
        if what == "slurmctld":
            self.cluster.stop(what)
            time.sleep(self.rng.uniform(0, 2))
            self.cluster.start_controller()
            return True
        if what == "slurmd":
            node = self.rng.choice(NODES)
            self.cluster.stop(node)
            time.sleep(self.rng.uniform(0, 2))
            self.cluster.start_node(node)
            return True
        return self._kill_one(self._list_pids(what, night), is_stage=what == "stage")

    def _list_pids(self, what: str, night: int) -> list[int]:
        if what == "night":
            return [night]
        if what == "worker":
            return [pid for node in NODES for pid in host_homes.find_workers(self.home, node)]
        names = ("srun",) if what == "srun" else ("sh", "run.sh", "sleep", "analyze.sh")
        return [pid for pid in list_marked(self.home) if read_name(pid) in names]

    def _kill_one(self, pids: list[int], *, is_stage: bool) -> bool:
        if not pids:
            return False
        pid = self.rng.choice(pids)
        words = dict(item.partition(b"=")[::2] for item in homes.environment_of(pid))
        if is_stage:
            self.spoiled.add((words.get(b"TVMDASH_JOB", b"").decode(), words.get(b"TVMDASH_NIGHT", b"").decode()))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return True


@pytest.mark.parametrize("seed", range(math.ceil(KILLS / KILLS_A_HOME)))
def test_no_kill_makes_two_loads_or_loses_a_number(seed: int, home: HomeForTests, cluster: Cluster) -> None:
    env, killer = add_nodes(home, cluster, patience_minutes=2), Killer(home, cluster, random.Random(17 + seed))
    done = home.run_with(env)
    assert done.code == 0, done.output
    usual_s, begun, lingered_s = done.seconds, time.monotonic(), 0.0
    while killer.hits.total() < min(KILLS_A_HOME, KILLS - seed * KILLS_A_HOME):
        with homes.killed_at_end(home.start(env=env)) as night:
            time.sleep(killer.rng.uniform(0, usual_s))
            what = killer.strike(night)
            night.wait(homes.DEADLINE_S)
        ended = time.monotonic()
        homes.wait_for(lambda: not list_marked(home), "every process of the night has ended", LAST_PROCESS_S)
        lingered_s = max(lingered_s, time.monotonic() - ended)
        if what != "slurmctld":  # it may have forgotten that the jobs ended; the next night ends them
            cluster.wait_until_idle()
    done = home.run_with(env)
    assert done.code == 0, done.output
    assert not (home.root / "overlaps").exists(), (home.root / "overlaps").read_text()
    check_all_came_home_once(home, killer.spoiled)
    print(
        f"kills that hit: {dict(killer.hits)}; nights: {len(home.stamps())}, in {time.monotonic() - begun:.0f} s; with"
        f" data: { ({job: len(read_data(home.path, job)) for job in JOBS}) }; stages killed: {len(killer.spoiled)};"
        f" the last process of a night ended after {lingered_s:.1f} s at most"
    )


def check_all_came_home_once(home: HomeForTests, spoiled: set[tuple[str, str]]) -> None:
    """Each number that was measured is at home, byte for byte."""
    for job in JOBS:
        at_home = read_data(home.path, job)
        measured = {stamp for stamp in read_lines(home.root / f"{job}.measured") if (job, stamp) not in spoiled}
        assert measured <= set(at_home), f"{job}: {sorted(measured - set(at_home))} lost"
    for node in NODES:
        there = read_data(host_homes.folder(home, node) / "home", f"plain~{node}")
        assert there.items() <= read_data(home.path, f"plain~{node}").items()


def read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def read_name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def read_data(root: Path, job: str) -> dict[str, bytes]:
    """By stamp, what a job measured."""
    folder = root / "results" / "experiments" / "data" / job
    return {path.stem.removeprefix("data_"): path.read_bytes() for path in folder.glob("data_*.json")}
