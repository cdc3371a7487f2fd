"""How often a night on which nothing changed tells something, by the rule that is used and by max-T over sign flips.

    python3 tests/benchmarks/night_error.py rule|flips [--experiments 400] [--seed 1] [--times 100]

Experiments of 12 series, a new build each night, five pairs of processes whose logarithms scatter by about 1.3 %.
`rule` tells `--times` as easily as the detector does, so that there is something to count, and prints what was allowed
beside what came.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tvmdash.detect.beside import decisions
from tvmdash.detect.beside.builds import Again, RatioHistory
from tvmdash.detect.beside.decisions import RatioDecision, decide
from tvmdash.detect.beside.luck import Learned
from tvmdash.detect.noise import FloatArray

SERIES, PAIRS, SCATTER, REFERENCE = 12, 5, 0.013, 10_000
LENGTHS = (2, 3, 5, 8, 14)
MOST_AGAIN = 3
Draw = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]


@dataclass(frozen=True)
class Noise:
    """How pairs of processes scatter, in standard deviations, and how builds differ (logarithm)."""

    name: str
    draw: Draw
    luck: float = 0.0


def _gauss(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.standard_normal(shape)


def _heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Student's t with 5 degrees of freedom."""
    return np.asarray(rng.standard_t(5, shape) / np.sqrt(5 / 3))


NOISES = (
    Noise("Gaussian pairs", _gauss),
    Noise("pairs with heavy tails (t, 5)", _heavy),
    Noise("heavy tails, builds differ by 0.2 %", _heavy, 0.002),
    Noise("heavy tails, builds differ by 0.5 %", _heavy, 0.005),
)


@dataclass(frozen=True)
class World:
    """One experiment: the logs of its pairs by series, night and pair, and what each series scatters by."""

    logs: FloatArray
    scatter: FloatArray
    noise: Noise
    rng: np.random.Generator

    @classmethod
    def drawn(cls, noise: Noise, nights: int, rng: np.random.Generator) -> World:
        scatter = SCATTER * np.exp(rng.normal(0, 0.3, (SERIES, 1, 1)))
        builds = noise.luck * rng.standard_normal((SERIES, nights, 1))
        return cls(builds + scatter * noise.draw(rng, (SERIES, nights, PAIRS)), scatter, noise, rng)

    @property
    def histories(self) -> dict[str, RatioHistory]:
        nights = self.logs.shape[1]
        builds, means, stds = np.arange(1, nights + 1), self.logs.mean(axis=2), self.logs.std(axis=2, ddof=1)
        full, same = np.full(nights, float(PAIRS)), np.full(nights, REFERENCE)
        code = builds if self.noise.luck > 0.004 else np.ones(nights, np.int64)
        return {
            str(at): RatioHistory(mean, std, full, builds, same, code)
            for at, (mean, std) in enumerate(zip(means, stds, strict=True))
        }

    def measure_again(self, series: int, count: int) -> tuple[Again, ...]:
        """Tonight's build in turn with the one before: their luck stays, the pairs are new."""
        nights = self.logs.shape[1]
        logs = self.scatter[series] * self.noise.draw(self.rng, (count, PAIRS))
        return tuple(Again(float(run.mean()), PAIRS, nights - 1, float(run.std(ddof=1))) for run in logs)


def decided(world: World) -> Iterator[Mapping[str, RatioDecision]]:
    """What is decided at first, and after each round of measuring again, as judging.paired asks for it."""
    histories = world.histories
    found = decide(Learned.of(histories), {})
    yield found
    runs: dict[str, tuple[Again, ...]] = dict.fromkeys(histories, ())
    for count in range(1, MOST_AGAIN + 1):
        asked = [
            name
            for name, said in found.items()
            if said.is_worth_measuring and said.after == world.logs.shape[1] - 2 and not (count > 1 and said.is_clear)
        ]
        if not asked:
            return
        for name in asked:
            runs[name] += world.measure_again(int(name), 1)
            histories[name] = replace(histories[name], again=runs[name])
        found = decide(Learned.of(histories), {})
        yield found


def count_told(noise: Noise, experiments: int, seed: int) -> Counter[str]:
    """Of so many nights of an experiment on which nothing changed: how many series are told at first, and at last."""
    rng, count = np.random.default_rng(seed), Counter[str]()
    for _, nights in itertools.product(range(experiments // len(LENGTHS)), LENGTHS):
        steps = list(decided(World.drawn(noise, nights, rng)))
        count["series"] += SERIES
        count["nights"] += 1
        count["first"] += sum(said.is_told for said in steps[0].values())
        count["end"] += sum(said.is_told for said in steps[-1].values())
        count["any"] += any(said.is_told for said in steps[-1].values())
        count["again"] += sum(said.evidence.pairs_again > 0 for said in steps[-1].values())
        count["suspicion"] += any(said.is_suspect for said in steps[-1].values())
    return count


def _print_rule(experiments: int, seed: int, times: float) -> None:
    decisions.TELL_P *= times
    decisions.TELL_AGAIN_P *= times
    first, end = 100 * decisions.TELL_P, 100 * decisions.TELL_AGAIN_P
    print(
        f"| noise | series-nights | told at first (allowed {first:g} %) | in the end (stated {end:g} %) | a night of",
        end="",
    )
    print(f" {SERIES} (stated {SERIES * end:g} %) | measured again | nights with a suspicion |")
    print("|---|---|---|---|---|---|---|")
    for noise in NOISES:
        count = count_told(noise, experiments, seed)
        parts = (
            ("first", "series"),
            ("end", "series"),
            ("any", "nights"),
            ("again", "series"),
            ("suspicion", "nights"),
        )
        shares = " | ".join(f"{100 * count[key] / count[of]:.2f} %" for key, of in parts)
        print(f"| {noise.name} | {count['series']} | {shares} |", flush=True)


def flips_of(pairs: int) -> FloatArray:
    """All ways to give signs to so many pairs, without those that only turn all of another one round."""
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=pairs - 1)))
    return np.hstack([np.ones((len(signs), 1)), signs])


def max_t(logs: FloatArray) -> float:
    """How rare the largest |t| of `logs` (series, pairs) is among those of all sign flips, the same for all series."""
    signs = flips_of(logs.shape[1])
    means = logs @ signs.T / logs.shape[1]
    squares = (logs**2).mean(axis=1, keepdims=True)
    largest = (np.abs(means) / np.sqrt(squares - means**2 + 1e-12)).max(axis=0)
    return float((largest >= largest[0] * (1 - 1e-9)).mean())


def _print_flips(nights: int, seed: int) -> None:
    print("| pairs | least p | builds differ by | nothing happens: p <= 0.05 | p <= 0.001", end="")
    print(" | 3 % in one series: p <= 0.05 | p <= 0.001 |")
    print("|---|---|---|---|---|---|---|")
    for pairs, luck in itertools.product((5, 8, 12), (0.0, 0.002, 0.005)):
        rng, found = np.random.default_rng(seed), dict[float, list[float]]()
        for step in (0.0, 0.03):
            slower = step * (np.arange(SERIES) == 0)[:, None]
            found[step] = [
                max_t(slower + luck * rng.standard_normal((SERIES, 1)) + SCATTER * _heavy(rng, (SERIES, pairs)))
                for _ in range(nights)
            ]
        shares = [np.mean(np.array(found[step]) <= level) for step in (0.0, 0.03) for level in (0.05, 0.001)]
        said = " | ".join(f"{100 * share:.1f} %" for share in shares)
        print(f"| {pairs} | {1 / 2 ** (pairs - 1):.4f} | {100 * luck:.1f} % | {said} |", flush=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["rule", "flips"])
    parser.add_argument("--experiments", type=int, default=400, help="experiment-nights a row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=float, default=100.0, help="how much more easily the rule tells")
    given = parser.parse_args(arguments)
    if given.part == "rule":
        _print_rule(given.experiments, given.seed, given.times)
    else:
        _print_flips(given.experiments, given.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
