"""What stat_alerts tells, keeps quiet about, remembers and closes, on homes with many nights."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.dashboard import homes
from tests.subsystem import scripts
from tests.subsystem.stat_alerts import alert_homes
from tests.subsystem.stat_alerts.alert_homes import MLP, AlertHome, Truth, stamp_of
from tvmdash import common
from tvmdash.dashboard_info import Home, JobResult, Night, PartialData
from tvmdash.incidents.file import read_ledger
from tvmdash.judge.history.fleet import fleet
from tvmdash.judge.history.series import History
from tvmdash.verdict import Controls, Level

SUBSYSTEM = scripts.load("stat_alerts")


def home_of(folder: Path, truth: Truth) -> AlertHome:
    return AlertHome(folder).fill(truth)


def unjudged(report: dict[str, str]) -> set[int]:
    """How many series each line of the report counts that could not be judged."""
    return {int(count) for count in re.findall(r"^Not judged: (\d+)", report["value"], re.MULTILINE)}


def test_a_quiet_home_is_told_in_one_sentence(tmp_path: Path) -> None:
    home = home_of(tmp_path, Truth())
    report = home.run_script(69)
    assert report["title"] == home.verdict(69).headline
    assert re.findall(r"\d+", report["value"]) == ["32"]
    assert home.verdict(69).level is Level.STEADY
    page = home.page()
    assert len(page["series"]) == 32
    assert {one["verdict"] for one in page["series"]} == {"quiet"}
    assert {one["noise_grade"] for one in page["series"]} == {"A", "B"}
    assert all(len(one["last"]) == 30 and one["smallest_visible_change"] >= 0.005 for one in page["series"])
    assert page["honesty"]["target_per_1000"] == 0.2
    assert page["honesty"]["shuffled"]["nights"] == 24 * (70 - 17)
    assert page["honesty"]["unchanged"]["nights"] == 0, "every night has another TVM here"


def test_a_step_in_one_workload_is_one_incident_with_night_versions_size_and_interval(tmp_path: Path) -> None:
    truth = Truth().step("mlp", 3, "run", 64, 1.05)
    home = home_of(tmp_path, truth)
    home.run(63)
    assert home.verdict(63).level is Level.STEADY
    for night in (65, 66):
        assert " 31 series" in home.run(night)["value"], "of the others"
        assert home.verdict(night).level is Level.SUSPECT
        assert [(suspect.name, suspect.worse) for suspect in home.verdict(night).suspects] == [(MLP, True)]
    report = home.run(67)
    assert f"{MLP} +5" in report["title"]
    (incident,) = home.incidents()
    assert (home.verdict(67).level, home.verdict(67).new) == (Level.REGRESSION, (incident["id"],))
    assert (incident["begin"], incident["after"]) == (stamp_of(64), stamp_of(63))
    assert incident["versions"] == [truth.versions[63], truth.versions[64]]
    (moved,) = incident["moved"]
    assert moved["low"] < 0.05 < moved["high"]
    assert moved["worse"] is True
    for part in ("slower", "0.250 ms", "95 %", "2026-07-04", truth.versions[64], truth.versions[63], incident["id"]):
        assert part in report["value"]
    later = home.run(69)
    assert (home.verdict(69).new, home.verdict(69).open) == ((), (incident["id"],))
    assert f"{MLP} +5" in later["title"]
    assert incident["id"] in later["value"]


def test_series_that_a_partial_night_lacks_have_not_ended(tmp_path: Path) -> None:
    truth = Truth()
    truth.absent.add(("mlp", 68))
    home = home_of(tmp_path, truth)
    killed = Night(stamp_of(68), "interrupted", partial=(PartialData("relax_opt", 28, 32),))
    home.home.nights.mkdir(parents=True, exist_ok=True)
    common.write_json(home.home.night_file(killed.stamp), killed.to_json())
    home.run(69)
    page = home.page()
    assert page["partial"] == {stamp_of(68): ["relax_opt"]}
    assert {one["verdict"] for one in page["series"]} == {"quiet"}
    assert sum(one["last"][-2] is None for one in page["series"]) > 0


def test_an_incident_says_what_else_changed_at_that_night(tmp_path: Path) -> None:
    home = home_of(tmp_path, Truth().step("mlp", 3, "run", 64, 1.05))
    for night in (63, 64):
        path = home.home.data_file("relax_opt", stamp_of(night))
        value = json.loads(path.read_text())
        value["night"] = {"fingerprint": str(night), "config": {"batch": night, "threads": 1}}
        value["environment"] = {"machine": {"system": f"Linux 6.{night}"}}
        path.write_text(json.dumps(value))
    report = home.run(67)
    also = "also: the experiment's own code or config changed (batch of its config); system: Linux 6.63 → Linux 6.64."
    assert also in report["value"]


def test_series_that_moved_at_the_same_night_are_one_incident(tmp_path: Path) -> None:
    truth = Truth().step("mlp", 3, "compile", 60, 1.06).step("mlp", 0, "compile", 60, 1.07)
    truth.step("mlp", 0, "size", 60, 1.2)
    home = home_of(tmp_path, truth)
    home.run(69)
    (incident,) = home.incidents()
    assert {(moved["metric"], moved["worse"]) for moved in incident["moved"]} == {
        ("compile_time", True),
        ("code_size", True),
    }
    assert len(incident["moved"]) == 3


def make_home_of_two(folder: Path, nights: int = 70, until: int | None = None) -> AlertHome:
    """Two artifacts got slower on the same night."""
    home = home_of(folder, Truth(nights).step("mlp", 3, "compile", 60, 1.06, until))
    versions = [f"{night:04}branch" for night in range(nights)]
    truth = Truth(nights, seed=5, versions=versions).step("dqn", 3, "compile", 60, 1.06, until)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alert_homes, "EXPERIMENT", "on_a_branch")
        AlertHome(folder).fill(truth)
    return home


def test_series_of_the_same_night_and_another_artifact_are_two_incidents(tmp_path: Path) -> None:
    home = make_home_of_two(tmp_path)
    home.run(69)
    assert len(home.incidents()) == 2


def test_incidents_that_were_joined_end_as_one_and_stay_one_when_judged_anew(tmp_path: Path) -> None:
    home = make_home_of_two(tmp_path, 85, until=72)
    home.run(69)
    one, two = (incident["id"] for incident in home.incidents())
    assert home.command("incidents", "join", one, two, "one pass").returncode == 0
    _move_back(home, stamp_of(69))
    home.run(70)
    whole, part = home.incidents()
    assert (len(whole["moved"]), whole["open"], part["into"], part["open"]) == (2, True, one, False)
    assert "mlp" in home.run(71)["value"]
    home.run(84)
    whole, part = home.incidents()
    assert (whole["state"], [bool(moved["recovered"]) for moved in whole["moved"]]) == ("fixed", [True, True])
    assert (part["id"], part["moved"]) == (two, [])
    ledger = (home.output / "incidents.jsonl").read_bytes()
    (home.output / "state.json").unlink()
    home.run(84)
    assert (home.output / "incidents.jsonl").read_bytes() == ledger, "nothing is told twice"
    assert home.command("incidents", "split", two).returncode == 0
    first, second = read_ledger(home.home).incidents.values()
    assert [moved.recovered is None for each in (first, second) for moved in each.moved] == [False, False]
    assert (len(first.moved), second.into, [moved.part for moved in second.moved]) == (1, "", [""])


def test_a_compiler_wide_step_is_one_incident_and_not_the_machines(tmp_path: Path) -> None:
    truth = Truth(canaries=5)
    for workload in truth.workloads:
        for level in (0, 3):
            truth.step(workload, level, "run", 60, 1.06).step(workload, level, "compile", 60, 1.06)
    home = home_of(tmp_path, truth)
    home.run(69)
    (incident,) = home.incidents()
    assert (incident["kind"], incident["begin"]) == ("change", stamp_of(60))
    assert len(incident["moved"]) == 16


@pytest.mark.parametrize("canaries", [0, 5])
def test_a_machine_step_is_one_incident_and_blames_no_series(tmp_path: Path, canaries: int) -> None:
    truth = Truth(canaries=canaries)
    truth.machine[67:] = 1.04
    home = home_of(tmp_path, truth)
    home.run(69)
    (incident,) = home.incidents()
    assert incident["kind"] == "machine"
    assert incident["begin"] == stamp_of(67)
    assert incident["size"] == pytest.approx(0.04, abs=0.006)
    assert incident["moved"] == []
    if canaries:
        assert incident["blame"] == "machine"
        assert incident["open"] is False
    else:
        assert incident["blame"] == "unknown"
        assert incident["open"] is True


def test_a_told_machine_step_is_no_false_alarm_of_the_detectors_own_test(tmp_path: Path) -> None:
    truth = Truth(canaries=5, nights=125)
    truth.machine[60:] = 1.06
    home = home_of(tmp_path, truth)
    home.run(123)
    report = home.run(124)
    unchanged = home.page()["honesty"]["unchanged"]
    assert unchanged["nights"] == 0, "every night has another TVM here, and what moves controls is the machine"
    assert "Trust" not in report["value"]


def own_test(home: AlertHome, night: int, settings: Any) -> Any:
    """The rates of the detector's test of itself on all series of a home, in this process."""
    done = judged(home, night)
    options = SUBSYSTEM.Options(settings)
    return SUBSYSTEM.false_positive_rate.measured(home.output, done.table, done.judged, options, 1000)


def of_one_version(nights: int, **more: Any) -> Truth:
    """A home whose code never changes."""
    return Truth(nights=nights, workloads=("mlp", "dqn"), sigma=0.004, versions=["0.27.0"] * nights, **more)


def test_each_night_of_a_series_counts_once_in_the_detectors_test_of_itself(tmp_path: Path) -> None:
    truth = of_one_version(98)
    truth.code_of = {(name, level): np.ones(98) for name in truth.workloads for level in (0, 3)}
    home = home_of(tmp_path, truth)
    for night in range(90, 98):
        rates = own_test(home, night, SUBSYSTEM.Settings())
    again = own_test(home, 97, SUBSYSTEM.Settings())
    assert {kind: rate.nights for kind, rate in rates.items()} == {
        "shuffled": 16 * (98 - 17),
        "unchanged": 16 * (98 - 17),
    }
    assert again == rates


@pytest.mark.parametrize("first", [0, 40, 70])
def test_nights_are_shuffled_among_those_counted_before_and_among_the_new_ones(first: int) -> None:
    rate = SUBSYSTEM.false_positive_rate
    stretch = rate._Stretch(rate.SHUFFLED, "s", np.arange(70), History(np.arange(70.0)))
    order = rate._ordered(stretch, first, (7, 1)).history.values
    assert sorted(order[:first]) == list(range(first))
    assert sorted(order[first:]) == list(range(first, 70))
    assert list(order) != list(range(70))


def test_a_file_that_counted_nights_again_and_again_is_not_gone_on_with(tmp_path: Path) -> None:
    home = home_of(tmp_path, of_one_version(70))
    home.output.mkdir(parents=True)
    old = {"nights": {stamp_of(68): {"shuffled": [395_280, 0], "unchanged": [395_280, 0]}}}
    (home.output / "honesty.json").write_text(json.dumps(old))
    rates = own_test(home, 69, SUBSYSTEM.Settings())
    assert rates["shuffled"].nights == 16 * (70 - 17)


def test_a_home_can_go_back_to_a_dashboard_that_counts_nights_in_the_older_way(tmp_path: Path) -> None:
    home = home_of(tmp_path, of_one_version(70))
    own_test(home, 69, SUBSYSTEM.Settings())
    file = json.loads((home.output / "honesty.json").read_text())
    assert "nights" not in file  # which the older one takes for its own counts
    assert list(file["tests"]) == [stamp_of(69)]


def test_counts_that_were_kept_under_their_former_name_are_gone_on_with(tmp_path: Path) -> None:
    home = home_of(tmp_path, of_one_version(71))
    first = own_test(home, 69, SUBSYSTEM.Settings())
    path = home.output / "honesty.json"
    path.write_text(json.dumps({"version": 2, "nights": json.loads(path.read_text())["tests"]}))
    assert own_test(home, 70, SUBSYSTEM.Settings())["shuffled"].nights == first["shuffled"].nights + 16


def test_the_detectors_test_of_itself_takes_out_what_the_whole_machine_did_as_judging_does(tmp_path: Path) -> None:
    truth = of_one_version(110, canaries=5)
    truth.code_of = {(name, level): np.ones(110) for name in truth.workloads for level in (0, 3)}
    truth.machine[80:100:2] = 1.06
    home = home_of(tmp_path, truth)
    rates = own_test(home, 109, SUBSYSTEM.Settings())
    assert home_events(home) == []
    assert rates["unchanged"].nights > 1000
    assert rates["unchanged"].alerts == 0


def home_events(home: AlertHome) -> list[str]:
    """The lines of the ledger."""
    path = home.output / "incidents.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def test_no_alert_in_6960_nights_says_below_0_43_per_1000() -> None:
    assert SUBSYSTEM.false_positive_rate.Rate(6960, 0).at_most == pytest.approx(0.43, abs=0.001)


@pytest.mark.parametrize("canaries", [0, 5])
def test_equal_generated_code_on_another_artifact_that_got_slower_is_a_regression(
    tmp_path: Path, canaries: int
) -> None:
    truth = Truth(nights=60, canaries=canaries, workloads=("mlp", "dqn")).step("mlp", 3, "run", 56, 1.08)
    truth.code_of["mlp", 3] = np.zeros(truth.nights)
    home = home_of(tmp_path, truth)
    report = home.run(59)
    (incident,) = home.incidents()
    assert (incident["kind"], incident["open"]) == ("change", True)
    cause = incident["cause"]
    assert (cause["whose"], cause["controls"]) == (("runtime", 5) if canaries else ("unknown", 0))
    assert (cause["same_code"], cause["changed_code"], cause["controls_moved"]) == (1, 0, 0)
    assert "not TVM" not in report["value"]


def test_four_series_whose_canary_moved_as_well_are_told_as_the_machines(tmp_path: Path) -> None:
    truth = Truth(nights=60, canaries=5, workloads=("mlp",))
    truth.machine[54:] = 1.06
    home = home_of(tmp_path, truth)
    report = home.run(57)
    assert {(one["blame"], one["open"]) for one in home.incidents()} == {("machine", False)}
    assert "first with TVM" not in "".join(one["words"] for one in home.page()["incidents"])
    assert {(one["cause"]["controls"], one["cause"]["controls_moved"]) for one in home.incidents()} == {(5, 5)}
    assert "TVM did" not in report["value"]


def test_one_artifact_on_all_nights_is_not_tvm_when_the_machine_gets_slower(tmp_path: Path) -> None:
    truth = Truth(nights=60, workloads=("mlp",), artifacts=["release"] * 60).step("mlp", 3, "run", 54, 1.08)
    home = home_of(tmp_path, truth)
    home.run(57)
    (incident,) = home.incidents()
    assert (incident["kind"], incident["blame"], incident["open"]) == ("machine", "machine", False)
    assert incident["cause"]["evidence"] == "same_artifact"


def test_a_compile_time_step_is_tvms_even_where_the_code_is_the_same(tmp_path: Path) -> None:
    truth = Truth().step("mlp", 3, "compile", 62, 1.08)
    truth.code_of["mlp", 3] = np.zeros(truth.nights)
    home = home_of(tmp_path, truth)
    home.run(69)
    assert [one["kind"] for one in home.incidents()] == ["change"]


def test_the_same_tvm_cannot_have_changed(tmp_path: Path) -> None:
    truth = Truth(versions=["0.27.0"] * 70).step("mlp", 3, "compile", 62, 1.08)
    home = home_of(tmp_path, truth)
    home.run(69)
    assert [(one["kind"], one["cause"]["evidence"]) for one in home.incidents()] == [("machine", "same_version")]


def test_a_fixed_regression_closes_itself_and_its_return_is_no_news(tmp_path: Path) -> None:
    home = home_of(tmp_path, Truth(nights=80).step("mlp", 3, "run", 55, 1.06, until=70))
    reports = [home.run(night) for night in (66, 69, 70, 71, 72, 73, 74, 79)]
    (incident,) = home.incidents()
    assert incident["state"] == "fixed"
    assert incident["end"] == stamp_of(70)
    assert [change["state"] for change in incident["changes"]] == ["new", "confirmed", "fixed"]
    told = [report["value"] for report in reports if "Fixed: " in report["value"]]
    assert len(told) == 1
    assert home.verdict(79).level is Level.STEADY


def test_a_return_on_the_same_tvm_was_a_false_alarm(tmp_path: Path) -> None:
    truth = Truth(nights=80).step("mlp", 3, "run", 55, 1.06, until=70)
    truth.versions[69] = truth.versions[70]
    home = home_of(tmp_path, truth)
    home.run(79)
    (incident,) = home.incidents()
    assert incident["state"] == "false_alarm"


def test_an_improvement_is_told_once_and_its_loss_is_a_regression(tmp_path: Path) -> None:
    home = home_of(tmp_path, Truth(nights=90).step("mlp", 3, "run", 40, 0.94, until=70))
    home.run(60)
    (better,) = home.incidents()
    assert better["open"] is False
    home.run(89)
    better, worse = home.incidents()
    assert worse["begin"] == stamp_of(70)
    assert worse["open"] is True


def test_state_deleted_is_built_again_from_the_store_alike(tmp_path: Path) -> None:
    truth = Truth(nights=80, canaries=5, workloads=("mlp", "dqn", "gru"))
    truth.step("mlp", 3, "run", 45, 1.06, until=66).step("gru", 0, "compile", 50, 1.1).machine[60:] = 1.05
    night_by_night = home_of(tmp_path / "a", truth)
    for night in range(30, 80):
        if night % 10 < 2 or night == 79:  # nights on which the subsystem did not run are judged later
            night_by_night.run(night, honesty_series=0)
    ledger = (night_by_night.output / "incidents.jsonl").read_bytes()
    state = json.loads((night_by_night.output / "state.json").read_text())
    at_once = home_of(tmp_path / "b", truth)
    at_once.run(79)
    assert (at_once.output / "incidents.jsonl").read_bytes() == ledger
    assert json.loads((at_once.output / "state.json").read_text()) == state
    (night_by_night.output / "state.json").unlink()
    night_by_night.run(79)
    assert json.loads((night_by_night.output / "state.json").read_text()) == state
    assert (night_by_night.output / "incidents.jsonl").read_bytes() == ledger, "nothing is told twice"
    assert len(ledger.splitlines()) > 3


def judged(home: AlertHome, night: int) -> Any:
    """What the subsystem's judging of all nights up to `night` gives, in this process."""
    home.output.mkdir(parents=True, exist_ok=True)
    return SUBSYSTEM.judge_pending(home.home, home.output, stamp_of(night), SUBSYSTEM.Options())


def test_nights_judged_at_once_say_what_each_of_them_says_judged_by_itself(tmp_path: Path) -> None:
    """Steps, slow nights, a machine's move, a series that is signed, one that ends and one that is mostly absent."""
    truth = Truth(nights=90, workloads=("mlp", "dqn", "bert"), canaries=5)
    truth.step("mlp", 3, "run", 45, 1.06, until=66).step("dqn", 0, "compile", 52, 1.1).step("dqn", 3, "size", 60, 1.02)
    truth.machine[[30, 41, 83]] = 1.06
    truth.machine[72:] *= 1.05
    truth.absent = {("bert", night) for night in range(90) if night % 5}
    by_itself = AlertHome(tmp_path / "by_itself").fill(truth)
    for night in range(90):
        signed = {"success": True, "drift": float(np.sin(night)), "rare": 0.0 if night == 50 else 3.0 + night % 3}
        by_itself.write_data("foreign", night, signed)
    by_itself.ingest()
    shutil.copytree(by_itself.root, tmp_path / "at_once")
    at_once = AlertHome(tmp_path / "at_once")
    for night in range(25, 90):
        judged(by_itself, night)
    judged(at_once, 89)
    for name in ("state.json", "incidents.jsonl"):
        assert (at_once.output / name).read_text() == (by_itself.output / name).read_text()
    kept = [sorted(path.name for path in (home.output / "decisions").iterdir()) for home in (at_once, by_itself)]
    assert kept[0] == kept[1]
    for name in kept[0]:
        assert (at_once.output / "decisions" / name).read_text() == (by_itself.output / "decisions" / name).read_text()
    assert len((at_once.output / "incidents.jsonl").read_text().splitlines()) >= 5


def test_quiet_nights_of_a_history_are_not_judged_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a first judging does grows with what happened, not with the nights."""
    judged_nights = []
    observe = fleet.observe

    def counting(history: Any, *arguments: Any, **more: Any) -> Any:
        judged_nights.append(history.tonight)
        return observe(history, *arguments, **more)

    monkeypatch.setattr(fleet, "observe", counting)
    home = AlertHome(tmp_path).fill(Truth(nights=90, sigma=0.002).step("mlp", 3, "run", 60, 1.05))
    judged(home, 89)
    (alert,) = [night for night in judged_nights if night != 89]
    assert alert == 63
    assert judged_nights.count(89) == 32


def test_a_rerun_of_the_same_night_says_the_same_and_adds_nothing(tmp_path: Path) -> None:
    home = home_of(tmp_path, Truth().step("mlp", 3, "run", 64, 1.05))
    home.run(66)
    first = home.run(67)
    files = {name: (home.output / name).read_bytes() for name in ("state.json", "incidents.jsonl", "page.json")}
    assert home.run_script(67) == first
    assert {name: (home.output / name).read_bytes() for name in files} == files


def test_a_night_killed_after_the_ledger_was_written_tells_nothing_twice(tmp_path: Path) -> None:
    home = home_of(tmp_path, Truth().step("mlp", 3, "run", 64, 1.05))
    home.run(66)
    state = (home.output / "state.json").read_bytes()
    home.run(67)
    ledger = (home.output / "incidents.jsonl").read_bytes()
    (home.output / "state.json").write_bytes(state)
    home.run(67)
    assert (home.output / "incidents.jsonl").read_bytes() == ledger


@pytest.mark.parametrize("damage", ["", "{", '{"version": 9}', '{"version": 1, "after": 3}'])
def test_a_damaged_state_is_built_again(tmp_path: Path, damage: str) -> None:
    home = home_of(tmp_path, Truth(nights=40))
    home.run(39)
    state = (home.output / "state.json").read_bytes()
    (home.output / "state.json").write_text(damage)
    home.run(39)
    assert (home.output / "state.json").read_bytes() == state


def test_a_night_found_later_makes_it_judge_again(tmp_path: Path) -> None:
    whole = home_of(tmp_path / "a", Truth(nights=50))
    whole.run(49)
    late = AlertHome(tmp_path / "b").fill(Truth(nights=50, off={20}))
    late.run(48)
    late.fill(Truth(nights=50), first=20, stop=21)
    late.run(49)
    assert (late.output / "state.json").read_bytes() == (whole.output / "state.json").read_bytes()


def test_an_accepted_change_is_not_told_again_and_its_return_is_news(tmp_path: Path) -> None:
    truth = Truth(nights=95).step("mlp", 3, "run", 45, 1.08, until=75)
    home = home_of(tmp_path, truth)
    home.run(60)
    (incident,) = home.incidents()
    done = home.command("incidents", "expect", incident["id"], "bigger model", "--who", "ann")
    assert done.returncode == 0, done.stderr
    _move_back(home, stamp_of(60))
    home.run(61)
    assert home.verdict(61).level is Level.STEADY
    home.run(94)
    first, second = home.incidents()
    assert first["state"] == "expected"
    assert first["changes"][-1]["who"] == "ann"
    assert second["begin"] == stamp_of(75)
    assert second["open"] is False, "it is an improvement over the accepted level"


def _move_back(home: AlertHome, stamp: str) -> None:
    """People's lines were written just now; the nights of these homes are in the past."""
    path = home.output / "incidents.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["who"] != "detector":
            line["at"] = alert_homes.common.parse_stamp(stamp).strftime("%Y-%m-%dT%H:%M:%SZ")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_silenced_incident_is_judged_and_not_told(tmp_path: Path) -> None:
    home = home_of(tmp_path, Truth().step("mlp", 3, "run", 64, 1.05))
    home.run(60)
    assert home.command("incidents", "silence", "*mlp run time*", "known", "--days", "20").returncode == 0
    line = json.loads((home.output / "incidents.jsonl").read_text())
    line["at"], line["data"]["until"] = "2026-06-01T00:00:00Z", "2026-07-08T23:00:00Z"
    (home.output / "incidents.jsonl").write_text(json.dumps(line) + "\n")
    report = home.run(67)
    assert home.verdict(67).level is Level.STEADY
    (incident,) = home.incidents()
    assert incident["id"] in report["value"]
    home.run(69)
    assert home.verdict(69).open == (incident["id"],), "a silence ends"


def test_a_known_break_begins_a_level_without_an_alert(tmp_path: Path) -> None:
    truth = Truth(nights=75).step("mlp", 3, "run", 50, 1.3)
    home = home_of(tmp_path, truth)
    done = home.command("annotate", "add", "machine", "2026-06-20", "new memory", "--break", "--scope", "relax_opt")
    assert done.returncode == 0, done.stderr
    path = home.home.root / "results" / "annotations.jsonl"
    value = json.loads(path.read_text())
    value["at"] = "2026-06-01T00:00:00Z"
    path.write_text(json.dumps(value) + "\n")
    assert stamp_of(50).startswith("20260620")
    home.run(74)
    assert home.verdict(74).level is Level.STEADY
    assert home.incidents() == []
    assert home.page()["annotations"][0]["night"] == stamp_of(50)


def test_slow_creep_is_told_separately_and_rarely(tmp_path: Path) -> None:
    truth = Truth(nights=140, sigma=0.003)
    truth.factors["mlp", 3, "run"] = np.exp(np.linspace(0, 0.09, 140))
    home = home_of(tmp_path, truth)
    home.run(139)
    creeps = [one for one in home.incidents() if one["kind"] == "creep"]
    assert 1 <= len(creeps) <= 3
    assert {moved["metric"] for one in creeps for moved in one["moved"]} == {"run_time"}
    assert all(moved["low"] < moved["effect"] < moved["high"] for one in creeps for moved in one["moved"])
    assert [one for one in home.incidents() if one["kind"] == "change"] == []


def test_explain_makes_the_decision_again_from_what_was_kept(tmp_path: Path) -> None:
    home = home_of(tmp_path, Truth().step("mlp", 3, "run", 64, 1.05))
    home.run(67)
    (incident,) = home.incidents()
    shutil.rmtree(home.home.root / "results" / "experiments")
    home.home.store_file.unlink()
    done = home.command("incidents", "explain", incident["id"][:9])
    assert done.returncode == 0, done.stderr
    for part in ("the same decision", "standard errors", "scatters by", "shifts of at least 0.5 % are reported", "z +"):
        assert part in done.stdout


@pytest.mark.parametrize("canary", ["canary", "canary@release"])
def test_explain_replays_a_machine_step(tmp_path: Path, canary: str) -> None:
    truth = Truth(canaries=5, canary=canary)
    truth.machine[67:] = 1.04
    home = home_of(tmp_path, truth)
    home.run(69)
    (incident,) = home.incidents()
    done = home.command("incidents", "explain", incident["id"])
    assert re.search(r"5 controls .*\+[345]\.\d+ ?%: machine", done.stdout)
    assert "NOT the same" not in done.stdout


def test_missing_values_silence_nothing_else_and_are_said(tmp_path: Path) -> None:
    truth = Truth(absent={("bert", night) for night in range(60, 70)}).step("mlp", 3, "run", 64, 1.05)
    home = home_of(tmp_path, truth)
    assert unjudged(home.run(67)) == {8}
    assert (home.verdict(67).level, len(home.verdict(67).new)) == (Level.REGRESSION, 1)


def test_a_new_series_is_said_to_be_young_and_judged_from_eighteen_nights_on(tmp_path: Path) -> None:
    truth = Truth(absent={("bert", night) for night in range(55)})
    home = home_of(tmp_path, truth)
    assert unjudged(home.run(60)) == {8}


def test_two_nights_of_history_are_quiet_and_said(tmp_path: Path) -> None:
    home = home_of(tmp_path, Truth(nights=2))
    assert unjudged(home.run(1)) == {32}
    assert (home.verdict(1).level, home.verdict(1).blind) == (Level.BLIND, 32)


def test_across_a_gap_of_a_month_the_culprit_is_the_whole_gap(tmp_path: Path) -> None:
    truth = Truth(nights=100, off=set(range(60, 90))).step("mlp", 3, "run", 75, 1.06)
    home = home_of(tmp_path, truth)
    home.run(95)
    (incident,) = home.incidents()
    assert (incident["after"], incident["begin"]) == (stamp_of(59), stamp_of(90))


def test_a_changed_definition_is_another_series_and_the_old_one_ends(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(nights=90), stop=50)
    original = alert_homes.BASE["run"]
    try:
        alert_homes.BASE["run"] = 250.0
        truth = Truth(nights=90, workloads=("vgg", *alert_homes.WORKLOADS[1:]))
        home.fill(truth, first=50)
    finally:
        alert_homes.BASE["run"] = original
    told = [line for line in home.run(55)["value"].splitlines() if line.startswith("Not judged")]
    assert [(name in line, " 8 series" in line) for name, line in zip(("vgg", "mlp"), told, strict=True)] == [
        (True, True),
        (True, True),
    ]
    assert "mlp" not in home.run(89)["value"], "after thirty nights it has ended"


def test_a_changed_unit_begins_another_series(tmp_path: Path) -> None:
    table = SUBSYSTEM.read_table.__globals__
    series = table["Series"]
    stamps = tuple(stamp_of(night) for night in range(60))
    common = {"experiment": "e", "metric": "run_time", "direction": "lower", "labels": {"workload": "a.b"}}

    def made(unit: str, where: tuple[str, ...], value: float) -> Any:
        blank = (None,) * len(where)
        columns = {"stamps": where, "values": (value,) * len(where), "low": blank, "high": blank, "std": blank}
        return series(id="x", unit=unit, **columns, **common)

    both = [made("ms", stamps[:30], 1.0), made("s", stamps[30:], 0.001)]
    made_table = table["make_table"](both, stamps, 0, {"e": {}})
    assert [row.key for row in made_table.rows] == ["x", "x~s"]
    assert np.isfinite(made_table.values).sum(axis=1).tolist() == [30, 30]


def test_numbers_of_a_foreign_experiment_are_judged_as_well(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth())
    rng = np.random.default_rng(3)
    for night in range(70):
        value = 12.0 * (1.2 if night >= 60 else 1.0) * (1 + 0.005 * rng.standard_normal())
        home.write_data("foreign", night, {"tvm_hash": f"f{night}", "gpu": {"mean": value, "zero": 0, "sign": -1}})
    home.ingest()
    home.run(69)
    (incident,) = home.incidents()
    assert incident["moved"][0]["name"] == "foreign $.gpu.mean"


def test_the_store_knows_on_which_nights_the_compiled_code_was_the_same(tmp_path: Path) -> None:
    truth = Truth(nights=4, workloads=("mlp",))
    truth.code_of["mlp", 3] = np.array([1, 1, 2, 1])
    home = home_of(tmp_path, truth)
    table = SUBSYSTEM.read_table(home.home, stamp_of(3), None)
    code = {row.name: table.code[index] for index, row in enumerate(table.rows)}
    first, second, third, fourth = code[MLP]
    assert first == second == fourth != third
    assert set(code[MLP.replace("run", "compile")]) == {0}, "no code was timed"


def test_not_a_number_in_the_table_is_a_missing_value() -> None:
    table = SUBSYSTEM.read_table.__globals__
    stamps = [stamp_of(night) for night in range(3)]
    one = table["Series"](
        "x", "e", "run_time", "ms", "lower", {}, tuple(stamps), (1.0, float("nan"), 2.0), *((None,) * 3,) * 3
    )
    made = table["make_table"]([one], stamps, 0, {"e": {}})
    assert table["last_values"](made, 0, 3) == [1.0, None, 2.0]


def test_a_night_without_data_says_that_nothing_was_judged(tmp_path: Path) -> None:
    home = home_of(tmp_path, Truth(off={69}))
    home.run(68)
    assert home.run(69)["title"].startswith("No data")
    empty = AlertHome(tmp_path / "empty")
    (empty.home.root / "results" / "experiments" / "data").mkdir(parents=True)
    assert empty.run(1)["title"].startswith("No data")
    assert empty.verdict(1).level is Level.NO_DATA


def test_what_was_imported_since_the_last_night_is_tonights_where_nothing_is_measured(tmp_path: Path) -> None:
    slower = Truth(nights=45).step("mlp", 3, "run", 40, 1.3)
    home = AlertHome(tmp_path).fill(slower, stop=40)
    failed = (JobResult("experiment", "own", "own", "", ()),)
    home.run(50, jobs=failed)
    assert home.verdict(50).level is Level.NO_DATA  # what should have been measured here tonight was not
    levels = []
    for night in range(5):
        home.fill(slower, first=40 + night, stop=41 + night)
        home.run(51 + night)
        levels.append(home.verdict(51 + night).level)
    assert levels[0] is Level.SUSPECT
    assert levels[-1] is Level.REGRESSION
    home.run(60)
    assert home.verdict(60).level is Level.NO_DATA


def test_the_ancestors_rule_lists_what_stands_out_and_opens_no_incident(tmp_path: Path) -> None:
    home = home_of(tmp_path, Truth().step("mlp", 3, "run", 69, 1.2))
    report = home.run(69, rule="stddev", window=10)
    assert " 32 series" in report["title"]
    assert MLP in report["value"]
    assert not (home.output / "incidents.jsonl").exists()


def test_without_the_store_the_data_files_say_the_same(tmp_path: Path) -> None:
    home = home_of(tmp_path, Truth(nights=30).step("mlp", 3, "run", 24, 1.05))
    home.run(29)
    state = (home.output / "state.json").read_bytes()
    (home.output / "state.json").unlink()
    home.home.store_file.unlink()
    home.run(29)
    assert (home.output / "state.json").read_bytes() == state


def test_a_night_of_the_engine_judges_what_it_has_just_measured(tmp_path: Path, tvm_artifact_folder: Path) -> None:
    night = homes.make_home(tmp_path, tvm_artifact_folder)
    night.experiment("good")
    night.subsystem("stat_alerts")
    code = "subsystem/stat_alerts"
    shutil.copytree(alert_homes.REPO / code, night.code / code, dirs_exist_ok=True)
    past = AlertHome(tmp_path)
    rng = np.random.default_rng(4)
    for at in range(60):
        factor = 0.9 if at < 57 else 1.0
        value = 1.5 * factor * (1 + 0.004 * rng.standard_normal())
        past.write_data(
            "good", at, {"tvm_hash": f"v{at}", "metrics": {"value": {"direction": "lower"}}, "value": value}
        )
    done = night.run()
    assert done.code == 0, done.output
    report = json.loads((past.output / "report.json").read_text())
    assert "good $.value +11" in report["title"]
    (incident,) = past.incidents()
    assert (incident["begin"], incident["versions"]) == (stamp_of(57), ["v56", "v57"])
    assert incident["cause"]["whose"] == "unknown"
    verbs = [["incidents", "list", "--all"], ["explain", incident["id"]]]
    for verb, *rest in verbs:
        shown = subprocess.run(
            [sys.executable, "-m", "dashboard", verb, str(night.path), *rest],
            env=homes.environment(),
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert incident["id"] in shown


def test_a_home_whose_config_names_no_controls_has_those_of_the_fields(tmp_path: Path) -> None:
    fields = common.read_json(scripts.REPO / "subsystem" / "stat_alerts" / "fields.json")
    assert sorted(Controls.of(Home(tmp_path)).names) == fields["controls"]["default"]
