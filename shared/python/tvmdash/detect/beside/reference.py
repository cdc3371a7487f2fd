"""How tonight's TVM stands to the reference, whatever was there before."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tvmdash.detect.beside.builds import RatioHistory
from tvmdash.detect.beside.contrasts import NIGHT_VARIANCE
from tvmdash.detect.beside.decisions import LEAST_EFFECT, SUSPECT_P
from tvmdash.detect.beside.luck import LUCK_FREEDOM, LUCK_PRIOR, Learned
from tvmdash.detect.beside.rarity import points, whole_freedom
from tvmdash.stats.spread import Spread, add, pool
from tvmdash.stats.student import two_sided


@dataclass(frozen=True)
class ReferenceStanding:
    """How tonight's artifact stands to the reference, over all its nights. effect, low, high: a fraction, 95 %.

    differs: beyond what one of all the experiment's series would do by chance in one night of twenty. is_itself: the
    reference ran the very same, so that nothing differs. visible: the difference that would have been seen in nine of
    ten cases.
    """

    effect: float
    low: float
    high: float
    differs: bool
    is_itself: bool
    visible: float


def compare_with_reference(learned: Learned) -> dict[str, ReferenceStanding]:
    """By series, for those with a ratio tonight; the luck of the two builds is in the interval."""
    present, jumps = learned.present, learned.jumps
    known = pool(jumps[name] for name in present).limited(LUCK_FREEDOM)
    return {
        name: _stand(history, learned.pairs[name], pool([jumps[name], known, LUCK_PRIOR]).above_zero(), len(present))
        for name, history in present.items()
    }


def _stand(history: RatioHistory, pair: Spread, luck: Spread, series: int) -> ReferenceStanding:
    same = np.isfinite(history.logs) & (history.build == history.build[-1])
    same &= history.reference == history.reference[-1]
    if not history.build[-1]:
        same[:-1] = False
    pairs = np.maximum(history.pairs[same], 1)
    mean = float(np.average(history.logs[same], weights=pairs))
    is_itself = bool(history.build[-1]) and bool(history.build[-1] == history.reference[-1])
    builds = 0.0 if is_itself else 2.0
    error = add((1 / pairs.sum(), pair), (builds, luck), (1 / len(pairs), Spread(NIGHT_VARIANCE)))
    reach = points(error.freedom) * error.sd
    rarity = two_sided(mean / error.sd, whole_freedom(error.freedom))
    effect = math.expm1(mean)
    return ReferenceStanding(
        effect,
        math.expm1(mean - reach),
        math.expm1(mean + reach),
        differs=not is_itself and rarity * series <= SUSPECT_P and abs(effect) >= LEAST_EFFECT,
        is_itself=is_itself,
        visible=math.expm1(1.65 * reach),
    )
