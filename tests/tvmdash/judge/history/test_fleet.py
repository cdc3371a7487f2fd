"""What is said of a whole machine: slow nights, machine steps, compiler-wide steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tvmdash.errors import DashboardError
from tvmdash.judge.history.cause import ReasonKind
from tvmdash.judge.history.fleet import fleet
from tvmdash.judge.history.fleet.fleet import FleetState, NightDecision
from tvmdash.judge.history.series import History, Settings

SERIES, CONTROLS, NIGHTS, SIGMA = 16, 4, 92, 0.006


class Lab:
    """A machine with series whose truth is known: what builds do, and what the machine does each night."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.builds = {f"s{at:02}": np.zeros(NIGHTS) for at in range(SERIES)}
        self.controls = frozenset(list(self.builds)[-CONTROLS:])
        self.machine = np.zeros(NIGHTS)
        self.asked: list[str] = []

    def compiler(self, night: int, size: float, names: Sequence[str] = ()) -> Lab:
        for name in names or set(self.builds) - self.controls:
            self.builds[name][night:] += np.log1p(size)
        return self

    def play(self, *, controls: bool = True, reruns: bool = False, first: int = 50) -> list[NightDecision]:
        noise = {name: SIGMA * self.rng.standard_normal(NIGHTS) for name in self.builds}
        values = {name: 2.0 * np.exp(level + self.machine + noise[name]) for name, level in self.builds.items()}
        state, told = FleetState(), []
        for night in range(first, NIGHTS):
            histories = {name: History(value[: night + 1]) for name, value in values.items()}
            decided = fleet.night(
                histories,
                state,
                controls=self.controls if controls else frozenset(),
                rerun=self._rerun(night) if reruns else None,
            )
            state = FleetState.from_json(json.loads(json.dumps(decided.state.to_json())))
            told.append(decided)
        return told

    def _rerun(self, tonight: int) -> Callable[[str, int, int], list[float]]:
        def measure(series: str, night: int, count: int) -> list[float]:
            self.asked += [series] * count
            level = self.builds[series][night] + self.machine[tonight]
            return list(2.0 * np.exp(level + SIGMA * self.rng.standard_normal(count)))

        return measure


def alerts(told: list[NightDecision]) -> list[tuple[str, int | None]]:
    return [(name, d.cut) for night in told for name, d in night.decisions.items() if d.kind == "alert"]


def machine_alerts(told: list[NightDecision]) -> list[int | None]:
    return [night.cut for night in told if night.machine is not None]


@pytest.mark.parametrize("reruns", [False, True])
def test_a_machine_slow_for_one_night_alerts_nobody(reruns: bool) -> None:
    lab = Lab()
    lab.machine[70] += np.log(1.05)
    told = lab.play(reruns=reruns)
    assert alerts(told) == []
    assert machine_alerts(told) == []
    common = told[70 - 50].common
    assert common is not None
    assert common.blame == "machine"
    assert common.shift == pytest.approx(np.log(1.05), abs=0.006)


@pytest.mark.parametrize("reruns", [False, True])
@pytest.mark.parametrize("controls", [False, True])
def test_a_machine_slow_for_ever_is_one_machine_alert(controls: bool, reruns: bool) -> None:
    lab = Lab(1)
    lab.machine[70:] += np.log(1.04)
    told = lab.play(controls=controls, reruns=reruns)
    assert alerts(told) == []
    assert machine_alerts(told) == [70]
    (night,) = [night for night in told if night.machine is not None]
    assert {decision.kind for decision in night.decisions.values()} == {"environment"}
    assert night.machine is not None
    assert night.machine.shift == pytest.approx(np.log(1.04), abs=0.006)


def test_a_compiler_wide_step_is_never_told_as_the_machines() -> None:
    lab = Lab(2).compiler(70, 0.04)
    told = lab.play()
    assert machine_alerts(told) == []
    assert {name for name, _ in alerts(told)} >= set(list(lab.builds)[: SERIES - CONTROLS - 2])
    assert {night.common.blame for night in told if night.common} == {"compiler"}


def test_older_artifacts_tell_a_compiler_wide_step_where_there_are_no_controls() -> None:
    lab = Lab(3).compiler(70, 0.04)
    told = lab.play(controls=False, reruns=True)
    assert machine_alerts(told) == []
    assert len({name for name, cut in alerts(told) if cut == 70}) >= SERIES - CONTROLS - 2


def test_without_controls_and_reruns_the_blame_is_unknown() -> None:
    told = Lab(4).compiler(70, 0.04).play(controls=False)
    assert {night.common.blame for night in told if night.common} == {"unknown"}


def test_a_step_of_one_series_is_found_beside_a_machine_step() -> None:
    lab = Lab(5).compiler(60, 0.10, ["s03"])
    lab.machine[80:] += np.log(1.04)
    told = lab.play()
    assert alerts(told) == [("s03", 60)]
    assert machine_alerts(told) == [80]


def test_a_step_on_a_slow_night_is_found_and_placed_with_reruns() -> None:
    lab = Lab(6).compiler(70, 0.06, ["s05"])
    lab.machine[70] += np.log(1.05)
    assert alerts(lab.play(reruns=True)) == [("s05", 70)]


def test_a_control_never_blames_the_compiler() -> None:
    lab = Lab(7).compiler(70, 0.10, ["s15"])
    told = lab.play()
    assert alerts(told) == []
    assert any(night.decisions["s15"].kind == "environment" for night in told)


def test_no_control_is_measured_again() -> None:
    lab = Lab(8).compiler(70, 0.04)
    lab.play(reruns=True, first=68)
    assert not lab.controls & set(lab.asked)
    assert lab.asked


def test_one_broken_series_does_not_silence_the_others() -> None:
    rng = np.random.default_rng(9)
    histories = {f"s{at}": History(2 * np.exp(SIGMA * rng.standard_normal(80))) for at in range(10)}
    good = 2 * np.exp(SIGMA * rng.standard_normal(80))
    good[74:] *= 1.2
    histories |= {
        "good": History(good),
        "nan": History(np.full(80, np.nan)),
        "zero": History(np.zeros(80)),
        "young": History(np.array([1.0, 2.0])),
        "empty": History(np.array([])),
        "negative": History(-good),
    }
    told = fleet.night(histories, FleetState())
    assert told.decisions["good"].kind == "alert"
    assert told.decisions["nan"].reason.kind == ReasonKind.NO_VALUE
    assert all(d.kind == "quiet" for name, d in told.decisions.items() if name not in {"good", "negative"})


def test_the_threshold_grows_with_a_very_large_home_only() -> None:
    settings = Settings()
    assert fleet.night_threshold(settings, 240) == settings.threshold
    assert fleet.night_threshold(settings, 1_000_000) > settings.threshold


def test_some_controls_that_moved_are_enough_to_know_the_machine() -> None:
    rng = np.random.default_rng(1)
    names = [f"s{at}" for at in range(16)] + [f"control{at}" for at in range(10)]
    values = {name: 2.0 * np.exp(SIGMA * rng.standard_normal(63)) for name in names}
    waiting_for_memory = names[:16] + names[-4:]
    for name in waiting_for_memory:
        values[name][60:] *= 1.05
    state = FleetState()
    for night in (60, 61, 62):
        histories = {name: History(value[: night + 1]) for name, value in values.items()}
        told = fleet.night(histories, state, controls=frozenset(names[16:]))
        state = told.state
        assert told.common is not None
        assert told.common.blame == "machine"
        assert {decision.kind for decision in told.decisions.values()} <= {"quiet", "environment"}
    assert told.cut == 60


def test_series_that_are_absent_tonight_keep_their_state() -> None:
    values = 2 * np.exp(SIGMA * np.random.default_rng(1).standard_normal(50))
    first = fleet.night({"a": History(values), "b": History(values)}, FleetState())
    second = fleet.night({"a": History(values)}, first.state)
    assert second.state.series["b"] == first.state.series["b"]


def test_a_damaged_state_is_refused_with_its_remedy() -> None:
    with pytest.raises(DashboardError, match="Delete the state"):
        FleetState.from_json({"series": {"a": {"version": 1}}, "shifts": []})
