"""Measure the change detector in planted situations: young series, steps in a row, builds that differ by luck.

    python3 tests/benchmarks/alerts/situations.py                       # about four minutes on one core
    python3 tests/benchmarks/alerts/situations.py --only luck,second --seeds 9801 --series 20

For each situation, with and without re-runs: false alerts per 1000 metric-nights, and for each planted step the per
cent told on the same night, within 1, 2, 3, 7 and 30 nights, with a culprit within 2 nights of it. The delay of a step
that comes before a series is judged counts from the first judged night.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "shared" / "python"), str(HERE)]

import generator  # noqa: E402

from tvmdash.judge.history import change_points  # noqa: E402
from tvmdash.judge.history.fleet import fleet as change_fleet  # noqa: E402 - from the repository
from tvmdash.judge.history.series import Decision, History, SeriesState, Settings  # noqa: E402

Array = np.ndarray[Any, Any]
Generator = np.random.Generator

LIMITS = (0, 1, 2, 3, 7, 30)
NEAR, ALONE_NEAR = 2, 5
FIRST_JUDGED = Settings().least_history - 1


class Planted:
    """A series with any number of steps {night: relative size}; a re-run keeps the build's level and luck."""

    def __init__(self, rng: Generator, parts: generator.Parts, steps: dict[int, float]) -> None:
        self.rng, self.parts, self.steps = rng, parts, steps
        nights = np.arange(parts.nights)
        self.level = np.zeros(parts.nights)
        for night, size in steps.items():
            self.level[night:] += np.log1p(size)
        self.values = self._runs(nights, nights)

    def _runs(self, builds: Array, nights: Array) -> Array:
        parts, rng = self.parts, self.rng
        noise = rng.standard_t(4, len(builds)) / np.sqrt(2) if parts.heavy else rng.standard_normal(len(builds))
        if parts.skew:
            spread = np.exp(parts.skew**2)
            noise = (np.exp(parts.skew * noise) - np.sqrt(spread)) / np.sqrt(spread * (spread - 1))
        spike = np.log1p(np.exp(rng.uniform(np.log(0.05), 0, len(builds)))) * (
            rng.random(len(builds)) < parts.spike_rate / 2
        )
        total = self.level[builds] + parts.build[builds] + parts.night[nights] + parts.run_sd[nights] * noise + spike
        values = np.exp(total)
        return np.maximum(parts.grid, np.round(values / parts.grid) * parts.grid) if parts.grid else values

    def rerun(self, night: int, build: int, count: int) -> list[float]:
        """Measure `build` again, `count` times, on `night`."""
        return [float(value) for value in self._runs(np.full(count, build), np.full(count, night))]


def gauss(nights: int, sd: float) -> generator.Parts:
    return generator.Parts(nights, np.full(nights, sd))


Plan = Callable[[Generator, int], Planted]


def early(rng: Generator, number: int) -> Planted:
    """A step of 10 or 100 % before the first judged night."""
    step = (0.1, 1.0, -0.1)[number % 3]
    return Planted(rng, gauss(90, 0.01), {(6, 9, 10, 14)[number // 3 % 4]: step})


def earliest(rng: Generator, number: int) -> Planted:
    """A step among the first six nights."""
    return Planted(rng, gauss(90, 0.01), {3 + number % 3: (0.1, 1.0)[number // 3 % 2]})


def early_calm(rng: Generator, number: int) -> Planted:
    """The first 60 nights of unchanged series of all kinds."""
    return Planted(rng, generator.FAMILIES[generator.KINDS[number % 10]](rng, 60), {})


def young(rng: Generator, number: int) -> Planted:
    """A step of 10 standard deviations at nights 20 to 53."""
    sd = (0.004, 0.006, 0.01)[number % 3]
    return Planted(rng, gauss(90, sd), {int(rng.integers(20, 54)): 10 * sd * (-1) ** number})


def new_level(rng: Generator, number: int) -> Planted:
    """A second step of 10 standard deviations 4 to 20 nights after a first."""
    return _two(rng, number, int(rng.integers(4, 21)))


def second(rng: Generator, number: int) -> Planted:
    """A second step 1 to 3 nights after a first."""
    return _two(rng, number, 1 + number % 3)


def _two(rng: Generator, number: int, gap: int) -> Planted:
    sd = (0.005, 0.01)[number // 3 % 2]
    at, size = int(rng.integers(60, 90)), 10 * sd
    first = size * (-1) ** number
    return Planted(rng, gauss(at + 50, sd), {at: first, at + gap: first * float(rng.choice([-0.5, 1, 2]))})


def after(rng: Generator, number: int) -> Planted:
    """A true step of 5 to 20 %, then calm, in all kinds of noise."""
    kind = generator.KINDS[number % 10]
    return Planted(rng, generator.FAMILIES[kind](rng, 160), _one_step(rng))


def after_sticky(rng: Generator, number: int) -> Planted:
    """The same in series whose modes last for nights."""
    return Planted(rng, generator.FAMILIES["sticky"](rng, 160), _one_step(rng))


def _one_step(rng: Generator) -> dict[int, float]:
    return {int(rng.integers(50, 90)): float(rng.choice([0.05, 0.1, 0.2]) * rng.choice([-1, 1]))}


def noisier(rng: Generator, number: int) -> Planted:
    """The variance grows fourfold (every other series: the deviation does) and stays so."""
    parts = generator.FAMILIES["gauss"](rng, 160)
    parts.run_sd[int(rng.integers(60, 100)) :] *= 2 if number % 2 else 4
    return Planted(rng, parts, {})


def luck(rng: Generator, number: int) -> Planted:
    """Builds that differ by luck, 0.5 to 2 %, without any change."""
    return Planted(rng, _lucky(rng, number), {})


def luck_step(rng: Generator, number: int) -> Planted:
    """The same with a true step of ten times that luck."""
    parts = _lucky(rng, number)
    return Planted(rng, parts, {int(rng.integers(60, 100)): 10 * float(np.std(parts.build))})


def _lucky(rng: Generator, number: int) -> generator.Parts:
    parts = gauss(140, float(np.exp(rng.uniform(np.log(0.001), np.log(0.006)))))
    spread = float(np.exp(rng.uniform(np.log(0.005), np.log(0.02))))
    draws = rng.standard_normal(140) if number % 2 else rng.standard_t(5, 140) / np.sqrt(5 / 3)
    parts.build[:] = spread * draws
    return parts


PLANS: dict[str, Plan] = {
    plan.__name__: plan
    for plan in (
        early, earliest, early_calm, young, new_level, second, after, after_sticky, noisier, luck, luck_step,
    )
}  # fmt: skip


class Alert(NamedTuple):
    """One alert: the culprit is later than `after`, not later than `cut`."""

    night: int
    after: int
    cut: int

    @classmethod
    def of(cls, decision: Decision) -> Alert | None:
        if decision.kind != "alert" or decision.cut is None or decision.after is None:
            return None
        return cls(decision.night, decision.after, decision.cut)

    def off(self, step: int) -> int:
        """By how many nights the culprit differs from the night of a step."""
        return 0 if self.after < step <= self.cut else abs(self.cut - step)


@dataclass
class Tally:
    """What was told in one situation. false: (series, night, culprit) of each alert without a step."""

    nights: int = 0
    reruns: int = 0
    false: list[tuple[int, int, int]] = field(default_factory=list)
    delays: list[list[float]] = field(default_factory=list)

    def add(self, number: int, series: Planted, told: list[Alert]) -> None:
        """Take in one series' alerts: each step is told by the nearest alert that follows it.

        A culprit that is a range of nights tells each step in it.
        """
        self.nights += len(series.values) - FIRST_JUDGED
        used: set[Alert] = set()
        near = NEAR if len(series.steps) > 1 else ALONE_NEAR
        for at, step in enumerate(series.steps):
            right = [(alert.off(step), alert) for alert in told if alert.night >= step and alert.off(step) <= near]
            free = [pair for pair in right if pair[1] not in used or pair[1].after < step <= pair[1].cut]
            best = min(free, default=None)
            used |= {best[1]} if best else set()
            while len(self.delays) <= at:
                self.delays.append([])
            self.delays[at].append(best[1].night - max(step, FIRST_JUDGED) if best else float("inf"))
        self.false += [(number, alert.night, alert.cut) for alert in told if alert not in used]

    def to_json(self) -> dict[str, Any]:
        return {
            "metric_nights": self.nights,
            "false_per_1000": round(1000 * len(self.false) / self.nights, 2),
            "reruns_per_1000": round(1000 * self.reruns / self.nights),
            "told_within": [
                {str(limit): round(100 * float(np.mean(np.array(late) <= limit)), 1) for limit in LIMITS}
                for late in self.delays
            ],
        }


def played(series: Planted, *, with_reruns: bool) -> tuple[list[Alert], int]:
    """Every alert, night by night, and the number of re-runs."""
    if not with_reruns:
        alerts, _ = change_points.change_points(History(series.values))
        return [told for alert in alerts if (told := Alert.of(alert))], 0
    state, alerts, reruns = SeriesState(), [], 0
    for night in range(FIRST_JUDGED, len(series.values)):
        decision = change_points.observe(
            History(series.values[: night + 1]),
            state,
            rerun=lambda build, count, night=night: series.rerun(night, build, count),
        )
        state, reruns = decision.state, reruns + len(decision.reruns)
        alerts.append(decision)
    return [told for alert in alerts if (told := Alert.of(alert))], reruns


def situation(name: str, seeds: list[int], count: int, *, with_reruns: bool) -> Tally:
    """The tally of one situation over `count` series a seed."""
    tally = Tally()
    for seed in seeds:
        for number in range(count):
            rng = np.random.default_rng([seed, list(PLANS).index(name), number])
            series = PLANS[name](rng, number)
            told, reruns = played(series, with_reruns=with_reruns)
            tally.reruns += reruns
            tally.add(number, series, told)
    return tally


def fleets(seeds: list[int], count: int, *, with_reruns: bool) -> dict[str, Any]:
    """Forty series of one machine with slow nights and single steps: what is told of them without a step."""
    nights = false = steps = found = 0
    for fleet in (generator.fleet(seed * 100 + number) for seed in seeds for number in range(count)):
        right: set[int] = set()
        for night, index, cut in _fleet_alerts(fleet, with_reruns=with_reruns):
            tau = fleet.steps.get(index, (-99, 0.0))[0]
            near = abs(cut - tau) <= 5
            right |= {index} if near else set()
            false += not near and night >= 30
        nights += len(fleet.series) * (fleet.series[0].T - 30)
        steps, found = steps + len(fleet.steps), found + len(right)
    share = round(100 * found / max(1, steps), 1)
    return {"metric_nights": nights, "false_per_1000": round(1000 * false / nights, 3), "found_percent": share}


def _fleet_alerts(fleet: generator.Fleet, *, with_reruns: bool) -> Iterator[tuple[int, int, int]]:
    state, names = change_fleet.FleetState(), frozenset(map(str, fleet.controls))
    for night in range(20, fleet.series[0].T):
        histories = {str(i): History(s.values[: night + 1], s.std[: night + 1]) for i, s in enumerate(fleet.series)}

        def measure(name: str, build: int, times: int, night: int = night) -> list[float]:
            return list(fleet.series[int(name)].rerun(night, build, times))

        told = change_fleet.night(histories, state, controls=names, rerun=measure if with_reruns else None)
        state = told.state
        for name, decision in told.decisions.items():
            if decision.kind == "alert" and decision.cut is not None:
                yield night, int(name), decision.cut


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join((*PLANS, "fleets")))
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[9901])
    parser.add_argument("--series", type=int, default=120, help="series a situation and seed")
    parser.add_argument("--fleets", type=int, default=4)
    parser.add_argument("--reruns", choices=("with", "without", "both"), default="both")
    parser.add_argument("--verbose", action="store_true", help="print each false alert")
    options = parser.parse_args()
    for name in options.only.split(","):
        for with_reruns in {"with": (True,), "without": (False,), "both": (True, False)}[options.reruns]:
            label = f"{name:13} {'re-runs' if with_reruns else 'history'}"
            if name == "fleets":
                print(label, json.dumps(fleets(options.seeds, options.fleets, with_reruns=with_reruns)), flush=True)
                continue
            tally = situation(name, options.seeds, options.series, with_reruns=with_reruns)
            print(label, json.dumps(tally.to_json()), flush=True)
            if options.verbose:
                print("   ", tally.false)


if __name__ == "__main__":
    main()
