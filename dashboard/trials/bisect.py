"""The plan of `bisect`: the TVM that moved a series, by noisy measurements beside the good end."""

from __future__ import annotations

import contextlib
import logging
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.artifacts.artifact import Artifact
from dashboard.plan.job import CodeFolders
from dashboard.trials import result as results
from dashboard.trials.queue import take_turn
from dashboard.trials.rounds import (
    BuildCandidate,
    MeasuringError,
    MeasuringRequest,
    Round,
    RoundOutcome,
    RoundState,
    point_of,
)
from dashboard.trials.trial import Measuring, begin, name_machine, open_turn
from dashboard.trials.tvms import find_named, list_between
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records.metrics import RATIOS
from tvmdash.trials.trial import (
    Bisection,
    BisectionState,
    BisectionStep,
    RunOfPairs,
    Trial,
    TrialChange,
    TrialKind,
    TrialSeries,
    TrialState,
)

if TYPE_CHECKING:
    from tvmdash.judge.search import Search

ERROR = 0.05
_TRIES = 2
"""Failures of a commit after which it is walked round."""
_log = logging.getLogger("bisect")


def bisect(
    home: Home, request: MeasuringRequest, *, code: CodeFolders, error: float = ERROR, fresh: bool = False
) -> tuple[Trial, Path]:
    """Find the build, after the request's first TVM and up to its second, that moved its series; also return the file.

    It searches until the culprit is known well enough, or the budget is over; it is wrong as often as `error` says. The
    same question goes on with what was measured of it, unless it begins `fresh`. DashboardError where the request names
    no series of the home, an end cannot be built or measured, or nothing lies between them.
    """
    (experiment,), (name,) = request.experiments, request.series
    series, opening = results.find(home, experiment, name), partial(open_turn, home, code)
    with take_turn(home), contextlib.ExitStack() as leases:
        with opening(request) as session:
            good, bad = (find_named(tvm, session.finder) for tvm in request.tvms)
            for end in (good, bad):
                leases.enter_context(end.provided)
            candidates = list_between(good.artifact, bad.artifact, session.finder)
            job = session.workspace.find_job(experiment)
            fingerprint = session.runner.fingerprint(experiment)
        ends = Bisection(
            good=candidates[0].suspect, bad=candidates[-1].suspect, candidates=len(candidates) - 1, error=error
        )
        new = Trial(
            "", TrialState.RUNNING, bad.tvm, good.tvm, 0.0, name_machine(), {experiment: fingerprint},
            series=(series,), kind=TrialKind.BISECT, bisection=ends,
        )  # fmt: skip
        trial, path = begin(home, new, lambda old: not fresh and _asks(old) == _asks(new))
        in_turn = job is not None and job.alone is None and series.metric in RATIOS.values()
        plan = _Searching(series, candidates, good.artifact, bad.artifact, in_turn, error)
        for journal in () if trial.runs else home.root.glob(f"results/bisections/*-{series.id[:8]}-*.jsonl"):
            _log.info("%s: from an older dashboard, which this one does not continue; measuring anew", journal)
        return Measuring(request, opening, path, trial).perform(plan), path


def _asks(trial: Trial) -> tuple[TrialKind, str]:
    return trial.kind, trial.series[0].id if trial.kind is TrialKind.BISECT else ""


@dataclass
class _Searching:
    """A search at work. in_turn: pairs of processes measure the series."""

    series: TrialSeries
    candidates: list[BuildCandidate]
    good: Artifact
    bad: Artifact
    in_turn: bool
    error: float
    _failures: Counter[str] = field(default_factory=Counter)
    _asked: BuildCandidate | None = None
    _doubtful: BuildCandidate | None = None
    """It failed; whether the good end can still be measured is asked before it is walked round."""
    _why: str = ""

    def choose(self, trial: Trial) -> Round | None:
        """Choose the bad end until its distance from the good one is clear; then the build that tells most."""
        points = (point_of(self.series.labels),)
        if self._doubtful is not None:
            return Round(self.series.experiment, (self.good,), points)
        clear = _is_step_known(trial)
        at = len(self.candidates) - 1 if clear is None else self._search(trial).next() if clear else None
        if at is None:
            return None
        self._asked = self.candidates[at]
        tvm = self.bad if self._is_end else self._asked.spec
        if self.in_turn:
            return Round(self.series.experiment, (tvm,), points, beside=self.good, metrics=(self.series.metric,))
        return Round(self.series.experiment, (self.good, tvm), points, len(_values_of(trial, self._asked)))

    @property
    def _is_end(self) -> bool:
        return self._asked is self.candidates[-1]

    def take(self, trial: Trial, outcome: RoundOutcome) -> Trial:
        """Add the pairs of the round, or the reason why its TVM is walked round."""
        assert self._asked is not None
        bisection = _part_of(trial)
        if outcome.built_s:
            trial = replace(trial, bisection=replace(bisection, builds=bisection.builds + 1))
        if self._doubtful is not None:
            self._read_values(outcome)  # a good end that cannot be measured any more ends the search
            self._doubtful = None
            return self._fail(trial, self._why)
        if outcome.state is RoundState.UNBUILT:
            return self._fail(trial, outcome.error)
        try:
            measured = self._read(outcome)
        except MeasuringError as error:
            return self._doubt(trial, outcome, error)
        self._failures.pop(self._asked.id, None)
        trial = replace(trial, runs={self.series.experiment: sum(trial.runs.values()) + 1})
        if self._is_end:
            trial = results.collect(trial, [measured])
        else:
            trial = self._change_step(trial, logs=(*_values_of(trial, self._asked), *measured.logs))
        values = _values_of(trial, self._asked)
        _log.info("%s: pair %d, %+.2f %%", self._asked.suspect.text, len(values), 100 * math.expm1(values[-1]))
        return trial

    def _doubt(self, trial: Trial, outcome: RoundOutcome, error: MeasuringError) -> Trial:
        assert self._asked is not None
        if self._is_end:
            raise MeasuringError(error.state, f"could not measure --good and --bad in turn: {error}") from error
        if error.state is not RoundState.FAILED:
            raise error
        self._failures[self._asked.id] += 1
        if outcome.is_measured or self._failures[self._asked.id] >= _TRIES:
            self._doubtful = self._asked
            self._why = str(error)
        return trial

    def _fail(self, trial: Trial, why: str) -> Trial:
        assert self._asked is not None
        _log.info("could not measure %s: %s", self._asked.suspect.text, why)
        return self._change_step(trial, failed=why[:2000])

    def _change_step(self, trial: Trial, **changes: object) -> Trial:
        assert self._asked is not None
        bisection = _part_of(trial)
        step = replace(bisection.steps.get(self._asked.id, BisectionStep()), **changes)  # type: ignore[arg-type]
        return replace(trial, bisection=replace(bisection, steps={**bisection.steps, self._asked.id: step}))

    def _read(self, outcome: RoundOutcome) -> TrialSeries:
        """The series with what the round gave of the good end and the TVM asked for; MeasuringError without any."""
        if not self.in_turn or not outcome.is_measured:
            good, bad = self._read_values(outcome)
            return replace(self.series, rounds=((good, bad),))
        logs = results.logs_of(self.series, outcome.runs[0].values)
        if not logs:
            raise MeasuringError(RoundState.FAILED, f"analyze: no pair of {self.series.name} was measured")
        return replace(self.series, runs=(RunOfPairs.of(logs),))

    def _read_values(self, outcome: RoundOutcome) -> Sequence[float]:
        """The series' value in each run; MeasuringError where there is none."""
        outcome.raise_error()
        values = [results.value_of(self.series, run.values) for run in outcome.runs]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            raise MeasuringError(RoundState.FAILED, f"analyze: no value of {self.series.name} was measured")
        if min(known) <= 0:
            raise DashboardError(
                f"{self.series.name}: value {min(known):g} is not above 0. Only series with values above 0 can be "
                "bisected."
            )
        return known

    def _search(self, trial: Trial) -> Search:
        """The search with all that was measured until now, which also says how noisy that is."""
        from tvmdash.judge.search import Search, make_step

        steps, last = _part_of(trial).steps, len(self.candidates) - 1
        inner = {at: _values_of(trial, self.candidates[at]) for at in range(1, last)}
        ends = trial.series[0].logs
        search = Search(last, make_step(ends, inner.values()), self.error)
        for at, values in inner.items():
            if values:
                search.add(at, values)
            if steps.get(self.candidates[at].id, BisectionStep()).failed:
                search.fail(at)
        search.add(last, ends)
        return search

    def conclude(self, trial: Trial) -> Trial:
        """Add the culprit as far as it is known, and the size of the step by all pairs together."""
        bisection = _part_of(trial)
        ends, steps = trial.series[0].logs, bisection.steps.values()
        count = 2 * (len(ends) + sum(len(step.logs) for step in steps))
        (change,) = results.judge_series(trial.series)
        clear, is_done = _is_step_known(trial), trial.state is TrialState.DONE
        found = replace(
            bisection, measurements=count, answer=BisectionState.NO_STEP if is_done else BisectionState.OPEN
        )
        if clear:
            found, size = self._name_suspects(trial, found)
            change = size or change
        return replace(trial, series=(replace(trial.series[0], change=change),), bisection=found)

    def _name_suspects(self, trial: Trial, found: Bisection) -> tuple[Bisection, TrialChange | None]:
        from tvmdash.judge.search import least_measurements

        search = self._search(trial)
        verdict = search.verdict()
        inner = {at: _values_of(trial, self.candidates[at]) for at in range(1, len(self.candidates) - 1)}
        before = [values for at, values in inner.items() if values and at < verdict.first]
        after = [values for at, values in inner.items() if values and at >= verdict.last]
        is_one = verdict.first == verdict.last and verdict.probability >= 1 - self.error
        answer = BisectionState.FOUND if is_one else BisectionState.RANGE
        found = replace(
            found,
            answer=answer if trial.state is TrialState.DONE else BisectionState.OPEN,
            suspects=tuple(candidate.suspect for candidate in self.candidates[verdict.first : verdict.last + 1]),
            probability=verdict.probability,
            noise=search.step.noise,
            least=2 * least_measurements(len(self.candidates) - 1, search.step),
        )
        return found, results.judge_step(trial.series[0], before, after)


def _part_of(trial: Trial) -> Bisection:
    assert trial.bisection is not None
    return trial.bisection


def _is_step_known(trial: Trial) -> bool | None:
    from tvmdash.judge.search import ends_are_clear

    return ends_are_clear(list(trial.series[0].logs))


def _values_of(trial: Trial, candidate: BuildCandidate) -> Sequence[float]:
    """Return ln(value / value of the good end) of each pair."""
    bisection = _part_of(trial)
    if candidate.id == bisection.bad.id:
        return trial.series[0].logs
    return bisection.steps.get(candidate.id, BisectionStep()).logs
