"""The plan as a value."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.night.setup_cache import fingerprint
from dashboard.plan.home_config import code_folders, read_home_config
from dashboard.plan.job import CodeFolders, Plan
from dashboard.plan.plan import make_plan
from tests.dashboard import homes
from tvmdash.dashboard_info.stages import pipeline
from tvmdash.errors import DashboardError


@pytest.fixture
def home(tmp_path: Path) -> homes.HomeForTests:
    return homes.make_home(tmp_path, tmp_path / "artifacts")


def plan_of(home: homes.HomeForTests, seed: int | None = None) -> Plan:
    return make_plan(home.home, CodeFolders(home.code / "experiments", home.code / "subsystem"), seed=seed)


def test_each_tvm_is_wanted_once(home: homes.HomeForTests) -> None:
    for name, branch in (("a", None), ("b", "0.26.0"), ("c", "0.26.0"), ("d", "latest")):
        home.experiment(name, config={"tvm_branch": branch})
    assert plan_of(home).artifacts == (ArtifactSpec("pypi", "latest"), ArtifactSpec("pypi", "0.26.0"))


def private(home: homes.HomeForTests, name: str) -> Path:
    """A folder beside the home with an experiment of that name."""
    folder = homes.HomeForTests(home.root / name).experiment(name)
    home.experiment(name)
    shutil.rmtree(home.code / "experiments" / name)
    return folder


def test_the_homes_own_folders_are_searched_before_the_repositorys_and_after_the_options(
    home: homes.HomeForTests,
) -> None:
    ours, canary = private(home, "ours"), private(home, "canary")
    home.configure(experiment_dirs=[f"../{ours.relative_to(home.root).parent}", str(canary.parent)])
    code = CodeFolders(of_home=code_folders(home.home))
    assert {job.name: job.folder for job in make_plan(home.home, code).experiments} == {"ours": ours, "canary": canary}
    (home.code / "experiments").mkdir(exist_ok=True)
    shutil.copytree(canary, home.code / "experiments" / "canary")
    first = replace(code, experiment=home.code / "experiments")
    folders = {job.name: job.folder for job in make_plan(home.home, first).experiments}
    assert folders == {"ours": ours, "canary": home.code / "experiments" / "canary"}


def test_a_folder_of_code_may_begin_with_the_users_home(
    home: homes.HomeForTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home.root))
    home.configure(subsystem_dirs=["~/mine"])
    assert code_folders(home.home)["subsystem"] == (home.root / "mine",)


@pytest.mark.parametrize(
    ("folders", "words"),
    [
        (["../absent"], r"\$\.experiment_dirs\[0\]: .*/absent is not a folder\. Give the folder"),
        (["x\0y"], r"\$\.experiment_dirs\[0\]: contains a NUL character"),
        ("../absent", r"\$\.experiment_dirs: '../absent' is not a list"),
    ],
)
def test_a_folder_of_code_that_is_not_there_stops_the_night(
    home: homes.HomeForTests, folders: object, words: str
) -> None:
    """Else the repository's experiment of the same name would be measured into the private one's series."""
    home.configure(experiment_dirs=folders)
    code_folders(home.home)
    with pytest.raises(DashboardError, match=words):
        plan_of(home)


def without_tvm(home: homes.HomeForTests, name: str, **config: object) -> None:
    homes.write(home.experiment(name, config=config) / "fields.json", {"needs_tvm": False})


def test_no_tvm_is_wanted_where_no_experiment_needs_one(home: homes.HomeForTests) -> None:
    home.configure(tvms={"release": "pypi:0.26.0"})
    without_tvm(home, "plain")
    without_tvm(home, "pinned", tvm_branch="0.25.0")
    assert plan_of(home).artifacts == ()
    assert {job.name for job in plan_of(home).experiments} == {"plain", "pinned"}


def test_an_experiment_without_tvm_goes_along_with_those_that_need_one(home: homes.HomeForTests) -> None:
    home.configure(tvms={"release": "pypi:0.26.0", "old": "pypi:0.25.0"})
    without_tvm(home, "plain")
    home.experiment("cnn", config={"tvms": ["release"]})
    plan = plan_of(home)
    assert plan.artifacts == (ArtifactSpec("pypi", "latest"), ArtifactSpec("pypi", "0.26.0"))
    assert {job.name for job in plan.experiments} == {"cnn", "cnn@release", "plain", "plain@release"}


def test_a_timeout_is_the_jobs_own_else_the_homes_else_the_protocols(home: homes.HomeForTests) -> None:
    home.configure(timeouts={"run": 20, "analyze": 30})
    home.experiment("cnn", config={"timeouts": {"run": 10}})
    plan = plan_of(home)
    (job,) = plan.experiments
    timeouts = {stage.name: job.timeout_s(stage, plan.config) for stage in job.stages}
    assert timeouts == {"run": 10, "analyze": 30, "visualize": 1800, "summarize": 600}


def test_setup_is_a_stage_only_where_its_script_is(home: homes.HomeForTests) -> None:
    home.experiment("with", setup=homes.good("setup"))
    home.experiment("without")
    stages = {job.name: [stage.name for stage in job.stages] for job in plan_of(home).experiments}
    assert stages["with"] == [stage.name for stage in pipeline("experiment").stages]
    assert "setup" not in stages["without"]


def test_one_seed_gives_one_order_and_another_another(home: homes.HomeForTests) -> None:
    home.configure(randomize=True)
    for index in range(10):
        home.experiment(f"e{index}")
    orders = [tuple(job.name for job in plan_of(home, seed).experiments) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert plan_of(home).seed != plan_of(home).seed
    home.configure(seed=1)
    assert tuple(job.name for job in plan_of(home).experiments) == orders[0]


def test_subsystems_run_by_priority_then_name(home: homes.HomeForTests) -> None:
    home.configure(randomize=True)
    for name, priority in (("slack", -1), ("alerts", 5), ("web", 0), ("arch", 0)):
        home.subsystem(name, config={"priority": priority})
    assert [job.name for job in plan_of(home).subsystems] == ["alerts", "arch", "web", "slack"]


def test_every_fault_of_one_job_is_said(home: homes.HomeForTests) -> None:
    folder = home.experiment("cnn", config={"timeouts": {"rn": 1}, "env": {"=": ""}})
    (folder / "run.sh").chmod(0o644)
    (folder / "analyze.sh").unlink()
    (job,) = plan_of(home).rejected
    assert len(job.faults) == 4


def test_hidden_entries_of_the_config_tree_are_no_jobs(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    home.home.configs("experiment").joinpath(".git").mkdir()
    plan = plan_of(home)
    assert ([job.name for job in plan.experiments], plan.rejected) == (["cnn"], ())


def test_however_many_files_lie_where_folders_belong_they_are_one_fault(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    for index in range(2500):
        home.home.configs("experiment").joinpath(f"file-{index:04}.txt").touch()
    plan = plan_of(home)
    assert [job.name for job in plan.experiments] == ["cnn"]
    (rejected,) = plan.rejected
    (fault,) = rejected.faults
    assert fault == (
        "config/experiments/file-0000.txt and 2499 more here: not a folder. Each experiment needs a folder with a "
        "config.json; move them away."
    )


def test_a_job_without_declared_fields_keeps_its_own(home: homes.HomeForTests) -> None:
    home.experiment("cnn", config={"networks": ["vgg"], "batch": 3})
    (job,) = plan_of(home).experiments
    assert (job.config["networks"], job.config["batch"], job.config["priority"]) == (["vgg"], 3, 0)


def test_declared_fields_are_checked_and_filled_in(home: homes.HomeForTests) -> None:
    folder = home.experiment("cnn", config={"batch": 3})
    homes.write(folder / "fields.json", {"include": ["timing"], "batch": {"type": "int", "doc": "", "min": 1}})
    (job,) = plan_of(home).experiments
    assert (job.config["batch"], job.config["repeat"]) == (3, 10)
    homes.write(home.home.config("experiment", "cnn") / "config.json", {"active": True, "batch": 0, "more": 1})
    (job,) = plan_of(home).rejected
    assert [fault.partition("$")[2].partition(":")[0] for fault in job.faults] == [".batch", ".more"]


def test_paths_of_the_home_are_expanded(
    home: homes.HomeForTests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    home.configure(tmp_data_dir="~/t", backup_dir="inside/b", setup_dir="/abs/s")
    config = read_home_config(home.home)
    assert (config.tmp_data, config.backup, config.setup) == (tmp_path / "me/t", home.path / "inside/b", Path("/abs/s"))


def test_a_build_from_source_may_take_longer_than_a_wheel_unless_the_home_says_one_limit(
    home: homes.HomeForTests,
) -> None:
    specs = [ArtifactSpec("pypi", "latest"), ArtifactSpec("https://example.org/tvm", "main")]
    assert [read_home_config(home.home).getting_s(spec) for spec in specs] == [3600, 21600]
    home.configure(artifact_timeout_s=900)
    assert [read_home_config(home.home).getting_s(spec) for spec in specs] == [900, 900]


@pytest.mark.parametrize("folder", [".", "config", "config/x", "results", "results/x/y", "..", "/"])
def test_a_working_folder_that_overlaps_the_home_is_refused(home: homes.HomeForTests, folder: str) -> None:
    home.configure(tmp_data_dir=folder)
    with pytest.raises(DashboardError, match=r"\$\.tmp_data_dir: .* overlaps"):
        read_home_config(home.home)


def test_a_fingerprint_is_of_names_modes_contents_and_config(tmp_path: Path) -> None:
    homes.script(tmp_path / "code" / "run.sh", "x")
    (tmp_path / "code" / "link").symlink_to("run.sh")
    seen = [fingerprint(tmp_path / "code", {"a": 1})]
    (tmp_path / "code" / "__pycache__").mkdir()
    (tmp_path / "code" / "__pycache__" / "x.pyc").write_text("")
    assert fingerprint(tmp_path / "code", {"a": 1}) == seen[0]
    seen.append(fingerprint(tmp_path / "code", {"a": 2}))
    (tmp_path / "code" / "run.sh").chmod(0o644)
    seen.append(fingerprint(tmp_path / "code", {"a": 1}))
    (tmp_path / "code" / "run.sh").write_text("y")
    seen.append(fingerprint(tmp_path / "code", {"a": 1}))
    (tmp_path / "code" / "run.sh").rename(tmp_path / "code" / "ran.sh")
    seen.append(fingerprint(tmp_path / "code", {"a": 1}))
    (tmp_path / "code" / "link").unlink()
    seen.append(fingerprint(tmp_path / "code", {"a": 1}))
    assert len(set(seen)) == len(seen)
