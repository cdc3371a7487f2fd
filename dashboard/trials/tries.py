"""The plan of `try` and `compare`: run after run, until every interval is narrow or each was measured so often."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from dashboard.artifacts.artifact import Artifact
from dashboard.night.lock import HeldError
from dashboard.plan.job import Alone, CodeFolders
from dashboard.trials import result as results
from dashboard.trials.queue import Claim, claim, take_turn
from dashboard.trials.rounds import MeasuringRequest, Round, RoundOutcome, RoundState
from dashboard.trials.session import MeasuringSession
from dashboard.trials.trial import Measuring, begin, name_machine, open_turn
from dashboard.trials.tvms import Found, find_base, find_named, name_again
from dashboard.trials.workspace import select_experiments
from tvmdash.common import stamp_of, utc_now
from tvmdash.common.files import lock
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.trials import files
from tvmdash.trials.trial import Trial, TrialKind, TrialRequest, TrialState

ROUNDS = 10
"""So often an experiment is measured that cannot be measured in turn, where nobody says how often."""
_SAYS_NOTHING = {Alone.NO_TVM: "needs no TVM", Alone.OWN_TVM: "its config asks for a TVM of its own"}
_log = logging.getLogger("try")


def try_tvm(home: Home, request: TrialRequest, *, code: CodeFolders, isolates: bool = True) -> tuple[Trial, Path]:
    """Measure now what is asked for, after whatever else is being tried in the home; the result and its file.

    isolates: see `MeasuringRequest`. DashboardError where a TVM cannot be had or no experiment runs on one.
    """
    with take_turn(home):
        name, _ = files.begin(home, request=request)
        with claim(home, request, name) as made:
            return measure(home, made, code=code, isolates=isolates)


def measure(home: Home, made: Claim, *, code: CodeFolders, isolates: bool = True) -> tuple[Trial, Path]:
    """Measure the candidate against its base or, where none is named, against what suits it; the result and its file.

    What an earlier call measured of the same two TVMs counts, unless it is to begin `fresh`; so does what this very
    request had measured before it was stopped, whatever its names mean by now. DashboardError as in `try_tvm`.
    """
    asked = made.request
    request = MeasuringRequest(
        asked.experiments, budget_s=asked.budget_s, rebuild=asked.rebuild, seed=asked.seed, isolates=isolates
    )
    opening = partial(open_turn, home, code)
    with contextlib.ExitStack() as leases:
        with opening(request) as session:
            alone, left_out = _choose_experiments(session, request)
            candidate, base = _find_tvms(session, made, leases)
            session.receive(candidate.artifact, base.artifact)
            trial, path = _begin(session, made, candidate, base, alone=alone, left_out=left_out)
            files.note(home, made.id, goes_on=trial.stamp)
        used_s = trial.measured_s - trial.requests[made.id].measured_s
        request = replace(request, budget_s=max(0.0, asked.budget_s - used_s))
        in_turn = frozenset(name for name, why in alone.items() if why is None)
        plan = _Trying(candidate.artifact, base.artifact, in_turn, asked.rounds, asked.budget_s)
        return Measuring(request, opening, path, trial).perform(plan), path


def _find_tvms(session: MeasuringSession, made: Claim, leases: contextlib.ExitStack) -> tuple[Found, Found]:
    """The candidate and its base, which nobody removes before `leases` are released."""
    home, asked = session.workspace.home, made.request
    store, earlier = session.finder.config.artifacts, files.find(home, asked.goes_on)
    names = [name_again(tvm, store) for tvm in (earlier.candidate, earlier.base)] if earlier else []
    candidate = find_named(names[0] if names else asked.candidate, session.finder)
    leases.enter_context(candidate.provided)
    named = names[1] if names else asked.base
    base = find_named(named, session.finder) if named else find_base(home, candidate.artifact, session.finder)
    leases.enter_context(base.provided)
    return candidate, base


def _begin(
    session: MeasuringSession,
    made: Claim,
    candidate: Found,
    base: Found,
    *,
    alone: dict[str, Alone | None],
    left_out: dict[str, str],
) -> tuple[Trial, Path]:
    """The trial of these experiments that an earlier call began, or a new one; and its file."""
    asked = made.request
    new = Trial(
        made.id, TrialState.RUNNING, candidate.tvm, base.tvm, asked.until, name_machine(),
        {name: session.runner.fingerprint(name) for name in alone}, left_out=left_out,
        kind=TrialKind.COMPARE if asked.rounds else TrialKind.TRY,
    )  # fmt: skip
    own = {TrialKind.TRY, TrialKind.COMPARE}
    trial, path = begin(
        session.workspace.home, new, lambda old: old.kind in own and (not asked.fresh or old.stamp == asked.goes_on)
    )
    by = trial.requests.get(made.id, made.asked(trial.measured_s))
    return replace(trial, requests={**trial.requests, made.id: by}), path


def _choose_experiments(
    session: MeasuringSession, request: MeasuringRequest
) -> tuple[dict[str, Alone | None], dict[str, str]]:
    """Choose those that say something of a TVM, with why one cannot be measured in turn, and why others do not."""
    jobs = {job.name: job for job in session.workspace.plan.experiments}
    alone = {name: jobs[name].alone for name in select_experiments(session.workspace.plan, request.experiments)}
    left_out = {name: _SAYS_NOTHING[why] for name, why in alone.items() if why in _SAYS_NOTHING}
    if len(left_out) == len(alone):
        raise DashboardError(f"Nothing to measure: {'; '.join(f'{name} {why}' for name, why in left_out.items())}.")
    return {name: why for name, why in alone.items() if name not in left_out}, left_out


@dataclass
class _Trying:
    """in_turn: experiments that pairs of processes measure. rounds: as in `TrialRequest`."""

    candidate: Artifact
    base: Artifact
    in_turn: frozenset[str]
    rounds: int
    budget_s: float
    _lost: set[str] = field(default_factory=set)
    """Series that a run was asked for and did not give; they are not asked for again."""

    def choose(self, trial: Trial) -> Round | None:
        """Choose the experiment that had the fewest runs, and its points that are not known well enough."""
        wanting = [name for name in trial.experiments if self._wants(trial, name)]
        if not wanting:
            return None
        name = min(wanting, key=lambda name: trial.runs.get(name, 0))
        ids = set(self._list_wanted(trial, name))
        points = results.list_points(item for item in trial.series if item.id in ids)
        if name in self.in_turn:
            return Round(name, (self.candidate,), points, sum(trial.runs.values()), beside=self.base)
        return Round(name, (self.base, self.candidate), points, trial.runs.get(name, 0))

    def _wants(self, trial: Trial, name: str) -> bool:
        if name in trial.errors:
            return False
        runs = trial.runs.get(name, 0)
        if name not in self.in_turn and runs >= (self.rounds or ROUNDS):
            return False
        return runs < (1 if name in self.in_turn else 2) or bool(self._list_wanted(trial, name))

    def _list_wanted(self, trial: Trial, name: str) -> Sequence[str]:
        wanted = results.list_wanted(trial, name, self.rounds)
        return [item.id for item in wanted if item.id not in self._lost]

    def take(self, trial: Trial, outcome: RoundOutcome) -> Trial:
        """Add the run, or the reason why the experiment could not go on."""
        name = outcome.round.experiment
        if not outcome.is_measured:
            side = self.candidate if outcome.round.tvms[outcome.at] is self.candidate else self.base
            is_of_one = len(outcome.round.tvms) > 1 and outcome.state is not RoundState.CHANGED
            which = f"on TVM {side.version}: " if is_of_one else ""
            return _give_up(trial, name, which + outcome.error)
        before, wanted = {item.id: item.pairs for item in trial.series}, set(self._list_wanted(trial, name))
        trial = results.add(trial, outcome)
        after = {item.id: item.pairs for item in trial.series}
        if name not in {item.experiment for item in trial.series} | {item.experiment for item in trial.numbers}:
            return _give_up(trial, name, "no value was measured on both")
        self._lost |= {item for item in wanted if after[item] == before[item]}
        _log.info("%s: run %d, %s", name, trial.runs[name], self._describe_progress(trial, name))
        return trial

    def _describe_progress(self, trial: Trial, name: str) -> str:
        if self.rounds:
            return f"{len(self._list_wanted(trial, name))} series remaining"
        wide = [item for item in results.list_wanted(trial, name) if item.id not in self._lost]
        widest = max((item.change.within if item.change else math.inf for item in wide), default=0.0)
        return f"{len(wide)} series remaining, the widest ±{100 * widest:.2g} %" if wide else "known well enough"

    def conclude(self, trial: Trial) -> Trial:
        """Note where the time was too short for one run of an experiment."""
        for name in trial.experiments:
            if trial.state is TrialState.OVER and not trial.runs.get(name) and name not in trial.errors:
                why = f"the time budget of {self.budget_s:.0f} s ran out during its first run"
                trial = _give_up(trial, name, why)
        return trial


def _give_up(trial: Trial, name: str, why: str) -> Trial:
    _log.info("%s: %s", name, why)
    return replace(trial, errors={**trial.errors, name: why})


@dataclass
class Worked:
    """The answered requests, by ID: results, why others could not be measured, and whether it was interrupted."""

    results: dict[str, Trial] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


def perform_queue(home: Home, *, code: CodeFolders) -> Worked:
    """Measure what waits in the queue, oldest first, until nothing does; HeldError where another process does so.

    One that cannot be measured stays in the queue and says why; the others go on. One that was stopped, by a signal or
    by a kill, stays as it is, and the next call goes on from there.
    """
    worked = Worked()
    with _be_the_only_one(home):
        while not worked.interrupted and (name := _choose_next(home, worked)) is not None:
            with take_turn(home, lets_others_pass=True):
                perform(home, name, worked, code=code)
    return worked


@contextlib.contextmanager
def _be_the_only_one(home: Home) -> Iterator[None]:
    folder = files.queue_of(home)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".worker"
    held = lock.take(path, f"since {stamp_of(utc_now())}")
    if held is None:
        raise HeldError(
            f"{home.root}: another process is already running its queue of tries: {lock.read_holder(path)}."
        )
    with held:
        yield


def _choose_next(home: Home, worked: Worked) -> str | None:
    """Choose the oldest request that was not come to yet; tell of those that cannot be read."""
    for waiting in files.list_requests(home):
        if waiting.id in worked.results or waiting.id in worked.faults:
            continue
        if waiting.request is None:
            worked.faults[waiting.id] = waiting.fault
            _log.info("%s", waiting.fault)
        elif not waiting.request.failed:
            return waiting.id
    return None


def perform(home: Home, name: str, worked: Worked, *, code: CodeFolders) -> None:
    """Measure one request of the queue, if it is still there. Only in one's turn."""
    try:
        _, request = files.begin(home, name)
        if request is not None:  # it was cancelled otherwise, or measured by another process
            _perform(home, name, request, worked, code)
    except (DashboardError, OSError) as error:
        worked.faults[name] = str(error)
        _log.info("%s: %s", name, error)
        if isinstance(error, DashboardError):
            files.note(home, name, failed=str(error))


def _perform(home: Home, name: str, request: TrialRequest, worked: Worked, code: CodeFolders) -> None:
    _log.info("%s: %s, requested by %s", name, request.candidate, request.asked_by)
    with claim(home, request, name) as made:
        try:
            done, _ = measure(home, made, code=code)
        except KeyboardInterrupt:
            worked.interrupted = not made.cancelled
            return
    worked.results[name] = done
    worked.interrupted = done.state is TrialState.INTERRUPTED and not made.cancelled
    if not worked.interrupted:
        files.take_away(home, name)
