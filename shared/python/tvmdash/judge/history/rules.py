"""Other rules for the same question, kept because people know them: `"rule": "stddev"`.

Source: uwsampl/relay-bench, the ancestor's statistical alert. It alerts on about a third of unchanged
series each night (docs/explanation/alerts.md) and is not the default.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tvmdash.judge.history.noise import FloatArray


@dataclass(frozen=True)
class StddevSettings:
    """window: nights the mean is taken over. deviations: how many standard deviations alert."""

    window: int = 10
    deviations: float = 1.0


@dataclass(frozen=True)
class StddevDecision:
    """The rule's decision tonight. z: tonight's distance from the mean in standard deviations."""

    alert: bool
    reason: str
    z: float | None = None
    mean: float | None = None
    deviation: float | None = None


def stddev(values: FloatArray, settings: StddevSettings | None = None) -> StddevDecision:
    """Alert where tonight (the last value) is further than `deviations` standard deviations from the window's mean.

    The window is the last nights with a finite value before tonight; it needs two of them.
    """
    settings = settings or StddevSettings()
    values = np.asarray(values, float)
    if not len(values) or not np.isfinite(values[-1]):
        return StddevDecision(False, "no value tonight")
    before = values[:-1][np.isfinite(values[:-1])][-settings.window :]
    if len(before) < 2:
        return StddevDecision(False, f"{len(before)} nights of history; 2 are needed")
    mean, deviation = float(before.mean()), float(before.std(ddof=1))
    away = float(values[-1]) - mean
    z = away / deviation if deviation else (0.0 if away == 0 else float(np.copysign(np.inf, away)))
    beyond = abs(z) > settings.deviations
    reason = f"{'further than' if beyond else 'within'} {settings.deviations:g} standard deviations of the mean"
    return StddevDecision(beyond, reason, z, mean, deviation)
