"""One series from A to B, by whatever says the most of it; what is real is decided when all are known."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tvmdash.contracts.signoff import SignoffDoubt, SignoffEvidence


@dataclass(frozen=True)
class SeriesChange:
    """B against A. log: of the ratio, with its 95 % interval. p: how often equal TVMs would differ so much.

    measured: how far the interval would reach (log) without the luck of builds. is_real: known without comparing `p`
    with those of the other series; None where that decides.
    """

    evidence: SignoffEvidence
    log: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    before: float | None = None
    after: float | None = None
    pairs: int = 0
    nights: int = 0
    visible: float | None = None
    doubt: SignoffDoubt | None = None
    measured: float | None = None
    is_real: bool | None = None

    @property
    def effect(self) -> float | None:
        """As a fraction."""
        return None if self.log is None else math.expm1(self.log)


SAME_CODE = SeriesChange(SignoffEvidence.SAME_CODE, 0.0, 0.0, 0.0, is_real=False)


def cannot_say(doubt: SignoffDoubt) -> SeriesChange:
    """Nothing is known, and why."""
    return SeriesChange(SignoffEvidence.NONE, doubt=doubt, is_real=False)
