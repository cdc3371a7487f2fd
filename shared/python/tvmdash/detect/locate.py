"""Which night's artifact it was: bisection by re-measuring; and a decision's re-runs played again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvmdash.detect.noise import CLIP, FloatArray
from tvmdash.detect.rerun import NIGHT_SHARE, Bench, Suspect, Verdict, run_scale
from tvmdash.detect.series import Measured, Rerun, Settings


def locate(bench: Bench, suspect: Suspect, settings: Settings, verdict: Verdict, reach: int = 8) -> int:
    """The position of the culprit: bisection by re-measuring the nights around the suspected cut.

    Each night near the cut is more likely old or new by its recorded value and by its re-runs; the cut is
    where the two halves fit best. While another cut is still believable, the artifact between is
    measured once more.
    """
    first = min(max(suspect.start + 3, suspect.cut - reach), suspect.cut)
    places = np.arange(first, len(suspect.x))
    shift = verdict.shift
    noise = max(run_scale(suspect.scale), 1e-12)
    recorded = (suspect.x[places] - suspect.median - shift / 2) * shift / (noise**2 * (1 + NIGHT_SHARE**2))
    support = np.clip(recorded, -CLIP, CLIP)
    for _ in range(settings.most_locating):
        belief = _find_belief(support)
        if belief.max() >= 0.95:
            break
        likely = np.sort(np.argsort(belief)[-2:])
        between = int(likely.sum() - 1) // 2
        value = bench.take(int(suspect.nights[places[between]]))
        if value is None:
            break
        away = value - suspect.median - verdict.machine
        support[between] += np.clip((away - shift / 2) * shift / noise**2, -CLIP, CLIP)
    return int(places[np.argmax(_find_belief(support))])


def _find_belief(support: FloatArray) -> FloatArray:
    """The probability of each place being the first of the new level, all equally likely beforehand."""
    weight = np.cumsum(support[::-1])[::-1]
    belief = np.exp(weight - weight.max())
    return np.asarray(belief / belief.sum())


def replay(measured: Sequence[Measured]) -> Rerun:
    """A `Rerun` that gives back, in their order, the values of an earlier decision: to explain it again."""
    left = list(measured)

    def rerun(night: int, count: int) -> list[float]:
        values: list[float] = []
        while left and left[0].night == night and len(values) < count:
            values.append(left.pop(0).value)
        return values

    return rerun
