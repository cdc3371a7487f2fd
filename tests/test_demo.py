"""What the demo's nights, pages and mails say is what was planted, found by the product itself; on fewer nights."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.demo import make as demo
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.incidents import file as incident_file
from tvmdash.incidents.ledger import FIXED, NEW, Incident
from tvmdash.judge.history.cause import CODE, MACHINE

LAST = datetime.datetime(2026, 11, 29, 3, 15, tzinfo=datetime.UTC)


STORY = demo.Story(nights=30, slower=29, fixed=(5, 9), machine=(20, 26), failed=27, last=LAST)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(os, "environ", {**os.environ})
        yield demo.make(tmp_path_factory.mktemp("demo") / "home", STORY)


def incidents(home: Home) -> dict[str, Incident]:
    """By the night that each began."""
    return {incident.begin: incident for incident in incident_file.read_ledger(home).incidents.values()}


def _shown(workload: str) -> str:
    """Names of series leave out that a workload is a network."""
    return workload.removeprefix("network.")


def test_the_incidents_are_what_was_planted_and_their_intervals_hold_it(home: Home) -> None:
    fixed, slower = incidents(home)[STORY.stamp(STORY.fixed[0])], incidents(home)[STORY.stamp(STORY.slower)]
    assert (fixed.state, fixed.is_worse, fixed.is_open) == (FIXED, True, False)
    assert (slower.state, slower.is_worse, slower.is_open) == (NEW, True, True)
    for incident, planted in ((fixed, [STORY.fixed_by]), (slower, STORY.slower_by)):
        assert incident.cause is not None
        assert incident.cause.whose == CODE
        moved = {one.name.split()[1]: one for one in incident.moved}
        assert set(moved) == {_shown(workload) for workload, _ in planted}
        for workload, size in planted:
            one = moved[_shown(workload)]
            assert one.low is not None
            assert one.high is not None
            assert one.low < size < one.high


def test_the_machines_fault_is_the_machines_and_opens_nothing(home: Home) -> None:
    others = {begin: each for begin, each in incidents(home).items() if not each.cause or each.cause.whose != CODE}
    assert set(others) == {STORY.stamp(night) for night in STORY.machine}
    for incident in others.values():
        assert incident.cause is not None
        assert (incident.cause.whose, incident.is_open) == (MACHINE, False)
        assert {one.name.split()[0] for one in incident.moved} == {"canary"}


def test_every_nights_page_has_the_light_of_what_was_planted(home: Home) -> None:
    nights = common.read_json(home.output("website") / "nights" / "2026.json")["nights"]
    first, last = STORY.fixed
    open_or_failed = {*range(first + 1, last), STORY.failed}
    expected = {
        STORY.stamp(night): "bad" if night in {first, STORY.slower} else "warn" if night in open_or_failed else "good"
        for night in range(STORY.nights)
    }
    assert {stamp: told["kept"]["sentence"][0] for stamp, told in nights.items()} == expected


def test_mails_tell_the_regressions_the_fix_and_the_failure_and_nothing_else(home: Home) -> None:
    mails = {path.stem.partition("-")[2]: path.read_text() for path in sorted((home.root / "mail").iterdir())}
    assert list(mails) == [STORY.stamp(night) for night in (*STORY.fixed, STORY.failed, STORY.slower)]
    begun, fixed, failed, slower = mails.values()
    assert "softmax" in begun
    assert "Fixed: " in fixed
    assert STORY.failed_experiment in failed
    assert all(_shown(workload) in slower for workload, _ in STORY.slower_by)


def test_the_incidents_page_names_the_operator_and_the_commits(home: Home) -> None:
    incident = incidents(home)[STORY.stamp(STORY.slower)]
    page = (home.output("website") / "incidents" / f"{incident.id}.html").read_text(encoding="utf-8")
    assert demo.SLOWER_OPERATOR in page
    assert all(title in page for title, _, _ in demo.COMMITS)


def test_a_folder_that_is_there_already_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        demo.main([str(tmp_path)])
    assert ended.value.code == 2
    assert str(tmp_path) in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
