"""How many of tonight's series are in which state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvmdash.account import NightSeverity
from tvmdash.records.metrics import BETTER, CHANGED, WORSE
from views.night import FAILED
from views.series import BLIND, GONE, MISSING, SERIES_WORDS, STATES, STEADY, SUSPECT, UNJUDGED, YOUNG

ICONS = {NightSeverity.GOOD: "✓", NightSeverity.WARN: "!", NightSeverity.BAD: "✖", NightSeverity.UNKNOWN: "?"}


@dataclass(frozen=True)
class Tally:
    """One count of the verdict."""

    state: str
    count: int
    words: str


def tallies(counts: Mapping[str, int], failed_points: int) -> list[Tally]:
    """How many series are in which state; what is nobody's case is left out, but for the five that people look for."""
    shown = [
        state
        for state in (WORSE, SUSPECT, BETTER, CHANGED, STEADY, BLIND, YOUNG, UNJUDGED, MISSING, GONE)
        if counts[state] or state not in (SUSPECT, CHANGED, BLIND, YOUNG, UNJUDGED, GONE)
    ]
    assert set(shown) <= set(STATES)
    rows = [Tally(state, counts[state], SERIES_WORDS[state]) for state in shown]
    return [*rows, Tally(FAILED, failed_points, f"failed point{'' if failed_points == 1 else 's'}")]
