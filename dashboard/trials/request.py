"""What a person asks of the commands that measure outside the nights."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class MeasuringRequest:
    """Which experiments are measured on which TVMs, how often and for how long.

    experiments: by name; none of them means all that run in the home. series: as people name them; none means all.
    tvms: as people name them: the two that are compared, the ends of a search, or a range. rounds: how often each is
    measured. budget_s: for measuring altogether. rebuild: get what is not at hand. seed: None draws one; within a
    night the night's own counts. isolates: TVMs that are not of the home's branch are built and run apart.
    """

    experiments: tuple[str, ...] = ()
    series: tuple[str, ...] = ()
    tvms: tuple[str, ...] = ()
    rounds: int = 1
    budget_s: float = math.inf
    rebuild: bool = True
    seed: int | None = None
    isolates: bool = False
