"""What people retired or muted: nobody misses it, nobody is told of it, and the reports say how much it is."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from dashboard.cli.main import main
from tests.subsystem.slack_homes import job
from tests.subsystem.stat_alerts.alert_homes import AlertHome, Truth, stamp_of
from tests.subsystem.stat_alerts.test_night_verdict import FEW, judged, standing
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, Night
from tvmdash.errors import DashboardError
from tvmdash.incidents import decisions
from tvmdash.incidents.decisions import By
from tvmdash.verdict import Level, Standing

BEFORE_TONIGHT = By("ann", "2026-04-30T12:00:00Z", "too noisy")
NOISY = "relax_opt mlp run time (opt_level 3)"


def do(home: AlertHome, verb: str, *words: str) -> int:
    return main([verb, str(home.home.root), *words])


def retire(home: AlertHome, pattern: str) -> None:
    """As of a night of the past, on which the command's own clock does not stand."""
    decisions.retire(home.home, pattern, BEFORE_TONIGHT)


def assert_names(told: str, *parts: str) -> None:
    """It is one line that names these."""
    assert told.count("\n") == 1
    assert [part for part in parts if part not in told] == []


def test_retired_series_are_counted_and_missed_by_nobody(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW, absent={("dqn", night) for night in range(37, 40)}))
    assert judged(home, 38).level is Level.INCOMPLETE
    retire(home, "relax_opt dqn*")
    verdict = judged(home, 39)
    assert (verdict.level, verdict.expected, verdict.retired, verdict.missing) == (Level.STEADY, 8, 8, ())
    report = home.run(39)["value"]
    assert "8 series are retired" in report
    assert "Not judged" not in report
    assert standing(home)[NOISY.replace("mlp", "dqn")]["standing"] == Standing.GONE


def test_a_retired_experiment_that_did_not_run_is_missed_by_nobody(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW, canaries=3, canaries_off={39}))
    before = Night(stamp_of(38), COMPLETE, jobs=(job("relax_opt"), job("canary")))
    home.home.nights.mkdir(parents=True)
    common.write_json(home.home.night_file(before.stamp), before.to_json())
    assert judged(home, 39, job("relax_opt")).level is Level.INCOMPLETE
    retire(home, "canary")
    verdict = judged(home, 39, job("relax_opt"))
    assert (verdict.level, verdict.missing) == (Level.STEADY, ())
    assert verdict.retired > 0


def test_what_was_retired_is_expected_again_when_that_is_taken_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW, absent={("dqn", night) for night in range(37, 40)}))
    judged(home, 38)
    retire(home, "relax_opt dqn*")
    assert do(home, "retire") == 0
    assert_names(capsys.readouterr().out, "relax_opt dqn*", "retired", "2026-04-30", "ann", "too noisy")
    assert do(home, "unretire", "relax_opt dqn*", "it is back", "--who", "bob") == 0
    assert judged(home, 39).level is Level.INCOMPLETE
    assert do(home, "unretire", "relax_opt dqn*") == 2
    assert "not retired" in capsys.readouterr().err
    assert '"words":"it is back"' in (home.home.root / "results" / "annotations.jsonl").read_text()


def test_what_matches_nothing_and_is_like_nothing_is_refused(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW))
    with pytest.raises(DashboardError, match="matches no"):
        retire(home, "zzzz.qqqq")


def test_a_muted_series_is_no_suspect_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = AlertHome(tmp_path).fill(Truth(**FEW).step("mlp", 3, "run", 5, 1.5), stop=6)
    assert [suspect.name for suspect in judged(home, 5).suspects] == [NOISY]
    until = common.utc_now() + datetime.timedelta(days=9)
    pattern = "relax_opt mlp*(opt_level 3)"
    assert decisions.mute(home.home, pattern, until, BEFORE_TONIGHT).startswith("4 series: ")
    verdict = judged(home, 5)
    assert (verdict.level is Level.SUSPECT, verdict.suspects, verdict.muted) == (False, (), 4)
    assert "4 series are muted" in home.run(5)["value"]
    assert standing(home)[NOISY]["standing"] == Standing.SUSPECT
    capsys.readouterr()
    assert do(home, "mute") == 0
    assert_names(capsys.readouterr().out, pattern, "muted", f"{until:%Y-%m-%d}", "ann", "too noisy")
    assert do(home, "unmute", pattern) == 0
    assert do(home, "mute") == 0
    assert capsys.readouterr().out.endswith("Nothing is muted.\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("retire", "relax_opt dpn*", "gone"), "Did you mean 'relax_opt'"),
        (("retire", "*", "gone"), "'*' would retire everything"),
        (("retire", "relax_opt dqn*"), "WHY is missing"),
        (("mute", "relax_opt", "loud", "--days", "400"), "365 days"),
        (("mute", "relax_opt", "loud", "--until", "2020-01-01"), "2020-01-01"),
        (("unmute", "relax_opt"), "not muted"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    home = AlertHome(tmp_path).fill(Truth(**{**FEW, "nights": 3}))
    home.run(2)
    verb, *rest = words
    assert do(home, verb, *rest) == 2
    assert said in capsys.readouterr().err
    assert decisions.list_retired(home.home) == []
