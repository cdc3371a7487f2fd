"""Detectors in use elsewhere, as they are described, to measure ours against on the same series.

Each is a function of the history up to tonight that returns the culprit's position, or None: the shape
`evaluate.py` plays night by night. None of them measures again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvmdash.judge.history import rules as change_rules

Array = np.ndarray[Any, Any]
Anchor = Callable[[Array], int | None]


def stddev(values: Array) -> int | None:
    """relay-bench: further than one standard deviation from the mean of the last ten nights."""
    return len(values) - 1 if change_rules.stddev(values).alert else None


def three_sigma(values: Array, window: int = 30) -> int | None:
    """Further than three standard deviations from the mean of the last thirty nights."""
    settings = change_rules.StddevSettings(window=window, deviations=3.0)
    return len(values) - 1 if change_rules.stddev(values, settings).alert else None


def iqr_fence(values: Array, window: int = 100) -> int | None:
    """rustc-perf: relative change to the night before beyond Q3 + 3 IQR of the past absolute changes."""
    changes = np.abs(np.diff(values[-window - 1 :]) / values[-window - 1 : -1])
    if len(changes) < 12:
        return None
    low, high = np.percentile(changes[:-1], [25, 75])
    return len(values) - 1 if changes[-1] > high + 3 * (high - low) else None


def perfherder(values: Array, nights: int = 12, threshold: float = 7.0, least: float = 0.02) -> int | None:
    """Mozilla Perfherder: Welch's t of 12 nights before and 12 from a night on, above 7, and 2 % or more."""
    if len(values) < 2 * nights:
        return None
    before, after = values[-2 * nights : -nights], values[-nights:]
    error = np.sqrt(before.var(ddof=1) / nights + after.var(ddof=1) / nights)
    shift = after.mean() - before.mean()
    if abs(shift) <= threshold * error or abs(shift) < least * before.mean():
        return None
    return len(values) - nights


ANCHORS: dict[str, Anchor] = {
    "stddev": stddev,
    "three-sigma": three_sigma,
    "iqr-fence": iqr_fence,
    "perfherder": perfherder,
}
QUIET_NIGHTS = 5
"""An anchor that alerts again within so many nights of its last culprit is taken to mean the same."""
