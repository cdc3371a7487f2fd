"""One night of one machine: what all series did together, and what is left for each.

A slow night moves every series; it is taken out before any series is judged, so that it is not told two
hundred times. A shift of the whole machine that stays is one alert about the machine. Controls (programs
built once, never recompiled) tell the machine from a compiler-wide change: they see the first and not the
second. Where there are no controls, older artifacts measured tonight answer the same question.

Sources: Benjamini & Hochberg 1995 (control over the night), Kalibera & Jones 2013 (controls).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from tvmdash.errors import DashboardError
from tvmdash.judge.history.cause import CONTROL, MACHINE, Cause, Reason, ReasonKind
from tvmdash.judge.history.change_points import forget, observe
from tvmdash.judge.history.fleet.common import (
    Common,
    Deviation,
    FleetRerun,
    find_common_shift,
    find_deviations,
    probe_older,
)
from tvmdash.judge.history.levels import rebase
from tvmdash.judge.history.series import Decision, History, SeriesState, Settings, scale_series

GAIN = 0.6
"""Series feel the machine differently: this share of the common shift is forgiven either way."""
LASTING_NIGHTS = 3
NIGHT_ERROR_RATE = 0.05
SCAN_TESTS = 10
"""A scan over cuts tests about this many independent hypotheses."""


@dataclass(frozen=True)
class FleetState:
    """The memory of one machine: its series' states and the common shifts of the last nights."""

    series: Mapping[str, SeriesState] = field(default_factory=dict)
    shifts: tuple[tuple[int, float], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "series": {name: state.to_json() for name, state in self.series.items()},
            "shifts": [list(pair) for pair in self.shifts],
        }

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> FleetState:
        """The state that `to_json` wrote; DashboardError where it is damaged."""
        try:
            series = {str(name): SeriesState.from_json(state) for name, state in json["series"].items()}
            return cls(series, tuple((int(night), float(shift)) for night, shift in json["shifts"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DashboardError(
                f"state of a machine: {error!r}. Delete the state; it is rebuilt from the history."
            ) from error


@dataclass(frozen=True)
class NightDecision:
    """One night of one machine. machine: set on the night when a lasting shift of the machine is told.

    common: what moved all series tonight, where something did. cut: first night of the machine's shift.
    """

    decisions: Mapping[str, Decision]
    state: FleetState
    common: Common | None = None
    machine: Common | None = None
    cut: int | None = None


def night_threshold(settings: Settings, series_count: int) -> float:
    """The threshold without re-runs for so many series: the night's false discoveries stay below 5 %.

    It is where Benjamini and Hochberg's procedure admits its first discovery, and the setting's own
    threshold up to about a thousand series.
    """
    tail = NIGHT_ERROR_RATE / (2 * SCAN_TESTS * max(1, series_count))
    return max(settings.threshold, -NormalDist().inv_cdf(tail))


def night(
    histories: Mapping[str, History],
    state: FleetState,
    *,
    controls: AbstractSet[str] = frozenset(),
    settings: Settings | None = None,
    rerun: FleetRerun | None = None,
) -> NightDecision:
    """Judge tonight for all series of one machine.

    The histories' nights are counted alike, and end with the same night. `controls`: names of series
    whose program never changes.
    """
    settings = settings or Settings()
    settings = replace(settings, threshold=night_threshold(settings, len(histories)))
    states = {name: state.series.get(name, SeriesState()) for name in histories}
    tonight = max((history.tonight for history in histories.values()), default=0)
    table = find_deviations(histories, states)
    probe = (lambda names: list(probe_older(names, table, histories, states, rerun))) if rerun else None
    common = find_common_shift(table, controls, tonight, probe)
    shifts = _find_recent(state, tonight)
    if common and common.blame != "compiler":
        shifts += ((tonight, common.shift),)
        cut = _find_lasting(shifts)
        if cut is not None:
            return _make_machine_alert(histories, states, common, cut, shifts)
        states = {name: remove_common(states[name], table.get(name), common.shift, tonight) for name in states}
    decisions = _judge_each(histories, states, controls, settings, rerun)
    kept = {**state.series, **{name: decision.state for name, decision in decisions.items()}}
    return NightDecision(decisions, FleetState(kept, shifts), common)


def judge_few(
    histories: Mapping[str, History],
    state: FleetState,
    names: Iterable[str],
    tonight: int,
    *,
    controls: AbstractSet[str] = frozenset(),
    settings: Settings | None = None,
) -> NightDecision:
    """Judge only `histories` of the series `names`; `look_ahead` has found that the others are quiet tonight."""
    states = {name: forget(state.series.get(name, SeriesState()), tonight) for name in names}
    settings = settings or Settings()
    settings = replace(settings, threshold=night_threshold(settings, len(states)))
    decisions = _judge_each(histories, {name: states[name] for name in histories}, controls, settings)
    kept = {**state.series, **states, **{name: decision.state for name, decision in decisions.items()}}
    return NightDecision(decisions, FleetState(kept, _find_recent(state, tonight)))


def _find_recent(state: FleetState, tonight: int) -> tuple[tuple[int, float], ...]:
    return tuple(pair for pair in state.shifts if pair[0] > tonight - LASTING_NIGHTS - 1)


def remove_common(state: SeriesState, row: Deviation | None, shift: float, tonight: int) -> SeriesState:
    """The state with tonight's value freed of the machine's shift."""
    if row is None or not row.positive:
        return state
    rest = row.away - shift
    rest = math.copysign(max(0.0, abs(rest) - GAIN * abs(shift)), rest)
    return replace(state, fixed={**state.fixed, tonight: row.median + rest})


def _find_lasting(shifts: tuple[tuple[int, float], ...]) -> int | None:
    """The first of LASTING_NIGHTS common shifts in a row of one sign and similar size, if there are."""
    last = shifts[-LASTING_NIGHTS:]
    sizes = [abs(shift) for _, shift in last]
    if len(last) < LASTING_NIGHTS or len({shift > 0 for _, shift in last}) > 1 or max(sizes) > 2.5 * min(sizes):
        return None
    return last[0][0]


def _make_machine_alert(
    histories: Mapping[str, History],
    states: Mapping[str, SeriesState],
    common: Common,
    cut: int,
    shifts: tuple[tuple[int, float], ...],
) -> NightDecision:
    """Make one alert about the machine; every series begins a new level at its first night."""
    decisions = {}
    reason = Reason(ReasonKind.MACHINE_MOVED if common.cause.whose == MACHINE else ReasonKind.ALL_MOVED)
    for name, history in histories.items():
        fixed = {night: value for night, value in states[name].fixed.items() if night < cut}
        state = rebase(
            scale_series(history, replace(states[name], fixed=fixed)), replace(states[name], fixed=fixed), cut
        )
        decisions[name] = Decision(
            "environment", reason, history.tonight, state, cut=cut, effect=math.expm1(common.shift), cause=common.cause
        )
    size = float(np.median([shift for _, shift in shifts[-LASTING_NIGHTS:]]))
    machine = replace(common, shift=size)
    kept = {name: decision.state for name, decision in decisions.items()}
    return NightDecision(decisions, FleetState(kept), common, machine, cut)


def _judge_each(
    histories: Mapping[str, History],
    states: Mapping[str, SeriesState],
    controls: AbstractSet[str],
    settings: Settings,
    rerun: FleetRerun | None = None,
) -> dict[str, Decision]:
    first = {name: observe(history, states[name], settings=settings) for name, history in histories.items()}
    decisions = {
        name: _make_control_decision(decision) if name in controls else decision for name, decision in first.items()
    }
    if rerun is None:
        return decisions
    # The budget of re-runs may end, so the strongest suspects are measured first.
    for name in sorted((name for name in histories if name not in controls), key=lambda name: -abs(first[name].z or 0)):
        if first[name].z is not None:
            decisions[name] = observe(
                histories[name], states[name], settings=settings, rerun=functools.partial(rerun, name)
            )
    return decisions


def _make_control_decision(decision: Decision) -> Decision:
    if decision.kind != "alert":
        return decision
    reason = Reason(ReasonKind.CONTROL_MOVED)
    return replace(decision, kind="environment", reason=reason, cause=Cause(MACHINE, CONTROL))
