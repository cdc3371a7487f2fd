"""What the verdict says of steps that were put into copies of the night: against what planted steps really bring."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.subsystem.stat_alerts.alert_homes import AlertHome
from tests.subsystem.stat_alerts.test_night_verdict import SUBSYSTEM, judged
from tests.subsystem.stat_alerts.test_paired_nights import NEW, Nights
from tests.subsystem.website.sites import Site
from tvmdash.judge import RULES
from tvmdash.verdict import ByChance, PlantedStep, Sensitivity

NOISY = {"scatter": 0.016, "seed": 7}
POINTS = [(workload, level) for workload in ("mlp", "dqn", "bert", "gru") for level in (0, 3)]


def said_of(home: AlertHome, night: int) -> Sensitivity:
    said = judged(home, night).sensitivity
    assert said is not None
    return said


def test_copies_bring_as_many_tellings_as_the_same_step_planted_in_one_series_after_the_other(tmp_path: Path) -> None:
    said = said_of(Nights(4, **NOISY).fill(tmp_path / "still"), 3)
    told = 0
    for at, (workload, level) in enumerate(POINTS):
        home = Nights(4, **NOISY).slower(workload, level, 1.05, 3).fill(tmp_path / f"{at}")
        told += bool(judged(home, 3).new)
    assert 0 < told < 8, "else this compares nothing"
    assert said.tonight[1] == PlantedStep(0.05, 8, told, said.tonight[1].again)
    assert said.tonight[0].told < told


def test_a_night_is_counted_once_however_often_it_is_judged(tmp_path: Path) -> None:
    home = Nights(4, **NOISY).fill(tmp_path)
    first = [said_of(home, night) for night in range(1, 4)]
    again = said_of(home, 3)
    assert first[-1] == again
    assert again.nights == 3
    assert [step.series for step in again.lately] == [24, 24]
    assert again.lately[0].told == sum(said.tonight[0].told for said in first)


def test_the_first_night_has_no_level_that_a_step_could_leave(tmp_path: Path) -> None:
    assert judged(Nights(1).fill(tmp_path), 0).sensitivity is None


def test_what_was_told_tonight_is_no_copy_of_something_unchanged(tmp_path: Path) -> None:
    home = Nights(4).slower("mlp", 0, 1.1, 3).fill(tmp_path)
    verdict = judged(home, 3)
    assert verdict.new
    assert verdict.sensitivity is not None
    assert [step.series for step in verdict.sensitivity.tonight] == [7, 7]


def test_false_alarms_are_counted_where_the_tvm_is_that_of_the_night_before(tmp_path: Path) -> None:
    home = Nights(4, artifacts=["before", NEW, NEW, NEW]).fill(tmp_path)
    said = [said_of(home, night) for night in range(1, 4)]
    assert [(item.unchanged, item.false) for item in said] == [(0, 0), (8, 0), (16, 0)]
    assert said[-1].at_most_per_1000 == pytest.approx(1000 * 2.996 / 16, rel=1e-3)


def test_what_the_same_tvm_does_by_itself_is_a_false_alarm_of_the_copies(tmp_path: Path) -> None:
    home = Nights(3, artifacts=[NEW] * 3).slower("gru", 3, 1.2, 2).fill(tmp_path)
    said = [said_of(home, night) for night in range(1, 3)][-1]
    assert (said.unchanged, said.false) == (16, 1)
    assert said.tonight[0].series == 7


def test_one_artifact_night_after_night_would_be_told_of_all_the_same(tmp_path: Path) -> None:
    """The nights are one build and nothing is told of them; a copy says what another build would have brought."""
    small, large = said_of(Nights(4, artifacts=[NEW] * 4).fill(tmp_path), 3).tonight
    assert small.told < large.told
    assert large.told + large.again == large.series == 8


def test_nights_of_one_pair_because_nothing_changed_do_not_say_what_a_change_would_have_brought(tmp_path: Path) -> None:
    """Had TVM changed, they would have been measured in full. As nights of one TVM they count."""
    home = Nights(4, artifacts=[NEW] * 4, contents=["same"] * 4, pairs=[5, 5, 1, 1]).fill(tmp_path)
    said = [said_of(home, night) for night in range(1, 4)]
    assert [item.tonight[0].series for item in said] == [8, 0, 0]
    assert [item.lately[0].series for item in said] == [8, 8, 8]
    assert [item.unchanged for item in said] == [8, 16, 24]
    assert "beside the reference" not in home.run(3)["value"]


def test_the_report_says_what_would_have_been_told(tmp_path: Path) -> None:
    home = Nights(3, scatter=0.005).fill(tmp_path)
    (line,) = (line for line in home.run(2)["value"].splitlines() if "beside the reference" in line)
    assert re.findall(r"\d+", line) == ["8", "3", "8", "5", "8"], "of 8 series steps of 3 % in 8, of 5 % in 8"


def test_the_page_of_alerts_says_what_would_have_been_told(tmp_path: Path) -> None:
    home = Nights(3).fill(tmp_path)
    site = Site(home.home)
    said = [said_of(home, night) for night in range(1, 3)][-1]
    site.publish_here(judged(home, 2).night)
    words = site.page("alerts.html").words
    assert f"in {said.tonight[1].told} of 8 series" in words
    assert f"in {said.lately[1].told} of 16 " in words


def test_the_detector_of_times_is_not_tested_on_series_that_it_does_not_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SUBSYSTEM.false_positive_rate, "LEAST", 10)
    home = Nights(20).fill(tmp_path)
    judged(home, 19, honesty_series=24)
    assert home.page()["honesty"]["shuffled"]["nights"] == 0


def test_a_young_home_states_the_rules_chance_and_that_its_nights_are_too_few(tmp_path: Path) -> None:
    home = Nights(2).fill(tmp_path)
    assert judged(home, 0).by_chance is None, "of one build nothing can be told"
    stated = judged(home, 1).by_chance
    assert stated == ByChance(8, pytest.approx(0.1 / 15 / 19), pytest.approx(0.19 / 19), nulls=8)
    site = Site(home.home)
    site.publish_here(judged(home, 1).night)
    assert "1 % of nights" in site.page("alerts.html").words
    assert "8 series-nights without a change are too few" in site.page("alerts.html").words


def test_a_homes_own_nights_say_how_often_something_is_reported_by_chance(tmp_path: Path) -> None:
    """Its nights differ by half and by twice what is expected of nights beyond their pairs."""
    stated = []
    for factor in (0.5, 2.0):
        nights, rng = Nights(27, artifacts=[NEW] * 26 + ["next"], scatter=0.0003), np.random.default_rng(3)
        for workload, level in POINTS:
            nights.speed[workload, level] = np.exp(factor * RULES.night_sd * rng.standard_normal(27))
        home = nights.fill(tmp_path / str(factor))
        chance = [judged(home, night) for night in range(27)][-1].by_chance
        assert chance is not None
        assert chance.width is not None
        assert chance.nulls >= RULES.least_nulls
        stated.append(chance)
        assert f"is reported on at most {100 * chance.of_any:.2g} % of such nights" in home.run(26)["value"]
    half, twice = stated
    assert half.width == pytest.approx(0.5, rel=0.25)
    assert twice.width == pytest.approx(2.0, rel=0.25)
    assert half.of_one < twice.of_one
    assert half.of_any < twice.of_any


def test_how_sure_a_report_is_says_what_chance_brings_in_this_home(tmp_path: Path) -> None:
    nights = Nights(27, artifacts=[NEW] * 26 + ["next"]).slower("mlp", 0, 1.1, 26)
    home = nights.fill(tmp_path)
    verdict = [judged(home, night) for night in range(27)][-1]
    assert verdict.new
    assert verdict.by_chance is not None
    assert verdict.by_chance.least_sure is not None
    assert verdict.by_chance.least_sure < verdict.by_chance.of_one
    site = Site(home.home)
    site.publish_here(verdict.night)
    assert verdict.by_chance.sure in site.page("alerts.html").words
    assert verdict.by_chance.sure in home.run(26)["value"]
