"""How many of tonight's series are in which state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvmdash.account import NightSeverity
from views.night import FAILED
from views.series import SERIES_WORDS, STATES, STEADY

ICONS = {NightSeverity.GOOD: "✓", NightSeverity.WARN: "!", NightSeverity.BAD: "✖", NightSeverity.UNKNOWN: "?"}


@dataclass(frozen=True)
class Tally:
    """One count of the verdict."""

    state: str
    count: int
    words: str


def tallies(counts: Mapping[str, int], failed_points: int, *, is_first: bool) -> list[Tally]:
    """How many series are in which state; what is nobody's case is left out. is_first: no night was before."""
    words = {**SERIES_WORDS, STEADY: "nothing to report"} if is_first else SERIES_WORDS
    rows = [Tally(state, counts[state], words[state]) for state in STATES if counts[state]]
    failed = Tally(FAILED, failed_points, f"failed point{'' if failed_points == 1 else 's'}")
    return [*rows, failed] if failed_points else rows
