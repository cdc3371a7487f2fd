"""Why the detector decided as it did: a kind with its numbers, for programs; what is told of it is made elsewhere."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from tvmdash.common import structured


class ReasonKind(enum.StrEnum):
    """The ground of a decision. The first four: the series could not be judged at all."""

    NO_VALUE = "no_value"
    NOT_POSITIVE = "not_positive"
    TOO_FEW_NIGHTS = "too_few_nights"
    NEW_LEVEL = "new_level"
    ONE_BUILD = "one_build"
    WITHIN_NOISE = "within_noise"
    WITHIN_ODDS = "within_odds"
    BACK = "back"
    TOO_SHORT = "too_short"
    NOT_RELEVANT = "not_relevant"
    DRIFT_OR_RUN = "drift_or_run"
    REFUTED = "refuted"
    OPEN = "open"
    MODES = "modes"
    YOUNG = "young"
    UNMEASURED = "unmeasured"
    SHIFTED = "shifted"
    OLDER_ARTIFACTS_MOVED = "older_artifacts_moved"
    CONTROL_MOVED = "control_moved"
    MACHINE_MOVED = "machine_moved"
    ALL_MOVED = "all_moved"


UNJUDGED = (
    ReasonKind.NO_VALUE,
    ReasonKind.NOT_POSITIVE,
    ReasonKind.TOO_FEW_NIGHTS,
    ReasonKind.NEW_LEVEL,
)


@dataclass(frozen=True)
class Reason:
    """A kind with its numbers, None where it has none.

    value: tonight's value (not positive), z (within noise), odds for a step (within odds) or the relative effect (not
    relevant). nights: of history,
    of the level, or of the suspected shift. needed: how many nights, which z or which odds it would have had to reach.
    """

    kind: ReasonKind
    value: float | None = None
    nights: int | None = None
    needed: float | None = None

    @property
    def is_unjudged(self) -> bool:
        """True where the series could not be judged at all."""
        return self.kind in UNJUDGED

    def to_json(self) -> dict[str, Any]:
        """As JSON values; `from_json` reads it back."""
        return structured.to_json(self)

    @classmethod
    def from_json(cls, value: Any) -> Reason:
        """The reason that `to_json` wrote; DashboardError where it is none."""
        return structured.from_json(cls, value, "the reason of a decision")
