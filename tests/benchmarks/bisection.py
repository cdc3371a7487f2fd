"""How well `bisect` finds a commit: `python tests/benchmarks/bisection.py [SEARCHES]`. Nothing is run or built.

200 commits; from one of them on a series is 5 % slower. A pair (commit against the good end) scatters by `noise`; 3 %
of the pairs are disturbed (exponential, mean 10 %); each build has a bias of its own (0.3 %); 5 % of the commits cannot
be built. Noise and size are not given to the search: it takes them from its own measurements, as the dashboard does.
"right": the culprit is the answer, or within it; "one": the answer is one commit. "pairs" after the ends' and "need" by
information theory (log2(200) bits over the capacity of one measurement).
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

REPO = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPO / "shared" / "python"), str(REPO)]
from dashboard.trials.result import judge_step  # noqa: E402 - from the repository
from tvmdash.judge.search import Search, Step, ends_are_clear, least_measurements, make_step  # noqa: E402 - from the repository
from tvmdash.trials.trial import RunOfPairs, TrialSeries  # noqa: E402 - from the repository

COMMITS, SIZE = 200, math.log(1.05)
BUILD_BIAS, DISTURBED, DISTURBANCE, BROKEN = 0.003, 0.03, 0.1, 0.05


@dataclass(frozen=True)
class Outcome:
    """One search: whether its ends were told apart, its answer is right and one commit; what it cost."""

    clear: bool
    right: bool = False
    one: bool = False
    ends: int = 0
    pairs: int = 0
    builds: int = 0
    held: bool = False


def search(seed: int, noise: float) -> Outcome:
    """One made-up history, searched as dashboard/trials/bisect.py does."""
    rng = np.random.default_rng(seed)
    culprit = int(rng.integers(1, COMMITS + 1))
    bias = rng.normal(0, BUILD_BIAS, COMMITS + 1)
    broken = set(np.flatnonzero(rng.random(COMMITS + 1) < BROKEN).tolist()) - {0, COMMITS}

    def measure(commit: int) -> float:
        level = (SIZE if commit >= culprit else 0.0) + bias[commit] - bias[0]
        disturbed = rng.exponential(DISTURBANCE) if rng.random() < DISTURBED else 0.0
        return float(level + rng.normal(0, noise) + disturbed)

    values: dict[int, list[float]] = {}
    ends: list[float] = []
    while (clear := ends_are_clear(ends)) is None:
        ends.append(measure(COMMITS))
    if not clear:
        return Outcome(clear=False, ends=len(ends))
    failed: set[int] = set()
    while True:
        model = Search(COMMITS, make_step(ends, values.values()), failed=failed)
        for commit, found in values.items():
            model.add(commit, found)
        model.add(COMMITS, ends)
        commit = model.next()
        if commit is None:
            break
        if commit in broken:
            failed.add(commit)
        else:
            values.setdefault(commit, []).append(measure(commit))
    verdict = model.verdict()
    series = TrialSeries("s", "e", "run_time", {}, runs=(RunOfPairs.of(ends),))
    before = [found for commit, found in values.items() if commit < verdict.first]
    change = judge_step(series, before, [found for commit, found in values.items() if commit >= verdict.last])
    assert change is not None
    right = verdict.first <= culprit <= verdict.last
    pairs = sum(map(len, values.values()))
    one = verdict.first == verdict.last
    return Outcome(
        True, right, one, len(ends), pairs, len(values) + len(failed), change.low <= math.expm1(SIZE) <= change.high
    )


def main(searches: int) -> None:
    """Print a row for each noise."""
    print("| noise of a pair | right | one commit | pairs of the ends | pairs after | need | builds | size held |")
    print("|---|---|---|---|---|---|---|---|")
    for noise in (0.02, 0.03, 0.05, 0.10):
        begun = time.monotonic()
        found = [search(seed, noise) for seed in range(searches)]
        need = least_measurements(COMMITS, Step(SIZE, noise))
        mean = {name: float(np.mean([getattr(one, name) for one in found])) for name in ("ends", "pairs", "builds")}
        count = {name: sum(getattr(one, name) for one in found) for name in ("right", "one", "held", "clear")}
        print(
            f"| {noise:.0%} | {count['right']} of {searches} | {count['one']} | {mean['ends']:.0f} "
            f"| {mean['pairs']:.0f} | {need:.0f} | {mean['builds']:.1f} | {count['held']} |",
            flush=True,
        )
        print(f"{noise}: {time.monotonic() - begun:.0f} s, clear {count['clear']}", file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
