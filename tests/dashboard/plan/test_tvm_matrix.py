"""Many TVMs a night: an experiment on each, side by side and never mixed."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.plan import home_config
from dashboard.plan.job import CodeFolders, Plan
from dashboard.plan.plan import make_plan
from tests.dashboard import homes
from tests.dashboard import remeasure_homes as labs
from tvmdash import records
from tvmdash.errors import DashboardError

RELEASE = "pypi:0.26.0"
SPECS = {"": ArtifactSpec("pypi", "latest"), "release": ArtifactSpec("pypi", "0.26.0")}
BUILD = """printf '{"value": 1, "tvm_hash": "%s"}' "$TVMDASH_ARTIFACT" > """


def plan_of(home: homes.HomeForTests, seed: int | None = None) -> Plan:
    return make_plan(home.home, CodeFolders(home.code / "experiments", home.code / "subsystem"), seed=seed)


def names_of(home: homes.HomeForTests) -> list[str]:
    return [job.name for job in plan_of(home).experiments]


@pytest.fixture
def home(tmp_path: Path) -> homes.HomeForTests:
    """A home with 0.27 and 0.26 on its shelf, the one its own TVM and the other its release."""
    made = homes.make_home(tmp_path, Path("../shelf"), tvms={"release": RELEASE}, telemetry_rate=0)
    for version in ("0.27.0", "0.26.0"):
        labs.put_artifact(tmp_path / "shelf", version)
    return made


# The plan


def test_an_experiment_runs_on_its_tvms_one_after_the_other(home: homes.HomeForTests) -> None:
    home.configure(randomize=True, tvms={"release": RELEASE, "older": "pypi:0.25.0"})
    for name in ("a", "b", "c", "d"):
        home.experiment(name)
    jobs = plan_of(home, seed=3).experiments
    assert len(jobs) == 12
    for at in range(0, 12, 3):
        assert len({job.experiment for job in jobs[at : at + 3]}) == 1
        assert {job.variant for job in jobs[at : at + 3]} == {"", "release", "older"}
    assert {job.tvm for job in jobs if job.variant == "older"} == {ArtifactSpec("pypi", "0.25.0")}
    order = [job.experiment for job in jobs[::3]]
    home.configure(tvms={})
    assert names_of_seed(home, 3) == order, "the seed means the same order as without them"


def names_of_seed(home: homes.HomeForTests, seed: int) -> list[str]:
    return [job.name for job in plan_of(home, seed).experiments]


def test_which_tvm_goes_first_takes_turns_by_experiment_and_by_night(home: homes.HomeForTests) -> None:
    for name in ("a", "b"):
        home.experiment(name)
    assert names_of(home) == ["a", "a@release", "b@release", "b"]
    homes.write(home.home.night_file("20260101T000000Z"), {})
    assert names_of(home) == ["a@release", "a", "b", "b@release"]


@pytest.mark.parametrize(
    ("config", "jobs"),
    [
        ({}, ["x", "x@release", "x@older"]),
        ({"tvms": ["older"]}, ["x", "x@older"]),
        ({"tvms": []}, ["x"]),
        ({"tvm_branch": "0.25.0"}, ["x"]),
        ({"tvm_branch": "0.25.0", "tvms": ["release"]}, ["x", "x@release"]),
    ],
)
def test_an_experiment_says_which_of_the_homes_tvms_it_wants(
    home: homes.HomeForTests, config: dict[str, Any], jobs: list[str]
) -> None:
    home.configure(tvms={"release": RELEASE, "older": "pypi:0.25.0"})
    home.experiment("x", config=config)
    assert names_of(home) == jobs


def test_options_of_an_experiment_hold_for_every_source_build_of_it(home: homes.HomeForTests) -> None:
    home.configure(tvm_remote="/a/tvm", tvm_branch="main", tvm_options={"A": "1"},
                   tvms={"next": "git:next", "fork": "https://host/tvm@main", "wheel": RELEASE})  # fmt: skip
    home.experiment("x")
    home.experiment("y", config={"tvm_options": {"B": "2"}})
    specs = {job.name: job.tvm for job in plan_of(home).experiments}
    assert specs["x@next"] == ArtifactSpec("/a/tvm", "next", (("A", "1"),))
    assert specs["x@fork"] == ArtifactSpec("https://host/tvm", "main", (("A", "1"),))
    assert specs["y@next"] == ArtifactSpec("/a/tvm", "next", (("B", "2"),))
    assert specs["y@wheel"] == SPECS["release"]


def test_a_tvm_that_the_home_does_not_name_rejects_its_experiment_alone(home: homes.HomeForTests) -> None:
    home.experiment("x", config={"tvms": ["relaese"]})
    home.experiment("y")
    (job,) = plan_of(home).rejected
    assert job.name == "x"
    assert job.faults[0].endswith("$.tvms: this home has no TVM 'relaese'. TVMs in this home's `tvms`: release.")


def test_an_experiments_name_holds_no_sign_of_a_variant(home: homes.HomeForTests) -> None:
    homes.write(home.home.configs("experiment") / "x@y" / "config.json", {"active": True})
    (job,) = plan_of(home).rejected
    assert "Rename the folder" in job.faults[0]


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a/b", RELEASE, "invalid TVM name"),
        ("a@b", RELEASE, "invalid TVM name"),
        (".a", RELEASE, "invalid TVM name"),
        ("reference", RELEASE, "Give this TVM another name"),
        ("a", "0.26.0", "'0.26.0' is not a TVM"),
        ("a", "git:main", "tvm_remote is pypi"),
        ("a", "pypi:--help", "--help"),
        ("a", "https://host/tvm@--upload-pack=x", "--upload-pack"),
    ],
)
def test_a_tvm_that_cannot_be_meant_stops_the_night_before_anything_is_touched(
    home: homes.HomeForTests, name: str, text: str, fault: str
) -> None:
    home.configure(tvms={name: text})
    with pytest.raises(DashboardError) as raised:
        plan_of(home)
    assert f"$.tvms.{name}: " in str(raised.value)
    assert fault in str(raised.value)


def test_check_tells_each_fault_once(home: homes.HomeForTests) -> None:
    folder = home.experiment("x")
    homes.script(folder / "check.sh", "#!/bin/sh\necho one fault\n")
    done = home.run(verb="check")
    assert (done.code, done.output.count("one fault")) == (2, 1)
    home.configure(tvms={"release": "0.26.0"})
    done = home.run(verb="check")
    assert "is not a TVM. Use " in done.output
    assert "this home has no TVM" not in done.output


def test_plan_prints_every_tvm_and_where_each_step_runs(home: homes.HomeForTests) -> None:
    home.experiment("x")
    told = home.run(verb="plan").output
    assert "1 experiments" in told
    assert "TVM: 0.26.0 from pypi, as release" in told
    assert re.search(r"run: +x \(at most .*\), x@release on TVM 0\.26\.0 \(at most", told)


# The night


def test_a_night_measures_each_tvm_under_a_name_of_its_own(home: homes.HomeForTests) -> None:
    analyze = homes.good("analyze").replace('cp "$2/raw.json" ', BUILD)
    home.experiment("x", analyze=analyze, setup=homes.good("setup", f"echo x >> {home.root}/setups"))
    night = home.night()
    (stamp,) = home.stamps()
    jobs = {job["name"]: job for job in night["jobs"]}
    assert [name for name in jobs if "x" in name] == ["x", "x@release"]
    assert jobs["x@release"]["title"] == "release: x"
    for name, version in (("x", "0.27.0"), ("x@release", "0.26.0")):
        assert {step["state"] for step in jobs[name]["steps"]} <= {"ok", "skipped"}
        data = homes.read(home.home.data_file(name, stamp))
        assert data["night"]["artifact"]["version"] == version
        assert data["tvm_hash"] == data["night"]["artifact"]["key"], "its stages saw that artifact"
        assert data["night"]["experiment"] == name
        assert home.status(name, "summarize")["success"]
        assert (home.home.graph(name) / "graph.svg").exists()
        assert home.home.read_summary(name)
    assert [homes.read(home.home.data_file(name, stamp))["night"].get("variant") for name in ("x", "x@release")] == [
        None, "release",
    ]  # fmt: skip
    assert [artifact["version"] for artifact in night["artifacts"]] == ["0.27.0", "0.26.0"], "the own one first"
    assert (home.root / "setups").read_text() == "x\n", "set up once for both"


def test_series_of_one_tvm_hold_no_value_of_another(home: homes.HomeForTests) -> None:
    home.experiment("x")
    home.night()
    (stamp,) = home.stamps()
    ids = [
        {value.key.id for value in records.read_data(home.home.data_file(name, stamp), name).values()}
        for name in ("x", "x@release")
    ]
    assert len(ids[0]) == len(ids[1]) == 1
    assert not ids[0] & ids[1]


def test_taking_up_another_tvm_changes_no_fingerprint_and_runs_no_setup_again(home: homes.HomeForTests) -> None:
    home.configure(tvms={})
    home.experiment("x", setup=homes.good("setup", f"echo x >> {home.root}/setups"))
    home.night()
    home.configure(tvms={"release": RELEASE})
    home.experiment("x", config={"tvms": ["release"]}, setup=homes.good("setup", f"echo x >> {home.root}/setups"))
    home.night()
    first, second = (homes.read(home.home.data_file("x", stamp))["night"] for stamp in home.stamps())
    assert first["fingerprint"] == second["fingerprint"]
    assert first["config"] == second["config"]
    assert (home.root / "setups").read_text() == "x\n"


@pytest.mark.parametrize("again", ["rerun_setup", "retry"])
def test_a_setup_that_runs_every_night_runs_once_for_all_tvms(home: homes.HomeForTests, again: str) -> None:
    lines = f"echo x >> {home.root}/setups; {'touch $2/retry' if again == 'retry' else ''}"
    run = homes.good("run", "test -e setup/built")
    home.experiment("x", config={"rerun_setup": again != "retry"}, setup=homes.good("setup", lines), run=run)
    home.night()
    home.night()
    assert (home.root / "setups").read_text() == "x\nx\n"


def test_a_tvm_that_cannot_be_had_blocks_its_own_steps_only(home: homes.HomeForTests) -> None:
    home.configure(tvms={"release": RELEASE, "lost": "pypi:0.1.0"})
    for name in ("x", "y"):
        home.experiment(name)
    done = home.run()
    assert done.code == 1
    assert "experiments x@lost and y@lost blocked: no TVM to measure: " in done.output
    states = {job["name"]: {step["state"] for step in job["steps"]} for job in home.last()["jobs"]}
    assert states["x@lost"] == {"ok", "blocked"}, "its precheck was good"
    assert all(states[name] == {"ok"} for name in ("x", "x@release", "y", "y@release"))
    assert home.status("x@lost", "run")["state"] == "blocked"
    shown = home.run(verb="status")
    assert shown.code == 1
    assert "experiment x@lost" in shown.output


def test_a_stage_that_fails_on_one_tvm_fails_there_only(home: homes.HomeForTests) -> None:
    fails = 'case $TVMDASH_ARTIFACT in *0.26*) echo "no such pass" >&2; exit 1;; esac'
    home.experiment("x", run=homes.good("run", fails))
    assert home.run().code == 1
    assert home.states("x")["summarize"] == "ok"
    assert (home.states("x@release")["run"], home.states("x@release")["analyze"]) == ("failed", "blocked")


def test_a_night_killed_in_the_second_tvm_saves_each_under_its_own(home: homes.HomeForTests) -> None:
    well = homes.says("run")
    hangs = f"{homes.WORK['run']}; {well}; case $TVMDASH_JOB in *@*) touch {home.root}/hangs; sleep 1000;; esac"
    analyze = homes.good("analyze").replace('cp "$2/raw.json" ', BUILD)
    home.experiment("x", run=homes.good("run", hangs), analyze=analyze)
    process: subprocess.Popen[str] = home.start()
    with homes.killed_at_end(process):
        homes.wait_for((home.root / "hangs").exists, "the second TVM's run")
        process.send_signal(signal.SIGKILL)
        process.wait()
    (stamp,) = home.stamps()
    home.experiment("x", analyze=analyze)
    home.night()
    for name, version in (("x", "0.27.0"), ("x@release", "0.26.0")):
        data = homes.read(home.home.data_file(name, stamp))
        assert data["night"]["artifact"]["version"] == version
        assert data["tvm_hash"] == data["night"]["artifact"]["key"]
    assert "saved its measurements of x and x@release" in " ".join(home.last()["notes"])
    assert homes.read(home.home.night_file(stamp))["state"] == "interrupted"


def test_a_new_tvm_is_expected_to_take_as_long_as_the_homes_own(home: homes.HomeForTests) -> None:
    home.configure(tvms={})
    home.experiment("x", run=homes.good("run", "sleep 0.3"))
    home.night()
    home.configure(tvms={"release": RELEASE})
    (stamp,) = home.stamps()
    told = home.run(verb="plan").output
    assert f"as x on {stamp}" in told
    assert f"as on {stamp}" in told


# What asks one TVM again


@pytest.fixture
def lab(tmp_path: Path) -> labs.Lab:
    made = labs.make_lab(tmp_path, tvms={"release": RELEASE})
    for version in ("0.27.0", "0.26.0"):
        labs.put_artifact(tmp_path / "shelf", version)
    return made


def key_of(version: str, lab: labs.Lab) -> str:
    (folder,) = (lab.home.root / "shelf").glob(f"wheel-{version}-*")
    return folder.name


def test_what_is_measured_again_of_a_variant_is_measured_on_its_tvm(lab: labs.Lab) -> None:
    lab.home.night()
    (stamp,) = lab.home.stamps()
    before = len(lab.runs())
    done, rounds = lab.remeasure([{"experiment": f"{labs.NAME}@release", "stamp": stamp, "points": []}])
    assert (done.code, [one["state"] for one in rounds]) == (0, ["measured"])
    data = records.read_data(lab.home.home.data_file(f"{labs.NAME}@release", stamp), f"{labs.NAME}@release")
    assert set(rounds[0]["values"]) == {value.key.id for value in data.values()}
    assert {run["build"] for run in lab.runs()[before:]} == {key_of("0.26.0", lab)}


def test_within_a_night_a_variant_is_measured_again_on_its_tvm(lab: labs.Lab) -> None:
    calls = """python3 -c "import json, os, pathlib; root = pathlib.Path(os.environ['TVMDASH_HOME']).parent
one = {'experiment': 'speed@release', 'stamp': os.environ['TVMDASH_NIGHT'], 'points': []}
(root / 'request.json').write_text(json.dumps([one]))"
PYTHONPATH={repository} python3 -m dashboard remeasure "$TVMDASH_HOME" "$TVMDASH_HOME/../request.json" \
    "$TVMDASH_HOME/../result.json" > "$TVMDASH_HOME/../said" 2>&1"""
    repository = shlex.quote(f"{homes.REPO}:{homes.REPO}/shared/python")
    lab.home.subsystem("asks", run=homes.good("subsystem", calls.replace("{repository}", repository)))
    lab.home.night()
    (one,) = homes.read(lab.home.root / "result.json")["rounds"]
    assert (one["state"], one["artifact"]) == ("measured", key_of("0.26.0", lab))
    assert [run["build"] for run in lab.runs()] == [key_of(at, lab) for at in ("0.27.0", "0.26.0", "0.26.0")]


def test_a_receipt_of_a_variant_is_repeated_on_its_tvm_also_where_the_home_names_it_no_more(lab: labs.Lab) -> None:
    reads = labs.RUN.replace(labs.FINDS_HOME, f'read(sys.argv[1] + "/beside.txt")\n{labs.FINDS_HOME}')
    lab.home.experiment(labs.NAME, run=reads, analyze=labs.ANALYZE)
    (lab.home.home.config("experiment", labs.NAME) / "beside.txt").write_text("a file beside the config")
    lab.home.night()
    (stamp,) = lab.home.stamps()
    lab.home.configure(tvms={})
    before = len(lab.runs())
    done = lab.home.run(f"{labs.NAME}@release/{stamp}", "--rounds", "3", "--no-rebuild-tvm", verb="reproduce")
    assert "Current code and config" in done.output, done.output
    assert {run["build"] for run in lab.runs()[before:]} == {key_of("0.26.0", lab)}


def test_compare_takes_an_experiment_once(lab: labs.Lab) -> None:
    done = lab.home.run(RELEASE, "pypi:0.27.0", "--rounds", "5", "--no-rebuild-tvm", verb="compare")
    assert len(lab.runs()) == 10, done.output


@pytest.mark.parametrize(
    ("tvms", "named"), [({"old": "pypi:0.26.0", "older": "pypi:0.25.0"}, "old, older"), ({}, "it has none")]
)
def test_a_reference_that_nobody_named_is_told_the_names_that_there_are(tvms: dict[str, str], named: str) -> None:
    own = ArtifactSpec("pypi", "latest")
    (fault,) = home_config._find_reference_faults("oldest", tvms, own, "config.json")
    assert f"in tvms ({named})" in fault
