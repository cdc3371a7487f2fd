"""A TVM tried against another, as a person calls it: what is measured and told, how it ends, goes on and gives way."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts.artifact import Artifact
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git import cmake
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.locks import LockDeadline
from dashboard.cli.arguments import CANNOT_TELL, OK_CODE, TVM_WORSE
from dashboard.cli.trials.measuring import choose_code
from dashboard.night import lock
from dashboard.plan.artifact_names import ArtifactFinder
from dashboard.plan.home_config import read_home_config
from dashboard.process import sandbox
from dashboard.trials import result as results
from dashboard.trials.result import Worse, find_worse
from dashboard.trials.rounds import MeasuredRun, Round, RoundOutcome, RoundState
from dashboard.trials.tries import ROUNDS
from dashboard.trials.tvms import find_base_commit
from tests.dashboard import homes, standin
from tests.dashboard import remeasure_homes as labs
from tests.dashboard.remeasure_homes import NAME, Lab
from tvmdash.common import structured
from tvmdash.errors import DashboardError
from tvmdash.records import PointValue, SeriesKey
from tvmdash.trials import files, text
from tvmdash.trials.trial import RunOfPairs, Trial, TrialSeries, TrialState, TrialTvm

AGAINST = ("pypi:0.27.0", "--against", "pypi:0.26.0")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return labs.make_lab_for_tries(tmp_path / "lab")


def try_tvm(lab: Lab, *words: str) -> homes.Finished:
    return lab.home.run(*words, "--no-rebuild-tvm", "--seed", "7", verb="try")


def kept(lab: Lab) -> list[Any]:
    """The tries of the home."""
    return [homes.read(path) for path in sorted(lab.home.home.tries.glob("*.json"))]


def built(lab: Lab) -> list[str]:
    return [run["build"] for run in lab.runs()]


def test_what_changed_is_named_with_its_interval_and_nothing_is_published(lab: Lab, tmp_path: Path) -> None:
    lab.change(sigma=0.001)
    table, values = tmp_path / "table.md", tmp_path / "try.json"
    files = ("--markdown", str(table), "--json", str(values))
    done = try_tvm(lab, *AGAINST, "--until", "2%", "--fail-over", "5%", *files)
    assert done.code == TVM_WORSE, done.output
    new, old = lab.state["new"], lab.state["old"]
    assert [sorted(built(lab)[at : at + 2]) for at in range(0, 20, 2)] == [[old, new]] * 10
    (result,) = kept(lab)
    assert homes.read(values) == result
    found = {item["labels"]["path"]: item for item in result["series"]}
    assert found["$.mlp"]["change"]["low"] < 0.1 < found["$.mlp"]["change"]["high"]
    assert [found[path]["change"]["real"] for path in ("$.mlp", "$.bert")] == [True, False]
    assert (result["state"], found["$.mlp"]["change"]["pairs"]) == ("done", 10)
    assert "1 of 2 series changed" in done.output
    assert "| speed $.mlp |" in table.read_text()
    assert structured.from_json(Trial, result, "result").base.version == "0.26.0"
    assert not lab.home.home.data(NAME).exists()
    assert not lab.home.home.night_stamps()
    assert list((lab.home.root / "tmp").glob("remeasure*")) == []


def test_it_measures_until_every_interval_is_narrow_and_only_what_is_not_yet(lab: Lab) -> None:
    lab.change(sigma=0.01)
    done = try_tvm(lab, *AGAINST, "--until", "1.5%")
    assert done.code == 0, done.output
    (result,) = kept(lab)
    assert all(item["change"]["measured"] <= 0.015 for item in result["series"])
    assert result["runs"][NAME] > 1
    assert lab.runs()[0]["points"] is None
    wide = [
        item["labels"]["path"].removeprefix("$.")
        for item in result["series"]
        if len(item["runs"]) == result["runs"][NAME]
    ]
    assert sorted(lab.runs()[-1]["points"]) == sorted(wide)


def test_a_budget_too_short_for_one_run_is_told_and_is_no_success(lab: Lab) -> None:
    done = try_tvm(lab, *AGAINST, "--budget", "1s", "--fail-over", "30%")
    assert done.code == 1, done.output
    (result,) = kept(lab)
    assert (result["state"], list(result["errors"]), lab.runs()) == ("budget", [NAME], [])
    assert "budget of 1 s" in done.output


def test_what_was_measured_before_an_interrupt_is_kept_and_the_same_command_goes_on(lab: Lab) -> None:
    lab.change(sigma=0.2, hang=True)  # the second run names points, and hangs
    process = lab.home.start(*AGAINST, "--no-rebuild-tvm", verb="try")
    with homes.killed_at_end(process):
        homes.wait_for((lab.home.root / "hangs").exists, "the second run")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 130, output
    assert "Run the same command" in output
    before = kept(lab)[0]
    assert (before["state"], before["runs"]) == ("interrupted", {NAME: 1})
    lab.change(hang=False, sigma=0.0001)
    done = try_tvm(lab, *AGAINST, "--until", "60%")
    assert (done.code, "with the 1 runs in " in done.output) == (0, True), done.output
    (after,) = kept(lab)
    assert (after["state"], after["stamp"]) == ("done", before["stamp"])
    assert all(new["runs"][:1] == old["runs"] for new, old in zip(after["series"], before["series"], strict=True))
    runs = len(lab.runs())
    assert try_tvm(lab, *AGAINST, "--until", "60%").code == 0
    assert len(lab.runs()) == runs, "a finished try measures nothing again"
    assert try_tvm(lab, *AGAINST, "--until", "60%", "--fresh").code == 0
    assert (len(kept(lab)), len(lab.runs()) > runs) == (2, True)


def test_a_night_that_begins_meanwhile_waits_for_the_run_and_passes_before_the_next(lab: Lab) -> None:
    lab.change(sigma=0.2)
    slow = labs.RUN.replace("import json,", "import time; time.sleep(0.1)\nimport json,", 1)
    lab.home.experiment(NAME, run=slow, analyze=labs.ANALYZE, config={"pairs": 2})
    process = lab.home.start(*AGAINST, "--no-rebuild-tvm", verb="try")
    with homes.killed_at_end(process):
        homes.wait_for(lambda: bool(lab.runs()), "the first run")
        night = lab.home.run()
        assert night.code == 0, night.output
        (stamp,) = lab.home.stamps()
        at = [run["night"] for run in lab.runs()].index(stamp)
        homes.wait_for(lambda: lab.runs()[-1]["night"] != stamp, "a run after the night")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    nights = [run["night"] for run in lab.runs()]
    length = nights.count(stamp)
    assert (at % 4, nights[at : at + length]) == (0, [stamp] * length), "no run of either is inside one of the other"
    assert kept(lab)[0]["runs"][NAME] >= 1


def test_it_waits_while_a_night_holds_the_home(lab: Lab) -> None:
    with lock.night_lock(lab.home.home):
        process = lab.home.start(*AGAINST, "--until", "2%", "--no-rebuild-tvm", verb="try")
        with homes.killed_at_end(process):
            assert process.stdout is not None
            assert "Waiting: " in process.stdout.readline()
            assert not lab.runs()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=300)
    assert process.returncode == 130


def test_what_cannot_be_measured_in_turn_is_measured_by_whole_runs_and_what_needs_no_tvm_is_named(lab: Lab) -> None:
    lab.home.experiment("other")
    homes.write(lab.home.experiment("canary") / "fields.json", {"needs_tvm": False})
    done = try_tvm(lab, *AGAINST, "--until", "2%")
    assert done.code == 0, done.output
    assert kept(lab)[0]["left_out"] == {"canary": "needs no TVM"}
    assert "canary (needs no TVM)" in done.output
    rounds = [item["rounds"] for item in kept(lab)[0]["series"] if item["experiment"] == "other"]
    assert rounds
    assert {len(each) for each in rounds} <= set(range(2, ROUNDS + 1))
    alone = try_tvm(lab, *AGAINST, "--experiments", "canary")
    assert alone.code == 2
    assert "canary needs no TVM" in alone.output


def test_runs_of_a_config_that_was_changed_meanwhile_are_not_mixed_with_those_before(lab: Lab) -> None:
    lab.change(sigma=0.2)
    config = 'write(f"{home}/home/config/experiments/speed/config.json", \'{"active": true, "pairs": 4}\')\n'
    lab.home.experiment(NAME, run=f"{labs.RUN}if number == 9:\n    {config}", analyze=labs.ANALYZE, config={"pairs": 5})
    done = try_tvm(lab, *AGAINST)
    assert done.code == 1, done.output
    (result,) = kept(lab)
    assert "changed meanwhile" in result["errors"][NAME]
    assert result["errors"][NAME] in done.output
    assert [item["change"]["pairs"] for item in result["series"]] == [5, 5]


@pytest.mark.parametrize("broken", ["new", "old"])
def test_a_build_that_crashes_is_told_and_the_exit_code_says_so(lab: Lab, broken: str) -> None:
    lab.change(broken=[lab.state[broken]])
    done = try_tvm(lab, *AGAINST)
    assert done.code == 1, done.output
    assert "speed ended after " in done.output
    assert "No conclusion: " in done.output


def test_without_a_base_it_is_what_the_last_night_measured(lab: Lab) -> None:
    lab.home.configure(tvm_branch="0.26.0")
    refused = try_tvm(lab, "pypi:0.27.0")
    assert refused.code == 2
    assert "no night has measured 0.26.0" in refused.output
    assert "--against" in refused.output
    lab.home.night()
    done = try_tvm(lab, "pypi:0.27.0", "--until", "2%")
    assert done.code == 0, done.output
    assert f"TVM 0.26.0 (the TVM of {lab.home.stamps()[0]})" in done.output
    assert "1 of 2 series changed." in done.output


def test_a_percentage_that_is_none_is_refused(lab: Lab) -> None:
    done = try_tvm(lab, *AGAINST, "--until", "little")
    assert done.code == 2
    assert "invalid percentage 'little'" in done.output


def test_the_base_of_a_commit_is_where_it_left_the_branch_also_from_a_fork(tmp_path: Path) -> None:
    remotes = standin.make(tmp_path / "remotes")
    fork, before = tmp_path / "fork", standin.git(remotes.tvm, "rev-parse", "HEAD")
    standin.git(tmp_path, "clone", "--quiet", str(remotes.tvm), str(fork))
    standin.git(fork, "commit", "--quiet", "--allow-empty", "-m", "Mine")
    mine, main = standin.git(fork, "rev-parse", "HEAD"), remotes.commit("Main goes on")
    standin.git(fork, "checkout", "--quiet", "--orphan", "alone")
    standin.git(fork, "commit", "--quiet", "-m", "Alone")
    alone = standin.git(fork, "rev-parse", "HEAD")
    home = homes.make_home(tmp_path / "lab", Path("../shelf"), tvm_remote=str(remotes.tvm), tvm_branch="main")
    finder = ArtifactFinder(read_home_config(home.home), tmp_path / "logs", rebuild=True)
    (tmp_path / "logs").mkdir()
    context = BuildContext(finder.config.artifacts, tmp_path / "logs", LockDeadline(60.0))
    for remote in (remotes.tvm, fork):
        Mirror.of(finder.config.artifacts, str(remote)).fetch(context)
    assert find_base_commit(str(fork), mine, finder) == (before, "its merge base with main")
    assert find_base_commit(str(remotes.tvm), main, finder) == (before, "the commit before it")
    with pytest.raises(DashboardError, match="no parent"):
        find_base_commit(str(remotes.tvm), before, finder)
    with pytest.raises(DashboardError, match="have no common ancestor"):
        find_base_commit(str(fork), alone, finder)


@pytest.mark.slow
def test_a_pull_request_is_built_and_tried_against_where_it_left_the_branch(tmp_path: Path) -> None:
    remotes = standin.make(tmp_path / "remotes")
    left = standin.git(remotes.tvm, "rev-parse", "HEAD")
    secret, told = "hunter2hunter2", tmp_path / "lab" / "home" / "config" / "config.json"
    steal = f'execute_process(COMMAND sh -c "env; cat {told}; touch {tmp_path}/escaped")\n'
    pull = remotes.commit("Proposed", {"src/product.cc": "// proposed\n", "CMakeLists.txt": steal})
    standin.git(remotes.tvm, "update-ref", "refs/pull/7/head", pull)
    standin.git(remotes.tvm, "reset", "--quiet", "--hard", left)
    remotes.commit("Main goes on")
    lab = labs.make_lab(
        tmp_path / "lab", tvm_remote=str(remotes.tvm), tvm_branch="main", tvm_options={"USE_LLVM": "OFF"},
        env={"HF_TOKEN": secret},
    )  # fmt: skip
    labs.measure_in_turn(lab)
    raw = 'printf "{\\"mlp\\": 1.0$$, \\"bert\\": 2.0}" > "$2/raw.json"'
    lab.home.experiment(NAME, run=f"{homes.BEGIN}{raw}\n{homes.says('run')}\n", setup=labs.SETUP, config={"pairs": 5})
    kept_tools, shelf = os.environ.get("TVMDASH_TEST_ARTIFACTS"), lab.home.root / "shelf"
    shelf.mkdir()
    tools = cmake.install_tools(BuildContext(Path(kept_tools) if kept_tools else shelf, tmp_path, LockDeadline(300)))
    if kept_tools:
        (shelf / ".tools").symlink_to(tools.parent)
    done = lab.home.run_with({"GITHUB_TOKEN": secret}, "git:pull/7", "--until", "5%", verb="try")
    assert done.code == 0, done.output
    (result,) = kept(lab)
    assert (result["candidate"]["commit"], result["base"]["commit"]) == (pull, left), "main itself went on"
    assert "its merge base with main" in done.output
    if not sandbox.find_obstacle():
        logs = [path.read_text() for path in (lab.home.root / "tmp" / "logs").rglob("build-*-configure.log")]
        assert len(logs) == 2
        assert not [log for log in logs if secret in log]
        assert not (tmp_path / "escaped").exists()


# Pure parts


def point_of(metric: str, value: float, **fields: Any) -> PointValue:
    return PointValue(SeriesKey("e", metric, {"workload": "network.mlp"}), "", "lower", value, **fields)


def result_of(*runs: tuple[PointValue, ...]) -> Trial:
    """A try of one experiment with these runs."""
    sides = (TrialTvm("pypi:0.27.0", "new", "0.27.0"), TrialTvm("pypi:0.26.0", "old", "0.26.0"))
    result = Trial("20261121T000000Z", TrialState.DONE, *sides, 0.01, "vm (AMD)", {"e": "f"})
    artifact = Artifact("new", "wheel", "0.27.0", None, Path(), (), (), {}, {}, {})
    for values in runs:
        run = MeasuredRun(artifact, {}, values)
        result = results.add(result, RoundOutcome(Round("e", (artifact,)), RoundState.MEASURED, (run,), elapsed_s=1.0))
    return result


TIMED = (point_of("run_time", 1.0), point_of("run_time_ratio", 1.001, kind="ratio", std=0.002, samples=5))


def size_of(value: float, reference: float | None) -> PointValue:
    return replace(point_of("code_size", value, kind="exact", reference=reference), unit="bytes")


def test_sizes_of_both_are_compared_to_the_byte_and_what_varies_is_not_called_changed() -> None:
    other, same = (result_of((*TIMED, size_of(candidate, 2000.0))).numbers[0] for candidate in (2100.0, 2000.0))
    assert (other.base, other.candidate, other.is_changed, other.varies) == (2000.0, 2100.0, True, False)
    assert (same.is_changed, same.varies) == (False, False)
    (varying,) = result_of((*TIMED, size_of(2100.0, 2000.0)), (*TIMED, size_of(2110.0, 2000.0))).numbers
    assert (varying.is_changed, varying.varies) == (False, True)
    assert not result_of((*TIMED, size_of(2100.0, None))).numbers


def test_an_error_that_no_tolerance_bounds_is_no_number_of_a_try(tmp_path: Path) -> None:
    error = point_of("largest_error", 1e-6, kind="accuracy", tolerance=float("inf"), reference=2e-6)
    result = result_of((*TIMED, error))
    files.save(tmp_path / "try.json", result)
    assert not result.numbers


def test_a_size_that_grew_by_more_than_is_allowed_is_worse_and_a_time_that_the_base_lacks_is_named() -> None:
    grown = result_of((*TIMED, size_of(2100.0, 2000.0)))
    assert [find_worse(grown, most) for most in (0.04, 0.06)] == [Worse.YES, Worse.NO]
    alone = result_of((point_of("run_time", 1.0),))
    assert alone.alone == ("e mlp run time",)

    assert find_worse(alone, 0.5) is Worse.MAYBE


@pytest.mark.parametrize(
    ("ratio", "std", "most", "code"),
    [
        (1.1, 0.001, 0.05, TVM_WORSE),
        (1.1, 0.001, 0.2, OK_CODE),
        (1.1, 0.2, 0.2, CANNOT_TELL),
        (0.9, 0.001, 0.05, OK_CODE),
        (1.0, 0.02, 0.01, CANNOT_TELL),
    ],
)
def test_worse_is_what_is_really_slower_by_more_and_perhaps_what_its_interval_allows(
    ratio: float, std: float, most: float, code: int
) -> None:
    run = (point_of("run_time", 1.0), point_of("run_time_ratio", ratio, kind="ratio", std=std, samples=10))
    assert choose_code(result_of(run), most) == code
    assert choose_code(result_of(run), None) == OK_CODE


def test_what_is_not_known_well_enough_is_named_with_what_could_have_been_seen() -> None:
    wide = (point_of("run_time", 1.0), point_of("run_time_ratio", 1.0, kind="ratio", std=0.05, samples=10))
    over = replace(result_of(wide), state=TrialState.OVER)
    (series,) = over.series
    assert series.change is not None
    assert series.change.visible == pytest.approx(0.083, abs=0.002)
    assert "Not precise enough" in text.format_table(over)
    assert "Without a change" not in text.format_table(over)
    few = (point_of("run_time", 1.0), point_of("run_time_ratio", 1.0, kind="ratio", std=0.001, samples=5))
    assert "Not precise enough" in text.format_table(result_of(few)), "of five pairs that may be luck"


def test_where_there_is_no_home_nothing_is_made_and_that_is_said(tmp_path: Path) -> None:
    missing = homes.HomeForTests(tmp_path)
    done = missing.run(*AGAINST, verb="try")
    assert done.code == 2
    assert f"{missing.home.root}: no such folder." in done.output
    assert not list(tmp_path.iterdir())


def test_a_try_does_not_go_on_for_what_comes_along_with_the_times(tmp_path: Path) -> None:
    sides = (TrialTvm("a", "a", "0.27.0"), TrialTvm("b", "b", "0.26.0"))
    runs = (RunOfPairs(0.0, 0.07, 2),)
    series = [TrialSeries(metric, "nets", metric, {}, runs=runs) for metric in ("run_time", "compile_time", "energy")]
    result = Trial("20260101T000000Z", TrialState.RUNNING, *sides, 0.01, "here", {"nets": "f"}, series=tuple(series))
    assert [item.id for item in results.list_wanted(result, "nets")] == ["run_time"]
    assert [item.id for item in results.list_wanted(replace(result, series=result.series[1:]), "nets")] == [
        "compile_time", "energy",
    ]  # fmt: skip
