"""Suspects measured again the same night: what a real night then tells, and what it does when it cannot."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import homes
from tests.dashboard.remeasure_homes import NAME, Lab, make_lab, past, put_artifact
from tvmdash.series import store

NIGHTS = 60


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty nights on 0.27.0; tonight 0.28.0 is the newest."""
    root = tmp_path_factory.mktemp("history") / "lab"
    lab = make_lab(root)
    past(lab, NIGHTS, put_artifact(root / "shelf", "0.27.0"))
    put_artifact(root / "shelf", "0.28.0")
    homes.write(lab.home.home.config("subsystem", "stat_alerts") / "config.json", {"active": True})
    return root


@pytest.fixture
def lab(tmp_path: Path, history: Path) -> Lab:
    return copied(history, tmp_path)


def copied(root: Path, place: Path) -> Lab:
    shutil.copytree(root, place / "lab", symlinks=True)
    return Lab(homes.HomeForTests(place / "lab", warm_stages=True))


@dataclass(frozen=True)
class Confirmed:
    """The night that measured 0.28.0 slower, and slower again. Tests leave it as it is."""

    lab: Lab
    report: dict[str, str]
    confirmation: dict[str, Any]
    incidents: list[dict[str, Any]]


@pytest.fixture(scope="module")
def confirmed(tmp_path_factory: pytest.TempPathFactory, history: Path) -> Confirmed:
    lab = copied(history, tmp_path_factory.mktemp("confirmed"))
    lab.change(slow={builds(lab)[1]: {"mlp": 1.08}})
    return Confirmed(lab, *told(lab))


def builds(lab: Lab) -> list[str]:
    """The artifacts on the shelf, the oldest first."""
    return sorted(path.name for path in (lab.home.root / "shelf").glob("wheel-*"))


def output(lab: Lab) -> Path:
    return lab.home.home.output("stat_alerts")


def told(lab: Lab, *, code: int = 0) -> tuple[dict[str, str], dict[str, Any], list[dict[str, Any]]]:
    """Run a night: the report, the page's part on confirmation, the incidents."""
    done = lab.home.run()
    assert done.code == code, done.output
    page = homes.read(output(lab) / "page.json")
    return homes.read(output(lab) / "report.json"), page["confirmation"], page["incidents"]


def runs_again(lab: Lab) -> list[str]:
    """The versions of what was run for particular points, in order."""
    return [run["build"].split("-")[1] for run in lab.runs() if run["points"] is not None]


def test_a_slower_artifact_is_told_and_confirmed_the_same_night(confirmed: Confirmed) -> None:
    lab, report, confirmation = confirmed.lab, confirmed.report, confirmed.confirmation
    (incident,) = confirmed.incidents
    assert "speed net.mlp run time +" in report["title"]
    assert "remeasured" in report["value"]
    assert (incident["state"], incident["blame"]) == ("confirmed", "compiler")
    assert incident["begin"] == lab.home.stamps()[-1]
    (moved,) = incident["moved"]
    assert moved["low"] < 0.08 < moved["high"]
    assert moved["again_new"] >= 4 <= moved["again_old"]
    assert " ± " in incident["words"]
    (series,) = confirmation["series"]
    assert (series["outcome"], confirmation["ended"]) == ("reproduced", "complete")
    again = runs_again(lab)
    assert len(again) <= 12
    assert set(again) == {"0.27.0", "0.28.0"}
    assert again[:4] == ["0.28.0", "0.27.0", "0.28.0", "0.27.0"], "in turn"
    assert all(run["points"] == ["mlp"] for run in lab.runs() if run["points"] is not None)


def test_a_slower_runtime_under_the_same_generated_code_is_a_regression_of_tvm(lab: Lab) -> None:
    lab.change(code="fixed", slow={builds(lab)[1]: {"mlp": 1.08, "bert": 1.08}})
    past(lab, NIGHTS, put_artifact(lab.home.root / "other", "0.27.0"))
    report, confirmation, (incident,) = told(lab)
    assert (incident["kind"], incident["open"], len(incident["moved"])) == ("change", True, 2)
    cause = incident["cause"]
    assert (cause["whose"], cause["evidence"], cause["same_code"]) == ("runtime", "measured_again", 2)
    assert (cause["old"], cause["new"]) == (pytest.approx(1.0, abs=0.01), pytest.approx(1.08, abs=0.01))

    assert {one["outcome"] for one in confirmation["series"]} == {"reproduced"}
    assert "machine" not in report["value"]


def explain(lab: Lab, incident: str) -> str:
    argv = [sys.executable, "-m", "dashboard", "explain", str(lab.home.path), incident]
    done = subprocess.run(argv, env=homes.environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_confirmed_decision_is_replayed_from_its_re_runs_and_survives_a_rebuild(
    tmp_path: Path, confirmed: Confirmed
) -> None:
    lab, confirmation = copied(confirmed.lab.home.root, tmp_path), confirmed.confirmation
    (incident,) = confirmed.incidents
    words = explain(lab, incident["id"])
    assert "the same decision, alert" in words
    assert "in turn" in words
    stamp = lab.home.stamps()[-1]
    ledger = (output(lab) / "incidents.jsonl").read_bytes()
    kept = (output(lab) / "remeasured" / f"{stamp}.json").read_bytes()
    (output(lab) / "state.json").unlink()
    before = len(lab.runs())
    _stage(lab, stamp)
    assert (output(lab) / "incidents.jsonl").read_bytes() == ledger, "told once"
    assert len(lab.runs()) == before, "and nothing is measured twice"
    assert (output(lab) / "remeasured" / f"{stamp}.json").read_bytes() == kept
    assert homes.read(output(lab) / "page.json")["confirmation"]["series"] == confirmation["series"]
    lab.home.run()
    state = homes.read(output(lab) / "state.json")
    (output(lab) / "state.json").unlink()
    _stage(lab, lab.home.stamps()[-1])
    assert homes.read(output(lab) / "state.json") == state, "a rebuild plays the kept re-runs of past nights"


def _stage(lab: Lab, stamp: str) -> None:
    """The subsystem's own run once more, for a night that is over."""
    env = {**homes.environment(), "TVMDASH_NIGHT": stamp, "BENCHMARK_DEPS": str(homes.REPO / "shared")}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    folder = homes.REPO / "subsystem" / "stat_alerts"
    config = lab.home.home.config("subsystem", "stat_alerts")
    argv = [str(folder / "run.sh"), str(config), str(output(lab)), str(lab.home.path)]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_a_disturbed_first_measurement_is_no_alert_and_told_as_an_outlier(lab: Lab) -> None:
    lab.change(first_only={"mlp": 1.08})
    report, confirmation, incidents = told(lab)
    assert incidents == []
    (series,) = confirmation["series"]
    assert series["outcome"] == "outlier"
    assert series["name"] in report["value"]
    assert len(runs_again(lab)) <= 3


def test_with_the_same_artifact_on_all_nights_an_outlier_is_an_outlier(lab: Lab) -> None:
    shutil.rmtree(lab.home.root / "shelf" / builds(lab)[1])
    lab.change(first_only={"mlp": 1.08})
    report, confirmation, incidents = told(lab)
    assert incidents == []
    assert [(one["outcome"], one["same"]) for one in confirmation["series"]] == [("outlier", True)]
    assert "no difference remained in" in report["value"]


def test_with_the_same_artifact_what_stays_is_the_machines_not_tvms(lab: Lab) -> None:
    shutil.rmtree(lab.home.root / "shelf" / builds(lab)[1])
    lab.change(machine=1.08)
    report, confirmation, incidents = told(lab)
    assert incidents == []
    assert {(one["outcome"], one["same"]) for one in confirmation["series"]} == {("machine", True)}
    assert "not TVM" in report["value"]


def test_what_older_artifacts_show_as_well_is_the_machines(lab: Lab) -> None:
    lab.change(machine=1.08)
    report, confirmation, incidents = told(lab)
    assert incidents == []
    found = {(one["outcome"], one["same"], one["evidence"]) for one in confirmation["series"]}
    assert found == {("machine", False, "older_artifacts")}
    assert {one["changed"] for one in confirmation["series"]} == {True}, "the history's fingerprint is another"
    assert "not TVM" in report["value"]
    shared = [run for run in lab.runs() if run["points"] is not None]
    assert all(sorted(run["points"]) == ["bert", "mlp"] for run in shared), "one run for both suspects"


def test_a_gone_artifact_leaves_the_decision_to_the_history(lab: Lab) -> None:
    old, new = builds(lab)
    lab.change(slow={new: {"mlp": 1.08}})
    shutil.rmtree(lab.home.root / "shelf" / old)
    report, confirmation, incidents = told(lab)
    assert incidents == []
    assert [one["outcome"] for one in confirmation["series"]] == ["unmeasured"]
    assert old in report["value"]
    assert "0.27.0" not in runs_again(lab)


def test_a_run_that_fails_again_leaves_the_decision_to_the_history(lab: Lab) -> None:
    old, new = builds(lab)
    lab.change(slow={new: {"mlp": 1.08}}, broken=[old])
    report, confirmation, incidents = told(lab)
    assert incidents == []
    (series,) = confirmation["series"]
    assert (series["outcome"], series["why"].partition(" exited")[0]) == ("unmeasured", "run: run.sh")
    assert series["why"] in report["value"]
    assert runs_again(lab).count("0.27.0") == 1, "it is tried once"


def test_nights_without_a_known_artifact_cannot_be_measured_again(lab: Lab) -> None:
    for path in lab.home.home.data(NAME).glob("data_*.json"):
        value = homes.read(path)
        del value["night"]
        homes.write(path, value)
    lab.change(slow={builds(lab)[1]: {"mlp": 1.08}})
    report, confirmation, incidents = told(lab)
    assert incidents == []
    assert {one["outcome"] for one in confirmation["series"]} == {"unmeasured"}
    assert "is unknown" in report["value"]


def test_numbers_of_a_foreign_experiment_are_measured_again_by_their_path(lab: Lab) -> None:
    lab.change(foreign=True)
    past(lab, NIGHTS, put_artifact(lab.home.root / "other", "0.27.0"))
    lab.change(slow={builds(lab)[1]: {"mlp": 1.08}})
    _, confirmation, (incident,) = told(lab)
    assert incident["headline"].startswith("speed $.mlp +")
    assert incident["state"] == "confirmed"
    assert confirmation["series"][0]["outcome"] == "reproduced"


def test_a_budget_that_ends_in_the_middle_is_said_and_the_history_decides(lab: Lab) -> None:
    lab.change(slow={builds(lab)[1]: {"mlp": 1.08}}, hang=True)
    homes.write(
        lab.home.home.config("subsystem", "stat_alerts") / "config.json", {"active": True, "confirm_seconds": 3}
    )
    report, confirmation, incidents = told(lab)
    assert incidents == []
    assert confirmation["ended"] == "budget"
    assert "confirm_seconds" in report["value"]
    assert [one["why"] for one in confirmation["series"]] == ["the time budget ran out"]


def test_switched_off_nothing_is_measured_and_the_page_says_why(lab: Lab) -> None:
    homes.write(
        lab.home.home.config("subsystem", "stat_alerts") / "config.json", {"active": True, "confirm_seconds": 0}
    )
    lab.change(slow={builds(lab)[1]: {"mlp": 1.08}})
    report, confirmation, incidents = told(lab)
    assert (incidents, runs_again(lab)) == ([], [])
    assert confirmation["off"] == "confirm_seconds is 0"
    assert "emeasured" not in report["value"]


def test_an_experiment_that_is_inactive_tonight_is_not_suspected(lab: Lab) -> None:
    with store.open_for_writing(lab.home.home.store_file) as opened:
        opened.ingest(lab.home.home.data(NAME), NAME)
    lab.home.experiment("other")
    homes.write(lab.home.home.config("experiment", NAME) / "config.json", {"active": False})
    report, confirmation, _ = told(lab)
    assert "Not judged" in report["value"]
    assert (confirmation["series"], lab.runs()) == ([], [])


def test_evidence_that_is_damaged_costs_the_re_runs_and_not_the_night(tmp_path: Path, confirmed: Confirmed) -> None:
    lab = copied(confirmed.lab.home.root, tmp_path)
    stamp = lab.home.stamps()[-1]
    (output(lab) / "remeasured" / f"{stamp}.json").write_text("{")
    (output(lab) / "state.json").unlink()
    _stage(lab, stamp)
    assert json.loads((output(lab) / "status.json").read_text())["success"]
