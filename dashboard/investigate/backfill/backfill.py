"""`backfill`: nights of the past, measured now on the TVMs of then; kept apart from the home's own nights."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import Artifact, ArtifactError
from dashboard.investigate.backfill import folder
from dashboard.investigate.backfill.order import Choice, by_gaps, chosen
from dashboard.investigate.bisect.range import Candidate, of_range
from dashboard.investigate.compare import chosen as experiments_of
from dashboard.investigate.experiment_runner import ExperimentRunner, MeasuringError
from dashboard.investigate.request import BUDGET
from dashboard.investigate.workspace import open_workspace
from dashboard.night import repository
from dashboard.plan.artifact_names import ArtifactFinder
from dashboard.plan.job import REPOSITORY, CodeFolders
from tvmdash import common
from tvmdash.backfill import calls as backfill_calls
from tvmdash.dashboard_info import Home
from tvmdash.text import duration_in_words, elide, list_in_words

_log = logging.getLogger("backfill")


@dataclass(frozen=True)
class Request:
    """Which TVMs, of which experiments (none: all), how often, for how long.

    rebuild: get what is not at hand. retry: also what could not be built before.
    """

    artifacts: str
    experiments: tuple[str, ...] = ()
    choice: Choice = field(default_factory=Choice)
    rounds: int = 1
    budget_s: float = math.inf
    rebuild: bool = True
    retry: bool = False


@dataclass
class Filled:
    """What one call did, under the `stamp` of its begin.

    there: TVMs that were measured before. had: TVMs that could be built or were at hand. failed, unbuilt: what could
    not be measured, or not be had, and why.
    """

    stamp: str
    artifacts: str
    wanted: int
    done: list[str] = field(default_factory=list)
    there: int = 0
    had: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    unbuilt: dict[str, str] = field(default_factory=dict)
    left: int = 0
    elapsed_s: float = 0.0


def backfill(home: Home, request: Request, *, code: CodeFolders, seed: int | None = None) -> Filled:
    """Measure what is wanted and not there yet, until it is done or the budget over; what came of it.

    DashboardError where the range or an experiment is none; HeldError where a night holds the home.
    """
    with open_workspace(home, code, seed=seed) as workspace:
        names = experiments_of(workspace, request.experiments)
        finder = ArtifactFinder(
            workspace.plan.config, workspace.plan.config.tmp_data / "logs" / workspace.stamp, request.rebuild
        )
        candidates = of_range(request.artifacts, finder)
        runner = ExperimentRunner(workspace, time.monotonic(), request.budget_s)
        done = Filled(workspace.stamp, request.artifacts, 0)
        this = _Filling(home, runner, finder, names, done, _unbuilt(home, request))
        this.fill(chosen(candidates, request.choice), request)
    return done


def _unbuilt(home: Home, request: Request) -> dict[str, str]:
    """What earlier calls could not build, and why, unless it is to be tried again."""
    calls = backfill_calls.read(home)
    for fault in calls.broken:
        _log.warning("%s What that call could not build is tried again.", fault)
    return {} if request.retry else calls.unbuilt


@dataclass
class _Filling:
    home: Home
    runner: ExperimentRunner
    finder: ArtifactFinder
    names: list[str]
    done: Filled
    unbuilt: dict[str, str]

    def fill(self, wanted: list[Candidate], request: Request) -> None:
        begun = time.monotonic()
        have = {name: folder.measured(self.home, name, self.runner.fingerprint(name)) for name in self.names}
        todo = [step for number in range(1, request.rounds + 1) for step in _round(wanted, have, number, request)]
        self.done.wanted, self.done.there = len(wanted), len({one.id for one in wanted} - {one.id for one, _ in todo})
        try:
            for at, (candidate, names) in enumerate(todo):
                self.done.left = len(todo) - at
                self._one(candidate, names)
                self.done.left -= 1
        except MeasuringError as error:
            _log.info("%s", error)
        finally:
            self.done.elapsed_s = round(time.monotonic() - begun, 3)
            self.home.backfills.mkdir(parents=True, exist_ok=True)
            common.write_json(self.home.backfills / f"{self.done.stamp}.json", asdict(self.done))

    def _one(self, candidate: Candidate, names: list[str]) -> None:
        """A night of one TVM: these experiments. MeasuringError where the time is over."""
        if candidate.id in self.unbuilt:
            self.done.unbuilt[candidate.id] = self.unbuilt[candidate.id]
            return
        for name in names:
            self.runner.check_budget(name)
        try:
            provided = self.finder.of(candidate.spec, self.runner.left_s)
        except ArtifactError as error:
            if self.runner.left_s <= 1.0:
                raise MeasuringError(BUDGET, "the time was over in a build") from error
            where = self.done.unbuilt if self.finder.rebuild else self.done.failed
            where[candidate.id] = str(error)
            _log.info("%s cannot be had: %s", candidate.words, error)
            return
        if candidate.id not in self.done.had:  # it is asked for in each round
            self.done.had.append(candidate.id)
        with provided:
            for name in names:
                self._measure(name, candidate, provided.artifact)
            artifact_store.prune(
                self.finder.config.artifacts, self.finder.config.max_artifacts_bytes, {provided.artifact.key}
            )

    def _measure(self, name: str, candidate: Candidate, artifact: Artifact) -> None:
        try:
            self.runner.check_budget(name)
            value = self.runner.measure_night(name, artifact)
        except MeasuringError as error:
            if error.state == BUDGET:
                raise
            self.done.failed[backfill_calls.key_of(name, candidate.id)] = str(error)
            _log.info("%s on %s: %s", name, candidate.words, error)
            return
        date = candidate.date or artifact.facts.get("committed", "")
        facts: dict[str, Any] = {"committed": date or None, "repository": repository.describe(REPOSITORY)}
        path = folder.put(self.home, name, value, facts)
        self.done.done.append(f"{name}/{path.name}")
        _log.info("%s on %s: %s", name, candidate.words, path.name)


def _round(
    wanted: list[Candidate], have: Mapping[str, Counter[folder.Which]], number: int, request: Request
) -> Iterator[tuple[Candidate, list[str]]]:
    """What is measured in this round: TVMs, and the experiments that have fewer measurements of them than rounds.

    Every second round goes from the newest to the oldest: a machine that slowly changes favours neither.
    """
    lacking = {one.id: [name for name in have if have[name][_which(one)] < number] for one in wanted}
    order: Iterable[Candidate] = wanted if number % 2 else reversed(wanted)
    if request.choice.gaps:
        order = by_gaps(wanted, {ident for ident, names in lacking.items() if not names})
    return ((one, lacking[one.id]) for one in order if lacking[one.id])


def _which(one: Candidate) -> folder.Which:
    return folder.which(one.spec.remote, one.id, dict(one.spec.options))


def in_words(done: Filled) -> str:
    """A few lines for people."""
    now = f"{len(done.done)} nights measured now in {duration_in_words(done.elapsed_s)}"
    rest = f"{len(done.unbuilt)} TVMs could not be had, {done.left} are left"
    lines = [f"{done.wanted} TVMs in {done.artifacts}: {done.there} were measured before, {now}, {rest}."]
    lines += [f"  {name}: {elide(why, 200)}" for name, why in list({**done.unbuilt, **done.failed}.items())[:10]]
    if done.left:
        lines.append("The time was over. The same command goes on from here.")
    if done.unbuilt:
        lines.append(f"--retry builds again what could not be had: {list_in_words(list(done.unbuilt), 5)}.")
    return "\n".join(lines)
