"""Scores: what they are made of, when they may be compared, what is said of what is missing."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.golden_files import Golden
from tests.subsystem.scripts import load
from tvmdash.dashboard_info.pages import Lack, LeftOut, Missing, WorkloadValue

REPO = Path(__file__).resolve().parents[2]
FOLDER = REPO / "subsystem" / "score"
SCORE = load("score")
NIGHTS = [f"202601{day:02}T031500Z" for day in range(1, 29)]
SPEEDUP = {
    "title": "zero against default",
    "experiment": "opt",
    "kind": "speedup",
    "baseline": {"build_config.variant": "default"},
    "contender": {"build_config.variant": "zero"},
}


def record(workload: str, variant: str, ms: float, level: int = 3, **info: Any) -> dict[str, Any]:
    known = {"docker_tag": None, "docker_hash": None, "execution_elapsed_ms_median": ms, "max_error": 0.0}
    interval = {"execution_elapsed_ms_low": ms * 0.98, "execution_elapsed_ms_high": ms * 1.02}
    return {
        "timestamp": "2026-01-01T03:15:00+00:00",
        "schema_version": 1,
        "additional_info": {**known, **interval, **info},
        "workload": f"network.{workload}",
        "workload_args": {"batch": 1},
        "engine": "tvm",
        "engine_version": "0.27.0",
        "engine_config": {},
        "target": '{"kind": "llvm"}',
        "build_config": {"variant": variant, "opt_level": level},
        "env_name": "test",
        "hw_model": "cpu",
        "runtime_config": {"threads": 1},
        "execution_config": {"number": 1},
        "execution_elapsed_ms_mean": ms,
        "execution_elapsed_ms_std": 0.0,
    }


def failure(workload: str, variant: str, error: str = "it crashed") -> dict[str, Any]:
    return {"workload": f"network.{workload}", "values": {"variant": variant, "opt_level": 3}, "error": error}


def pairs(**times: tuple[float, float]) -> list[dict[str, Any]]:
    """For each workload a record of `default` and one of `zero`."""
    return [
        record(workload, variant, ms)
        for workload, both in times.items()
        for variant, ms in zip(("default", "zero"), both, strict=True)
    ]


class Home:
    """A home with the score subsystem's config, its nights, and its output."""

    def __init__(self, root: Path, *scores: Any) -> None:
        self.root, self.config, self.output = root / "home", root / "config", root / "output"
        self.output.mkdir(parents=True)
        self.configure(*scores)

    def configure(self, *scores: Any) -> None:
        write(self.config / "config.json", {"active": True, "scores": list(scores)})

    def night(self, stamp: str, records: list[Any] | None, failures: tuple[Any, ...] = (), **config: Any) -> None:
        """A night on which the experiment `opt` left this; with None it failed."""
        states = ["ok", "ok"] if records is not None else ["ok", "failed"]
        steps = [
            {"stage": stage, "state": state, "message": "no disk", "stamp": stamp}
            for stage, state in zip(("run", "analyze"), states, strict=True)
        ]
        job = {"kind": "experiment", "name": "opt", "title": "opt", "description": "", "steps": steps}
        whole = {"stamp": stamp, "state": "running", "notes": [], "artifacts": [], "jobs": [job]}
        write(self.root / "results" / "nights" / f"{stamp}.json", whole)
        if records is not None:
            night = {"config": {"active": True, "networks": ["a"], **config}}
            value = {"schema_version": 1, "tvm_hash": "abc", "night": night, "records": records, "failures": failures}
            environment = {"environment": {}}
            path = self.root / "results" / "experiments" / "data" / "opt" / f"data_{stamp}.json"
            write(path, {**value, **environment})

    def score(self, stamp: str, *verb: str) -> dict[str, Any]:
        """Run the subsystem on this night; its status."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TVMDASH_NIGHT", stamp)
            SCORE.main([*verb, *map(str, (self.config, self.output, self.root))])
        return read(self.output / "status.json")

    def script(self, stamp: str) -> dict[str, Any]:
        """Run its run.sh, as a night does; its status."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {
            "PATH": path,
            "PYTHONPATH": f"{REPO}/shared/python",
            "TVMDASH_NIGHT": stamp,
        }  # clean, as a night's
        argv = [str(FOLDER / "run.sh"), *map(str, (self.config, self.output, self.root))]
        subprocess.run(argv, cwd=FOLDER, env=environment, check=False, capture_output=True)
        return read(self.output / "status.json")

    def after(self, stamp: str, *verb: str) -> dict[str, Any]:
        """Run the subsystem, which must go well; the page's first score."""
        status = self.score(stamp, *verb)
        assert status["success"], status
        return self.page()["scores"][0]

    def page(self) -> dict[str, Any]:
        return read(self.output / "page.json")

    def report(self) -> str:
        return read(self.output / "report.json")["value"]


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def read(path: Path) -> Any:
    return json.loads(path.read_text())


THREE = pairs(a=(2.0, 1.0), b=(8.0, 1.0), c=(4.0, 1.0))


def scored(kind: str, *points: Any, **changes: Any) -> Any:
    """A score of that kind with its points; what it is made of plays no part in its words."""
    made = SCORE.definitions.parse_all([{**SPEEDUP, "kind": "speedup"}])[0][0]
    return SCORE.history.Scored(replace(made, kind=kind, threshold=4.0, **changes), points, points[-1])


def point(
    at: int, value: float | None, *workloads: WorkloadValue, missing: tuple[Missing, ...] = (), **changes: Any
) -> Any:
    names = tuple(each.workload for each in (*workloads, *missing))
    lacking = tuple(each.workload for each in missing)
    parts = (workloads, missing)
    made = SCORE.score_report.ScorePoint(NIGHTS[at], value, None, None, names, lacking, "c", True, "abc", *parts)
    return replace(made, **changes)


A, B, C = WorkloadValue("a", 2.0, 1.9, 2.1), WorkloadValue("b", 8.0), WorkloadValue("c", 4.0, 3.9, 4.1)
CRASHED = Missing("d", "failed: SIGSEGV", Lack.FAILED, ("opt", "SIGSEGV"))
OFTEN = tuple(Missing(name, f"reason {name}") for name in "defgh")
WHOLE = point(0, 4.0, A, B, C, low=2.0, high=8.0)
SMALL = SCORE.definitions.parse_all([{**SPEEDUP, "metric": "code_size"}])[0][0].metric
SCORES = {
    "a speed-up": scored("speedup", WHOLE),
    "perhaps no difference": scored("speedup", replace(WHOLE, low=0.9)),
    "of a size, of one workload": scored("speedup", point(0, 3.0, A), metric=SMALL),
    "since the night before": scored("speedup", WHOLE, replace(WHOLE, stamp=NIGHTS[1], value=3.175)),
    "since an earlier night": scored(
        "speedup", WHOLE, point(1, 4.0, A, missing=(CRASHED,)), replace(WHOLE, stamp=NIGHTS[2], value=5.0)
    ),
    "nothing earlier of the same workloads": scored("speedup", WHOLE, point(1, 4.0, A, B)),
    "incomplete": scored("speedup", point(0, 4.0, A, B, missing=(CRASHED, replace(CRASHED, workload="e")))),
    "incomplete for many reasons": scored("speedup", point(0, 4.0, A, missing=OFTEN)),
    "no value": scored("speedup", point(0, None, missing=(CRASHED,))),
    "nothing matches": scored("speedup", point(0, None)),
    "a mean time": scored("geomean_time", WHOLE, replace(WHOLE, stamp=NIGHTS[1], value=3.0)),
    "a share": scored("share_reaching", point(0, 200 / 3, A, B, C)),
    "a share after another": scored(
        "share_reaching", point(0, 200 / 3, A, B, C), replace(WHOLE, stamp=NIGHTS[1], value=100.0)
    ),
    "a share of one": scored("share_reaching", point(0, 100.0, B)),
    "correct answers": scored(
        "correct_count",
        point(0, 6.0, WorkloadValue("a", 3.0, total=3), WorkloadValue("b", 3.0, total=3)),
        point(1, 5.0, WorkloadValue("a", 2.0, total=3), WorkloadValue("b", 3.0, total=3)),
    ),
    "answers never checked": scored("correct_count", point(0, 3.0, WorkloadValue("a", 3.0, total=3, unchecked=1))),
}


BAD: list[tuple[Any, str]] = [
    ("text", "$.scores[1]:"),
    ({**SPEEDUP, "title": ""}, "$.scores[1].title:"),
    ({**SPEEDUP, "kind": "speed"}, "$.scores[1].kind:"),
    ({**SPEEDUP, "tresholt": 2}, "mean 'threshold'?"),
    ({**SPEEDUP, "contender": {"build_confg.variant": 1}}, "mean 'build_config'?"),
    ({**SPEEDUP, "contender": ["zero"]}, "$.scores[1].contender:"),
    ({**SPEEDUP, "threshold": 2}, "share_reaching only"),
    ({**SPEEDUP, "kind": "share_reaching"}, "$.scores[1].threshold:"),
    ({**SPEEDUP, "kind": "geomean_time"}, "$.scores[1].baseline:"),
    ({**SPEEDUP, "workloads": []}, "$.scores[1].workloads:"),
    ({**SPEEDUP, "metric": "speed"}, "$.scores[1].metric:"),
    (SPEEDUP, "duplicate"),
]


def score_messages() -> Iterator[tuple[str, str]]:
    for name, each in SCORES.items():
        yield name, "\n".join(SCORE.score_report.tell(each))
    off = [LeftOut(str(number), f"other {number}", (f"other_{number}",)) for number in range(3)]
    some = [SCORES["a speed-up"], SCORES["incomplete"]]
    for name, given in {
        "report: all": (some[:1], (), ()),
        "report: some": (some, off[:1], ("$.scores[1]: 'text' is not an object",)),
        "report: left out": ((), off, ()),
        "report: none": ((), (), ()),
    }.items():
        report = SCORE.score_report.report(*given)
        yield name, f"{report.title}\n{report.value}"
    for number, (bad, _) in enumerate(BAD):
        yield f"bad: number {number}", "\n".join(SCORE.definitions.parse_all([SPEEDUP, bad])[1])


def test_messages(golden: Golden) -> None:
    golden.messages("score", score_messages())


def test_the_night_before_is_told_as_it_was_though_its_parts_are_not_kept(tmp_path: Path) -> None:
    share = {**SPEEDUP, "title": "share", "kind": "share_reaching", "threshold": 1.5}
    contender = {"build_config.variant": "zero"}
    correct = {"title": "right", "experiment": "opt", "kind": "correct_count", "contender": contender}
    home = Home(tmp_path, share, correct)
    for stamp in NIGHTS[:2]:
        home.night(stamp, THREE)
        home.after(stamp)
    assert home.report().splitlines() == [
        "share: 3 of 3 workloads are 1.5 times as fast or better. 3 of 3 on the night before.",
        "right: 3 of 3 points correct. 3 correct on the night before.",
    ]


def test_a_speedup_is_the_geometric_mean_over_workloads_with_an_interval(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], THREE)
    score = home.after(NIGHTS[0])
    assert score["value"] == pytest.approx(4.0)
    assert score["complete"] is True
    assert (
        score["high"] / 4.0 == pytest.approx(4.0 / score["low"]) == pytest.approx(2 ** (4.303 / math.sqrt(3)), rel=1e-3)
    )
    assert [(item["workload"], item["value"]) for item in score["workloads"]] == [("a", 2.0), ("b", 8.0), ("c", 4.0)]
    assert score["workloads"][0]["low"] == pytest.approx(2.0 * 0.98 / 1.02)
    assert home.report().endswith(f": {score['headline']}. {score['details']}")


def test_its_script_leaves_what_the_protocol_asks_for(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], THREE)
    assert home.script(NIGHTS[0]) == {"success": True, "message": "Scores: all 1 complete"}
    assert {path.name for path in home.output.iterdir()} == {
        "graphs",
        "page.json",
        "report.json",
        "scores.json",
        "status.json",
    }
    for graph in home.page()["scores"][0]["graphs"]:
        assert (home.output / graph["file"]).read_text().startswith("<?xml")


def test_a_speedup_of_two_workloads_has_an_interval_that_says_how_little_two_tell(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], pairs(a=(2.0, 1.0), b=(3.0, 1.0)))
    score = home.after(NIGHTS[0])
    assert score["value"] == pytest.approx(math.sqrt(6))
    assert math.log(score["high"] / score["value"]) == pytest.approx(12.706 * math.log(1.5) / 2, rel=1e-3)


def test_a_speedup_of_one_workload_has_the_interval_of_its_measurement(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], pairs(a=(2.0, 1.0)))
    score = home.after(NIGHTS[0])
    assert score["low"] < 2.0 < score["high"]
    assert score["high"] / score["low"] < 1.2


def test_an_interval_that_holds_1_is_told_as_perhaps_no_difference(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], pairs(a=(1.0, 2.0), b=(1.0, 1.0), c=(2.0, 1.0)))
    score = home.after(NIGHTS[0])
    assert score["low"] <= 1 <= score["high"]
    assert "no difference" in home.report()


def test_a_workload_that_failed_tonight_makes_the_score_incomplete_and_is_said_with_its_reason(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], THREE)
    home.after(NIGHTS[0])
    left = [item for item in THREE if (item["workload"], item["build_config"]["variant"]) != ("network.b", "zero")]
    home.night(NIGHTS[1], left, (failure("b", "zero", "SIGSEGV"),))
    score = home.after(NIGHTS[1])
    assert score["complete"] is False
    assert score["value"] == pytest.approx(math.sqrt(8.0))
    assert score["before"] is None
    (missing,) = score["missing"]
    assert missing["workload"] == "b"
    assert missing["reason"].endswith("SIGSEGV")
    assert (missing["lack"], missing["of"]) == ("failed", ["opt", "build_config.variant=zero", "SIGSEGV"])
    assert "Missing: b (failed" in home.report()


def test_a_workload_that_vanished_without_a_word_is_missing_too(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], THREE)
    home.after(NIGHTS[0])
    home.night(NIGHTS[1], None)
    home.after(NIGHTS[1]) if home.score(NIGHTS[1])["success"] else None
    home.night(NIGHTS[2], [item for item in THREE if item["workload"] != "network.c"])
    assert [item["workload"] for item in home.after(NIGHTS[2])["missing"]] == ["c"]


def test_a_workload_that_the_experiments_config_no_longer_asks_for_is_not_missed(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], THREE)
    home.after(NIGHTS[0])
    home.night(NIGHTS[1], [item for item in THREE if item["workload"] != "network.c"], networks=["a", "b"])
    score = home.after(NIGHTS[1])
    assert score["complete"] is True
    assert score["before"] is None


def test_who_is_pinged_or_when_it_runs_is_no_change_of_what_is_measured(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], THREE)
    home.after(NIGHTS[0])
    home.night(NIGHTS[1], [item for item in THREE if item["workload"] != "network.c"], notify=["U1"], priority=3)
    assert home.after(NIGHTS[1])["complete"] is False


def test_listed_workloads_are_all_expected_and_no_other_counts(tmp_path: Path) -> None:
    home = Home(tmp_path, {**SPEEDUP, "workloads": ["a", "network.b", "z"]})
    home.night(NIGHTS[0], THREE)
    score = home.after(NIGHTS[0])
    assert [item["workload"] for item in score["workloads"]] == ["a", "network.b"]
    assert [item["workload"] for item in score["missing"]] == ["z"]


def test_an_incomplete_night_is_compared_with_no_other_and_skipped_by_the_next(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], THREE)
    home.night(NIGHTS[1], THREE[:-1])
    home.night(NIGHTS[2], pairs(a=(2.0, 1.0), b=(8.0, 1.0), c=(4.0, 2.0)))
    score = home.after(NIGHTS[2])
    assert score["before"] == {"stamp": NIGHTS[0], "value": pytest.approx(4.0)}
    assert f"4.00 times as fast on night {NIGHTS[0]}" in home.report()
    graph = (home.output / score["graphs"][1]["file"]).read_text()
    assert "2 points" in graph


def test_a_selector_that_leaves_a_choice_says_what_to_name(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], [*THREE, *(record(name, "zero", 1.0, level=0) for name in "abc")])
    score = home.after(NIGHTS[0])
    assert score["value"] is None
    assert {item["lack"] for item in score["missing"]} == {"several_records"}
    assert "build_config.opt_level" in home.report()


def test_the_share_counts_the_workloads_that_reach_the_threshold(tmp_path: Path) -> None:
    home = Home(tmp_path, {**SPEEDUP, "kind": "share_reaching", "threshold": 4.0})
    home.night(NIGHTS[0], THREE)
    assert home.after(NIGHTS[0])["value"] == pytest.approx(200 / 3)


def test_the_mean_time_needs_no_baseline_and_has_the_interval_of_its_measurements(tmp_path: Path) -> None:
    home = Home(tmp_path, {"title": "t", "experiment": "opt", "kind": "geomean_time", "contender": SPEEDUP["baseline"]})
    home.night(NIGHTS[0], THREE)
    score = home.after(NIGHTS[0])
    assert score["value"] == pytest.approx(4.0)
    assert score["high"] == pytest.approx(4.0 * (1.02 / 0.98) ** (0.5 / math.sqrt(3)))
    assert score["unit"] == "ms"
    assert score["lower_is_better"] is True


def test_correct_answers_are_counted_against_failures(tmp_path: Path) -> None:
    home = Home(tmp_path, {"title": "correct", "experiment": "opt", "kind": "correct_count"})
    unchecked = record("d", "zero", 1.0)
    del unchecked["additional_info"]["max_error"]
    home.night(NIGHTS[0], [*THREE, unchecked], (failure("a", "other", "error 0.5 is beyond 1e-5"),))
    score = home.after(NIGHTS[0])
    assert score["value"] == 6
    assert [item["workload"] for item in score["missing"]] == ["d"]
    assert [item["lack"] for item in score["missing"]] == ["not_checked"]
    assert score["headline"] == "6 of 7 points correct"
    assert "Failures in a" in score["details"]


def test_answers_that_nobody_checked_are_not_told_as_correct(tmp_path: Path) -> None:
    home = Home(tmp_path, {"title": "correct", "experiment": "opt", "kind": "correct_count"})
    some = [
        record("a", "zero", 1.0),
        record("a", "default", 1.0),
        record("b", "zero", 1.0),
        record("b", "default", 1.0),
    ]
    for one in some:
        del one["additional_info"]["max_error"]
    home.night(NIGHTS[0], some)
    score = home.after(NIGHTS[0])
    assert score["value"] is None
    assert [(item["workload"], item["lack"]) for item in score["missing"]] == [
        ("a", "not_checked"),
        ("b", "not_checked"),
    ]
    home.night(NIGHTS[1], [*pairs(a=(1.0, 1.0)), *pairs(b=(1.0, 1.0))[:1], some[2]])
    assert home.after(NIGHTS[1])["value"] == 3
    assert "1 more never checked" in home.report()


def switched_off(home: Home, experiment: str) -> None:
    """The home knows the experiment and does not run it."""
    write(home.root / "config" / "experiments" / experiment / "config.json", {"active": False})


def test_scores_of_experiments_that_are_switched_off_are_left_out_and_said_in_one_line(tmp_path: Path) -> None:
    others = [{**SPEEDUP, "title": f"other {number}", "experiment": f"other_{number}"} for number in range(3)]
    home = Home(tmp_path, SPEEDUP, *others)
    home.night(NIGHTS[0], THREE)
    for number in range(3):
        switched_off(home, f"other_{number}")
    assert home.score(NIGHTS[0])["success"] is True
    (left_out,) = home.report().splitlines()[1:]
    assert "other_0, other_1 and other_2" in left_out
    assert [score["title"] for score in home.page()["scores"]] == [SPEEDUP["title"]]
    assert [item["title"] for item in home.page()["left_out"]] == ["other 0", "other 1", "other 2"]


def test_a_home_that_switched_off_all_that_is_scored_is_no_failure(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], THREE)
    night = home.root / "results" / "nights" / f"{NIGHTS[1]}.json"
    write(night, {"stamp": NIGHTS[1], "state": "running", "notes": [], "artifacts": [], "jobs": []})
    switched_off(home, "opt")
    assert home.score(NIGHTS[1])["success"] is True
    assert (home.page()["scores"], len(home.page()["left_out"])) == ([], 1)


def test_an_experiment_that_the_home_does_not_know_is_still_a_fault(tmp_path: Path) -> None:
    home = Home(tmp_path, {**SPEEDUP, "experiment": "optt"}, {**SPEEDUP, "title": "off"})
    home.night(NIGHTS[0], None)
    switched_off(home, "opt")
    status = home.score(NIGHTS[0])
    assert status["blocked"] is True
    assert "optt is unknown" in status["message"]
    assert "opt is not active" not in status["message"]


def test_another_metric_can_be_compared(tmp_path: Path) -> None:
    home = Home(tmp_path, {**SPEEDUP, "metric": "code_size"})
    sizes = [record("a", "default", 1.0, code_size=300), record("a", "zero", 9.0, code_size=100)]
    home.night(NIGHTS[0], sizes)
    assert home.after(NIGHTS[0])["value"] == pytest.approx(3.0)
    home.night(NIGHTS[1], pairs(a=(2, 1)))
    home.after(NIGHTS[1])
    assert "has no code_size above 0" in home.report()


@pytest.mark.parametrize("other", ["old", "opt@release"])
def test_two_experiments_can_be_compared(tmp_path: Path, other: str) -> None:
    selectors = {"baseline": {"experiment": other, "build_config.variant": "zero"}}
    home = Home(tmp_path, {**SPEEDUP, **selectors})
    home.night(NIGHTS[0], pairs(a=(9.0, 1.0)))
    data = home.root / "results" / "experiments" / "data"
    write(
        data / other / f"data_{NIGHTS[0]}.json",
        {**read(data / "opt" / f"data_{NIGHTS[0]}.json"), "records": pairs(a=(9, 3))},
    )
    assert home.after(NIGHTS[0])["value"] == pytest.approx(3.0)


@pytest.mark.parametrize(("bad", "words"), BAD, ids=[words for _, words in BAD])
def test_a_bad_definition_costs_that_score_only_and_is_said(tmp_path: Path, bad: Any, words: str) -> None:
    home = Home(tmp_path, SPEEDUP, bad, {**SPEEDUP, "title": "third", "workloads": ["a"]})
    home.night(NIGHTS[0], THREE)
    home.after(NIGHTS[0])
    assert [score["title"] for score in home.page()["scores"]] == [SPEEDUP["title"], "third"]
    assert words in home.report()
    assert "1 not usable" in read(home.output / "report.json")["title"]


def test_without_any_data_it_is_blocked_with_the_reason(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], None)
    status = home.score(NIGHTS[0])
    assert status["blocked"] is True
    assert status["message"].startswith("experiment opt: ")
    assert "no disk" in status["message"]


def test_a_score_whose_experiment_was_blocked_says_why_and_blames_no_selector(tmp_path: Path) -> None:
    other = {**SPEEDUP, "title": "other", "experiment": "other"}
    home = Home(tmp_path, SPEEDUP, other)
    home.night(NIGHTS[0], THREE)
    path = home.root / "results" / "nights" / f"{NIGHTS[0]}.json"
    night = read(path)
    steps = [{"stage": "run", "state": "blocked", "message": "no TVM to measure: no room", "stamp": NIGHTS[0]}]
    night["jobs"].append({"kind": "experiment", "name": "other", "title": "", "description": "", "steps": steps})
    write(path, night)
    assert home.score(NIGHTS[0])["success"]
    words = (
        "other: no value tonight. Missing: every workload (experiment other: stage run was blocked tonight: no TVM to"
    )
    assert words in home.report()
    assert "Check its baseline" not in home.report()
    assert home.page()["scores"][1]["complete"] is False


def test_the_history_is_the_same_night_by_night_and_rebuilt_from_the_data_files(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP, {**SPEEDUP, "title": "listed", "workloads": ["a"]})
    for stamp, records in zip(NIGHTS, [THREE, THREE[:-1], None, pairs(a=(3, 1)), THREE], strict=False):
        home.night(stamp, records)
        home.score(stamp)
    grown = (home.output / "scores.json").read_bytes()
    home.after(NIGHTS[4], "rebuild")
    assert (home.output / "scores.json").read_bytes() == grown
    (home.output / "scores.json").write_text("{")
    home.after(NIGHTS[4])
    assert (home.output / "scores.json").read_bytes() == grown
    points = read(home.output / "scores.json")["scores"][0]["points"]
    assert [point["stamp"] for point in points] == NIGHTS[:5]
    assert [point["value"] is None for point in points] == [False, False, True, False, False]


def test_a_long_history_that_is_cut_off_while_it_is_scored_goes_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path, SPEEDUP)
    for stamp in NIGHTS[:5]:
        home.night(stamp, THREE)
    read_night, asked = SCORE.history._read_night, []

    def cut_off(where: Any, experiment: str, stamp: str) -> Any:
        asked.append(stamp)
        if stamp == NIGHTS[3] and asked.count(stamp) == 1:
            raise KeyboardInterrupt
        return read_night(where, experiment, stamp)

    monkeypatch.setattr(SCORE.history, "_read_night", cut_off)
    monkeypatch.setattr(SCORE.history, "_NIGHTS_BETWEEN_WRITES", 2)
    with pytest.raises(KeyboardInterrupt):
        home.score(NIGHTS[4])
    home.after(NIGHTS[4])
    assert asked == [*NIGHTS[:4], *NIGHTS[2:5]]
    assert len(read(home.output / "scores.json")["scores"][0]["points"]) == 5


def test_what_an_earlier_night_measured_and_was_saved_later_is_scored_later(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], THREE)
    home.after(NIGHTS[0])
    home.night(NIGHTS[1], None)
    home.night(NIGHTS[2], THREE)
    home.after(NIGHTS[2])
    home.night(NIGHTS[1], THREE)
    home.night(NIGHTS[3], THREE)
    home.after(NIGHTS[3])
    points = read(home.output / "scores.json")["scores"][0]["points"]
    assert [round(point["value"], 6) for point in points] == [4.0] * 4


def test_a_definition_that_changes_is_scored_over_all_nights_and_the_old_one_is_kept(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], THREE)
    home.after(NIGHTS[0])
    home.configure({**SPEEDUP, "baseline": SPEEDUP["contender"], "contender": SPEEDUP["baseline"]})
    home.night(NIGHTS[1], THREE)
    home.after(NIGHTS[1])
    now, old = read(home.output / "scores.json")["scores"]
    assert [point["value"] for point in now["points"]] == pytest.approx([0.25, 0.25])
    assert [point["stamp"] for point in old["points"]] == NIGHTS[:1]


def test_a_new_title_is_the_same_score(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], THREE)
    first = home.after(NIGHTS[0])
    home.configure({**SPEEDUP, "title": "renamed"})
    assert home.after(NIGHTS[0])["id"] == first["id"]
    assert len(read(home.output / "scores.json")["scores"]) == 1


def test_pictures_are_drawn_again_only_where_they_changed_and_go_with_their_score(tmp_path: Path) -> None:
    home = Home(tmp_path, SPEEDUP)
    home.night(NIGHTS[0], THREE)
    files = [home.output / graph["file"] for graph in home.after(NIGHTS[0])["graphs"]]
    before = [path.stat().st_mtime_ns for path in files]
    home.after(NIGHTS[0])
    assert [path.stat().st_mtime_ns for path in files] == before
    home.night(NIGHTS[1], pairs(a=(2.0, 1.0), b=(8.0, 1.0), c=(5.0, 1.0)))
    home.after(NIGHTS[1])
    assert all(path.stat().st_mtime_ns > moment for path, moment in zip(files, before, strict=True))
    home.configure({**SPEEDUP, "title": "other", "workloads": ["a"]})
    home.after(NIGHTS[1])
    assert not any(path.exists() for path in files)


def test_data_that_is_no_record_or_cannot_be_read_is_said(tmp_path: Path) -> None:
    home = Home(tmp_path, {**SPEEDUP, "workloads": ["a"]})
    home.night(NIGHTS[0], THREE)
    path = home.root / "results" / "experiments" / "data" / "opt" / f"data_{NIGHTS[0]}.json"
    path.write_text('{"gpu": {"O3": 1.5}}')
    home.after(NIGHTS[0])
    assert "writes no records" in home.report()
    path.write_text("{")
    home.after(NIGHTS[0], "rebuild")
    assert "its data cannot be read" in home.report()


def test_no_score_at_all_is_said(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.night(NIGHTS[0], THREE)
    assert home.score(NIGHTS[0])["message"] == "Scores: none defined"


def test_the_sample_homes_scores_are_well_defined(tmp_path: Path) -> None:
    sample = read(REPO / "sample-dashboard-home" / "config" / "subsystem" / "score" / "config.json")
    home = Home(tmp_path, *sample["scores"])
    home.night(NIGHTS[0], THREE)
    write(home.root / "results" / "experiments" / "data" / "relax_opt" / f"data_{NIGHTS[0]}.json", {"x": 1})
    night = home.root / "results" / "nights" / f"{NIGHTS[0]}.json"
    write(night, json.loads(night.read_text().replace('"opt"', '"relax_opt"')))
    assert home.score(NIGHTS[0])["success"]
    assert home.page()["faults"] == []
