"""The noise model against known noise, the grades, the ancestor's rule."""

from __future__ import annotations

import numpy as np
import pytest

from tvmdash.judge.history import change_points
from tvmdash.judge.history import grade as change_grade
from tvmdash.judge.history import noise as change_noise
from tvmdash.judge.history import rules as change_rules
from tvmdash.judge.history.series import History

NO_RESERVE = np.zeros((1, 0))


def model(rows: np.ndarray, floor: float = 1e-9) -> change_noise.Noise:
    return change_noise.baseline_noise(rows, NO_RESERVE, np.full(len(rows), floor))


def test_the_scale_of_normal_noise_is_its_standard_deviation() -> None:
    noise = model(0.01 * np.random.default_rng(1).standard_normal((500, 60)))
    assert np.mean(noise.scale) == pytest.approx(0.01, rel=0.05)
    assert np.mean(noise.variance) == pytest.approx(1.05, abs=0.1)
    assert np.median(noise.phi) < 0.12


def test_correlated_noise_is_recognised_and_widens_the_test() -> None:
    rng = np.random.default_rng(2)
    rows = np.zeros((300, 60))
    for at in range(1, 60):
        rows[:, at] = 0.6 * rows[:, at - 1] + rng.standard_normal(300)
    noise = model(rows)
    assert np.median(noise.phi) > 0.4
    z, _ = change_noise.scan(noise, np.full((300, 10), 2.0))
    independent, _ = change_noise.scan(model(rng.standard_normal((300, 60)) * 1.25), np.full((300, 10), 2.0))
    assert np.median(z[:, -1]) < 0.75 * np.median(independent[:, -1])


def test_row_medians_leave_missing_nights_out() -> None:
    rows = np.array([[3.0, np.nan, 1.0], [np.nan, 4.0, np.nan], [np.nan] * 3, [1.0, 2.0, 9.0]])
    np.testing.assert_array_equal(change_noise.row_medians(rows), [2.0, 4.0, np.nan, 2.0])


def test_the_variance_inflation_is_that_of_a_mean_under_ar1() -> None:
    phi, count = 0.5, 6
    brute = 1 + 2 * sum((1 - lag / count) * phi**lag for lag in range(1, count))
    assert float(change_noise.vif(np.asarray(phi), count)) == pytest.approx(brute)
    assert float(change_noise.vif(np.asarray(0.7), 1)) == pytest.approx(1.0)


def test_residuals_of_closed_segments_stand_in_for_missing_nights() -> None:
    left = np.full((1, 60), np.nan)
    left[0, -5:] = [1.0, 1.1, 0.9, 1.0, 1.0]
    reserve = 0.3 * np.random.default_rng(3).standard_normal((1, 60))
    noise = change_noise.baseline_noise(left, reserve, np.array([1e-9]))
    assert noise.nights[0] == 5
    assert noise.size[0] == 60
    assert 0.2 < noise.scale[0] < 0.4


def test_the_floor_knows_the_repeats_and_the_grid() -> None:
    missing = np.full((1, 60), np.nan)
    grid = np.log(np.where(np.arange(90) % 9 == 0, 1.01, 1.0))[None, :]
    assert change_noise.noise_floors(missing, grid)[0] == pytest.approx(np.log(1.01) / 2)
    spread = np.random.default_rng(4).standard_normal((1, 90))
    assert change_noise.noise_floors(missing, spread)[0] == change_noise.LEAST_FLOOR
    assert change_noise.noise_floors(np.full((1, 60), 0.004), spread)[0] == pytest.approx(0.004)


def series(sigma: float, seed: int, nights: int = 100) -> np.ndarray:
    return 5 * np.exp(sigma * np.random.default_rng(seed).standard_normal(nights))


@pytest.mark.parametrize(("sigma", "grade"), [(0.001, "A"), (0.006, "B"), (0.02, "C"), (0.08, "D")])
def test_a_series_has_a_noise_grade(sigma: float, grade: str) -> None:
    told = change_grade.noise_grade(History(series(sigma, 1)))
    assert told.grade == grade
    assert told.scale == pytest.approx(sigma, rel=0.35)


@pytest.mark.parametrize("values", [np.array([]), np.array([1.0, 2.0]), np.full(50, np.nan), np.full(50, -1.0)])
def test_a_series_without_a_noise_model_has_no_grade(values: np.ndarray) -> None:
    assert change_grade.noise_grade(History(values)).grade == "unknown"
    assert change_grade.smallest_visible_change(History(values)) is None


def test_the_smallest_visible_change_is_seen_in_four_cases_of_five_and_half_of_it_is_not() -> None:
    def found(share: float) -> float:
        hits = 0
        for seed in range(60):
            values = series(0.01, seed, 107)
            change = change_grade.smallest_visible_change(History(values[:100]))
            assert change is not None
            values[100:] *= 1 + share * change
            hits += any(abs(alert.cut - 100) <= 3 for alert in change_points.change_points(History(values))[0])
        return hits / 60

    assert found(1.0) >= 0.65
    assert found(0.5) <= 0.2


def test_the_ancestors_rule_alerts_beyond_one_standard_deviation() -> None:
    window = [1.0, 3.0, 1.0, 3.0]
    assert not change_rules.stddev(np.array([*window, 3.1])).alert
    told = change_rules.stddev(np.array([*window, 3.3]))
    assert told.alert
    assert told.mean == 2.0
    assert told.z == pytest.approx(1.3 / np.std(window, ddof=1))


def test_the_ancestors_rule_alerts_on_a_third_of_unchanged_nights() -> None:
    values = series(0.01, 6, 3000)
    hits = [change_rules.stddev(values[: night + 1]).alert for night in range(20, 3000)]
    assert 0.28 < np.mean(hits) < 0.40


@pytest.mark.parametrize(
    ("values", "reason"),
    [([], "no value tonight"), ([1.0, np.nan], "no value tonight"), ([1.0, 2.0], "1 nights of history; 2 are needed")],
)
def test_the_ancestors_rule_says_why_it_is_quiet(values: list[float], reason: str) -> None:
    told = change_rules.stddev(np.array(values))
    assert not told.alert
    assert told.reason == reason


def test_the_ancestors_rule_leaves_missing_nights_out_and_bears_a_constant_series() -> None:
    assert not change_rules.stddev(np.array([2.0, np.nan, 2.0, 2.0])).alert
    told = change_rules.stddev(np.array([2.0, 2.0, 2.0, 2.1]))
    assert told.alert
    assert told.z == np.inf
