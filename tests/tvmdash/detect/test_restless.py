"""Series that jump without reason from build to build: what they always did is not told, what is new is."""

from __future__ import annotations

import numpy as np
import pytest

from tvmdash.detect.beside.builds import RatioHistory
from tvmdash.detect.beside.decisions import RatioDecision, decide
from tvmdash.detect.beside.luck import NOWHERE, Elsewhere, Learned

Levels = list[float]
STILL = [0.0] * 16
RESTLESS = [0.0, 0.0, 0.04, 0.04, 0.0, 0.0, 0.0, 0.03, 0.03, 0.0, 0.0, 0.04, 0.04, 0.0, 0.0]
"""In percent / 100, a build a night; what comes next is the question."""


def night(*series: Levels, code: list[int] | None = None) -> dict[str, RatioHistory]:
    """Series by their places, beside one reference, by 5 pairs a night that scatter by 0.8 %."""
    rng = np.random.default_rng(5)
    histories = {}
    for number, levels in enumerate(series):
        count = len(levels)
        pairs = np.array(levels)[:, None] + 0.008 * rng.standard_normal((count, 5))
        builds = np.arange(100 - count, 100)
        histories[f"s{number}"] = RatioHistory(
            pairs.mean(axis=1), pairs.std(axis=1, ddof=1), np.full(count, 5.0), builds, np.full(count, 9),
            np.array(code or [1] * count),
        )  # fmt: skip
    return histories


def decided(
    histories: dict[str, RatioHistory], *, since: int = 0, elsewhere: Elsewhere = NOWHERE
) -> dict[str, RatioDecision]:
    """since: the night from which on the first series has its level."""
    return decide(Learned.of(histories), {"s0": since}, elsewhere)


def told(histories: dict[str, RatioHistory], *, since: int = 0, elsewhere: Elsewhere = NOWHERE) -> list[str]:
    decisions = decided(histories, since=since, elsewhere=elsewhere)
    return [name for name, decision in decisions.items() if decision.is_told]


def still(count: int) -> list[Levels]:
    return [STILL] * count


def test_one_more_jump_of_a_restless_series_is_a_suspicion_only() -> None:
    decision = decided(night([*RESTLESS, 0.045], *still(6)), since=13)["s0"]
    assert not decision.is_told
    assert abs(decision.effect) > 0.03


def test_a_jump_beyond_all_before_is_told() -> None:
    assert told(night([*RESTLESS, 0.12], *still(6)), since=13) == ["s0"]


def test_a_step_that_outlasts_every_stretch_is_told() -> None:
    lasting = [*RESTLESS, *[0.06] * 5]
    assert told(night(lasting[:17], *[[0.0] * 17] * 6), since=13) == []
    assert told(night(lasting, *[[0.0] * 20] * 6), since=13) == ["s0"]


def test_jumps_with_other_generated_code_are_no_precedent() -> None:
    """They were changes of TVM, each of them; the first series has the code of its level."""
    levels = [*RESTLESS, 0.045]
    changing = night(levels, *still(6), code=[round(1000 * (2 + level)) for level in levels])
    assert told(changing, since=13) == ["s0"]


def test_what_most_series_do_at_once_is_no_precedent() -> None:
    """The runtime got slower and faster again, twice, for all; now one series moves."""
    all_of_them = [0.0, 0.0, 0.0, 0.05, 0.05, 0.05, 0.0, 0.0, 0.0, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05]
    assert told(night([*all_of_them, 0.1], *[[*all_of_them, 0.05]] * 6), since=9) == ["s0"]


@pytest.mark.parametrize(("builds", "is_told"), [(5, False), (14, True)])
def test_a_young_series_may_be_like_its_kin_and_one_that_stood_still_is_not(builds: int, is_told: bool) -> None:
    kin = [[*RESTLESS, 0.0], [0.0, *RESTLESS], *still(4)]
    young = [*[0.0] * (builds - 1), 0.045]
    assert told(night(young, *kin)) == (["s0"] if is_told else [])


def test_what_other_experiments_show_counts_for_a_young_series() -> None:
    elsewhere = Elsewhere.of([Learned.of(night([*RESTLESS, 0.0], *still(5)))])
    young = night([0.0, 0.0, 0.045], [0.0, 0.0, 0.0])
    assert told(young) == ["s0"]
    assert told(young, elsewhere=elsewhere) == []
