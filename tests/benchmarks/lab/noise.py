"""How times scatter: over nights, over processes, over the samples of one. All sizes are natural logarithms.

What a night does to a series (neighbours, temperature, memory layout of the machine) is the same for all processes of
that night and cancels in a pair of them. The luck of a process stays for its life and cancels nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Generator = np.random.Generator
OverNights = Callable[[Generator, int], Array]
OverProcesses = Callable[[Generator, int], Array]


@dataclass(frozen=True)
class Noise:
    """Of one series. nights: what each of so many nights does; processes: the luck of so many processes.

    sample: standard deviation of one sample. rest: what a night does to one build and not to another.
    """

    nights: OverNights
    processes: OverProcesses
    sample: float = 0.004
    rest: float = 0.001


def between(rng: Generator, low: float, high: float) -> float:
    """A size, evenly drawn on the scale of logarithms."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def student(rng: Generator, sd: float, tail: float, count: int) -> Array:
    """Heavy-tailed draws with that standard deviation, from Student's t with `tail` (above 2) degrees of freedom."""
    return np.asarray(sd * rng.standard_t(tail, count) / np.sqrt(tail / (tail - 2)))


def _process_sd(rng: Generator) -> float:
    """So that the ratio of a pair scatters by 0.7 to 2 %: on real TVM it does by 0.9 to 1.7 % (decision 0120)."""
    return between(rng, 0.005, 0.014)


def calm(rng: Generator) -> Noise:
    """Gaussian nights, processes with a heavy tail."""
    night, process = between(rng, 0.001, 0.004), _process_sd(rng)
    return Noise(lambda r, n: night * r.standard_normal(n), lambda r, n: student(r, process, 4, n))


def heavy(rng: Generator) -> Noise:
    """A heavier tail; one process in a hundred is 3 to 8 % slower, one in a thousand 8 to 30 %."""
    night, process = between(rng, 0.002, 0.008), between(rng, 0.004, 0.009)

    def processes(r: Generator, n: int) -> Array:
        stray = (r.random(n) < 0.01) * r.uniform(0.03, 0.08, n) + (r.random(n) < 0.001) * r.uniform(0.08, 0.3, n)
        return student(r, process, 3, n) + stray

    return Noise(lambda r, n: night * r.standard_normal(n), processes)


def spiky(rng: Generator) -> Noise:
    """Whole nights that are 4 to 40 % slower, 1 to 5 % of them."""
    night, process, rate = between(rng, 0.001, 0.005), _process_sd(rng), rng.uniform(0.01, 0.05)

    def nights(r: Generator, n: int) -> Array:
        spikes = (r.random(n) < rate) * np.exp(r.uniform(np.log(0.04), np.log(0.4), n))
        return np.asarray(night * r.standard_normal(n) + spikes)

    return Noise(nights, lambda r, n: student(r, process, 4, n))


def modal(rng: Generator) -> Noise:
    """A process lands in one of two modes, 1 to 2.5 % apart."""
    night, process = between(rng, 0.001, 0.004), between(rng, 0.003, 0.008)
    gap, share = rng.uniform(0.01, 0.025), rng.uniform(0.2, 0.5)
    return Noise(
        lambda r, n: night * r.standard_normal(n),
        lambda r, n: student(r, process, 4, n) + gap * (r.random(n) < share),
    )


def wandering(rng: Generator) -> Noise:
    """A night is much like the one before it."""
    night, process, phi = between(rng, 0.003, 0.01), _process_sd(rng), rng.uniform(0.4, 0.8)

    def nights(r: Generator, n: int) -> Array:
        draws, state = night * np.sqrt(1 - phi**2) * r.standard_normal(n), np.zeros(n)
        state[0] = night * r.standard_normal()
        for at in range(1, n):
            state[at] = phi * state[at - 1] + draws[at]
        return state

    return Noise(nights, lambda r, n: student(r, process, 4, n))


Family = Callable[[Generator], Noise]
FAMILIES: tuple[Family, ...] = (calm, heavy, spiky, modal, wandering)
