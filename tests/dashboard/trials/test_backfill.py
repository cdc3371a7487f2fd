"""Nights of the past: which TVMs, in which order, what is kept, what is never measured twice, who does not see them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.trials.rounds import BuildCandidate
from dashboard.trials.tvms import Choice, choose, order_by_gaps
from tests.dashboard import homes
from tests.dashboard.remeasure_homes import NAME, Lab, make_lab, put_artifact
from tvmdash.errors import DashboardError
from tvmdash.trials.suspect import Suspect

VERSIONS = [f"0.{minor}.0" for minor in range(20, 26)]
RANGE = f"pypi:{VERSIONS[0]}..{VERSIONS[-1]}"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab with six releases."""
    made = make_lab(tmp_path / "lab")
    shelf = [put_artifact(made.home.root / "shelf", version) for version in VERSIONS]
    made.change(slow={shelf[2].key: {"mlp": 1.5}})
    return made


def fill(lab: Lab, *words: str) -> homes.Finished:
    return lab.home.run("--artifacts", RANGE, *words, "--no-rebuild-tvm", verb="backfill")


def kept(lab: Lab) -> list[dict[str, Any]]:
    return [homes.read(path) for path in sorted(lab.home.home.backfill(NAME).glob("data_*.json"))]


def versions_of(nights: list[dict[str, Any]]) -> list[str]:
    return [night["night"]["artifact"]["version"] for night in nights]


def result(lab: Lab) -> Any:
    """What the newest call says."""
    return homes.read(max((lab.home.path / "results" / "tries").glob("*.json")))["backfill"]


def real_steps(lab: Lab) -> list[tuple[str, str, str]]:
    """The TVMs before and after each step that is told, and its series."""
    return [
        (step["before"], step["after"], item["name"])
        for step in result(lab)["steps"]
        for item in step["series"]
        if item["change"] and item["change"]["real"]
    ]


def counts(output: str) -> tuple[int, int]:
    """How many TVMs a backfill found measured, and how many nights it measured."""
    found = re.search(r"(\d+) already measured, (\d+) nights? measured", output)
    assert found is not None, output
    return int(found[1]), int(found[2])


def test_each_tvm_is_a_night_of_its_own_kept_apart_and_never_measured_twice(lab: Lab) -> None:
    lab.home.night()
    before = sorted(lab.home.home.data(NAME).iterdir())
    done = fill(lab)
    assert done.code == 0, done.output
    assert counts(done.output) == (1, 5)
    nights = kept(lab)
    assert versions_of(nights) == VERSIONS[:-1]
    assert len({night["timestamp"] for night in nights}) == 5
    for night in nights:
        facts = night["night"]
        assert (facts["backfill"], facts["stamp"], facts["committed"]) == (True, night["timestamp"], None)
        assert set(facts) >= {"fingerprint", "config", "seed", "repository", "artifact", "experiment"}
        assert "TVMDASH_HOME" not in facts["config"]["env"]
    values = [{record["workload"]: record["execution_elapsed_ms_mean"] for record in one["records"]} for one in nights]
    assert values[2]["net.mlp"] / values[0]["net.mlp"] == pytest.approx(1.5, abs=0.05)
    assert sorted(lab.home.home.data(NAME).iterdir()) == before, "the home's own nights are as they were"
    assert len(lab.home.stamps()) == 1
    runs = len(lab.runs())
    again = fill(lab)
    assert again.code == 0
    assert counts(again.output) == (6, 0)
    assert len(lab.runs()) == runs
    assert "Backfill: 5 of speed" in lab.home.run(verb="status").output


def test_rounds_measure_all_of_them_there_and_back(lab: Lab) -> None:
    assert fill(lab, "--gaps").code == 0
    done = fill(lab, "--rounds", "3")
    assert done.code == 0
    assert counts(done.output) == (0, 12)
    assert versions_of(kept(lab))[6:] == [*reversed(VERSIONS), *VERSIONS]
    assert counts(fill(lab, "--rounds", "2").output) == (6, 0)


def test_steps_from_tvm_to_tvm_are_told_of_all_that_was_measured_with_todays_code(lab: Lab) -> None:
    lab.change(sigma=0.002)
    slow = "speed net.mlp run time"
    assert fill(lab, "--rounds", "4").code == 0
    assert real_steps(lab) == [], "of four rounds nothing is told"
    done = fill(lab, "--rounds", "5")
    assert done.code == 0
    assert real_steps(lab) == [("0.21.0", "0.22.0", slow), ("0.22.0", "0.23.0", slow)]
    for said in (f"0.21.0 to 0.22.0: {slow}", "2 of 10 steps from", f"  {slow}: 0.20.0 ", "Base: 0.20.0"):
        assert said in done.output
    (path,) = {path for path in (lab.home.path / "results" / "tries").glob("*.json") if path.stem in done.output}
    trial = homes.read(path)
    rounds = [one["rounds"] for one in trial["series"]]
    assert [len(one) for one in rounds] == [5, 5], "the last TVM against the first"
    again = fill(lab, "--rounds", "5")
    assert counts(again.output) == (6, 0)
    assert result(lab)["steps"] == trial["backfill"]["steps"], "a call that measures nothing shows what there is"
    old = min(lab.home.home.backfill(NAME).glob("data_*.json"))
    old.write_text("{", encoding="utf-8")
    fill(lab, "--rounds", "1")
    assert [len(step["series"][0]["rounds"]) for step in result(lab)["steps"]] == [4, 5, 5, 5, 5]


def test_what_could_not_be_had_is_passed_over_until_it_could_or_retry(lab: Lab) -> None:
    shelf = lab.home.root / "shelf"
    (gone,) = shelf.glob("wheel-0.21.0-*")
    for stamp, part in (
        ("20261120T000000Z", {"unbuilt": {"0.21.0": "no wheel", "0.22.0": "no network"}}),
        ("20261121T000000Z", {"had": ["0.22.0"]}),
    ):
        homes.write(lab.home.home.backfills / f"{stamp}.json", {"artifacts": RANGE, **part})
    (lab.home.home.backfills / "20261122T000000Z.json").write_text("[]", encoding="utf-8")
    done = fill(lab)
    assert done.code == 1
    assert "20261122T000000Z.json" in done.output, "a damaged account is told and costs nothing else"
    assert (result(lab)["unbuilt"], versions_of(kept(lab))) == (
        {"0.21.0": "no wheel"}, [version for version in VERSIONS if version != "0.21.0"],
    )  # fmt: skip
    assert gone.is_dir()
    assert fill(lab, "--retry").code == 0
    assert versions_of(kept(lab))[-1] == "0.21.0"
    assert fill(lab).code == 0, "it was had since"


def test_a_backfill_whose_time_is_over_goes_on_where_it_was(lab: Lab) -> None:
    first = fill(lab, "--budget", "1s")
    assert first.code == 1
    assert "Run the same command" in first.output
    had = versions_of(kept(lab))
    assert fill(lab).code == 0
    assert versions_of(kept(lab)) == VERSIONS
    assert had == VERSIONS[: len(had)]


def test_the_longest_stretch_without_a_measurement_is_halved_first(lab: Lab) -> None:
    assert fill(lab, "--gaps").code == 0
    assert versions_of(kept(lab)) == ["0.20.0", "0.25.0", "0.22.0", "0.23.0", "0.21.0", "0.24.0"]


def test_code_that_changed_is_measured_on_all_of_them_again(lab: Lab) -> None:
    assert fill(lab, "--step", "5").code == 0
    assert versions_of(kept(lab)) == ["0.20.0", "0.25.0"]
    script = lab.home.code / "experiments" / NAME / "analyze.sh"
    script.write_text(script.read_text() + "# changed\n")
    assert fill(lab, "--step", "5").code == 0
    assert versions_of(kept(lab)) == ["0.20.0", "0.25.0"] * 2


def test_a_tvm_that_crashes_costs_itself_only(lab: Lab) -> None:
    lab.change(broken=[path.name for path in (lab.home.root / "shelf").glob("wheel-0.21*")])
    done = fill(lab)
    assert done.code == 1
    assert "speed on 0.21.0: run: " in done.output
    call = result(lab)
    assert (list(call["failed"]), call["had"]) == ([f"{NAME} on 0.21.0"], VERSIONS)
    assert [(step["before"], step["after"]) for step in call["steps"]][:2] == [
        ("0.20.0", "0.22.0"),
        ("0.22.0", "0.23.0"),
    ]
    assert versions_of(kept(lab)) == ["0.20.0", "0.22.0", "0.23.0", "0.24.0", "0.25.0"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pypi:0.20.0", "not a range"),
        ("pypi:0.25.0..0.20.0", "in the wrong order"),
        ("git:a..b", "the home's tvm_remote is pypi"),
        ("pypi:0.20.0..x", "pypi:x: tvm_branch"),
    ],
)
def test_what_is_no_range_is_refused(lab: Lab, text: str, said: str) -> None:
    done = lab.home.run("--artifacts", text, verb="backfill")
    assert done.code == 2
    assert said in done.output


def commit(number: int, date: str = "") -> BuildCandidate:
    return BuildCandidate(ArtifactSpec("/r", str(number)), Suspect(str(number), "t", "a", date))


def test_a_step_keeps_each_nth_and_the_end() -> None:
    assert [one.id for one in choose([commit(at) for at in range(9)], Choice(step=5))] == ["0", "5", "8"]


def test_by_dates_the_last_commit_of_each_day_is_kept() -> None:
    dates = ["2026-08-01T23:30:00-02:00", "2026-08-02T03:00:00Z", "2026-08-02T20:00:00+00:00", "2026-08-05T01:00:00Z"]
    candidates = [commit(at, date) for at, date in enumerate(dates)]
    assert [one.id for one in choose(candidates, Choice(days=1))] == ["0", "2", "3"]
    with pytest.raises(DashboardError, match="only with commits"):
        choose([commit(0)], Choice(days=1))


def test_gaps_are_halved_until_everything_is_measured() -> None:
    candidates = [commit(at) for at in range(9)]
    assert [one.id for one in order_by_gaps(candidates, {"2"})] == ["0", "8", "5", "3", "6", "1", "4", "7"]
    assert list(order_by_gaps(candidates[:1], set())) == candidates[:1]
