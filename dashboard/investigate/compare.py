"""`compare`: two artifacts measured in alternation on one machine. Nothing is published among the home's data."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dashboard.artifacts.provide import Provided
from dashboard.investigate.experiment_runner import ExperimentRunner, MeasuringError
from dashboard.investigate.request import BUDGET
from dashboard.investigate.series_selection import WantedSeries
from dashboard.investigate.workspace import MeasuringWorkspace, open_workspace
from dashboard.night import repository
from dashboard.plan.artifact_names import ArtifactFinder
from dashboard.plan.job import REPOSITORY, CodeFolders
from tvmdash import common
from tvmdash.dashboard_info import Home, variant_of
from tvmdash.errors import DashboardError
from tvmdash.machine import hardware as machine
from tvmdash.records import PointValue
from tvmdash.series import naming
from tvmdash.stats.comparison import LEAST_ROUNDS, Difference, differences

SCHEMA_VERSION = 1
FOLDER = "comparisons"
ROUNDS = 10
_log = logging.getLogger("compare")


@dataclass(frozen=True)
class Wanted:
    """What is to be compared: two artifacts as people name them, and which experiments; none of them means all."""

    a: str
    b: str
    experiments: tuple[str, ...] = ()
    rounds: int = ROUNDS
    budget_s: float = math.inf
    rebuild: bool = True


@dataclass(frozen=True)
class Side:
    """One of the two: as it was asked for, what it was, and a sentence where that is not quite the same."""

    asked: str
    artifact: Mapping[str, Any]
    note: str = ""


@dataclass
class Compared:
    """One series with what each round that measured both gave, as (A, B)."""

    series: WantedSeries
    rounds: list[tuple[float, float]] = field(default_factory=list)
    difference: Difference | None = None

    def to_json(self) -> dict[str, Any]:
        """As the file holds it."""
        return {**asdict(self.series), "rounds": self.rounds, "difference": self.difference and asdict(self.difference)}


@dataclass
class Comparison:
    """What came of it. rounds: how many each experiment had. errors: why one could not go on, by its name.

    over: experiments that did not get all their rounds, because the budget was over.
    """

    stamp: str
    a: Side
    b: Side
    seed: int
    machine: Mapping[str, Any]
    repository: Mapping[str, Any]
    series: dict[str, Compared] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)
    fingerprints: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    over: list[str] = field(default_factory=list)
    elapsed_s: float = 0.0

    @property
    def well(self) -> bool:
        """Whether every experiment was measured, often enough to be judged."""
        return not self.errors and all(self.rounds.get(name, 0) >= LEAST_ROUNDS for name in (*self.rounds, *self.over))

    def judge(self) -> None:
        """Name each series and say of each whether its difference is real."""
        found = list(self.series.values())
        names = naming.names([one.series for one in found])
        judged = differences([one.rounds for one in found])
        for one, name, difference in zip(found, names, judged, strict=True):
            one.series, one.difference = replace(one.series, name=name), difference

    def to_json(self) -> dict[str, Any]:
        """As the file holds it."""
        series = [one.to_json() for one in self.series.values()]
        return {"schema_version": SCHEMA_VERSION, **asdict(self), "series": series}


def compare(home: Home, wanted: Wanted, *, code: CodeFolders, seed: int | None = None) -> tuple[Comparison, Path]:
    """Measure both and judge; the comparison, and the file below results/ that holds it.

    DashboardError where an artifact cannot be had or no experiment is left; HeldError where a night holds the home.
    """
    begun = time.monotonic()
    with open_workspace(home, code, seed=seed) as workspace, contextlib.ExitStack() as leases:
        names = chosen(workspace, wanted.experiments)
        finder = ArtifactFinder(
            workspace.plan.config, workspace.plan.config.tmp_data / "logs" / workspace.stamp, wanted.rebuild
        )
        a, b = (leases.enter_context(finder.named(name)) for name in (wanted.a, wanted.b))
        done = _begin(workspace, wanted, a, b)
        runner = ExperimentRunner(workspace, time.monotonic(), wanted.budget_s)
        path = home.root / "results" / FOLDER / f"{workspace.stamp}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        for number in range(wanted.rounds):
            for name in names:
                if name not in {*done.errors, *done.over}:
                    _round(done, runner, name, (a, b), first=number % 2)
            done.judge()
            done.elapsed_s = round(time.monotonic() - begun, 3)
            common.write_json(path, done.to_json(), durable=False)
            if set(names) <= {*done.errors, *done.over}:
                break
    return done, path


def chosen(workspace: MeasuringWorkspace, asked: Sequence[str]) -> list[str]:
    """The experiments that take part, in the order of a night; DashboardError where one asked for does not run.

    Each counts once: what the home measures on a TVM beside its own takes part only where it is asked for.
    """
    there = [job.name for job in workspace.plan.experiments]
    for name in asked:
        if name not in there:
            rejected = {job.name: "; ".join(job.faults) for job in workspace.plan.rejected}
            why = rejected.get(name, f"The active experiments are: {', '.join(there) or 'none'}.")
            raise DashboardError(f"--experiments: {name} does not run in {workspace.home.root}. {why}")
    found = [name for name in there if (name in asked if asked else not variant_of(name))]
    if not found:
        raise DashboardError(f"{workspace.home.root}: no experiment is active.")
    return found


def _begin(workspace: MeasuringWorkspace, wanted: Wanted, a: Provided, b: Provided) -> Comparison:
    sides = [
        Side(name, provided.artifact.identity(), provided.note) for name, provided in ((wanted.a, a), (wanted.b, b))
    ]
    return Comparison(
        workspace.stamp, sides[0], sides[1], workspace.plan.seed, machine.facts(), repository.describe(REPOSITORY)
    )


def _round(
    done: Comparison, runner: ExperimentRunner, name: str, sides: tuple[Provided, Provided], *, first: int
) -> None:
    """Measure the experiment on both, side `first` first; what ends its part of the comparison is kept in words."""
    found: dict[int, list[PointValue]] = {}
    side = first
    try:
        runner.check_budget(name, rounds=2)
        for side in (first, 1 - first):
            found[side] = runner.measure(name, sides[side].artifact)
    except (MeasuringError, OSError) as error:
        if isinstance(error, MeasuringError) and error.state == BUDGET:
            done.over.append(name)
        else:
            done.errors[name] = f"on {'AB'[side]}, TVM {sides[side].artifact.version}: {error}"
        _log.info("%s: %s", name, error)
        return
    done.fingerprints[name] = runner.fingerprint(name)
    done.rounds[name] = done.rounds.get(name, 0) + 1
    _log.info("%s: round %d", name, done.rounds[name])
    values = {point.key.id: point.value for point in found[0]}
    for point in found[1]:
        if point.key.id in values:
            one = done.series.setdefault(point.key.id, Compared(WantedSeries.of(point)))
            one.rounds.append((values[point.key.id], point.value))
