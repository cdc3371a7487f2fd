"""A screen of past nights: most of a history is quiet, and only series that may say something are judged."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from judging.table import REACH, Table
from tvmdash.judge.history.fleet.ahead import Ahead, look_ahead
from tvmdash.judge.history.fleet.common import find_common_shift, find_deviations
from tvmdash.judge.history.fleet.fleet import FleetState, night_threshold
from tvmdash.judge.history.series import SeriesState, Settings

NIGHTS_AHEAD = 64
"""Nights looked through at once."""


@dataclass(frozen=True)
class _Seen:
    """A series' outlook on the nights up to `stop`, valid while its state and settings stay."""

    state: SeriesState
    settings: Settings
    stop: int
    ahead: Ahead | None

    def holds(self, state: SeriesState, settings: Settings, night: int) -> bool:
        alerted = self.ahead is not None and self.ahead.alert is not None and self.ahead.alert < night
        return night < self.stop and not alerted and self.state == state and self.settings == settings


@dataclass
class Screen:
    """Looks through the nights before `stop`, which are judged without re-runs."""

    table: Table
    stop: int
    settings: Settings
    _seen: dict[int, _Seen] = field(default_factory=dict)

    def suspects(
        self, night: int, rows: Mapping[str, int], state: FleetState, controls: AbstractSet[str]
    ) -> frozenset[str] | None:
        """Choose the series of a fleet that may say something; None: all, because the machine moved as a whole."""
        settings = replace(self.settings, threshold=night_threshold(self.settings, len(rows)))
        chosen, moved = set(), {}
        for key, row in rows.items():
            before = state.series.get(key, _UNKNOWN)
            ahead = self._look(row, night, before, settings)
            if ahead is None:
                chosen.add(key)
                moved.update(find_deviations({key: self.table.history(row, night)}, {key: before}))
                continue
            if ahead.alert == night:
                chosen.add(key)
            if night in ahead.deviations:
                moved[key] = ahead.deviations[night]
        if find_common_shift(moved, controls, night) is not None:
            return None
        return frozenset(chosen)

    def _look(self, row: int, night: int, state: SeriesState, settings: Settings) -> Ahead | None:
        """Look ahead in a series; None where its nights have to be judged one by one."""
        seen = self._seen.get(row)
        if seen is None or not seen.holds(state, settings, night):
            stop = min(self.stop, night + NIGHTS_AHEAD)
            history = self.table.history(row, stop - 1, REACH + stop - 1 - night)
            seen = _Seen(state, settings, stop, look_ahead(history, state, night, REACH, settings))
            self._seen[row] = seen
        return seen.ahead


_UNKNOWN = SeriesState()
