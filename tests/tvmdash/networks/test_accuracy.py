from __future__ import annotations

import numpy as np
import pytest

from tvmdash.errors import DashboardError
from tvmdash.networks.accuracy import check_answer, max_error


def test_the_error_is_relative_to_the_largest_element():
    expected = np.array([100.0, 0.0, -200.0])
    assert max_error(np.array([100.0, 1.0, -200.0]), expected) == 0.005
    assert max_error(expected, expected) == 0.0


def test_scale_does_not_matter():
    actual, expected = np.array([1.0, 2.0, 3.5]), np.array([1.0, 2.0, 3.0])
    assert max_error(actual * 1e-6, expected * 1e-6) == pytest.approx(max_error(actual, expected))


def test_an_all_zero_reference_leaves_the_absolute_error():
    assert max_error(np.array([0.25, 0.0]), np.zeros(2)) == 0.25


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_an_answer_that_is_not_finite_is_infinitely_wrong(wrong):
    assert max_error(np.array([1.0, wrong]), np.array([1.0, 2.0])) == np.inf
    with pytest.raises(DashboardError, match="wrong answer"):
        check_answer(np.array([1.0, wrong]), np.array([1.0, 2.0]))


def test_answers_that_cannot_be_compared_are_refused():
    with pytest.raises(DashboardError, match=r"shape \(1,\), the reference \(2,\)"):
        max_error(np.zeros(1), np.zeros(2))
    with pytest.raises(DashboardError, match="reference output is not finite"):
        max_error(np.zeros(1), np.array([np.nan]))


def test_a_wrong_answer_names_error_and_tolerance():
    assert check_answer(np.array([1.0 + 1e-6]), np.array([1.0]))["tolerance"] == 1e-5
    with pytest.raises(DashboardError, match=r"largest error 0\.0001 exceeds 1e-05, the tolerance for float32"):
        check_answer(np.array([1.0001]), np.array([1.0]))
    assert check_answer(np.array([1.0001]), np.array([1.0]), "float16")["max_error"] == pytest.approx(1e-4)
