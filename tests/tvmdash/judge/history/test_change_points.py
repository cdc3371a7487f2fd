"""What the change detector says, night by night, in each situation that has a stated behaviour."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tvmdash.errors import DashboardError
from tvmdash.judge.history import again, change_points, grade
from tvmdash.judge.history.cause import Reason, ReasonKind
from tvmdash.judge.history.series import Decision, History, SeriesState, Settings

NIGHTS = 120


def noise(seed: int, nights: int = NIGHTS, sigma: float = 0.005) -> np.ndarray:
    return 3.0 * np.exp(sigma * np.random.default_rng(seed).standard_normal(nights))


def play(values: np.ndarray, first: int = 0, **options: object) -> list[Decision]:
    """Every night's decision, the state handed on as JSON."""
    state, decisions = SeriesState(), []
    for night in range(first, len(values)):
        decision = change_points.observe(History(values[: night + 1]), state, **options)
        state = SeriesState.from_json(json.loads(json.dumps(decision.state.to_json())))
        decisions.append(decision)
    return decisions


def alerts(values: np.ndarray, **options: object) -> list[Decision]:
    """The alerts of all nights; without re-runs by the full scan, which says the same (tested below)."""
    if not options:
        return change_points.change_points(History(values))[0]
    return [decision for decision in play(values, first=60, **options) if decision.kind == "alert"]


def lab(truth: np.ndarray, sigma: float, seed: int, slow_tonight: float = 0.0) -> Callable[[int, int], Sequence[float]]:
    """Re-runs that see the level of the build asked for, and tonight's machine."""
    rng = np.random.default_rng(seed)
    return lambda night, count: list(truth[night] * np.exp(sigma * rng.standard_normal(count) + slow_tonight))


def test_a_clear_step_alerts_within_five_nights_and_names_the_exact_culprit() -> None:
    for seed in range(20):
        values = noise(seed)
        values[80:] *= 1.10
        (alert,) = alerts(values)
        assert 80 <= alert.night <= 85
        assert (alert.after, alert.cut) == (79, 80)
        assert alert.effect == pytest.approx(0.10, abs=0.02)
        assert alert.effect_low is not None
        assert alert.effect_high is not None
        assert alert.effect_low < alert.effect < alert.effect_high


def test_a_step_down_alerts_as_well() -> None:
    values = noise(1)
    values[80:] *= 0.9
    (alert,) = alerts(values)
    assert alert.cut == 80
    assert alert.effect == pytest.approx(-0.10, abs=0.02)


def test_a_recovery_is_a_step_of_its_own() -> None:
    values = noise(2)
    values[50:85] *= 1.10
    assert [alert.cut for alert in alerts(values)] == [50, 85]


def test_a_gain_that_is_lost_after_months_does_not_pass_for_noise() -> None:
    values = noise(4)[:130]
    sigma = grade.noise_grade(History(values[:60])).scale
    values[60:110] *= 0.83
    state = change_points.change_points(History(values))[1]
    assert state.start == 110
    assert grade.noise_grade(History(values), state).scale == pytest.approx(sigma, rel=0.5)


def test_an_episode_is_the_next_ones_precedent() -> None:
    values = noise(2)
    values[50:62] *= 1.03
    until = change_points.change_points(History(values[:75]))[1]
    assert [round(residual, 2) for residual in until.reserve[-12:]].count(0.03) >= 8
    assert until.start == 62
    again = noise(2)
    again[50:62] *= 1.03
    again[62:] *= 1.06
    kept = change_points.change_points(History(again[:75]))[1]
    assert max(abs(residual) for residual in kept.reserve[-12:]) < 0.025, "a further step is no return"


def test_unchanged_series_stay_quiet() -> None:
    assert sum(len(alerts(noise(seed))) for seed in range(100, 130)) == 0


@pytest.mark.parametrize("height", [1.05, 1.5, 10.0, 1e6, 0.01])
@pytest.mark.parametrize("length", [1, 2])
def test_a_spike_of_any_height_and_up_to_two_nights_is_quiet(height: float, length: int) -> None:
    for seed in range(3):
        values = noise(seed)
        values[70 : 70 + length] *= height
        assert alerts(values) == []


def test_a_constant_series_is_quiet_and_its_step_is_found() -> None:
    values = np.full(NIGHTS, 4.0)
    assert alerts(values) == []
    values[80:] = 4.4
    assert [alert.cut for alert in alerts(values)] == [80]


def test_a_coarse_clock_that_flips_between_two_values_is_quiet() -> None:
    for seed in range(10):
        values = np.where(np.random.default_rng(seed).random(NIGHTS) < 0.1, 1.01, 1.0)
        assert alerts(values) == []


def test_missing_nights_do_not_silence_what_comes_after() -> None:
    values = noise(3)
    values[80:] *= 1.10
    values[[40, 41, 60, 81, 83]] = [np.nan, np.inf, np.nan, np.nan, -np.inf]
    decisions = play(values)
    assert decisions[41].reason == Reason(ReasonKind.NO_VALUE)
    assert [decision.cut for decision in decisions if decision.kind == "alert"] == [80]


def test_a_culprit_beside_missing_nights_is_a_range() -> None:
    values = noise(4)
    values[80:] *= 1.10
    values[78:81] = np.nan
    (alert,) = alerts(values)
    assert (alert.after, alert.cut) == (77, 81)


def test_after_a_gap_of_a_month_levels_are_compared_across_it() -> None:
    values = noise(5, 150)
    values[70:100] = np.nan
    assert alerts(values) == []
    values[100:] *= 1.05
    (alert,) = alerts(values)
    assert (alert.after, alert.cut) == (69, 100)
    assert alert.night <= 108


@pytest.mark.parametrize("bad", [0.0, -3.0])
def test_a_value_that_is_not_positive_is_missing_and_said(bad: float) -> None:
    values = noise(6)
    values[60] = bad
    decisions = play(values)
    assert decisions[60].reason == Reason(ReasonKind.NOT_POSITIVE, bad)
    assert all(decision.kind == "quiet" for decision in decisions)


def test_a_signed_series_is_judged_in_units_of_its_own_noise() -> None:
    values = np.random.default_rng(7).standard_normal(NIGHTS)
    assert alerts(values) == []
    values[80:] += 8
    (alert,) = alerts(values)
    assert alert.cut == 80
    assert alert.effect is not None
    assert 4 < alert.effect < 16


def test_a_series_of_zeros_is_quiet() -> None:
    assert alerts(np.zeros(NIGHTS)) == []


def test_fewer_than_eighteen_nights_are_quiet_and_said() -> None:
    values = noise(8, 17)
    values[12:] *= 2
    decisions = play(values)
    assert {decision.kind for decision in decisions} == {"quiet"}
    assert decisions[1].reason == Reason(ReasonKind.TOO_FEW_NIGHTS, nights=2, needed=18)


def test_no_history_at_all_is_quiet() -> None:
    assert change_points.observe(History(np.array([])), SeriesState()).reason.kind == ReasonKind.NO_VALUE


def test_drift_is_not_told_as_a_step() -> None:
    trend = np.exp(np.linspace(0, 0.015, NIGHTS))
    assert sum(len(alerts(noise(seed) * trend)) for seed in range(30, 60)) <= 2  # the trend gate off: 12


def test_reruns_confirm_a_step_on_the_same_night() -> None:
    for seed in range(10):
        truth = np.full(NIGHTS, 3.0)
        truth[80:] *= 1.05
        values = truth * noise(seed) / 3.0
        (alert,) = alerts(values, rerun=lab(truth, 0.005, seed))
        assert (alert.night, alert.cut) == (80, 80)
        assert len(alert.reruns) >= 8


def test_reruns_refute_what_the_machine_did_and_name_nobody() -> None:
    truth = np.full(NIGHTS, 3.0)
    for seed in range(3):
        values = noise(seed)
        values[80:] *= 1.05
        state = SeriesState()
        for night in range(70, 100):
            rerun = lab(truth, 0.005, night, slow_tonight=np.log(1.05) if night >= 80 else 0.0)
            decision = change_points.observe(History(values[: night + 1]), state, rerun=rerun)
            state = decision.state
            assert decision.kind != "alert"


def test_a_machine_that_stays_slow_ends_as_environment() -> None:
    truth, values, state, kinds = np.full(NIGHTS, 3.0), noise(11), SeriesState(), []
    values[80:] *= 1.05
    for night in range(NIGHTS):
        rerun = lab(truth, 0.005, night, slow_tonight=np.log(1.05) if night >= 80 else 0.0)
        decision = change_points.observe(History(values[: night + 1]), state, rerun=rerun)
        state = decision.state
        kinds.append(decision.kind)
    assert kinds.count("environment") == 1
    assert set(kinds[90:]) == {"quiet"}


def test_modes_that_stick_to_builds_are_quiet_with_reruns() -> None:
    false = 0
    for seed in range(10):
        rng = np.random.default_rng([5, seed])
        truth = 3.0 * np.where(rng.random(NIGHTS) < 0.25, 1.02, 1.0)
        values = truth * np.exp(0.004 * rng.standard_normal(NIGHTS))
        false += len(alerts(values, rerun=lab(truth, 0.004, seed)))
    assert false == 0


def test_a_small_step_in_a_young_series_is_told_once_several_builds_show_it() -> None:
    truth = np.full(34, 3.0)
    truth[25:] *= 1.022
    values = truth * np.exp(0.006 * np.random.default_rng(3).standard_normal(34))
    state, told = SeriesState(), []
    for night in range(22, 34):
        decision = change_points.observe(History(values[: night + 1]), state, rerun=lab(truth, 0.002, night))
        state = decision.state
        told.append((night, decision.kind, decision.reason.kind))
    assert [kind for night, kind, _ in told if night == 25] == ["quiet"]
    assert ReasonKind.YOUNG in [reason for night, _, reason in told if night >= 25]
    (alert,) = [night for night, kind, _ in told if kind == "alert"]
    assert 26 <= alert <= 30


def test_without_any_budget_the_history_alone_decides() -> None:
    values = noise(12)
    values[80:] *= 1.10
    (alert,) = alerts(values, rerun=lambda night, count: [])
    assert alert.cut == 80
    assert alert.reruns == ()


def test_artifacts_that_are_gone_are_passed_over() -> None:
    truth = np.full(NIGHTS, 3.0)
    truth[80:] *= 1.05
    measure = lab(truth, 0.005, 21)
    values = truth * noise(21) / 3.0
    (alert,) = alerts(values, rerun=lambda night, count: measure(night, count) if night % 3 else [])
    assert alert.cut == 80
    assert alert.night <= 81
    (alone,) = alerts(values, rerun=lambda night, count: measure(night, count) if night >= 80 else [])
    assert alone.cut == 80


def test_reruns_that_fail_or_are_not_numbers_do_no_harm() -> None:
    values = noise(13)
    values[80:] *= 1.10
    for bad in (np.nan, 0.0, -1.0, np.inf):
        (alert,) = alerts(values, rerun=lambda night, count, bad=bad: [bad])
        assert alert.cut == 80


def test_a_decision_with_reruns_can_be_replayed_exactly() -> None:
    truth = np.full(NIGHTS, 3.0)
    truth[80:] *= 1.05
    history = History((truth * noise(22) / 3.0)[:81])
    told = change_points.observe(history, SeriesState(), rerun=lab(truth, 0.005, 22))
    assert told.kind == "alert"
    replayed = change_points.observe(history, SeriesState(), rerun=again.replay(told.reruns))
    assert replayed == told


def test_the_state_reads_back_exactly_and_a_damaged_one_is_refused() -> None:
    state = SeriesState(3, (0.1, -0.25), {7: 0.5}, 2.5, (4, 5))
    assert SeriesState.from_json(json.loads(json.dumps(state.to_json()))) == state
    with pytest.raises(DashboardError, match=r"\$\.version: 99 is not 1"):
        SeriesState.from_json({**state.to_json(), "version": 99})
    with pytest.raises(DashboardError, match="Delete the state"):
        SeriesState.from_json({**state.to_json(), "fixed": [1]})


def test_a_state_is_rebuilt_from_the_history_exactly_as_the_nights_made_it() -> None:
    values = noise(14, 400)
    values[100:] *= 1.05
    values[250:] *= 0.9
    values[[33, 130, 131]] = np.nan
    nightly = play(values)
    found, state = change_points.change_points(History(values))
    assert [(d.night, d.cut) for d in found] == [(d.night, d.cut) for d in nightly if d.kind == "alert"]
    assert state == nightly[-1].state
    assert [d.cut for d in found] == [100, 250]


def test_only_the_last_nights_of_a_long_history_are_needed() -> None:
    values = noise(15, 600)
    values[560:] *= 1.04
    full = change_points.observe(History(values[:564]), SeriesState(start=100))
    late = change_points.observe(History(values[300:564], offset=300), SeriesState(start=100))
    assert full == late
    assert full.cut == 560


def test_a_full_scan_of_ten_thousand_nights_is_fast() -> None:
    values = noise(16, 10_000)
    values[5000:] *= 1.1
    spent = []
    for _ in range(3):
        begin = time.process_time()
        found, _ = change_points.change_points(History(values))
        spent.append(time.process_time() - begin)
    assert [decision.cut for decision in found] == [5000]
    assert min(spent) < 0.2  # 0.04 s on an idle machine; the benchmark prints the exact figure


def test_an_alert_carries_what_explains_it() -> None:
    values = noise(17)
    values[80:] *= 1.05
    (alert,) = alerts(values)
    assert alert.z is not None
    assert abs(alert.z) >= Settings().threshold == alert.threshold
    assert alert.nights == alert.night - 79
    assert alert.scale == pytest.approx(0.005, rel=0.4)


@pytest.mark.parametrize(
    ("change", "kind"),
    [(1.0, ReasonKind.WITHIN_NOISE), (1.0035, ReasonKind.NOT_RELEVANT)],
)
def test_a_quiet_night_says_why(change: float, kind: ReasonKind) -> None:
    values = noise(18, sigma=0.0008 if change > 1 else 0.005)
    values[80:] *= change
    assert any(decision.reason.kind == kind for decision in play(values)[90:])
    assert alerts(values) == []
