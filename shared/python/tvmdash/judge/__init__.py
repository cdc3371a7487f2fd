"""The judge: did B differ from A, by how much, and how sure is that, for everybody who asks.

Evidence is pairs of fresh processes that took turns, each with which builds of TVM they were and how they scatter. A
build lies where its level is, beside its luck: where code and data come to lie. Steps of the level are found by
generalised least squares over all pairs of a series and weighed by odds, for the whole home, for each experiment, for
what has new code, and for each point. What the odds leave open is measured again until they are clear.
"""

from __future__ import annotations

from tvmdash.judge.evidence import Ask, Evidence, KnownStep, Pairs
from tvmdash.judge.rules import RULES

__all__ = ["RULES", "Ask", "Evidence", "KnownStep", "Pairs"]
