"""How often `try` names a change where there is none, and how often its intervals hold.

`python tests/benchmarks/tries.py`. Simulated runs of five pairs are added to each series until its interval is narrow
enough, as `try` does.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Sequence

from dashboard.trials.result import judge_series
from tvmdash.trials.trial import LEAST_PAIRS, RunOfPairs, TrialChange, TrialSeries

PAIRS = 5


def play(rng: random.Random, scatter: float, count: int, until: float, least: int) -> Sequence[TrialChange]:
    """The changes that one try finds among so many series without any; a pair scatters by so much."""
    runs: list[list[RunOfPairs]] = [[] for _ in range(count)]
    while True:
        series = [TrialSeries(str(at), "e", "run_time", {}, runs=tuple(own)) for at, own in enumerate(runs)]
        found = judge_series(series)
        known = [change for change in found if change and (change.measured or 0.0) <= until and change.pairs >= least]
        if len(known) == count:
            return known
        for at, change in enumerate(found):
            if change is None or change not in known:
                logs = [rng.gauss(0, scatter) for _ in range(PAIRS)]
                runs[at].append(RunOfPairs(statistics.fmean(logs), statistics.stdev(logs), PAIRS))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=700)
    parser.add_argument("--series", type=int, default=12)
    parser.add_argument("--scatter", type=float, default=0.013)
    options = parser.parse_args()
    print("| until | least pairs | pairs | names a change | intervals hold 0 |\n|---|---|---|---|---|")
    for until in (0.01, 0.005):
        for least in (PAIRS, LEAST_PAIRS, 15):
            rng = random.Random(3)
            done = [play(rng, options.scatter, options.series, until, least) for _ in range(options.tries)]
            every = [change for changes in done for change in changes]
            named = sum(any(change.real for change in changes) for changes in done) / len(done)
            held = sum(change.low <= 0 <= change.high for change in every) / len(every)
            pairs = statistics.fmean(change.pairs for change in every)
            print(
                f"| {100 * until:g} % | {least} | {pairs:.1f} | {100 * named:.1f} % | {100 * held:.1f} % |", flush=True
            )


if __name__ == "__main__":
    main()
