"""Experiments in any language beside the reference: run in turn by the dashboard where they declare that they can."""

from __future__ import annotations

import math
import signal
from pathlib import Path
from typing import Any

import pytest

from dashboard.night import beside
from dashboard.night.beside import Half, compare_pairs, plan_halves
from dashboard.plan.job import Alone, CodeFolders
from dashboard.plan.plan import make_plan
from tests.dashboard import homes
from tests.dashboard import remeasure_homes as labs
from tests.dashboard.remeasure_homes import Lab
from tvmdash.dashboard_info import OK, StepResult
from tvmdash.series import store

TIME = {"kind": "time", "unit": "ms", "direction": "lower"}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab whose experiment leaves numbers, of which one is a time; the build measured is 10 % slower in both."""
    made = labs.make_lab(tmp_path)
    new, old = (labs.put_artifact(tmp_path / "shelf", version) for version in ("0.27.0", "0.26.0"))
    made.change(foreign=True, sigma=0.001, slow={new.key: {"mlp": 1.1, "bert": 1.1}}, new=new.key, old=old.key)
    declare(made, beside_reference="runs", metrics={"mlp": TIME})
    configure(made, pairs=3)
    return made


def declare(lab: Lab, **fields: Any) -> None:
    homes.write(lab.home.code / "experiments" / labs.NAME / "fields.json", fields)


def configure(lab: Lab, **config: Any) -> None:
    homes.write(lab.home.home.config("experiment", labs.NAME) / "config.json", {"active": True, **config})


def night_of(lab: Lab, at: int = -1) -> dict[str, Any]:
    """What the data of one of the nights says of the night."""
    said: dict[str, Any] = homes.read(lab.home.home.data_file(labs.NAME, lab.home.stamps()[at]))["night"]
    return said


def built(lab: Lab) -> list[str]:
    return [run["build"] for run in lab.runs()]


def test_an_experiment_that_declares_it_is_run_in_turn_with_the_reference_and_compared(lab: Lab) -> None:
    lab.home.night()
    new, old = lab.state["new"], lab.state["old"]
    assert [sorted(built(lab)[at : at + 2]) for at in (0, 2, 4)] == [[old, new]] * 3
    (compared,) = [night_of(lab)["paired"]["ratios"]]
    assert list(compared) == ["$.mlp"], "of the other nothing is known but that it is a number"
    assert len(compared["$.mlp"]["log_ratios"]) == 3
    assert compared["$.mlp"]["low"] < 1.1 < compared["$.mlp"]["high"]
    assert compared["$.mlp"]["ratio"] == pytest.approx(1.1, rel=0.005)
    assert "measured (in 3 pairs with the reference)" in str(lab.home.last())
    home = lab.home.home
    with store.open_for_reading(home.store_file, home.data(labs.NAME), labs.NAME) as opened:
        kinds = {(series.metric, series.labels["path"]) for series in opened.series(labs.NAME)}
    assert kinds == {("value", "$.mlp"), ("value", "$.bert"), ("value_ratio", "$.mlp")}


def test_one_that_does_not_declare_it_is_measured_alone_and_no_reference_is_got_for_it(lab: Lab) -> None:
    declare(lab, metrics={"mlp": TIME})
    configure(lab)
    assert f"Measured alone: {labs.NAME}" not in lab.home.run(verb="plan").output, "there is nothing to be beside"
    night = lab.home.night()
    assert (built(lab), night["references"], night_of(lab).get("reference")) == ([lab.state["new"]], [], None)


def test_plan_says_which_experiments_do_not_declare_it(lab: Lab) -> None:
    lab.home.experiment("other")
    plan = make_plan(lab.home.home, CodeFolders(lab.home.code / "experiments", lab.home.code / "subsystem"))
    assert {job.name: job.alone for job in plan.experiments} == {labs.NAME: None, "other": Alone.UNDECLARED}
    assert "Measured alone: other (does not declare beside_reference)." in lab.home.run(verb="plan").output


def test_its_config_can_leave_it_alone(lab: Lab) -> None:
    configure(lab, paired=False)
    lab.home.night()
    assert built(lab) == [lab.state["new"]]


@pytest.mark.parametrize("broken", ["old", "new"])
def test_a_reference_that_cannot_run_it_costs_only_the_comparison(lab: Lab, broken: str) -> None:
    lab.change(broken=[lab.state[broken]])
    done = lab.home.run()
    (job,) = lab.home.last()["jobs"]
    run = next(step for step in job["steps"] if step["stage"] == "run")
    if broken == "new":
        assert (done.code, run["state"]) == (1, "failed")
        return
    assert done.code == 0, done.output
    assert "beside the reference until the reference's run in pair 1 failed: run.sh exited with status 1" in str(run)
    assert "paired" not in night_of(lab)
    assert built(lab).count(lab.state["new"]) == 1


def test_a_night_that_is_killed_between_the_halves_of_a_pair_keeps_what_it_measured_and_compares_nothing(
    lab: Lab,
) -> None:
    """The night's own run is whole; of the pairs one half is missing, or the other was ended in the middle."""
    hangs = labs.RUN.replace(
        'if points and lab.get("hang"):', 'if build == lab["old"] and lab.get("hang") and number >= 2:'
    )
    lab.home.experiment(labs.NAME, run=hangs, analyze=labs.ANALYZE, config={"pairs": 3})
    lab.change(hang=True)
    process = lab.home.start()
    with homes.killed_at_end(process):
        homes.wait_for((lab.home.root / "hangs").exists, "a half")
        process.send_signal(signal.SIGKILL)
        process.wait()
    killed = lab.home.stamps()[0]
    lab.change(hang=False)
    lab.home.night()
    own = homes.read(lab.home.home.data_file(labs.NAME, killed))
    assert own["mlp"] == pytest.approx(1.1, rel=0.01)
    assert "paired" not in own["night"]
    assert len(night_of(lab)["paired"]["ratios"]["$.mlp"]["log_ratios"]) == 3


def test_what_is_measured_again_beside_another_night_has_its_ratio(lab: Lab) -> None:
    lab.home.night()
    newest = labs.put_artifact(lab.home.root / "shelf", "0.28.0")
    lab.change(slow={newest.key: {"mlp": 1.2}})
    lab.home.night()
    first, second = lab.home.stamps()
    done, (told,) = lab.remeasure([{"experiment": labs.NAME, "stamp": second, "points": [], "beside": first}])
    assert done.code == 0, done.output
    (ratio,) = told["ratios"].values()
    assert ratio["log"] == pytest.approx(math.log(1.2), abs=0.01)
    assert ratio["pairs"] == 3
    assert set(told["ratios"]) <= set(told["values"]), "the ID is that of the number"


def test_a_declaration_that_is_none_rejects_the_experiment_with_its_place(lab: Lab) -> None:
    declare(lab, beside_reference="yes")
    assert "fields.json: $.beside_reference: 'yes' is not 'runs' or 'reads'." in lab.home.run(verb="check").output


# Pure parts


def test_which_half_of_a_pair_is_first_is_drawn_by_lot(tmp_path: Path) -> None:
    first = [plan_halves(tmp_path, 1, str(seed))[0].of_reference for seed in range(200)]
    assert 70 < sum(first) < 130
    halves = plan_halves(tmp_path, 4, "7 x")
    assert [half.pair for half in halves] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len({half.folder for half in halves}) == 8
    assert [half.folder for half in halves if half.is_the_nights] == [tmp_path]
    assert plan_halves(tmp_path, 4, "7 x") == halves


def test_all_runs_share_the_time_of_the_stage_and_the_nights_own_is_always_performed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measuring again has so many seconds in all, however many pairs there are."""
    now, performed = [0.0], list[tuple[int, float]]()
    monkeypatch.setattr(beside.time, "monotonic", lambda: now[0])

    def nights() -> StepResult:
        now[0] += 10
        return StepResult("run", OK, "measured", "20260101T000000Z")

    def perform(half: Half, left_s: float) -> None:
        now[0] += 10
        performed.append((half.pair, left_s))

    result = beside.run_in_turn(plan_halves(tmp_path, 5, "1"), 45, nights, perform)
    assert [left_s for _, left_s in performed] in ([35, 25, 15], [45, 25, 15]), "four runs of 10 s fit"
    assert result.message == "measured (beside the reference until the stage's time limit of 45 s was nearly reached)"
    assert result.elapsed_s == 40


def test_only_times_and_rates_above_zero_are_compared() -> None:
    new = {"$.t": 2.0, "$.r": 50.0, "$.size": 3.0, "$.zero": 0.0, "$.gone": 1.0}
    old = {"$.t": 1.0, "$.r": 100.0, "$.size": 1.0, "$.zero": 1.0}
    declared = {name: {"kind": "time"} for name in ("t", "zero", "gone")} | {"r": {"kind": "rate"}}
    found = compare_pairs([(new, old), (new, old)], {**declared, "size": {"kind": "exact"}})
    assert {path: compared["ratio"] for path, compared in found.items()} == pytest.approx({"$.t": 2.0, "$.r": 0.5})
