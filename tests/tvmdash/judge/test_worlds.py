"""The judge in a few of the planted worlds of tests/benchmarks/worlds; the whole laboratory is a command."""

from __future__ import annotations

import pytest

from tests.benchmarks.worlds import parts
from tests.benchmarks.worlds.world import Plan

JUDGE = "tests.benchmarks.worlds.product:Product"
RIGHT = ("runtime_3_percent", "older_commit_once", "code_as_before", "exact_number", "two_pairs_agree")


@pytest.mark.parametrize("reference", ["chain", "fixed"])
def test_quiet_homes_are_quiet(reference: str) -> None:
    plans = [
        Plan(seed, 24, 30, 0.003, 1.0, reference=reference, name="quiet")  # type: ignore[arg-type]
        for seed in (1, 2, 3)
    ]
    figures = [parts.run(parts.Job("quiet", plan), JUDGE).figures for plan in plans]
    assert sum(each.nights for each in figures) > 80
    assert sum(each.false for each in figures) <= 1
    assert sum(each.ambers for each in figures) <= 5


def test_planted_steps_are_told() -> None:
    plans = [Plan(seed, 24, 30, 0.003, 1.0, name="steps") for seed in (1, 2, 3, 4)]
    figures = [parts.run(parts.Job("steps", plan), JUDGE).figures for plan in plans]
    large = [delay for each in figures for size, delay in each.delays if size >= 0.1]
    assert len(large) >= 3
    assert sum(delay in {0, 1} for delay in large) >= len(large) - 1
    assert sum(each.false for each in figures) <= 1


@pytest.mark.parametrize("name", RIGHT)
def test_situations_come_out_right(name: str) -> None:
    result = parts.run(parts.Job("situations", Plan(1000, 32, luck=0.003, name=name), name), JUDGE)
    assert result.faults == ()
    assert result.wrong == ()
