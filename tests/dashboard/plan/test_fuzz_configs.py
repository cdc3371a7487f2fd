"""Configs in any state: what is wrong is said with the file, and a job's costs that job only."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from dashboard.cli import watch
from dashboard.cli.main import main
from dashboard.plan.home_config import code_folders, read_home_config
from dashboard.plan.job import CodeFolders
from dashboard.plan.plan import make_plan
from dashboard.schedule.schedule import find_schedule
from tests import fuzzing
from tests.fuzzing import files_like, the_same_each_time
from tvmdash import common
from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.errors import DashboardError
from tvmdash.notify.config import read_despite_faults, read_routing, read_what_is_good

SAMPLE = Path(__file__).resolve().parents[3] / "sample-dashboard-home"
JOBS = ("experiments/canary", "experiments/relax_opt", "subsystem/website", "subsystem/stat_alerts")
TOP = {
    **common.read_json(SAMPLE / "config" / "config.json"),
    "tvms": {"release": "pypi:0.26.0"}, "reference": "auto", "timeouts": {"run": 60}, "env": {"A": "b"}, "seed": 4,
    "hosts": {"desk": {"launcher": "ssh", "address": "a@b", "folder": "/x"}, "here": {"launcher": "local"}},
    "devices": {"opencl": {"target": {"device": "x"}}, "remote:pi": {"tracker_host": "h", "target": {"kind": "llvm"}}},
    "watch_grace_minutes": 60, "schedule": "0 3 * * *", "heartbeat_url": "https://x/y", "backup_copy": "s3://b/f",
    "routes": {
        "hook": {"kind": "webhook", "url": "https://x/", "secret_file": "/x", "quiet_hours": "22:00-07:00"},
        "mail": {"kind": "email", "server": "h:25", "from": "a@b", "to": ["c@d"], "security": "tls"},
    },
    "owners": [{"experiment": "c*", "email": ["a@b"], "routes": ["mail"]}], "tvm_options": {"USE_LLVM": "ON"},
    "max_artifacts_gb": 20.0, "min_free_mb": 3, "telemetry_rate": 1.0, "artifact_timeout_s": 40,
}  # fmt: skip
FOLDERS = ("tmp_data_dir", "backup_dir", "setup_dir")
OF_JOBS = {"timeouts": {"run": 5}, "env": {"A": "b"}, "notify": ["U1"], "priority": 3, "title": "t"}
OF_EXPERIMENTS = {"tvm_branch": "0.26.0", "tvms": ["release"], "hosts": ["desk"], "nightly": {"threads": 1}}
NAMES = ("a b", "-rf", "ä\u202e", "a\nb", "a'b\"c", "~x", "x@y", "a" * 200, "$(x)", "con", "é́", "<b>", "%s")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a few of the sample's jobs."""
    for job in JOBS:
        shutil.copytree(SAMPLE / "config" / job, tmp_path / "home" / "config" / job)
    made = Home(tmp_path / "home")
    common.write_json(
        made.config_file, {name: TOP[name] for name in ("tmp_data_dir", "backup_dir", "setup_dir", "tvms")}
    )
    return made


@the_same_each_time(40, 10_000)
@given(files_like(TOP))
def test_a_homes_config_is_read_or_refused_with_its_name(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    home = Home(tmp_path_factory.getbasetemp() / "top")
    home.config_file.parent.mkdir(parents=True, exist_ok=True)
    home.config_file.write_bytes(raw)
    readers: tuple[Callable[[Home], object], ...] = (
        read_home_config, code_folders, read_routing, read_what_is_good, read_despite_faults, find_schedule,
        watch.read_grace,
    )  # fmt: skip
    for read in readers:
        try:
            read(home)
        except DashboardError as error:
            said = str(error)
        else:
            said = ""
        assert not said or str(home.config_file) in said
        said.encode("utf-8", "backslashreplace")


@the_same_each_time(10, 4000)
@given(chance=fuzzing.cases(lambda chance: chance))
def test_a_jobs_config_costs_that_job_only(tmp_path_factory: pytest.TempPathFactory, chance: random.Random) -> None:
    home = Home(tmp_path_factory.mktemp("job"))
    for job in JOBS:
        config = {**common.read_json(SAMPLE / "config" / job / "config.json"), "active": True}
        (home.root / "config" / job).mkdir(parents=True)
        common.write_json(home.root / "config" / job / "config.json", config, durable=False)
    common.write_json(home.config_file, {name: TOP[name] for name in FOLDERS})
    known = {job.partition("/")[2] for job in JOBS}
    bad = chance.choice(JOBS)
    path = home.root / "config" / bad / "config.json"
    how = chance.random()
    if how < 0.1:
        fuzzing.put_something_else(chance, path)
    else:
        more = OF_EXPERIMENTS if bad.startswith("experiments") else {}
        path.write_bytes(fuzzing.make_file(chance, {**common.read_json(path), **OF_JOBS, **more}))
    plan = make_plan(home, CodeFolders())
    assert {job.name for job in plan.rejected} <= {path.parent.name}
    assert all(job.faults and all(bad in fault for fault in job.faults) for job in plan.rejected)
    planned = {experiment_of(job.name) for job in (*plan.experiments, *plan.away, *plan.subsystems)}
    assert known - {path.parent.name} <= planned
    shutil.rmtree(home.root)


@pytest.mark.parametrize("name", NAMES)
def test_a_job_of_an_odd_name_is_planned_or_refused_in_words(
    home: Home, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = home.configs("experiment") / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"active": True}))
    assert main(["plan", str(home.root), "--no-rebuild-tvm"]) in {0, 1}
    assert "experiments" in capsys.readouterr().out
    assert main(["check", str(home.root), "--no-rebuild-tvm"]) == 2
    (rejected,) = make_plan(home, CodeFolders()).rejected
    assert rejected.faults


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("what", ["full folder", "pipe", "loop", "nowhere", "device", "nothing"])
def test_what_is_no_file_in_place_of_a_config_is_said(
    home: Home, job: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home.root / "config" / job / "config.json"
    fuzzing.put_something_else(random.Random(0), path, what)
    assert main(["check", str(home.root), "--no-rebuild-tvm"]) == 2
    assert f"config/{job}" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["full folder", "pipe", "loop", "nowhere", "device", "nothing"])
def test_what_is_no_file_in_place_of_the_homes_config_touches_nothing(
    home: Home, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fuzzing.put_something_else(random.Random(0), home.config_file, what)
    (home.root / "results").mkdir()
    before = sorted(home.root.parent.rglob("*"))
    for verb in ("check", "plan", "run"):
        assert main([verb, str(home.root)]) == 2
        said: Any = capsys.readouterr()
        assert str(home.root) in said.out + said.err
    after = [path for path in home.root.parent.rglob("*") if path.name != "refused_start.txt"]
    assert sorted(after) == before
