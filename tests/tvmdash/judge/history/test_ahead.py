"""What is seen ahead of many nights is what these nights say when each is judged by itself."""

from __future__ import annotations

import numpy as np
import pytest

from tvmdash.judge.history.change_points import observe
from tvmdash.judge.history.fleet.ahead import look_ahead
from tvmdash.judge.history.fleet.common import find_deviations
from tvmdash.judge.history.series import History, SeriesState, Settings

NIGHTS, FIRST, REACH = 120, 70, 300


def history(seed: int, step: float = 0.0) -> History:
    """Nights with noise, spikes, holes and a step at the 90th."""
    rng = np.random.default_rng(seed)
    values = 2 * np.exp(0.006 * rng.standard_normal(NIGHTS) + 0.2 * (rng.random(NIGHTS) < 0.03))
    values[90:] *= 1 + step
    values[rng.random(NIGHTS) < 0.1] = np.nan
    return History(values)


def until(whole: History, night: int) -> History:
    return History(whole.values[: night + 1])


def state_before(whole: History) -> SeriesState:
    """A level that began lately, with a reserve and a corrected value."""
    return SeriesState(start=40, reserve=tuple(0.004 * np.sin(np.arange(30))), fixed={60: float(np.log(2.0))})


@pytest.mark.parametrize("step", [0.0, 0.02, 0.05, -0.05])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_first_alert_ahead_is_that_of_the_nights_judged_one_by_one(seed: int, step: float) -> None:
    whole = history(seed, step)
    state = state_before(whole)
    ahead = look_ahead(whole, state, FIRST, REACH, Settings())
    kinds = ((night, observe(until(whole, night), state).kind) for night in range(FIRST, NIGHTS))
    assert ahead is not None
    assert ahead.alert == next((night for night, kind in kinds if kind == "alert"), None)
    assert ahead.alert is None or step


def test_a_nights_deviation_is_the_same_seen_ahead_and_on_that_night() -> None:
    whole = history(4, 0.05)
    for start in (40, 68, 95):
        state = SeriesState(start=start, reserve=tuple(0.004 * np.sin(np.arange(30))))
        ahead = look_ahead(whole, state, FIRST, REACH, Settings())
        assert ahead is not None
        for night in range(FIRST, NIGHTS):
            assert find_deviations({"s": until(whole, night)}, {"s": state}).get("s") == ahead.deviations.get(night)


def test_a_level_is_its_median_and_its_scale_the_median_distance_with_the_reserve() -> None:
    values = np.array([1.0, 1.1, 0.9, 1.05, 2.0])
    state = SeriesState(reserve=(0.3, -0.3))
    found = find_deviations({"s": History(values)}, {"s": state})["s"]
    residual = [0.3, 0.3, *np.abs(np.log(values[:4]) - np.median(np.log(values[:4])))]
    assert found.away == pytest.approx(np.log(2.0) - np.median(np.log(values[:4])))
    assert found.scale == pytest.approx(1.4826 * np.median(residual))


def test_values_that_may_make_the_series_signed_are_judged_night_by_night() -> None:
    whole = history(5)
    whole.values[-2] = 0.0
    assert look_ahead(whole, SeriesState(), FIRST, REACH, Settings()) is None


def test_a_series_with_so_many_holes_that_nights_forget_is_judged_night_by_night() -> None:
    values = np.full(900, np.nan)
    values[::7] = 2.0
    assert look_ahead(History(values), SeriesState(), 880, REACH, Settings()) is None
