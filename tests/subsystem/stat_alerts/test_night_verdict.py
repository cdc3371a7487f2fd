"""What a night says of TVM where something speaks against it: never that all is well. The truth of each is planted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashboard.cli import status
from tests.subsystem import scripts, slack_homes
from tests.subsystem.slack_homes import job
from tests.subsystem.stat_alerts.alert_homes import MLP, AlertHome, Truth, stamp_of
from tests.subsystem.website.sites import Site
from tvmdash import common
from tvmdash.dashboard_info import BLOCKED, COMPLETE, FAILED, JobResult, Night
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as ledgers
from tvmdash.judge.history.cause import UNKNOWN, ReasonKind
from tvmdash.notify.night import make_opening
from tvmdash.verdict import (
    Absence,
    Evidence,
    Level,
    NightVerdict,
    Standing,
    Suspect,
    account,
    read_verdict,
    write_verdict,
)

SUBSYSTEM = scripts.load("stat_alerts")
DQN = MLP.replace("mlp", "dqn")
FEW = {"workloads": ("mlp", "dqn"), "nights": 40}


def judged(home: AlertHome, night: int, *jobs: JobResult, **config: Any) -> NightVerdict:
    """The verdict on a night, the subsystem's work done in this process."""
    stamp = stamp_of(night)
    tonight = Night(stamp, "running", jobs=jobs, artifacts=home.taken.get(night, ()))
    home.home.nights.mkdir(parents=True, exist_ok=True)
    common.write_json(home.home.night_file(stamp), tonight.to_json())
    folder = home.home.config("subsystem", "stat_alerts")
    folder.mkdir(parents=True, exist_ok=True)
    common.write_json(folder / "config.json", {"active": True, "honesty_series": 0, **config})
    home.output.mkdir(parents=True, exist_ok=True)
    alerts = SUBSYSTEM.StatAlerts()
    alerts.work(alerts.load_config(folder), home.output, home.home, tonight)
    verdict = read_verdict(home.home, stamp)
    assert verdict is not None
    return verdict


def standing(home: AlertHome) -> dict[str, Mapping[str, Any]]:
    return {one["name"]: one for one in home.page()["series"]}


def switched(home: AlertHome, experiment: str, *, active: bool) -> None:
    folder = home.home.config("experiment", experiment)
    folder.mkdir(parents=True, exist_ok=True)
    common.write_json(folder / "config.json", {"active": active})


def test_a_night_in_which_everything_was_seen_and_nothing_moved_is_green(tmp_path: Path) -> None:
    verdict = judged(AlertHome(tmp_path).fill(Truth(**FEW)), 39)
    assert (verdict.level, verdict.expected, verdict.seen, verdict.blind) == (Level.STEADY, 16, 16, 0)
    assert verdict.is_green


def test_series_that_an_experiment_left_out_are_missing_and_counted(tmp_path: Path) -> None:
    verdict = judged(AlertHome(tmp_path).fill(Truth(**FEW, absent={("dqn", 39)})), 39, job("relax_opt"))
    assert verdict.level is Level.INCOMPLETE
    assert (verdict.seen, verdict.expected) == (8, 16)
    assert [(missing.experiment, missing.why) for missing in verdict.missing] == [("relax_opt", Absence.NO_VALUE)]


@pytest.mark.parametrize(("state", "why"), [(FAILED, Absence.FAILED), (BLOCKED, Absence.BLOCKED)])
def test_an_experiment_without_data_is_named_with_what_became_of_it(tmp_path: Path, state: str, why: Absence) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW, canaries=3, canaries_off={39}))
    verdict = judged(home, 39, job("relax_opt"), job("canary", state))
    (missing,) = verdict.missing
    assert (missing.experiment, missing.why, missing.series) == ("canary", why, missing.expected)
    assert verdict.level is Level.INCOMPLETE
    assert "canary" in verdict.headline


def test_an_experiment_that_is_gone_is_missed_until_somebody_switches_it_off(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW, canaries=3, canaries_off={39}))
    before = Night(stamp_of(38), COMPLETE, jobs=(job("relax_opt"), job("canary")))
    home.home.nights.mkdir(parents=True)
    common.write_json(home.home.night_file(before.stamp), before.to_json())
    verdict = judged(home, 39, job("relax_opt"))
    assert [one.why for one in verdict.missing] == [Absence.NOT_RUN]

    switched(home, "canary", active=False)
    assert judged(home, 39, job("relax_opt")).level is Level.STEADY


def test_what_was_imported_and_never_ran_here_is_not_missed(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW, canaries=3, canary="imported", canaries_off={39}))
    assert judged(home, 39, job("relax_opt")).level is Level.STEADY


def test_a_workload_that_was_taken_out_is_missed_for_a_week(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW, absent={("dqn", night) for night in range(32, 40)}))
    verdict = judged(home, 38)
    assert (verdict.level, sum(one.series for one in verdict.missing)) == (Level.INCOMPLETE, 8)
    assert judged(home, 39).level is Level.STEADY
    assert standing(home)[DQN]["standing"] == Standing.GONE


def annotated(home: AlertHome, option: str, scope: str) -> None:
    done = home.command("annotate", "add", "night", "2026-06-05", "so it is", option, "--scope", scope)
    assert done.returncode == 0, done.stderr


def test_what_is_not_expected_any_more_is_told_the_night_that_it_is_forgotten(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW, absent={("dqn", night) for night in range(32, 40)}))
    before, verdict = judged(home, 38), judged(home, 39)
    assert before.vanished == ()
    (gone,) = verdict.vanished
    assert (gone.experiment, gone.series, len(gone.names)) == ("relax_opt", 8, 3)
    assert set(gone.names) <= set(standing(home))
    assert gone.names[0] in home.run(39)["value"]


def test_what_somebody_retired_is_missed_by_nobody(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW, absent={("dqn", night) for night in range(37, 40)}))
    assert judged(home, 38).level is Level.INCOMPLETE
    annotated(home, "--retire", "relax_opt dqn*")
    verdict = judged(home, 39)
    assert (verdict.level, verdict.expected, verdict.vanished) == (Level.STEADY, 8, ())


def test_what_somebody_expects_is_missed_for_more_than_a_week(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW, absent={("dqn", night) for night in range(30, 40)}))
    assert judged(home, 38).level is Level.STEADY
    annotated(home, "--expect", "relax_opt dqn run time*")
    verdict = judged(home, 39)
    assert (verdict.level, sum(one.series for one in verdict.missing)) == (Level.INCOMPLETE, 2)


def test_series_that_are_new_are_told_once_but_not_on_the_first_night_of_a_home(tmp_path: Path) -> None:
    truth = Truth(**{**FEW, "nights": 6}, absent={("dqn", night) for night in range(4)})
    home = AlertHome(tmp_path).fill(truth)
    appeared = [judged(home, night).appeared for night in range(6)]
    assert [sum(one.series for one in new) for new in appeared] == [0, 0, 0, 0, 8, 0]
    assert appeared[4][0].names[0] in home.run(4)["value"]


@pytest.mark.parametrize("night", [1, 5, 12])
def test_a_young_series_that_jumps_is_suspect_and_shown_with_its_size(tmp_path: Path, night: int) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW).step("mlp", 3, "run", night, 1.5), stop=night + 1)
    verdict = judged(home, night)
    assert verdict.level is Level.SUSPECT
    (suspect,) = verdict.suspects
    assert (suspect.name, suspect.worse) == (MLP, True)
    assert suspect.effect == pytest.approx(0.5, abs=0.04)
    assert f"{MLP} +" in verdict.headline
    row = standing(home)[suspect.name]
    assert (row["standing"], row["effect"]) == (Standing.SUSPECT, suspect.effect)


@pytest.mark.parametrize("night", [2, 39])
def test_what_moved_on_the_same_tvm_as_the_night_before_is_no_suspect(tmp_path: Path, night: int) -> None:
    truth = Truth(**FEW, versions=["0.27.0"] * 40).step("mlp", 3, "run", night, 1.5)
    home = AlertHome(tmp_path).fill(truth, stop=night + 1)
    assert judged(home, night).suspects == ()


def test_on_a_loaded_second_night_only_what_moved_far_beyond_the_others_is_suspect(tmp_path: Path) -> None:
    truth = Truth(nights=2, sigma=0.12).step("mlp", 3, "run", 1, 4.0)
    verdict = judged(AlertHome(tmp_path).fill(truth), 1)
    assert [one.name for one in verdict.suspects] == [MLP]


def test_young_series_that_do_nothing_are_no_suspects(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(nights=17, seed=7))
    for night in range(17):
        verdict = judged(home, night)
        assert (verdict.level, verdict.suspects, verdict.blind) == (Level.BLIND, (), 32)


def test_one_night_far_beyond_the_noise_is_suspect_and_its_return_is_not(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW).step("mlp", 3, "run", 38, 1.2, until=39))
    verdict = judged(home, 38)
    assert [(one.name, one.worse) for one in verdict.suspects] == [(MLP, True)]
    assert verdict.suspects[0].effect == pytest.approx(0.2, abs=0.03)
    assert judged(home, 39).level is Level.STEADY


def test_a_step_is_suspect_on_each_night_until_it_is_told(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW).step("mlp", 3, "run", 36, 1.2))
    levels = [judged(home, night).level for night in range(36, 40)]
    assert levels[0] is Level.SUSPECT
    assert set(levels) <= {Level.SUSPECT, Level.REGRESSION}


def test_something_that_perhaps_got_better_does_not_hide_that_the_rest_is_steady(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW).step("mlp", 3, "run", 39, 0.8))
    verdict = judged(home, 39)
    assert [one.worse for one in verdict.suspects] == [False]
    assert verdict.level is Level.STEADY
    assert f"{MLP} −" in verdict.headline, "it does not say that nothing moved"


def test_an_improvement_is_told_where_series_are_missing_as_well(tmp_path: Path) -> None:
    truth = Truth(**FEW, absent={("dqn", night) for night in range(36, 40)}).step("mlp", 3, "run", 35, 0.9)
    home = AlertHome(tmp_path).fill(truth)
    verdict = next(one for night in range(36, 40) if (one := judged(home, night)).improved)
    assert (verdict.level, verdict.seen, verdict.expected) == (Level.INCOMPLETE, 8, 16)
    assert f"{MLP} −" in verdict.headline


def test_series_that_could_not_have_shown_a_change_that_matters_are_not_steady(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**{**FEW, "nights": 60}, sigma=0.12))
    verdict = judged(home, 59)
    noisy = [one for one in standing(home).values() if one["standing"] == Standing.BLIND]
    assert {one["metric"] for one in noisy} == {"run_time", "compile_time"}
    assert all(one["smallest_visible_change"] > 0.05 for one in noisy)
    assert verdict.blind == len(noisy) == 8


def test_a_night_most_of_whose_series_are_blind_is_not_green(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(nights=17, workloads=("mlp", "dqn")))
    assert judged(home, 16).level is Level.BLIND


@pytest.mark.parametrize(
    ("declared", "level"), [("lower", Level.REGRESSION), ("higher", Level.IMPROVED), ("none", Level.CHANGED)]
)
def test_what_a_move_comes_to_is_asked_of_the_declared_direction(tmp_path: Path, declared: str, level: Level) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW))
    rng = np.random.default_rng(3)
    for night in range(40):
        value = (100 if night < 36 else 110) * (1 + 0.003 * rng.standard_normal())
        declarations = {"speed": {"direction": declared}}
        home.write_data("foreign", night, {"tvm_hash": f"v{night}", "speed": value, "metrics": declarations})
    home.ingest()
    for night in range(36, 40):
        verdict = judged(home, night)
        if verdict.new or verdict.improved or verdict.changed:
            break
    assert verdict.level is level, verdict


def test_all_that_tells_of_a_night_with_a_regression_agrees(tmp_path: Path) -> None:
    truth = Truth(**FEW).step("mlp", 3, "run", 34, 1.1)
    home = AlertHome(tmp_path).fill(truth)
    site, slack = Site(home.home), slack_homes.SlackHome(tmp_path)
    jobs = (job("relax_opt"), job("stat_alerts", kind="subsystem"), job("score", kind="subsystem"))
    for night in (37, 39):
        verdict = judged(home, night, *jobs)
    tonight = Night(stamp_of(39), "running", jobs=jobs)
    assert (verdict.level, verdict.new, len(verdict.open)) == (Level.REGRESSION, (), 1)
    assert f"{MLP} +" in verdict.headline
    told = account.make_account(tonight, verdict)
    first, page = site.publish_here(tonight.stamp), site.page(f"nights/{tonight.stamp}.html")
    assert (first.first("h1"), page.first("h1")) == (f"!{told.headline}", f"!{told.headline}.")
    assert told.headline in site.page("nights/index.html").words
    done = slack.run("subsys_reporter", tonight)
    assert done.text.splitlines()[0] == f"⚠️ {told.headline}"
    over = Night(stamp_of(39), COMPLETE, elapsed_s=60, jobs=jobs)
    last_words = status.summarize_night(home.home, over)
    assert last_words.startswith(f"Night {over.stamp}: {told.headline}. ")
    for reason in told.reasons:
        assert all(reason in words for words in (first.words, page.words, done.text, last_words))
    assert json.loads((home.home.output("website") / "index.json").read_text())["verdicts"]["regressions"] == 1


@pytest.mark.parametrize(("large", "small", "night"), [(0.8, 0.98, 48), (1.2, 1.02, 47)])
def test_what_joins_an_earlier_incident_is_told_the_night_it_joins(
    tmp_path: Path, large: float, small: float, night: int
) -> None:
    truth = Truth(workloads=("mlp", "dqn"), nights=night + 1)
    truth.step("mlp", 3, "run", 40, large).step("dqn", 3, "run", 40, small)
    home = AlertHome(tmp_path).fill(truth)
    before, verdict = judged(home, night - 1), judged(home, night)
    (incident,) = home.incidents()
    assert [moved["joined"] for moved in incident["moved"]] == [None, stamp_of(night)]
    assert incident["id"] not in before.new + before.improved
    assert incident["id"] in (verdict.new if large > 1 else verdict.improved)
    assert "dqn" in verdict.lead


def test_what_moved_with_an_incident_that_somebody_closed_is_an_incident_of_its_own(tmp_path: Path) -> None:
    truth = Truth(workloads=("mlp", "dqn"), nights=48)
    truth.step("mlp", 3, "run", 40, 1.2).step("dqn", 3, "run", 40, 1.02)
    home = AlertHome(tmp_path).fill(truth)
    (first,) = judged(home, 44).open
    closed = ledgers.changed(first, ledgers.FIXED, at=ledgers.iso_of(stamp_of(45)), who="ann", words="reverted")
    incident_file.append(home.output / ledgers.LEDGER_FILE, [closed])
    assert judged(home, 46).level is not Level.REGRESSION
    verdict = judged(home, 47)
    assert (verdict.level, len(verdict.new)) == (Level.REGRESSION, 1)
    assert verdict.new != (first,)


def test_a_regression_that_went_back_is_told_as_such_the_night_it_is_closed(tmp_path: Path) -> None:
    truth = Truth(workloads=("mlp",), nights=60).step("mlp", 3, "run", 40, 1.2, until=50)
    home = AlertHome(tmp_path).fill(truth)
    found = [judged(home, night) for night in range(52, 56)]
    (fixed,) = [verdict for verdict in found if verdict.fixed]
    assert fixed.level is Level.IMPROVED
    assert f"{MLP} +" in fixed.headline


def test_the_verdict_says_of_each_series_how_it_stands_and_by_which_evidence(tmp_path: Path) -> None:
    truth = Truth(workloads=("mlp", "dqn"), nights=60, absent={("dqn", 44)}).step("mlp", 3, "run", 40, 1.2)
    home = AlertHome(tmp_path).fill(truth)
    verdict = judged(home, 44)
    assert len(verdict.series) == verdict.expected == 16
    by_name = {series["name"]: series["id"] for series in home.page()["series"]}
    of = {series.series: series for series in verdict.series}
    moved, steady, missing = (
        of[by_name[f"relax_opt {name} (opt_level 3)"]] for name in ("mlp run time", "mlp compile time", "dqn run time")
    )
    assert (moved.standing, moved.evidence, moved.incident) == (Standing.MOVED, Evidence.HISTORY, verdict.open[0])
    assert moved.effect == pytest.approx(0.2, abs=0.02)
    assert moved.low is not None
    assert moved.low < moved.effect
    assert moved.cause is not None
    assert moved.cause.whose == UNKNOWN
    assert steady.reason is not None
    assert (steady.standing, steady.reason.kind) == (Standing.STEADY, ReasonKind.WITHIN_NOISE)
    assert steady.visible is not None
    assert 0 < steady.visible < 0.05
    assert (missing.standing, missing.evidence) == (Standing.MISSING, None)


def test_a_series_that_got_better_once_can_be_suspect_later(tmp_path: Path) -> None:
    truth = Truth(workloads=("mlp",), nights=70).step("mlp", 3, "run", 40, 0.8).step("mlp", 3, "run", 69, 1.3)
    verdict = judged(AlertHome(tmp_path).fill(truth), 69)
    assert [suspect.name for suspect in verdict.suspects] == [MLP]


def test_a_failed_job_and_a_regression_hide_each_other_nowhere(tmp_path: Path) -> None:
    slack = slack_homes.SlackHome(tmp_path)
    failed = slack_homes.night(job("cnn", FAILED), job("score", kind="subsystem"))
    write_verdict(slack.home, NightVerdict(failed.stamp, Level.REGRESSION, "TVM got slower: mlp +8 %", new=("i1",)))
    done = slack.run("exp_reports", failed)
    first, *others = done.text.splitlines()
    assert first == "🔴 TVM got slower: mlp +8 %"
    assert any("cnn failed; 0 of 1" in line for line in others)
    over = Night(failed.stamp, COMPLETE, elapsed_s=60, jobs=failed.jobs)
    told = status.summarize_night(slack.home, over)
    assert 0 < told.index("mlp +8 %") < told.index("cnn failed")


def test_without_a_verdict_nothing_is_said_of_tvm(tmp_path: Path) -> None:
    slack = slack_homes.SlackHome(tmp_path)
    night = Night(slack_homes.STAMP, COMPLETE, elapsed_s=60, jobs=(job("cnn"),))
    write_verdict(slack.home, NightVerdict("20200101T000000Z", Level.STEADY, "TVM did not get slower"))
    assert "not judged" in status.summarize_night(slack.home, night)


GOOD = {"night": slack_homes.STAMP, "level": "steady", "headline": "TVM did not get slower"}
DAMAGED = {
    "cut": b'{"night": "2026',
    "of no encoding": b"\xff\xfe{}",
    "nothing": b"null",
    "a list": b"[]",
    "nested without end": b"[" * 100_000,
    "of an unknown level": json.dumps({**GOOD, "level": "marvellous"}).encode(),
    "of a count in words": json.dumps({**GOOD, "expected": "many"}).encode(),
    "of series that are none": json.dumps({**GOOD, "series": {"mlp": "steady"}}).encode(),
    "of an unknown standing": json.dumps({**GOOD, "series": [{"series": "a", "standing": "splendid"}]}).encode(),
    "not a number": b'{"suspects": [{"series": "a", "name": "a", "effect": NaN, "worse": true}], '
    + json.dumps(GOOD)[1:].encode(),
    "without a headline": json.dumps({"night": slack_homes.STAMP, "level": "steady"}).encode(),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_verdict_is_told_and_costs_nothing_else(tmp_path: Path, content: bytes) -> None:
    home = slack_homes.SlackHome(tmp_path).home
    path = home.output("stat_alerts") / "verdict.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    night = Night(slack_homes.STAMP, COMPLETE, elapsed_s=60, jobs=(job("cnn"),))
    told = status.summarize_status(home, night)
    assert str(path) in told
    assert "cnn ok" in told
    headline, more = make_opening(home, night)
    assert headline == "❔ TVM was not judged"
    assert "verdict.json" in more[0].markup


def test_a_message_is_sent_beside_a_damaged_verdict(tmp_path: Path) -> None:
    slack = slack_homes.SlackHome(tmp_path)
    path = slack.home.output("stat_alerts") / "verdict.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(DAMAGED["cut"])
    done = slack.run("exp_reports", slack_homes.night(job("cnn")))
    assert done.success
    assert "verdict.json" in done.text


def test_a_damaged_verdict_is_written_anew_by_the_next_night(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW))
    home.output.mkdir(parents=True)
    (home.output / "verdict.json").write_bytes(DAMAGED["a list"])
    assert judged(home, 39).level is Level.STEADY


def test_a_verdict_is_read_as_it_was_written(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).home
    suspect = Suspect("id~ms", "mlp", 0.1, worse=True, low=0.09, high=0.11)
    verdict = NightVerdict(stamp_of(1), Level.SUSPECT, "words", 4, 3, 1, suspects=(suspect,))
    write_verdict(home, verdict)
    assert read_verdict(home, stamp_of(1)) == verdict
    assert read_verdict(home, stamp_of(2)) is None


def test_hundreds_of_new_series_are_one_line_and_the_verdict_counts_them(tmp_path: Path) -> None:
    home = AlertHome(tmp_path)
    home.write_data("foreign", 0, {"tvm_hash": "a", "latency": 1.5})
    home.write_data("foreign", 1, {"tvm_hash": "b", "latency": 1.5, "new": dict.fromkeys(map(str, range(300)), 2.5)})
    home.ingest()
    judged(home, 0)
    verdict = judged(home, 1)
    assert (verdict.level, verdict.expected, verdict.blind, len(verdict.series)) == (Level.BLIND, 301, 301, 301)
    assert [(new.experiment, new.series, len(new.names)) for new in verdict.appeared] == [("foreign", 300, 3)]
    (line,) = (line for line in home.run(1)["value"].splitlines() if line.startswith("New: "))
    assert "300" in line
    assert line.endswith(" 297 more.")
