"""What a home measures: its experiments, and a row for each of their series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.benchmarks.lab.noise import Family, Generator, Noise
from tvmdash.records.metrics import Direction, Kind


@dataclass(frozen=True)
class Number:
    """A number of a foreign experiment. signed: it is `base` plus noise of the size `sd`, and may be 0 or less."""

    path: str
    kind: Kind
    direction: Direction
    base: float
    sd: float = 0.0
    declared: bool = True
    signed: bool = False


@dataclass(frozen=True)
class Experiment:
    """points: how many, each with every metric. is_fixed: its program is built once and for all."""

    name: str
    points: int = 0
    metrics: tuple[str, ...] = ()
    is_fixed: bool = False
    numbers: tuple[Number, ...] = ()


@dataclass(frozen=True)
class Row:
    """One series. point: the workload's name, or the path of a foreign number. noise: None where it is exact."""

    experiment: Experiment
    point: str
    metric: str
    kind: Kind
    direction: Direction
    base: float
    noise: Noise | None = None
    number: Number | None = None

    @property
    def is_signed(self) -> bool:
        return self.number is not None and self.number.signed


TIMES = ("run_time", "compile_time")
NETS = Experiment("nets", 4, ("run_time", "compile_time", "code_size"))
OPS = Experiment("ops", 6, ("run_time", "code_size"))
OVERHEAD = Experiment("overhead", 2, ("run_time",))
CANARY = Experiment("canary", 4, ("run_time",), is_fixed=True)
HOME = (NETS, OPS, OVERHEAD, CANARY)
_OF_METRIC: dict[str, tuple[Kind, Direction, float]] = {
    "run_time": ("time", "lower", 1.0),
    "compile_time": ("time", "lower", 800.0),
    "code_size": ("exact", "lower", 20_480.0),
    "accuracy": ("accuracy", "higher", 1.0),
}


def make_rows(experiments: Sequence[Experiment], rng: Generator, families: Sequence[Family]) -> Iterator[Row]:
    """A row for each series, with a noise of its own where it has any."""

    def noise() -> Noise:
        return families[int(rng.integers(len(families)))](rng)

    for experiment in experiments:
        for point in range(experiment.points):
            for metric in experiment.metrics:
                kind, direction, base = _OF_METRIC[metric]
                scale = float(10 ** rng.uniform(-1, 1)) if metric == "run_time" else 1.0 + (kind == "exact") * point
                name = f"network.{experiment.name}{point}"
                scatter = noise() if kind == "time" else None
                yield Row(experiment, name, metric, kind, direction, base * scale, scatter)
        for number in experiment.numbers:
            scatter = noise() if number.kind in {"time", "rate", "number"} and not number.signed else None
            yield Row(experiment, number.path, "value", number.kind, number.direction, number.base, scatter, number)
