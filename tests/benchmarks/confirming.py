"""What measuring suspects again costs on one night of 240 series: `python tests/benchmarks/confirming.py`.

The noise of a series is log-normal over series (median 0.8 %, sigma 0.7), with spikes (mean 5 %) on 2 % of nights; each
night has an artifact of its own. Nothing is run: the values are drawn. "asked" are the values that the detector wants
when it is answered at once, "measured" those that the loop had measured, "runs" what they took, "calls" the calls of
`dashboard remeasure`.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

REPO = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPO), str(REPO / "shared" / "python")]
from tests.subsystem.stat_alerts.test_confirm_loop import SIGMA, Lab, decisions  # noqa: E402 - from the repository

SERIES, SEEDS, SIZE = 240, range(4), 0.08


def night(seed: int, stepped: int) -> str:
    """One night in which `stepped` series got slower by SIZE, in words."""
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder), seed, SERIES)
        scale = np.exp(lab.rng.normal(np.log(0.008), 0.7, size=SERIES)) / SIGMA
        lab.noise *= scale[:, None]
        lab.again *= scale[:, None, None]
        lab.noise += (lab.rng.random(lab.noise.shape) < 0.02) * lab.rng.exponential(0.05, lab.noise.shape)
        lab.level[:stepped, -1] += np.log1p(SIZE)
        direct = lab.directly()
        asked = sum(lab.taken.values())
        judged = lab.looped()
    assert decisions(judged) == direct
    alerts = [int(key[1:]) for key, decision in direct.items() if decision.kind == "alert"]
    measured = sum(points for call in lab.calls for _, points in call)
    found = dict(Counter(one.outcome for one in judged.confirmation.outcomes))
    return (
        f"{stepped} stepped, seed {seed}: asked {asked}, measured {measured}, "
        f"runs {len(judged.confirmation.evidence.runs)}, calls {len(lab.calls)}; {found}; "
        f"alerts {sum(at < stepped for at in alerts)} right, {sum(at >= stepped for at in alerts)} wrong"
    )


if __name__ == "__main__":
    for count in (0, 8):
        for number in SEEDS:
            print(night(number, count), flush=True)
