"""Which machine measures what, and what is wrong with hosts before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dashboard.plan.job import CodeFolders
from dashboard.plan.plan import make_plan
from dashboard.plan.settings import Host, Launcher, choose_hosts, read_hosts
from tests.dashboard import homes
from tvmdash.errors import DashboardError

SSH = {"launcher": "ssh", "address": "bench@box", "folder": "/var/tmp/tvm"}
SLURM = {"launcher": "slurm", "folder": "/var/tmp/tvm", "partition": "bench", "node": "epyc2"}


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        ({"a b": SSH}, "$.hosts.a b: invalid host name"),
        ({"box": {**SSH, "launcher": "rsh"}}, "$.hosts.box.launcher: 'rsh' is not a valid choice. Did you mean 'ssh'?"),
        ({"box": {**SSH, "folder": "tvm"}}, "$.hosts.box.folder: 'tvm' is not an absolute path"),
        ({"box": {**SSH, "folder": "/tmp/../tvm"}}, "$.hosts.box.folder: '/tmp/../tvm' is not an absolute path"),
        ({"box": {**SSH, "address": "-oProxyCommand=x"}}, "'-oProxyCommand=x' is not a valid ssh destination"),
        ({"box": {**SSH, "address": ""}}, "$.hosts.box.address: '' is not a valid ssh destination"),
        (
            {"box": {**SSH, "partition": "p"}},
            "$.hosts.box.partition: not allowed with the launcher ssh. Remove it.",
        ),
        ({"box": {**SSH, "portition": "p"}}, "$.hosts.box.portition: unknown field"),
        ({"n": {**SLURM, "address": "x"}}, "$.hosts.n.address: not allowed with the launcher slurm"),
        ({"n": {**SLURM, "node": "a,b"}}, "$.hosts.n.node: contains white space"),
        ({"a": {"launcher": "local"}, "b": {"launcher": "local"}}, "a and b have the launcher `local`"),
        ({"local": SSH}, "$.hosts.local: this name is reserved for the home's own machine"),
        ({"box": {**SSH, "tags": ["desk"]}, "desk": SSH}, "$.hosts.desk: this name is also used as a tag"),
        ({"box": 5}, "$.hosts.box: 5 is not"),
    ],
)
def test_a_host_that_cannot_be_meant_is_named_with_its_place(hosts: dict[str, Any], words: str, tmp_path: Path) -> None:
    home = homes.make_home(tmp_path, tmp_path / "artifacts", hosts=hosts)
    with pytest.raises(DashboardError) as caught:
        make_plan(home.home, CodeFolders())
    assert words in str(caught.value)
    assert str(home.home.config_file) in str(caught.value)


def test_an_experiment_that_asks_for_no_host_of_the_home_is_rejected_alone(tmp_path: Path) -> None:
    home = homes.make_home(tmp_path, tmp_path / "artifacts", hosts={"box": {**SSH, "tags": ["x86"]}})
    home.experiment("good")
    home.experiment("bad", config={"hosts": ["x86", "bax"]})
    plan = make_plan(home.home, CodeFolders(home.code / "experiments"))
    assert [job.name for job in plan.experiments] == ["good"]
    there = "Hosts and tags of this home: box, local, x86."
    fault = f"config/experiments/bad/config.json: $.hosts: this home has no host or tag 'bax'. {there}"
    assert [job.faults for job in plan.rejected] == [(fault,)]


def test_a_folder_that_looks_like_a_job_of_a_host_is_rejected(tmp_path: Path) -> None:
    home = homes.make_home(tmp_path, tmp_path / "artifacts")
    home.experiment()
    homes.write(home.home.configs("experiment") / "good~box" / "config.json", {"active": True})
    (job,) = make_plan(home.home, CodeFolders(home.code / "experiments")).rejected
    assert "'~' is reserved; it separates an experiment from its host. Rename the folder." in job.faults[0]


@pytest.mark.parametrize(
    ("asked", "measured"),
    [
        (None, {"good"}),
        (["local"], {"good"}),
        (["desk"], {"good"}),
        (["box"], {"good~box"}),
        (["x86"], {"good", "good~box"}),
        (["x86", "epyc2", "box"], {"good", "good~box", "good~epyc2"}),
        ([], set()),
    ],
)
def test_each_host_that_is_named_or_tagged_measures_once(
    asked: list[str] | None, measured: set[str], tmp_path: Path
) -> None:
    hosts = {"desk": {"launcher": "local", "tags": ["x86"]}, "box": {**SSH, "tags": ["x86"]}, "epyc2": SLURM}
    home = homes.make_home(tmp_path, tmp_path / "artifacts", hosts=hosts)
    home.experiment(config={} if asked is None else {"hosts": asked})
    plan = make_plan(home.home, CodeFolders(home.code / "experiments"))
    assert {job.name for job in (*plan.experiments, *plan.away)} == measured
    assert {job.name for job in plan.experiments} == measured & {"good"}
    there = make_plan(home.home, CodeFolders(home.code / "experiments"), host="box")
    assert {job.name for job in there.experiments} == measured & {"good~box"}
    assert {job.config_folder for job in (*plan.experiments, *plan.away)} <= {home.home.config("experiment", "good")}


def test_on_a_host_each_tvm_beside_the_homes_own_is_a_job_as_well(tmp_path: Path) -> None:
    home = homes.make_home(tmp_path, tmp_path / "artifacts", hosts={"box": SSH}, tvms={"release": "pypi:0.26.0"})
    home.experiment(config={"hosts": ["local", "box"], "title": "Networks"})
    plan = make_plan(home.home, CodeFolders(home.code / "experiments"))
    assert {job.name for job in plan.away} == {"good~box", "good~box@release"}
    (job,) = [job for job in plan.away if job.variant]
    assert (job.host, job.variant, job.experiment, job.title) == ("box", "release", "good", "box: release: Networks")


def test_what_an_older_dashboard_measured_keeps_its_fingerprint(tmp_path: Path) -> None:
    home = homes.make_home(tmp_path, tmp_path / "artifacts", hosts={"box": SSH})
    home.experiment(config={"hosts": ["box"]})
    home.experiment("alone")
    plan = make_plan(home.home, CodeFolders(home.code / "experiments"))
    assert [job.config for job in plan.away] == [job.config for job in plan.experiments]


def test_a_slurm_host_is_read_with_its_limits_in_seconds() -> None:
    hosts = read_hosts({"n": {**SLURM, "time_limit_minutes": 90, "patience_minutes": 5}}, "config.json")
    assert hosts["n"] == Host(
        "n", Launcher.SLURM, folder="/var/tmp/tvm", node="epyc2", partition="bench", time_limit_s=5400, patience_s=300
    )
    assert choose_hosts(["n"], hosts) == ("n",)
