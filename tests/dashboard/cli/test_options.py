"""Numbers that commands take as options."""

from __future__ import annotations

import argparse

import pytest

from dashboard.cli.arguments import count, parse_percent


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("007", 7), ("120", 120)])
def test_a_whole_number_above_nothing_is_a_count(text: str, number: int) -> None:
    assert count(text) == number


@pytest.mark.parametrize("text", ["0", "00", "-1", "1.5", "many", ""])
def test_nothing_else_is_a_count(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number above 0"):
        count(text)


@pytest.mark.parametrize(("text", "fraction"), [("1%", 0.01), ("0.5 %", 0.005), ("2", 0.02), ("999%", 9.99)])
def test_a_percentage_is_a_fraction_with_or_without_its_sign(text: str, fraction: float) -> None:
    assert parse_percent(text) == pytest.approx(fraction)


@pytest.mark.parametrize("text", ["0", "-1%", "1000%", "%", "a few", "nan"])
def test_no_percentage_is_nothing_less_or_ten_times_all(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="invalid percentage"):
        parse_percent(text)
