"""Situations that a nightly history gets into: young series, steps in a row, calm after a step, builds with luck.

Each is a small version of tests/benchmarks/alerts/situations.py, which measures rates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tvmdash.judge.history import change_points
from tvmdash.judge.history.fleet import fleet
from tvmdash.judge.history.series import Decision, History, SeriesState

Lab = Callable[[int, int, int], Sequence[float]]


def series(seed: int, nights: int, sigma: float, steps: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
    """The true level of each night's build, and what was measured."""
    truth = np.full(nights, 3.0)
    for night, step in steps.items():
        truth[night:] *= 1 + step
    return truth, truth * np.exp(sigma * np.random.default_rng(seed).standard_normal(nights))


def lab(truth: np.ndarray, sigma: float, seed: int) -> Lab:
    """Re-runs: (tonight, the night whose build is measured, how often)."""
    rng = np.random.default_rng([seed, 1])
    return lambda tonight, night, count: list(truth[night] * np.exp(sigma * rng.standard_normal(count)))


def told(values: np.ndarray, again: Lab | None = None, first: int = 17) -> list[Decision]:
    """The alerts of all nights from `first` on; without re-runs by the full scan."""
    if again is None:
        return change_points.change_points(History(values))[0]
    state, found = SeriesState(), []
    for night in range(first, len(values)):
        decision = change_points.observe(
            History(values[: night + 1]), state, rerun=lambda build, count, night=night: again(night, build, count)
        )
        state = decision.state
        found += [decision] if decision.kind == "alert" else []
    return found


@pytest.mark.parametrize("with_reruns", [False, True])
@pytest.mark.parametrize("at", [6, 9, 10])
def test_a_step_before_the_first_judged_night_is_told_soon_after_it(at: int, *, with_reruns: bool) -> None:
    for seed in range(5):
        for step in (0.1, 1.0):
            truth, values = series(seed, 40, 0.01, {at: step})
            (alert,) = told(values, lab(truth, 0.01, seed) if with_reruns else None)
            assert alert.cut == at
            assert alert.night <= 21
            assert alert.effect == pytest.approx(step, rel=0.2)


def test_two_odd_first_nights_are_no_level() -> None:
    for seed in range(5):
        _, values = series(seed, 60, 0.005, {})
        values[:2] *= 1.3
        assert told(values) == []


@pytest.mark.parametrize("at", [20, 30, 41, 53])
def test_a_reproduced_step_of_ten_deviations_is_told_the_same_night_in_a_young_series(at: int) -> None:
    for seed, sigma in enumerate((0.004, 0.006, 0.01)):
        truth, values = series(seed, at + 1, sigma, {at: 10 * sigma})
        (alert,) = told(values, lab(truth, sigma, seed))
        assert (alert.night, alert.cut) == (at, at)


@pytest.mark.parametrize("gap", [4, 8, 14, 20])
def test_it_is_told_the_same_night_in_a_young_level_too(gap: int) -> None:
    for seed, sigma in enumerate((0.005, 0.01)):
        truth, values = series(seed, 61 + gap, sigma, {60: 10 * sigma, 60 + gap: -10 * sigma})
        alerts = told(values, lab(truth, sigma, seed), first=50)
        assert [(alert.night, alert.cut) for alert in alerts] == [(60, 60), (60 + gap, 60 + gap)]


@pytest.mark.parametrize("gap", [1, 2, 3])
def test_a_second_step_a_few_nights_after_a_first_is_told_within_two_nights_with_reruns(gap: int) -> None:
    late = []
    for seed in range(6):
        truth, values = series(seed, 75, 0.01, {60: 0.1, 60 + gap: 0.1 if seed % 2 else 0.2})
        alerts = told(values, lab(truth, 0.01, seed), first=40)
        assert [alert.cut for alert in alerts] == [60, 60 + gap]
        assert alerts[0].night == 60
        late.append(alerts[1].night - 60 - gap)
    assert sorted(late)[-2] <= 2


@pytest.mark.parametrize("gap", [2, 3, 5])
def test_it_is_found_by_the_history_alone(gap: int) -> None:
    for seed in range(6):
        _, values = series(seed, 85, 0.01, {60: 0.1, 60 + gap: 0.1})
        alerts = told(values)
        assert [alert.cut for alert in alerts] == [60, 60 + gap]
        assert alerts[1].night <= 60 + gap + 7
        assert [alert.effect for alert in alerts] == [pytest.approx(0.1, abs=0.03)] * 2


def test_one_night_between_two_levels_makes_the_culprit_a_range() -> None:
    for seed in range(6):
        _, values = series(seed, 85, 0.01, {60: 0.1, 61: 0.1})
        (alert,) = told(values)
        assert (alert.after, alert.cut) == (59, 61)
        assert alert.effect == pytest.approx(0.21, abs=0.04)


def test_a_series_that_only_gets_noisier_has_no_new_level() -> None:
    false = 0
    for seed in range(30):
        rng = np.random.default_rng([7, seed])
        sigma = np.where(np.arange(150) < 80, 0.004, 0.008 if seed % 2 else 0.016)
        false += len(told(3 * np.exp(sigma * rng.standard_normal(150))))
    assert false <= 1


def test_modes_that_last_are_known_after_a_step_as_before_it() -> None:
    false = 0
    for seed in range(20):
        rng, mode = np.random.default_rng([8, seed]), np.zeros(160)
        for night in range(1, 160):
            mode[night] = rng.random() < (0.6 if mode[night - 1] else 0.1)
        truth = np.where(np.arange(160) < 90, 3.0, 3.3)
        alerts = told(truth * np.exp(0.02 * mode + 0.005 * rng.standard_normal(160)))
        false += sum(alert.night > 90 and abs((alert.cut or 0) - 90) > 5 for alert in alerts)
        assert any(abs((alert.cut or 0) - 90) <= 5 for alert in alerts)
    assert false <= 2


def modes_that_last(seed: int, nights: int, steps: dict[int, float], *, gap: float = 0.02) -> np.ndarray:
    """The true level of each night's build: a second mode lasts for some nights, then is gone for many."""
    rng, mode = np.random.default_rng([12, seed]), np.zeros(nights)
    for night in range(1, nights):
        mode[night] = rng.random() < (0.6 if mode[night - 1] else 0.1)
    return series(0, nights, 0.0, steps)[0] * np.exp(gap * mode)


def test_modes_of_builds_that_last_are_known_after_a_step_with_reruns() -> None:
    false = []
    for seed in range(4):
        truth = modes_that_last(seed, 130, {70: 0.1})
        values = truth * np.exp(0.005 * np.random.default_rng([13, seed]).standard_normal(130))
        alerts = told(values, lab(truth, 0.005, seed))
        assert any(alert.cut == 70 for alert in alerts)
        false += [alert for alert in alerts if alert.cut != 70]
    assert len(false) <= 3


def test_a_night_that_was_not_measured_again_keeps_its_value() -> None:
    truth, values = series(2, 60, 0.005, {})
    values[40:44] *= 1.02
    measure, state, corrected = lab(truth, 0.005, 2), SeriesState(), 0
    for night in range(17, 60):
        decision = change_points.observe(
            History(values[: night + 1]), state, rerun=lambda build, count, night=night: measure(night, build, count)
        )
        changed = {key for key, value in decision.state.fixed.items() if state.fixed.get(key) != value}
        if decision.kind == "quiet":
            assert changed <= {run.night for run in decision.reruns}
            corrected += len(changed)
        state = decision.state
    assert corrected


def test_builds_that_differ_by_luck_are_no_steps_and_a_step_beyond_luck_is_one() -> None:
    false = []
    for seed in (0, 5, 6, 7):
        luck = np.random.default_rng([9, seed]).standard_t(5, 120) / np.sqrt(5 / 3)
        truth = 3 * np.exp(0.01 * luck)
        truth[100:] *= 1.15
        values = truth * np.exp(0.002 * np.random.default_rng([10, seed]).standard_normal(120))
        alerts = told(values, lab(truth, 0.002, seed))
        false += [alert for alert in alerts if alert.cut != 100]
        assert any(alert.cut == 100 for alert in alerts)
    assert len(false) <= 1


def test_the_interval_of_one_new_build_carries_its_luck() -> None:
    truth, values = series(3, 26, 0.001, {25: 0.1})
    (alert,) = told(values, lab(truth, 0.001, 3))
    assert alert.effect_high is not None
    assert alert.effect_low is not None
    assert alert.effect_high - alert.effect_low > 2 * 1.96 * 0.0015


def test_fleets_with_steps_have_no_alerts_besides_them() -> None:
    rng, nights = np.random.default_rng(11), 90
    truth = np.full((40, nights), 3.0)
    truth[:6, 60:] *= 1.08
    values = truth * np.exp(rng.uniform(0.002, 0.01, (40, 1)) * rng.standard_normal((40, nights)))
    state, found = fleet.FleetState(), []
    for night in range(50, nights):
        histories = {str(row): History(values[row, : night + 1]) for row in range(40)}
        decided = fleet.night(histories, state)
        state = decided.state
        found += [(name, one.cut) for name, one in decided.decisions.items() if one.kind == "alert"]
    assert sorted(found) == [(str(row), 60) for row in range(6)]


def test_a_state_of_a_dashboard_that_remembered_luck_and_modes_is_read() -> None:
    old = {**SeriesState(start=5).to_json(), "luck": [1.0, 2.0], "glued_until": 9, "glued": 0.02}
    del old["reserve_nights"]
    assert SeriesState.from_json(old) == SeriesState(start=5)
