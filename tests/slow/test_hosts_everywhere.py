"""What nights with hosts promise, over a real ssh and on nodes of a real Slurm: the tests of the stand-in once more."""

from __future__ import annotations

import functools
import getpass
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.dashboard import homes, host_homes
from tests.dashboard.homes import HomeForTests
from tests.dashboard.hosts import test_copies as copies
from tests.dashboard.hosts import test_hosts_faults as faults
from tests.dashboard.hosts import test_hosts_night as nights
from tests.slow import slurm_cluster, ssh_server

pytestmark = pytest.mark.slow
SSH, SLURM = "ssh", "slurm"
Adding = Callable[..., dict[str, str]]
NODES = {"box": "n1", "desk": "n2"}
ALONE = (
    faults.test_a_host_whose_clock_is_off_measures_and_the_night_says_so,
    faults.test_a_disk_that_is_full_before_the_night_is_named_with_the_host,
    faults.test_a_disk_that_fills_up_in_run_fails_the_job_and_names_the_host,
    faults.test_what_cannot_be_handed_over_for_a_full_disk_comes_with_the_next_night,
    faults.test_what_a_hosts_own_night_notes_is_told_at_home,
    faults.test_results_that_the_home_cannot_take_are_set_aside_and_named,
    faults.test_late_results_that_the_home_cannot_take_cost_tonights_nothing,
    faults.test_the_same_results_again_change_nothing_and_others_for_that_night_are_named,
    faults.test_what_an_interrupted_worker_had_measured_comes_home_with_the_next_night,
    functools.partial(faults.test_a_host_with_another_tvm_or_a_damaged_one_measures_tonights, "damaged"),
    functools.partial(faults.test_a_host_with_another_tvm_or_a_damaged_one_measures_tonights, "another"),
    faults.test_a_disk_that_is_full_at_home_is_not_said_of_the_host,
    copies.test_a_tvm_that_is_not_healthy_on_a_host_is_told_with_the_host_and_is_not_measured_there,
)
"""Their experiment is measured on the host alone."""
TOGETHER = (
    nights.test_what_a_host_measured_comes_home_as_a_job_of_its_own,
    nights.test_a_host_is_not_told_what_it_does_not_need,
    nights.test_a_stage_that_fails_on_a_host_fails_its_job_with_its_log,
    nights.test_hosts_measure_side_by_side_and_each_alone,
    functools.partial(nights.test_when_the_night_ends_early_nothing_of_it_lives_on_a_host, number=signal.SIGINT),
    functools.partial(nights.test_when_the_night_ends_early_nothing_of_it_lives_on_a_host, number=signal.SIGKILL),
    nights.test_what_was_measured_before_the_worker_was_killed_comes_home_with_the_next_night,
)
"""Their experiment is measured at home as well."""


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Adding]]:
    """By way, what gives a home hosts that are reached so; a way that is not here is missing."""
    with ExitStack() as stack:
        found: dict[str, Adding] = {}
        if not ssh_server.find_missing():
            found[SSH] = stack.enter_context(ssh_server.started(tmp_path_factory.mktemp("ssh"))).add_hosts
        if not slurm_cluster.find_missing():
            cluster = stack.enter_context(slurm_cluster.started(tmp_path_factory.mktemp("slurm"), len(NODES)))
            found[SLURM] = functools.partial(add_nodes, cluster)
        yield found


def add_nodes(cluster: slurm_cluster.Cluster, home: HomeForTests, *names: str) -> dict[str, str]:
    cluster.wait_until_idle()
    env = slurm_cluster.add_nodes(home, cluster, *names)
    hosts = homes.read(home.home.config_file)["hosts"]
    home.configure(hosts={name: {**host, "node": NODES[name]} for name, host in hosts.items()})
    return env


def put_in_place(way: str, ways: dict[str, Adding], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests reach their hosts that way."""
    if way not in ways:
        pytest.skip(f"there is no {way} here (Debian: apt install openssh-server slurm-wlm munge)")
    original, adding = host_homes.add_hosts, ways[way]

    def add_hosts(home: HomeForTests, *names: str) -> dict[str, str]:
        with monkeypatch.context() as within:
            within.setattr(host_homes, "add_hosts", original)
            return adding(home, *names)

    monkeypatch.setattr(host_homes, "add_hosts", add_hosts)


def name_case(case: Callable[..., None]) -> str:
    of = case.func.__name__ if isinstance(case, functools.partial) else case.__name__
    more = [*case.args, *case.keywords.values()] if isinstance(case, functools.partial) else []
    return "-".join([of.removeprefix("test_"), *(str(getattr(item, "name", item)) for item in more)])


@pytest.mark.parametrize("way", [SSH, SLURM])
@pytest.mark.parametrize("case", [*ALONE, *TOGETHER], ids=name_case)
def test_the_same_holds_over(
    case: Callable[[HomeForTests], None],
    way: str,
    ways: dict[str, Adding],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_in_place(way, ways, monkeypatch)
    home = homes.make_home(tmp_path, tmp_path / "artifacts")
    if case in ALONE[-1:]:
        home.experiment("plain", config={"hosts": ["box"]})
    else:
        nights.add_experiment(home, hosts=("box",) if case in ALONE else ("local", "box"))
    case(home)


@pytest.mark.parametrize("way", [SSH, SLURM])
@pytest.mark.parametrize("side", ["here", "there"])
def test_a_connection_that_is_cut_in_run_leaves_no_load_and_loses_nothing(
    side: str, way: str, ways: dict[str, Adding], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_place(way, ways, monkeypatch)
    home = homes.make_home(tmp_path, tmp_path / "artifacts", randomize=False)
    nights.add_experiment(home, hosts=("box",))
    nights.add_experiment(home, "slow", hosts=("box",), run=nights.WAITS.replace("{root}", str(home.root)))
    env = host_homes.add_hosts(home, "box")
    with homes.killed_at_end(home.start(env=env)) as night:
        homes.wait_for(lambda: list(home.root.glob("began-slow~box")), "the host measures")
        (worker,) = host_homes.find_workers(home, "box")
        names = {"here": ("ssh", "srun"), "there": ("sshd", "slurmstepd")}[side]
        near = list_ancestors(worker) if side == "there" else nights.list_processes_of(home)
        for pid in [pid for pid in near if read_name(pid) in names][: 1 if side == "there" else None]:
            with suppress(ProcessLookupError):  # srun's second process ends with the first
                os.kill(pid, signal.SIGKILL)
        assert night.wait(homes.DEADLINE_S) == 1
        homes.wait_for(lambda: not nights.list_processes_of(home), "every process of the night has ended", 10.0)
    host = nights.read_host(home)
    assert host["state"] == "lost"
    assert str(host["why"]).startswith("box: ")
    (home.root / "go").touch()
    assert home.run_with(env).code == 0
    first, second = home.stamps()
    assert nights.read_host(home)["late"] == [first]
    assert home.home.data_file("plain~box", first).is_file()
    assert home.home.data_file("slow~box", second).is_file()


def list_ancestors(pid: int) -> list[int]:
    """The processes above this one, the nearest first."""
    above = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        above.append(pid)
    return above


def read_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("key", f"{getpass.getuser()}@127.0.0.1: Permission denied (publickey)."),
        ("port", "ssh: connect to host 127.0.0.1 port 1: Connection refused"),
        ("name", "ssh: Could not resolve hostname nowhere.invalid: "),
    ],
)
def test_what_ssh_says_of_a_host_that_cannot_be_reached_is_told(
    fault: str, words: str, ways: dict[str, Adding], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_place(SSH, ways, monkeypatch)
    home = homes.make_home(tmp_path, tmp_path / "artifacts")
    nights.add_experiment(home)
    env = host_homes.add_hosts(home, "box")
    options = {"key": "-o PubkeyAuthentication=no", "port": "-p 1", "name": "-o HostName=nowhere.invalid"}[fault]
    ssh = home.root / "bin" / "ssh"
    homes.script(ssh, ssh.read_text().replace(" -F ", f" {options} -F "))
    assert home.run_with(env).code == 1
    host = nights.read_host(home)
    assert host["state"] == "away"
    assert f"box: connection closed. Last output: {words}" in str(host["why"])
    assert home.states("plain")["summarize"] == "ok"


def test_what_takes_longer_than_its_time_over_ssh_is_ended_and_named(
    ways: dict[str, Adding], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_place(SSH, ways, monkeypatch)
    home = homes.make_home(tmp_path, tmp_path / "artifacts")
    nights.add_experiment(home, "slow", hosts=("box",), run=homes.good("run", "sleep 400"))
    env = host_homes.add_hosts(home, "box")
    (host,) = homes.read(home.home.config_file)["hosts"].values()
    home.configure(hosts={"box": {**host, "time_limit_minutes": 1, "patience_minutes": 1}})
    assert home.run_with(env).code == 1
    assert nights.read_host(home)["state"] == "lost"
    assert str(nights.read_host(home)["why"]).startswith(
        "box: stopped after 2 minutes (patience_minutes plus time_limit_minutes) before it had measured everything."
        " Raise $.hosts.box.time_limit_minutes if it needs longer."
    )
    homes.wait_for(lambda: not nights.list_processes_of(home), "every process of the night has ended", 10.0)
