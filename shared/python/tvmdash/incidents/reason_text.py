"""The reason of a decision in words."""

from __future__ import annotations

import math

from tvmdash.incidents.cause_text import format_cause_in_short
from tvmdash.judge.history.cause import Reason, ReasonKind
from tvmdash.judge.history.series import Decision
from tvmdash.text import format_percent, format_signed

_FIXED = {
    ReasonKind.NO_VALUE: "no value tonight",
    ReasonKind.ONE_BUILD: "only this build was measured beside the reference since the level began",
    ReasonKind.DRIFT_OR_RUN: "a drift, or a run this series shows without any change",
    ReasonKind.REFUTED: "the difference was not reproduced when remeasured",
    ReasonKind.OPEN: "remeasured, still unclear",
    ReasonKind.MODES: "single builds of this series differ by as much without any change",
    ReasonKind.YOUNG: "reproduced, but single builds may differ by as much by chance",
    ReasonKind.UNMEASURED: "a suspicion that could not be remeasured",
    ReasonKind.SHIFTED: "the level shifted",
    ReasonKind.BACK: "back at the level from before the regression",
    ReasonKind.OLDER_ARTIFACTS_MOVED: "older artifacts moved as well, and stayed: the machine",
    ReasonKind.CONTROL_MOVED: "a control moved, and its program never changes",
    ReasonKind.MACHINE_MOVED: "the whole machine moved, and stayed",
    ReasonKind.ALL_MOVED: "all series of the machine moved, and stayed",
}


def format_reason(decision: Decision) -> str:
    """Say why it was decided so; of a shift also whose it is, where that was decided."""
    reason = decision.reason
    if reason.kind == ReasonKind.SHIFTED and decision.cause is not None:
        return f"{_FIXED[reason.kind]}; {format_cause_in_short(decision.cause)}"
    return _FIXED.get(reason.kind) or _format_with_numbers(reason)


def _format_with_numbers(reason: Reason) -> str:
    value, needed = reason.value or 0.0, reason.needed or 0.0
    nights = f"{reason.nights} night{'s' * (reason.nights != 1)}"
    return {
        ReasonKind.NOT_POSITIVE: f"tonight's value {value:g} is not positive",
        ReasonKind.TOO_FEW_NIGHTS: f"{nights} of history; {needed:g} are needed",
        ReasonKind.NEW_LEVEL: f"the level began {nights} ago; too few to compare",
        ReasonKind.WITHIN_NOISE: f"within its noise: z {format_signed(value, '.1f')} of {needed:g} over {nights}",
        ReasonKind.WITHIN_ODDS: f"odds for a step {format_odds(value)}; {needed:g} to 1 are needed",
        ReasonKind.TOO_SHORT: f"only {nights} yet; {needed:g} are needed",
        ReasonKind.NOT_RELEVANT: f"a shift of {format_percent(value)} is not relevant",
    }[reason.kind]


def format_odds(odds: float) -> str:
    """Format odds as people say them: 3 to 1, 1 to 20."""
    high = max(odds, 1 / odds) if odds > 0 else math.inf
    words = "1,000" if high >= 1000 else f"{high:.2g}"
    more = "more than " if high >= 1000 else ""
    return f"{more}{words} to 1" if odds >= 1 else f"{'less than ' if more else ''}1 to {words}"
