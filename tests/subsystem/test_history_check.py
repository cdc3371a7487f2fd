"""An old receipt repeated within a real night: what is measured, told and kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import homes
from tests.dashboard.remeasure_homes import NAME, Lab, make_lab, put_artifact
from tests.subsystem import scripts
from tvmdash.machine import hardware
from tvmdash.stats.comparison import CANNOT_TELL, DOES_NOT_HOLD, HOLDS

SUBSYSTEM = "history_check"
HISTORY_CHECK = scripts.load(SUBSYSTEM)
HISTORY: Any = HISTORY_CHECK.history


def night_that_knows_its_machine(lab: Lab) -> None:
    """A night whose data says where it was measured, as the template's does."""
    record = lab.home.night()
    path = lab.home.home.data_file(NAME, record["stamp"])
    homes.write(path, {**homes.read(path), "environment": {"machine": hardware.facts()}})


@pytest.fixture(scope="module")
def one_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lab after a night on 0.27.0 that knows its machine; 0.28.0 came since; the subsystem is active."""
    root = tmp_path_factory.mktemp("one") / "lab"
    lab = make_lab(root, seed=7)
    put_artifact(root / "shelf", "0.27.0")
    night_that_knows_its_machine(lab)
    put_artifact(root / "shelf", "0.28.0")
    shutil.copytree(homes.REPO / "subsystem" / SUBSYSTEM, root / "code" / "subsystem" / SUBSYSTEM)
    homes.write(
        lab.home.home.config("subsystem", SUBSYSTEM) / "config.json", {"active": True, "rounds": 4, "seconds": 120}
    )
    return root


@pytest.fixture
def lab(tmp_path: Path, one_night: Path) -> Lab:
    """The same in a folder of its own."""
    shutil.copytree(one_night, tmp_path / "lab", symlinks=True)
    return Lab(homes.HomeForTests(tmp_path / "lab"))


def checks(lab: Lab) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = homes.read(lab.home.home.output(SUBSYSTEM) / "history.json")["checks"]
    return kept


def told(lab: Lab) -> tuple[str, str]:
    report = lab.home.home.read_report(SUBSYSTEM)
    assert report is not None
    return report


def test_a_night_repeats_an_old_number_on_its_own_tvm_with_its_own_seed_and_publishes_none_of_it(lab: Lab) -> None:
    first = lab.home.stamps()[0]
    lab.home.configure(seed=8)
    lab.home.night()
    tonight = lab.home.stamps()[-1]
    old, new, *again = lab.runs()
    assert (old["seed"], new["seed"]) == ("7", "8")
    assert len(again) == 4
    assert {run["seed"] for run in again} == {"7"}, "the seed of the receipt, not tonight's"
    assert {run["build"] for run in again} == {old["build"]} != {new["build"]}
    assert lab.home.home.data_stamps(NAME) == [first, tonight]
    assert (lab.home.path / "results" / "reproductions" / f"{tonight}.json").is_file()
    (check,) = checks(lab)
    assert (check["stamp"], check["night"], check["experiment"]) == (tonight, first, NAME)
    assert (check["verdict"], check["rounds"], check["seed"]) == (HOLDS, 4, 8)
    assert {line["verdict"] for line in check["series"]} == {HOLDS}
    title, value = told(lab)
    assert title == "History holds"
    assert f"Holds: {NAME} of the night {first}, TVM 0.27.0, drawn from 1 candidates, remeasured 4 times" in value
    assert value.endswith("1 check: 1 held, 0 did not, 0 inconclusive.")


def test_an_old_number_that_does_not_come_out_again_is_told_first_and_counted(lab: Lab) -> None:
    night_that_knows_its_machine(lab)
    artifact = next((lab.home.root / "shelf").glob("wheel-0.27.0-*")).name
    other = next((lab.home.root / "shelf").glob("wheel-0.28.0-*")).name
    lab.change(slow={artifact: {"bert": 1.4}, other: {"bert": 1.4}})
    lab.home.night()
    title, value = told(lab)
    assert title == "History does NOT hold"
    assert value.splitlines()[1].startswith(f"{NAME} net.bert")
    assert "does not hold" in value.splitlines()[1]
    assert [check["verdict"] for check in checks(lab)] == [HOLDS, DOES_NOT_HOLD]
    assert "1 held, 1 did not" in value


def test_a_first_night_and_one_whose_old_tvms_are_gone_say_that_nothing_can_be_told(lab: Lab) -> None:
    for path in (lab.home.root / "shelf").glob("wheel-0.27.0-*"):
        shutil.rmtree(path)
    lab.home.night()
    title, value = told(lab)
    assert title == "Inconclusive whether history holds"
    assert "no earlier night whose TVM is in" in value
    assert checks(lab)[0]["verdict"] == CANNOT_TELL
    assert len(lab.runs()) == 2, "nothing was measured again"


def test_tonights_copy_of_private_code_is_measured_without_what_setup_left_in_it(lab: Lab) -> None:
    """The night was told where experiments lie, the subsystem was not; the code is the night's own copy."""
    lab.home.night()
    kept = homes.read(max((lab.home.path / "results" / "reproductions").iterdir()))
    assert kept["is_same_code"]
    assert all(run["setup"] for run in lab.runs()), "and a setup of its own"


def test_by_hand_outside_a_night_nothing_is_measured(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TVMDASH_NIGHT", raising=False)
    night = lab.home.home.read_night(lab.home.stamps()[-1])
    config = HISTORY_CHECK.HistoryCheck().load_config(lab.home.home.config("subsystem", "history_check"))
    check = HISTORY_CHECK.repeated(config, lab.home.home, night)
    assert (check.verdict, check.why) == (CANNOT_TELL, "Nothing was measured: not within a night.")
    assert len(lab.runs()) == 1


def test_a_damaged_history_is_laid_aside_and_said(lab: Lab) -> None:
    output = lab.home.home.output(SUBSYSTEM)
    output.mkdir(parents=True)
    (output / "history.json").write_text('{"checks": [{"stamp"')
    lab.home.night()
    assert len(checks(lab)) == 1
    assert "a new one was started" in told(lab)[1]
    assert len(list(output.glob("history.damaged-*.json"))) == 1


def test_the_history_keeps_one_entry_a_night_and_comes_back_as_it_was(tmp_path: Path) -> None:
    line = HISTORY.Series("e mlp", "ms", 1.0, DOES_NOT_HOLD, "", 1.3, 1.28, 1.32)
    first = HISTORY.Check("20260101T000000Z", CANNOT_TELL, "no TVM", seed=3)
    second = HISTORY.Check("20260102T000000Z", DOES_NOT_HOLD, experiment="e", series=(line,), differs=("host: a, b",))
    HISTORY.add(tmp_path, second)
    HISTORY.add(tmp_path, first)
    checks, damage = HISTORY.add(tmp_path, second)
    assert (checks, damage) == ([first, second], "")
    assert line.words == "e mlp: 1.00 ms then, 1.30 ms now (+30.0 %), by noise 1.28 ms to 1.32 ms: does not hold"
    assert HISTORY.describe(checks, first).splitlines() == [
        "Cannot be told: no TVM",
        "2 checks since 2026-01-01: 0 held, 1 did not, 1 inconclusive.",
    ]
