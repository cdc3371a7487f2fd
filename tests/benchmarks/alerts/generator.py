"""Synthetic nightly series whose truth is known: what the alert benchmark feeds to a detector.

One measurement is  base * exp(level of the build + mode of the build + state of the night + noise of the
run).  A re-run of an older build tonight keeps that build's level and mode, sees tonight's machine, and
draws the run's noise anew. FAMILIES lists the kinds of noise. The first ten have the magnitudes that
shared/alerts.md reports of 1,196 real nightly series; the last two were never used to tune anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Generator = np.random.Generator

REPEATS = 10
STEPS = (0.01, 0.02, 0.03, 0.05, 0.10, 0.20)


@dataclass
class Parts:
    """The noise of one series: per build, per night, and how one run scatters."""

    nights: int
    run_sd: Array
    build: Array = field(init=False)
    night: Array = field(init=False)
    skew: float = 0.0
    heavy: bool = False
    spike_rate: float = 0.0
    grid: float = 0.0

    def __post_init__(self) -> None:
        self.build = np.zeros(self.nights)
        self.night = np.zeros(self.nights)


def _between(rng: Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _plain(rng: Generator, nights: int, low: float = 0.002, high: float = 0.02) -> Parts:
    return Parts(nights, np.full(nights, _between(rng, low, high)))


def _chain(rng: Generator, nights: int, enter: float, stay: float) -> Array:
    """A two-state chain: 1 with probability `enter` after 0, with `stay` after 1."""
    draws, state = rng.random(nights), np.zeros(nights)
    for night in range(1, nights):
        state[night] = draws[night] < (stay if state[night - 1] else enter)
    return state


def _autoregressive(rng: Generator, nights: int, phi: float, sd: float) -> Array:
    noise, value = rng.standard_normal(nights) * sd * np.sqrt(1 - phi**2), np.zeros(nights)
    value[0] = rng.standard_normal() * sd
    for night in range(1, nights):
        value[night] = phi * value[night - 1] + noise[night]
    return value


def _lognormal(rng: Generator, nights: int) -> Parts:
    parts = _plain(rng, nights)
    parts.skew = 0.8
    return parts


def _modes(rng: Generator, nights: int, state: Callable[[], Array]) -> Parts:
    parts = _plain(rng, nights, 0.002, 0.008)
    gap = rng.uniform(2, 6) * parts.run_sd[0]
    (parts.build if rng.random() < 0.5 else parts.night)[:] = gap * state()
    return parts


def _bimodal(rng: Generator, nights: int) -> Parts:
    return _modes(rng, nights, lambda: rng.random(nights) < rng.uniform(0.1, 0.5))


def _sticky(rng: Generator, nights: int) -> Parts:
    return _modes(rng, nights, lambda: _chain(rng, nights, 0.1, 0.6))


def _spikes(rng: Generator, nights: int) -> Parts:
    parts = _plain(rng, nights, 0.002, 0.01)
    parts.spike_rate = rng.uniform(0.01, 0.08)
    return parts


def _drift(rng: Generator, nights: int) -> Parts:
    parts = _plain(rng, nights, 0.003, 0.01)
    total = rng.choice([-1, 1]) * rng.uniform(0.005, 0.02) * nights / 100
    parts.night[:] = np.linspace(0, total, nights) + np.cumsum(rng.standard_normal(nights)) * parts.run_sd[0] / 25
    return parts


def _ar1(rng: Generator, nights: int) -> Parts:
    parts = _plain(rng, nights)
    parts.night[:] = _autoregressive(rng, nights, rng.uniform(0.2, 0.6), parts.run_sd[0])
    parts.run_sd /= 3
    return parts


def _hetero(rng: Generator, nights: int) -> Parts:
    parts = _plain(rng, nights, 0.002, 0.008)
    parts.run_sd *= 1 + 2 * _chain(rng, nights, 1 / 30, 19 / 20)
    return parts


def _quantised(rng: Generator, nights: int) -> Parts:
    parts = Parts(nights, np.full(nights, 0.003))
    parts.grid = rng.uniform(0.005, 0.015)
    return parts


def _mixed(rng: Generator, nights: int) -> Parts:
    parts = _plain(rng, nights)
    sd = float(parts.run_sd[0])
    parts.run_sd *= 0.8
    parts.heavy, parts.spike_rate = True, rng.uniform(0.01, 0.05)
    parts.night[:] = _autoregressive(rng, nights, 0.3, 0.52 * sd)
    if rng.random() < 0.3:
        parts.build[:] = rng.uniform(1, 3) * sd * (rng.random(nights) < rng.uniform(0.05, 0.4))
    return parts


def _weekly(rng: Generator, nights: int) -> Parts:
    parts = _plain(rng, nights, 0.002, 0.01)
    parts.night[:] = rng.uniform(1, 4) * parts.run_sd[0] * ((np.arange(nights) + rng.integers(7)) % 7 >= 5)
    return parts


def _layouts(rng: Generator, nights: int) -> Parts:
    parts = _plain(rng, nights, 0.002, 0.006)
    changes = np.cumsum(rng.random(nights) < 0.3)
    parts.build[:] = rng.uniform(1, 3) * parts.run_sd[0] * rng.uniform(-1, 1, nights)[changes]
    return parts


FAMILIES: dict[str, Callable[[Generator, int], Parts]] = {
    "gauss": _plain,
    "lognorm": _lognormal,
    "bimodal": _bimodal,
    "sticky": _sticky,
    "spikes": _spikes,
    "drift": _drift,
    "ar1": _ar1,
    "hetero": _hetero,
    "quant": _quantised,
    "mixed": _mixed,
    "weekly": _weekly,
    "layouts": _layouts,
}
KINDS = tuple(FAMILIES)[:10]
UNSEEN_KINDS = tuple(FAMILIES)[10:]


class Series:
    """One measured series. values, std, n are what a detector may see; tau and step are the truth."""

    def __init__(
        self,
        kind: str,
        nights: int,
        seed: list[int],
        step: float = 0.0,
        tau: int | None = None,
        common: Array | None = None,
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.kind, self.T, self.step, self.tau = kind, nights, step, tau
        self.base = float(10 ** self.rng.uniform(-4, 1))
        self.parts = FAMILIES[kind](self.rng, nights)
        self.level = np.zeros(nights)
        if step and tau is not None:
            self.level[tau:] = np.log1p(step)
        self.common = np.zeros(nights) if common is None else common * self.rng.uniform(0.6, 1.4)
        run_spike = self._spikes()
        measured = [self._run(night, night, run_spike[night]) for night in range(nights)]
        self.values = np.array([value for value, _ in measured])
        self.std = np.array([std for _, std in measured])
        self.n = np.full(nights, REPEATS)

    def _spikes(self) -> Array:
        """Spikes of runs; half of all belong to the night instead, and one in eight lasts another night."""
        mine, rng, height, of_night, on = np.zeros(self.T), self.rng, 0.0, False, False
        for night in range(self.T if self.parts.spike_rate else 0):
            if not (on and rng.random() < 0.12):
                on = rng.random() < self.parts.spike_rate
                height = _between(rng, 0.05, 1.0) * (1 if rng.random() < 0.85 else -0.3)
                of_night = rng.random() < 0.5
            if on:
                (self.parts.night if of_night else mine)[night] += np.log1p(height)
        return mine

    def _run(self, build: int, night: int, spike: float) -> tuple[float, float]:
        parts, rng = self.parts, self.rng
        noise = rng.standard_t(4) / np.sqrt(2) if parts.heavy else rng.standard_normal()
        if parts.skew:
            spread = np.exp(parts.skew**2)
            noise = (np.exp(parts.skew * noise) - np.sqrt(spread)) / np.sqrt(spread * (spread - 1))
        total = self.level[build] + parts.build[build] + parts.night[night] + self.common[night]
        value = self.base * np.exp(total + parts.run_sd[night] * noise + spike)
        if parts.grid:
            unit = self.base * parts.grid
            value = max(unit, np.round(value / unit) * unit)
        within = abs(0.5 * parts.run_sd[night] * (1 + 0.2 * rng.standard_normal()))
        return float(value), float(value * within)

    def rerun(self, night: int, build: int, count: int) -> list[float]:
        """Measure `build` again, `count` times, on `night`."""
        values = []
        for _ in range(count):
            spiked = self.rng.random() < self.parts.spike_rate / 2
            values.append(self._run(build, night, np.log1p(_between(self.rng, 0.05, 1.0)) if spiked else 0.0)[0])
        return values


@dataclass(frozen=True)
class Fleet:
    """Series of one machine and their truth. compiler_step: a night on which all but the controls move."""

    series: list[Series]
    steps: dict[int, tuple[int, float]]
    controls: list[int]
    machine_step: int | None
    compiler_step: int | None


def fleet(seed: int, count: int = 40, nights: int = 120, controls: int = 4, event: str = "") -> Fleet:
    """`count` series with slow nights; `event` "machine" or "compiler" adds a lasting shift of 3-5 %."""
    rng = np.random.default_rng([seed, 9])
    common = np.where(rng.random(nights) < 0.04, rng.uniform(0.02, 0.10, nights), 0.0)
    at = int(rng.integers(60, nights - 31)) if event else None
    size = float(rng.choice([0.03, -0.03, 0.05]))
    if event == "machine":
        common[at:] += size
    kinds = [kind for kind in KINDS if kind != "drift"]
    steps: dict[int, tuple[int, float]] = {}
    series = []
    for index in range(count):
        is_control = index >= count - controls
        if event == "compiler" and not is_control and at is not None:
            steps[index] = (at, float(np.expm1(size * rng.uniform(0.6, 1.4))))
        elif not is_control and rng.random() < 0.2:
            steps[index] = (
                int(rng.integers(60, nights - 31)),
                float(rng.choice([-1, 1]) * rng.choice([0.03, 0.05, 0.1, 0.2])),
            )
        tau, step = steps.get(index, (None, 0.0))
        kind = kinds[int(rng.integers(len(kinds)))]
        series.append(Series(kind, nights, [seed, 10, index], step, tau, common))
    lasting = range(count - controls, count)
    return Fleet(series, steps, list(lasting), at if event == "machine" else None, at if event == "compiler" else None)
