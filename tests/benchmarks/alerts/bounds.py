"""What no detector can beat without re-runs: an oracle that knows each series' noise model exactly.

    python3 tests/benchmarks/alerts/bounds.py            # about two minutes

The oracle is told the level, the noise family and all its parameters, and that a step would be +3 % or
-3 % (or 5 %): only the night of the change is unknown. It takes the likelihood ratio of "changed k nights
ago" to "unchanged", the greatest over k = 1..12 and both signs, and alerts where that exceeds a threshold
set so that unchanged series alert 0.2 times in 1000 nights (Lorden 1971, Lai 1998: window-limited
generalised likelihood ratio). All families here are hidden two-state chains: a state has a mean and a
spread, and says how likely the next night has the same.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

AGES = 12
RATE = 0.2e-3
NIGHTS, BURN, AFTER = 4000, 30, 8


@dataclass(frozen=True)
class Chains:
    """Many series of one family: arrays of (series, 2 states); `move[s, i, j]` from state i to j."""

    mean: Array
    sd: Array
    move: Array
    skew: float = 0.0


def _chains(mean: Array, sd: Array, enter: Array, leave: Array, skew: float = 0.0) -> Chains:
    move = np.stack([np.stack([1 - enter, enter], -1), np.stack([leave, 1 - leave], -1)], -2)
    return Chains(mean, sd, move, skew)


def families(rng: np.random.Generator, count: int) -> dict[str, Chains]:
    """The families of `generator.py` that a two-state chain describes, with parameters drawn alike."""

    def between(low: float, high: float) -> Array:
        return np.exp(rng.uniform(np.log(low), np.log(high), count))

    zero, one = np.zeros(count), np.ones(count)
    plain, quiet = between(0.002, 0.02), between(0.002, 0.008)
    gap = rng.uniform(2, 6, count) * quiet
    slow = rng.uniform(0.1, 0.5, count)
    spiky, rate = between(0.002, 0.01), rng.uniform(0.01, 0.08, count)

    def pair(first: Array, second: Array) -> Array:
        return np.stack([first, second], -1)

    return {
        "gauss": _chains(pair(zero, zero), pair(plain, plain), zero, one),
        "lognorm": _chains(pair(zero, zero), pair(plain, plain), zero, one, 0.8),
        "bimodal": _chains(pair(zero, gap), pair(quiet, quiet), slow, 1 - slow),
        "sticky": _chains(pair(zero, gap), pair(quiet, quiet), 0.1 * one, 0.4 * one),
        "spikes": _chains(pair(zero, zero + 0.25), pair(spiky, zero + 0.2), rate, 0.88 * (1 - rate)),
        "hetero": _chains(pair(zero, zero), pair(quiet, 3 * quiet), one / 30, one / 20),
    }


def _draw(rng: np.random.Generator, chains: Chains, nights: int) -> Array:
    """Values of unchanged series, (nights, series)."""
    count = len(chains.mean)
    state, values, index = np.zeros(count, int), np.zeros((nights, count)), np.arange(count)
    for night in range(nights):
        state = (rng.random(count) < chains.move[index, state, 1]).astype(int)
        noise = rng.standard_normal(count)
        if chains.skew:
            spread = np.exp(chains.skew**2)
            noise = (np.exp(chains.skew * noise) - np.sqrt(spread)) / np.sqrt(spread * (spread - 1))
        values[night] = chains.mean[index, state] + chains.sd[index, state] * noise
    return values


def _likelihood(chains: Chains, value: Array) -> Array:
    """The density of `value` (series, ...) in each state, (series, ..., 2)."""
    shape = (len(chains.mean),) + (1,) * (value.ndim - 1) + (2,)
    mean, sd = chains.mean.reshape(shape), chains.sd.reshape(shape)
    z = (value[..., None] - mean) / sd
    if not chains.skew:
        return np.exp(-0.5 * np.minimum(z**2, 200)) / sd + 1e-30
    spread = np.exp(chains.skew**2)
    inside = z * np.sqrt(spread * (spread - 1)) + np.sqrt(spread)
    log = np.log(np.maximum(inside, 1e-12)) / chains.skew
    return np.where(inside > 0, np.exp(-0.5 * log**2) / (np.maximum(inside, 1e-12) * sd), 0.0) + 1e-30


def statistic(chains: Chains, values: Array, step: float) -> Array:
    """The oracle's statistic, (nights, series)."""
    steps = np.array([np.log1p(step), np.log1p(-step)])
    count = len(chains.mean)
    before = np.stack([np.ones(count), np.zeros(count)], -1)
    after = np.zeros((count, 2, AGES, 2))
    ratio = np.full((count, 2, AGES), -np.inf)
    found = np.zeros(values.shape)
    for night, value in enumerate(values):
        predicted = np.einsum("ci,cij->cj", before, chains.move)
        after = np.einsum("csai,cij->csaj", after, chains.move)
        after, ratio = np.roll(after, 1, axis=2), np.roll(ratio, 1, axis=2)
        after[:, :, 0], ratio[:, :, 0] = predicted[:, None, :], 0.0
        unchanged = predicted * _likelihood(chains, value)
        changed = after * _likelihood(chains, value[:, None] - steps[None, :])[:, :, None, :]
        base, total = unchanged.sum(-1), changed.sum(-1)
        ratio = ratio + np.log(np.maximum(total, 1e-300)) - np.log(base)[:, None, None]
        before, after = unchanged / base[:, None], changed / np.maximum(total, 1e-300)[..., None]
        found[night] = ratio.max(axis=(1, 2))
    return found


def threshold(null: Array) -> float:
    """Where the statistic of unchanged series crosses upwards RATE times a night."""
    low, high = 0.0, 60.0
    for _ in range(40):
        middle = (low + high) / 2
        crossings = np.mean((null[1:] >= middle) & (null[:-1] < middle))
        low, high = (middle, high) if crossings > RATE else (low, middle)
    return high


def bound(rng: np.random.Generator, chains: Chains, step: float) -> dict[str, float]:
    """Per cent of steps that the oracle tells within 0..7 nights."""
    limit = threshold(statistic(chains, _draw(rng, chains, NIGHTS), step)[BURN:])
    hits = []
    for _ in range(8):
        values = _draw(rng, chains, BURN + AFTER)
        values[BURN:] += np.log1p(step)
        hits.append(np.maximum.accumulate(statistic(chains, values, step)[BURN:], axis=0) >= limit)
    share = np.mean(np.concatenate(hits, axis=1), axis=1)
    return {"threshold": round(limit, 2), **{f"within_{k}": round(100 * float(share[k]), 1) for k in (0, 1, 2, 3, 7)}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    for name, chains in families(rng, options.series).items():
        print(name, json.dumps({f"{step:g}": bound(rng, chains, step) for step in (0.03, 0.05)}), flush=True)


if __name__ == "__main__":
    main()
