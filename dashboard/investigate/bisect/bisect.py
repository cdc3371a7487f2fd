"""`bisect`: the commit that made a series slower, by noisy measurements in alternation with the good end."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import Artifact, ArtifactError
from dashboard.artifacts.provide import Provided
from dashboard.investigate.bisect.journal import BisectJournal, facts_of, path_of
from dashboard.investigate.bisect.range import Candidate, between
from dashboard.investigate.bisect.result import FOUND, NO_STEP, OVER, RANGE, Result
from dashboard.investigate.experiment_runner import ExperimentRunner, MeasuringError
from dashboard.investigate.request import BUDGET, FAILED
from dashboard.investigate.series_selection import WantedSeries, find
from dashboard.investigate.workspace import open_workspace
from dashboard.plan.artifact_names import ArtifactFinder
from dashboard.plan.job import CodeFolders
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

if TYPE_CHECKING:
    from tvmdash.stats.bisection import Search

ERROR = 0.05
_TRIES = 2
"""How often a commit may fail to be measured before it is walked round."""
_log = logging.getLogger("bisect")


@dataclass(frozen=True)
class Question:
    """Which build after `good` and not after `bad`, as people name artifacts, moved the series.

    error: how often the answer may be wrong. fresh: what an earlier call measured is forgotten.
    """

    experiment: str
    series: str
    good: str
    bad: str
    budget_s: float = math.inf
    error: float = ERROR
    fresh: bool = False
    rebuild: bool = True


def bisect(home: Home, question: Question, *, code: CodeFolders, seed: int | None = None) -> tuple[Result, Path]:
    """Search until the culprit is known well enough or the budget is over; what came of it, and its file.

    What was measured stays in a journal: the same question goes on from there. DashboardError where an end cannot be
    built or measured, or nothing lies between them; HeldError where a night holds the home.
    """
    series = find(home, question.experiment, question.series)
    with open_workspace(home, code, seed=seed) as workspace, contextlib.ExitStack() as leases:
        finder = ArtifactFinder(
            workspace.plan.config, workspace.plan.config.tmp_data / "logs" / workspace.stamp, question.rebuild
        )
        runner = ExperimentRunner(workspace, time.monotonic(), question.budget_s)
        runner.job(question.experiment)
        good, bad = (leases.enter_context(finder.named(name)).artifact for name in (question.good, question.bad))
        candidates = between(good, bad, finder)
        path = path_of(home, series, good, bad)
        journal = BisectJournal.opened(path, facts_of(runner, series, good, bad), fresh=question.fresh)
        this = _Bisection(question, series, candidates, journal, runner, finder, good, bad)
        result = this.search()
    common.write_json(path.with_suffix(".json"), result.to_json())
    return result, path.with_suffix(".json")


@dataclass
class _Bisection:
    question: Question
    series: WantedSeries
    candidates: list[Candidate]
    journal: BisectJournal
    runner: ExperimentRunner
    finder: ArtifactFinder
    good: Artifact
    bad: Artifact
    _now: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _held: tuple[str, Artifact] | None = None
    _failures: Counter[str] = field(default_factory=Counter)

    def search(self) -> Result:
        """To the end, or to that of the budget."""
        from tvmdash.stats.bisection import ends_are_clear

        try:
            with self._now:
                if not self._find_step():
                    return self._result(NO_STEP, None)
                return self._search()
        except MeasuringError as error:
            if error.state != BUDGET:
                raise
            _log.info("%s", error)
            return self._result(OVER, self._model() if ends_are_clear(self._ends) else None)

    @property
    def _ends(self) -> list[float]:
        return self._values(self.candidates[-1])

    def _values(self, candidate: Candidate) -> list[float]:
        """ln(value / value of the good end) of each pair."""
        return [math.log(here / good) for good, here in self.journal.pairs.get(candidate.id, ())]

    def _find_step(self) -> bool:
        """Measure the ends in alternation until it is clear how far they are apart; whether they are."""
        from tvmdash.stats.bisection import ends_are_clear

        while (clear := ends_are_clear(self._ends)) is None:
            try:
                self._pair(self.candidates[-1], self.bad)
            except MeasuringError as error:
                raise MeasuringError(error.state, f"--good and --bad cannot be measured in turn: {error}") from error
        return clear

    def _model(self) -> Search:
        """The search with all that was measured until now, which also says how noisy that is."""
        from tvmdash.stats.bisection import Search, step_of

        inner = {at: self._values(one) for at, one in enumerate(self.candidates[1:-1], 1)}
        found = Search(len(self.candidates) - 1, step_of(self._ends, inner.values()), self.question.error)
        for at, values in inner.items():
            if values:
                found.add(at, values)
            if self.candidates[at].id in self.journal.failed:
                found.fail(at)
        found.add(found.count, self._ends)
        return found

    def _search(self) -> Result:
        while (at := (model := self._model()).next()) is not None:
            candidate = self.candidates[at]
            artifact = self._artifact(candidate)
            if artifact is None:
                continue
            try:
                self._pair(candidate, artifact)
            except MeasuringError as error:
                if error.state != FAILED:
                    raise
                self._failures[candidate.id] += 1
                if self._failures[candidate.id] == _TRIES:
                    self._give_up(candidate, error)
        verdict = model.verdict()
        known = verdict.first == verdict.last and verdict.probability >= 1 - self.question.error
        return self._result(FOUND if known else RANGE, model)

    def _give_up(self, candidate: Candidate, error: MeasuringError) -> None:
        """A commit that cannot be measured says nothing; a good end that cannot any more ends the search."""
        self._value(self.good)
        self.journal.fail(candidate.id, str(error), 0.0)
        _log.info("%s cannot be measured: %s", candidate.words, error)

    def _pair(self, candidate: Candidate, artifact: Artifact) -> None:
        """Measure the good end and the candidate, in an order that changes from pair to pair."""
        self.runner.check_budget(self.series.experiment, rounds=2)
        begun, count = time.monotonic(), len(self.journal.pairs.get(candidate.id, ()))
        order = [self.good, artifact] if count % 2 == 0 else [artifact, self.good]
        values = {one.key: self._value(one) for one in order}
        good, here = values[self.good.key], values[artifact.key]
        self.journal.pair(candidate.id, good, here, time.monotonic() - begun)
        _log.info("%s: pair %d, %+.2f %%", candidate.words, count + 1, 100 * (here / good - 1))

    def _value(self, artifact: Artifact) -> float:
        value = self.series.value_in(self.runner.measure(self.series.experiment, artifact, [self.series.point]))
        if value is None:
            raise MeasuringError(FAILED, f"analyze: {self.series.name} is not among what was measured")
        if value <= 0:
            raise DashboardError(f"{self.series.name}: {value:g} is not above 0. Only such series can be bisected.")
        return value

    def _artifact(self, candidate: Candidate) -> Artifact | None:
        """The candidate's build, kept from removal until another one is wanted; None where there is none."""
        if self._held and self._held[0] == candidate.id:
            return self._held[1]
        self._now.close()
        self._held = None
        self.runner.check_budget(self.series.experiment, rounds=2)
        begun, before = time.monotonic(), {path.name for path in self._artifacts.iterdir()}
        try:
            provided = self._now.enter_context(self.finder.of(candidate.spec, self.runner.left_s))
        except ArtifactError as error:
            if self.runner.left_s <= 1.0:
                raise MeasuringError(BUDGET, f"the {self.runner.budget_s:.0f} s ended in a build") from error
            self.journal.fail(candidate.id, str(error), time.monotonic() - begun)
            _log.info("%s cannot be built: %s", candidate.words, error)
            return None
        if provided.artifact.key not in before:
            self.journal.build(candidate.id, time.monotonic() - begun)
            self._prune(provided)
        self._held = candidate.id, provided.artifact
        return provided.artifact

    @property
    def _artifacts(self) -> Path:
        return self.finder.config.artifacts

    def _prune(self, provided: Provided) -> None:
        keep = {self.good.key, self.bad.key, provided.artifact.key}
        artifact_store.prune(self._artifacts, self.finder.config.max_artifacts_bytes, keep)

    def _result(self, state: str, model: Search | None) -> Result:
        empty = Result(
            state,
            self.series.experiment,
            self.series.id,
            self.series.name,
            self.series.direction,
            good=self.candidates[0],
            bad=self.candidates[-1],
            candidates=len(self.candidates) - 1,
            ends=len(self._ends),
            builds=self.journal.built,
            failed=dict(self.journal.failed),
            measurements=self.journal.measurements,
            elapsed_s=round(self.journal.elapsed_s, 3),
            error=self.question.error,
            journal=str(self.journal.path),
        )
        return empty if model is None else self._with(empty, model)

    def _with(self, empty: Result, model: Search) -> Result:
        from tvmdash.stats.bisection import least_measurements

        verdict, (size, half) = model.verdict(), model.size()
        return replace(
            empty,
            suspects=tuple(self.candidates[verdict.first : verdict.last + 1]),
            probability=verdict.probability,
            effect=math.expm1(size),
            low=math.expm1(size - half),
            high=math.expm1(size + half),
            noise=model.step.noise,
            least=2 * least_measurements(len(self.candidates) - 1, model.step),
        )
