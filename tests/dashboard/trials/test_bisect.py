"""Bisection as a person calls it: on releases that stand in for wheels, and on real builds of a small project."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git import cmake
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.locks import LockDeadline
from dashboard.plan.artifact_names import ArtifactFinder
from dashboard.plan.home_config import read_home_config
from dashboard.trials.tvms import list_between
from tests.dashboard import homes, standin
from tests.dashboard.remeasure_homes import NAME, Lab, make_lab, measure_in_turn, past, put_artifact
from tests.tvmdash.incidents.test_incidents import opened
from tvmdash.errors import DashboardError
from tvmdash.incidents import command as incidents
from tvmdash.incidents import file as incident_file

VERSIONS = [f"0.{minor}.0" for minor in range(10, 23)]
SLOW = 0.08
ENDS = ("--good", f"pypi:{VERSIONS[0]}", "--bad", f"pypi:{VERSIONS[-1]}")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab with 13 releases and one night; from 0.17.0 on one workload is 8 % slower. 0.16.0 and 0.13.0 crash."""
    made = make_lab(tmp_path / "lab")
    shelf = [put_artifact(made.home.root / "shelf", version) for version in VERSIONS]
    slow = {one.key: {"mlp": 1 + SLOW} for one in shelf if int(one.version.split(".")[1]) >= 17}
    made.change(slow=slow, broken=[one.key for one in shelf if one.version == "0.13.0"])
    past(made, 1, shelf[-1])
    return made


def bisect(lab: Lab, *words: str, series: str = "mlp") -> homes.Finished:
    return lab.home.run(NAME, series, *words, "--no-rebuild-tvm", verb="bisect")


def kept(home: homes.HomeForTests) -> Any:
    """The only result of the home."""
    (path,) = (home.path / "results" / "tries").glob("*.json")
    return homes.read(path)


def pairs_in(trial: Any) -> list[float]:
    """Every pair of a bisection, as a logarithm."""
    (series,) = trial["series"]
    ends = [log for run in series["runs"] for log in run["logs"]] + [math.log(b / a) for a, b in series["rounds"]]
    return ends + [log for step in trial["bisection"]["steps"].values() for log in step["logs"]]


def test_the_release_that_made_it_slower_is_found_and_told_to_its_incident(lab: Lab) -> None:
    ledger = incidents.output_of(lab.home.path) / "incidents.jsonl"
    incident_file.append(ledger, [opened("i20260704-aaaa")])
    before = sorted(lab.home.home.data(NAME).iterdir())
    done = bisect(lab, *ENDS, "--incident", "i2026")
    assert done.code == 0, done.output
    trial = kept(lab.home)
    result, change = trial["bisection"], trial["series"][0]["change"]
    assert (result["answer"], [one["id"] for one in result["suspects"]]) == ("found", ["0.17.0"])
    assert (trial["kind"], trial["state"], trial["base"]["version"]) == ("bisect", "done", "0.10.0")
    assert change["low"] < SLOW < change["high"]
    assert result["probability"] >= 0.95
    assert result["measurements"] >= result["least"]
    assert f"became higher, +{100 * change['effect']:.2g} %" in done.output
    assert {tuple(run["points"]) for run in lab.runs() if run["points"]} == {("mlp",)}
    answer = incidents.ledger_of(lab.home.path).find("i2026").bisected
    assert answer is not None
    assert [suspect.id for suspect in answer.suspects] == ["0.17.0"]
    assert "Bisected" in done.output
    assert sorted(lab.home.home.data(NAME).iterdir()) == before, "nothing is published"


def test_what_supports_it_is_measured_in_turn_with_the_good_end_and_each_pair_counts(tmp_path: Path) -> None:
    lab = make_lab(tmp_path / "lab")
    shelf = [put_artifact(lab.home.root / "shelf", version) for version in VERSIONS]
    slow = {one.key: {"mlp": 1 + SLOW} for one in shelf if int(one.version.split(".")[1]) >= 17}
    lab.change(slow=slow, foreign=True)
    measure_in_turn(lab, 4)
    past(lab, 1, shelf[-1])
    done = bisect(lab, *ENDS, series="$.mlp")
    assert done.code == 0, done.output
    trial = kept(lab.home)
    result, (series,) = trial["bisection"], trial["series"]
    assert (result["answer"], [one["id"] for one in result["suspects"]]) == ("found", ["0.17.0"])
    assert series["change"]["low"] < SLOW < series["change"]["high"]
    assert {run["pairs"] for run in series["runs"]} == {4}
    pairs = pairs_in(trial)
    on_good = [run for run in lab.runs() if run["build"] == shelf[0].key]
    assert len(pairs) == len(on_good) == len(lab.runs()) - len(on_good)


def test_a_release_that_crashes_is_walked_round_and_named_where_it_matters(lab: Lab) -> None:
    lab.change(broken=[path.name for path in (lab.home.root / "shelf").glob("wheel-0.16.0*")])
    done = bisect(lab, *ENDS)
    assert done.code == 0, done.output
    result = kept(lab.home)["bisection"]
    assert result["answer"] == "range"
    assert [one["id"] for one in result["suspects"]] == ["0.16.0", "0.17.0"]
    assert [name for name, step in result["steps"].items() if step["failed"]] == ["0.16.0"]
    assert "0.16.0 (not measured" in done.output


def test_a_search_that_was_ended_goes_on_where_it_was(lab: Lab) -> None:
    done = bisect(lab, *ENDS, "--budget", "1s")
    assert done.code == 1
    assert "Run the same command" in done.output
    first = pairs_in(kept(lab.home))
    assert bisect(lab, *ENDS).code == 0
    whole = pairs_in(kept(lab.home))
    assert whole[: len(first)] == first
    assert kept(lab.home)["bisection"]["suspects"][0]["id"] == "0.17.0"
    assert kept(lab.home)["bisection"]["measurements"] == 2 * len(whole)
    runs = len(lab.runs())
    assert bisect(lab, *ENDS).code == 0
    assert len(lab.runs()) == runs, "a finished search measures nothing again"


def test_a_search_that_a_dashboard_before_began_is_said_and_begins_anew(lab: Lab) -> None:
    assert bisect(lab, *ENDS, "--budget", "1s").code == 1
    (series,) = kept(lab.home)["series"]
    for path in (lab.home.path / "results" / "tries").glob("*.json"):
        path.unlink()
    journal = lab.home.path / "results" / "bisections" / f"{NAME}-{series['id'][:8]}-12345678.jsonl"
    journal.parent.mkdir()
    journal.write_text('{"event": "begin", "schema_version": 1}\n{"event": "pai')
    done = bisect(lab, *ENDS)
    assert done.code == 0, done.output
    assert f"{journal}: " in done.output
    assert [one["id"] for one in kept(lab.home)["bisection"]["suspects"]] == ["0.17.0"]


def test_ends_that_are_equal_are_said_to_be(lab: Lab) -> None:
    lab.change(sigma=0.0004)
    done = bisect(lab, *ENDS, series="net.bert run time")
    assert done.code == 1
    result = kept(lab.home)["bisection"]
    assert (result["answer"], result["good"]["id"], result["bad"]["id"]) == ("no step", "0.10.0", "0.22.0")
    assert "No step found" in done.output


def test_a_budget_that_ends_before_the_ends_are_clear_names_no_suspect(lab: Lab) -> None:
    lab.change(sigma=0.5)
    done = bisect(lab, *ENDS, "--budget", "3s")
    assert done.code == 1
    assert "became" not in done.output
    assert (kept(lab.home)["state"], kept(lab.home)["bisection"]["suspects"]) == ("budget", [])


def test_values_of_another_code_are_not_mixed_with_those_of_today(lab: Lab) -> None:
    bisect(lab, *ENDS, "--budget", "2s")
    before = kept(lab.home)
    script = lab.home.code / "experiments" / NAME / "analyze.sh"
    script.write_text(script.read_text() + "# changed\n")
    bisect(lab, *ENDS, "--budget", "2s")
    paths = sorted((lab.home.path / "results" / "tries").glob("*.json"))
    assert [homes.read(path)["experiments"] == before["experiments"] for path in paths] == [True, False]
    assert homes.read(paths[0]) == before


@pytest.mark.parametrize(
    ("words", "series", "said"),
    [
        (ENDS, "net", "matches 2 series of speed"),
        (ENDS, "lstm", "'lstm' matches no series of speed. The newest night has:"),
        (("--good", "pypi:0.22.0", "--bad", "pypi:0.10.0"), "mlp", "in the wrong order"),
        (("--good", "pypi:0.22.0", "--bad", "pypi:latest"), "mlp", "they are the same build"),
        (("--good", "pypi:0.10.0", "--bad", "pypi:0.13.0"), "mlp", "could not measure --good and --bad in turn"),
        ((*ENDS, "--error", "0.9"), "mlp", "--error 0.9"),
    ],
)
def test_what_cannot_be_bisected_is_refused_with_its_reason(
    lab: Lab, words: tuple[str, ...], series: str, said: str
) -> None:
    done = bisect(lab, *words, series=series)
    assert done.code == 2
    assert said in done.output


def artifact_of(remote: Path, commit: str, options: str = "{}") -> Artifact:
    """What a build of that commit would be."""
    facts = {"remote": str(remote), "options": options}
    return Artifact(f"git-{commit[:12]}", "git", "0.27.0", commit, remote, (), (), facts, {}, {"x": 1})


def test_the_commits_between_two_builds_are_those_of_the_mirror_in_their_order(tmp_path: Path) -> None:
    remotes = standin.make(tmp_path / "remotes")
    commits = [standin.git(remotes.tvm, "rev-parse", "HEAD"), remotes.commit("One", day=2)]
    standin.git(remotes.tvm, "checkout", "--quiet", "-b", "theirs")
    for day in (3, 4):
        remotes.commit("Beside", day=day)
    standin.git(remotes.tvm, "checkout", "--quiet", "main")
    standin.git(remotes.tvm, "merge", "--quiet", "--no-ff", "-m", "Merge theirs", "theirs", day=5)
    commits.append(standin.git(remotes.tvm, "rev-parse", "HEAD"))
    home = homes.make_home(tmp_path / "lab", Path("../shelf"))
    config = read_home_config(home.home)
    Mirror.of(config.artifacts, str(remotes.tvm)).fetch(BuildContext(config.artifacts, tmp_path, LockDeadline(60)))
    finder = ArtifactFinder(config, tmp_path)
    good, bad = (artifact_of(remotes.tvm, commit, '{"USE_LLVM": "OFF"}') for commit in (commits[0], commits[-1]))
    found = list_between(good, bad, finder)
    assert [one.id for one in found] == commits
    assert [one.suspect.title for one in found[1:]] == ["One", "Merge theirs"]
    assert found[1].spec == ArtifactSpec(str(remotes.tvm), commits[1], (("USE_LLVM", "OFF"),))
    with pytest.raises(DashboardError, match="in the wrong order"):
        list_between(bad, good, finder)
    with pytest.raises(DashboardError, match="the same build"):
        list_between(good, good, finder)
    with pytest.raises(DashboardError, match="differ in their options"):
        list_between(good, artifact_of(remotes.tvm, commits[-1]), finder)


RUN = f"""#!{sys.executable}
import json, pathlib, sys, time
import numpy, tvm

x = numpy.ones((24, 400), "float32")
weight = tvm.runtime.tensor(numpy.ones((400, 200), "float32"))
main = tvm.relax.VirtualMachine(None, None)["main"]
seconds = []
for _ in range(12):
    begun = time.thread_time()
    main(tvm.runtime.tensor(x), weight)
    seconds.append(time.thread_time() - begun)
pathlib.Path(sys.argv[2], "raw.json").write_text(json.dumps({{"relu_ms": 1000 * min(seconds)}}))
pathlib.Path(sys.argv[2], "status.json").write_text('{{"success": true, "message": "measured"}}')
"""
SUM = "float sum = 0.0f;"
CULPRIT, BROKEN = 8, 6
COMMITS = 12


def commits_of(remotes: standin.Remotes) -> list[str]:
    """12 commits: one makes the product half as slow again, one cannot be compiled, the others change nothing."""
    source = remotes.tvm / "src" / "product.cc"
    good = source.read_text()
    made = [standin.git(remotes.tvm, "rev-parse", "HEAD")]
    for number in range(1, COMMITS + 1):
        text = (
            good if number < CULPRIT else good.replace(SUM, f"{SUM} for (volatile int spin = 0; spin < 200;) ++spin;")
        )
        source.write_text("#error broken\n" if number == BROKEN else f"{text}// commit {number}\n")
        made.append(remotes.commit(f"Change number {number}", day=number + 1))
    return made


@pytest.mark.slow
def test_the_commit_that_slowed_a_real_build_is_found(tmp_path: Path) -> None:
    remotes = standin.make(tmp_path / "remotes")
    commits = commits_of(remotes)
    home = homes.make_home(
        tmp_path / "lab", Path("../shelf"), telemetry_rate=0, tvm_remote=str(remotes.tvm), tvm_branch="main",
        tvm_options={"USE_LLVM": "OFF"},
    )  # fmt: skip
    home.experiment("product", run=RUN)
    homes.write(home.home.data_file("product", "20260801T000000Z"), {"relu_ms": 1.0})
    shelf = tmp_path / "lab" / "shelf"
    shelf.mkdir()
    kept_tools = os.environ.get("TVMDASH_TEST_ARTIFACTS")
    tools = cmake.install_tools(BuildContext(Path(kept_tools) if kept_tools else shelf, tmp_path, LockDeadline(300)))
    if kept_tools:
        (shelf / ".tools").symlink_to(tools.parent)
    ends = ("--good", f"git:{commits[0][:9]}", "--bad", "git:main")
    done = home.run("product", "$.relu_ms", *ends, verb="bisect")
    assert done.code == 0, done.output
    trial = kept(home)
    result = trial["bisection"]
    assert [one["title"] for one in result["suspects"]] == [f"Change number {CULPRIT}"], done.output
    (suspect,) = result["suspects"]
    assert (suspect["id"], suspect["author"], suspect["date"][:10]) == (commits[CULPRIT], "Ada", "2026-08-09")
    assert commits[CULPRIT][:12] in done.output
    assert trial["series"][0]["change"]["effect"] > 0.1
    assert result["builds"] <= 4
    failed = {name: step["failed"] for name, step in result["steps"].items() if step["failed"]}
    assert list(failed) == [commits[BROKEN]], "the middle one cannot be compiled and is walked round"
    assert "compile failed" in failed[commits[BROKEN]]
