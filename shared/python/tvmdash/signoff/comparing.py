"""One series from A to B, by whatever says the most of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tvmdash.judge.two import Difference
from tvmdash.trials.signoff import SignoffDoubt, SignoffEvidence


@dataclass(frozen=True)
class SeriesChange:
    """B against A. log: of the ratio, with its 95 % interval, None where too few pairs give one.

    is_real: whether they differ; is_open: whether that is neither told nor excluded. odds: for a change against none.
    measured: how far the interval would reach (log) without the luck of builds.
    """

    evidence: SignoffEvidence
    log: float | None = None
    low: float | None = None
    high: float | None = None
    odds: float | None = None
    before: float | None = None
    after: float | None = None
    pairs: int = 0
    nights: int = 0
    visible: float | None = None
    doubt: SignoffDoubt | None = None
    measured: float | None = None
    is_real: bool = False
    is_open: bool = False

    @classmethod
    def of(cls, evidence: SignoffEvidence, difference: Difference) -> SeriesChange:
        """What the judge says."""
        low, high = (None if end is None else math.log1p(end) for end in (difference.low, difference.high))
        measured = math.log1p(difference.within) if math.isfinite(difference.within) else None
        return cls(
            evidence, math.log1p(difference.effect), low, high, difference.odds, measured=measured,
            is_real=difference.standing.is_told, is_open=difference.standing.is_open,
        )  # fmt: skip

    @property
    def effect(self) -> float | None:
        """As a fraction."""
        return None if self.log is None else math.expm1(self.log)


SAME_CODE = SeriesChange(SignoffEvidence.SAME_CODE, 0.0, 0.0, 0.0)


def cannot_say(doubt: SignoffDoubt) -> SeriesChange:
    """Nothing is known, and why."""
    return SeriesChange(SignoffEvidence.NONE, doubt=doubt)
