"""`bisect`: the commit that made a series slower, by noisy measurements in alternation with the good end."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.artifacts.artifact import Artifact
from dashboard.plan.job import CodeFolders
from dashboard.trials.bisect.journal import BisectJournal, facts_of, path_of
from dashboard.trials.candidate import Candidate
from dashboard.trials.request import MeasuringRequest
from dashboard.trials.rounds import MeasuringError, Round, RoundOutcome, RoundState, Tvm
from dashboard.trials.series_selection import WantedSeries, find
from dashboard.trials.session import MeasuringSession, open_session
from dashboard.trials.tvm_range import list_between
from tvmdash import common, structured
from tvmdash.contracts.bisection import SCHEMA_VERSION, Bisection, BisectionState
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records.metrics import RATIOS

if TYPE_CHECKING:
    from tvmdash.judge.search import Search

ERROR = 0.05
_TRIES = 2
"""How often a commit may fail to be measured before it is walked round."""
_log = logging.getLogger("bisect")


def bisect(
    home: Home, request: MeasuringRequest, *, code: CodeFolders, error: float = ERROR, fresh: bool = False
) -> tuple[Bisection, Path]:
    """Which build after the first of the request's two TVMs and not after the second moved its series; and the file.

    It searches until the culprit is known well enough, or the budget is over; it is wrong as often as `error` says.
    What was measured stays in a journal: the same question goes on from there, unless `fresh` forgets it.
    DashboardError where the request names no series of the home, an end cannot be built or measured, or nothing lies
    between them; HeldError where a night holds the home.
    """
    (experiment,), (name,) = request.experiments, request.series
    series = find(home, experiment, name)
    with open_session(home, request, code, tries=_TRIES) as session:
        fingerprint = session.runner.fingerprint(series.experiment)
        good, bad = (session.lease(session.finder.find(tvm)).artifact for tvm in request.tvms)
        candidates = list_between(good, bad, session.finder)
        path = path_of(home, series, good, bad)
        journal = BisectJournal.open(path, facts_of(fingerprint, series, good, bad), fresh=fresh)
        job = session.workspace.find_job(series.experiment)
        is_in_turn = job is not None and job.alone is None and series.metric in RATIOS.values()
        result = _Bisection(session, series, candidates, journal, good, bad, error, is_in_turn).search()
    common.write_json(path.with_suffix(".json"), {"schema_version": SCHEMA_VERSION, **structured.to_json(result)})
    return result, path.with_suffix(".json")


@dataclass
class _Bisection:
    """A search at work. is_in_turn: pairs of processes measure the series."""

    session: MeasuringSession
    series: WantedSeries
    candidates: list[Candidate]
    journal: BisectJournal
    good: Artifact
    bad: Artifact
    error: float
    is_in_turn: bool

    def search(self) -> Bisection:
        """To the end, or to that of the budget."""
        try:
            for candidate in self._candidates_to_measure():
                self._measure(candidate)
        except MeasuringError as error:
            if error.state is not RoundState.BUDGET:
                raise
            _log.info("%s", error)
            return self._result(BisectionState.OVER, self._model() if self._is_step_known() else None)
        return self._conclude()

    @property
    def _ends(self) -> list[float]:
        return self._values(self.candidates[-1])

    def _is_step_known(self) -> bool | None:
        from tvmdash.judge.search import ends_are_clear

        return ends_are_clear(self._ends)

    def _values(self, candidate: Candidate) -> list[float]:
        """ln(value / value of the good end) of each pair."""
        return [math.log(here / good) for good, here in self.journal.pairs.get(candidate.id, ())]

    def _candidates_to_measure(self) -> Iterator[Candidate]:
        """The bad end until it is clear how far it is from the good one; where it is, what tells most, one by one."""
        while (clear := self._is_step_known()) is None:
            yield self.candidates[-1]
        while clear and (at := self._model().next()) is not None:
            yield self.candidates[at]

    def _model(self) -> Search:
        """The search with all that was measured until now, which also says how noisy that is."""
        from tvmdash.judge.search import Search, make_step

        inner = {at: self._values(candidate) for at, candidate in enumerate(self.candidates[1:-1], 1)}
        search = Search(len(self.candidates) - 1, make_step(self._ends, inner.values()), self.error)
        for at, values in inner.items():
            if values:
                search.add(at, values)
            if self.candidates[at].id in self.journal.failed:
                search.fail(at)
        search.add(search.count, self._ends)
        return search

    def _measure(self, candidate: Candidate) -> None:
        """Measure the good end and the candidate, and note what came of it."""
        is_end, count = candidate is self.candidates[-1], len(self.journal.pairs.get(candidate.id, ()))
        outcome = self.session.measure(self._make_round(self.bad if is_end else candidate.spec, count))
        if outcome.built_s:
            self.journal.build(candidate.id, outcome.built_s)
        if outcome.state is RoundState.UNBUILT:
            self.journal.fail(candidate.id, outcome.error, outcome.elapsed_s)
            _log.info("could not build %s: %s", candidate.text, outcome.error)
            return
        try:
            pairs = self._pairs_of(outcome)
        except MeasuringError as error:
            if is_end:
                raise MeasuringError(error.state, f"could not measure --good and --bad in turn: {error}") from error
            if error.state is not RoundState.FAILED:
                raise
            if outcome.is_final or outcome.is_measured:
                self._give_up(candidate, error)
            return
        for good, here in pairs:
            self.journal.pair(candidate.id, good, here, outcome.elapsed_s / len(pairs))
            count += 1
            _log.info("%s: pair %d, %+.2f %%", candidate.text, count, 100 * (here / good - 1))

    def _make_round(self, tvm: Tvm, count: int) -> Round:
        """The next measurement of a TVM: by pairs of processes in turn with the good end, else one run of each."""
        experiment, points = self.series.experiment, (self.series.point,)
        if self.is_in_turn:
            return Round(experiment, (tvm,), points, count, beside=self.good)
        return Round(experiment, (self.good, tvm), points, count)

    def _pairs_of(self, outcome: RoundOutcome) -> list[tuple[float, float]]:
        """The values on the good end and here, of one run the first being 1; MeasuringError where there are none."""
        if len(outcome.round.tvms) > 1 or not outcome.is_measured:
            good, here = self._values_of(outcome)
            return [(good, here)]
        logs = self.series.logs_in(outcome.runs[0].values)
        if not logs:
            raise MeasuringError(RoundState.FAILED, f"analyze: no pair of {self.series.name} was measured")
        return [(1.0, math.exp(log)) for log in logs]

    def _give_up(self, candidate: Candidate, error: MeasuringError) -> None:
        """A commit that cannot be measured says nothing; a good end that cannot any more ends the search."""
        self._values_of(self.session.measure(Round(self.series.experiment, (self.good,), (self.series.point,))))
        self.journal.fail(candidate.id, str(error), 0.0)
        _log.info("could not measure %s: %s", candidate.text, error)

    def _values_of(self, outcome: RoundOutcome) -> list[float]:
        """The series' value in each run; MeasuringError where there is none."""
        outcome.raise_error()
        values = [self.series.value_in(run.values) for run in outcome.runs]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            raise MeasuringError(RoundState.FAILED, f"analyze: no value of {self.series.name} was measured")
        if min(known) <= 0:
            raise DashboardError(
                f"{self.series.name}: value {min(known):g} is not above 0. Only series with values above 0 can be "
                "bisected."
            )
        return known

    def _conclude(self) -> Bisection:
        if not self._is_step_known():
            return self._result(BisectionState.NO_STEP, None)
        model = self._model()
        verdict = model.verdict()
        known = verdict.first == verdict.last and verdict.probability >= 1 - self.error
        return self._result(BisectionState.FOUND if known else BisectionState.RANGE, model)

    def _result(self, state: BisectionState, model: Search | None) -> Bisection:
        empty = Bisection(
            state,
            series=self.series.id,
            name=self.series.name,
            builds=self.journal.built,
            measurements=self.journal.measurements,
            elapsed_s=round(self.journal.elapsed_s, 3),
            experiment=self.series.experiment,
            direction=self.series.direction,
            good=self.candidates[0].suspect,
            bad=self.candidates[-1].suspect,
            candidates=len(self.candidates) - 1,
            ends=len(self._ends),
            failed=dict(self.journal.failed),
            error=self.error,
            journal=str(self.journal.path),
        )
        return empty if model is None else self._with_model(empty, model)

    def _with_model(self, empty: Bisection, model: Search) -> Bisection:
        from tvmdash.judge.search import least_measurements

        verdict, (size, half) = model.verdict(), model.size()
        return replace(
            empty,
            suspects=tuple(candidate.suspect for candidate in self.candidates[verdict.first : verdict.last + 1]),
            probability=verdict.probability,
            effect=math.expm1(size),
            low=math.expm1(size - half),
            high=math.expm1(size + half),
            noise=model.step.noise,
            least=2 * least_measurements(len(self.candidates) - 1, model.step),
        )
