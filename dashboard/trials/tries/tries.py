"""`try` and `compare`: two TVMs measured, run after run, until every interval is narrow or the time is over.

What supports it is measured in turn by pairs of processes, all else first on one and then on the other. Between two
runs the home is free, so that nights pass. Nothing is published among the home's data.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dashboard.artifacts.artifact import Artifact
from dashboard.night import lock
from dashboard.plan.job import Alone, CodeFolders
from dashboard.trials.request import MeasuringRequest
from dashboard.trials.rounds import Round, RoundOutcome, RoundState
from dashboard.trials.session import MeasuringSession, open_session
from dashboard.trials.tries import result as results
from dashboard.trials.tries import turn
from dashboard.trials.tries.base import Found, find_base, find_named, name_again
from dashboard.trials.tries.turn import Claim
from tvmdash.contracts.tries import Try, TryRequest, TryState
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.machine import hardware
from tvmdash.tries import files

ROUNDS = 10
"""So often an experiment is measured that cannot be measured in turn, where nobody says how often."""
_POLL_S = 2.0
_SAYS_NOTHING = {Alone.NO_TVM: "needs no TVM", Alone.OWN_TVM: "its config asks for a TVM of its own"}
_log = logging.getLogger("try")


def try_tvm(home: Home, request: TryRequest, *, code: CodeFolders, isolates: bool = True) -> tuple[Try, Path]:
    """Measure now what is asked for, after whatever else is being tried in the home; the result and its file.

    isolates: see `MeasuringRequest`. DashboardError where a TVM cannot be had or no experiment runs on one.
    """
    with turn.take_turn(home), turn.claim(home, request, files.begin_now(home, request)) as claim:
        return measure(home, claim, code=code, isolates=isolates)


def measure(home: Home, claim: Claim, *, code: CodeFolders, isolates: bool = True) -> tuple[Try, Path]:
    """Measure the candidate against its base or, where none is named, against what suits it; the result and its file.

    The budget counts measuring alone, neither builds nor waiting. What an earlier call measured of the same two TVMs,
    with the same code on the same machine, counts, unless it is to begin `fresh`; so does what this very request had
    measured before it was stopped, whatever its names mean by now. DashboardError as in `try_tvm`.
    """
    asked = claim.request
    request = MeasuringRequest(
        asked.experiments, budget_s=asked.budget_s, rebuild=asked.rebuild, seed=asked.seed, isolates=isolates
    )
    with contextlib.ExitStack() as leases:
        with _open_turn(home, request, code) as session:
            alone, left_out = _choose_experiments(session, request)
            candidate, base = _find_tvms(session, claim, leases)
            session.receive(candidate.artifact, base.artifact)
            result, path = _begin(session, candidate, base, list(alone), claim)
            result = replace(result, until=asked.until, left_out=left_out)
            files.note_try(home, claim.id, result.stamp)
        used_s = result.measured_s - result.requests[claim.id].measured_s
        request = replace(request, budget_s=max(0.0, asked.budget_s - used_s))
        in_turn = frozenset(name for name, why in alone.items() if why is None)
        done = _Trying(
            home, request, code, candidate.artifact, base.artifact, path, result, in_turn, asked.rounds
        ).measure()
    return done, path


def _find_tvms(session: MeasuringSession, claim: Claim, leases: contextlib.ExitStack) -> tuple[Found, Found]:
    """The candidate and its base, which nobody removes before `leases` are released."""
    home, asked = session.workspace.home, claim.request
    store, earlier = session.finder.config.artifacts, files.find(home, asked.goes_on)
    names = [name_again(tvm, store) for tvm in (earlier.candidate, earlier.base)] if earlier else []
    candidate = find_named(names[0] if names else asked.candidate, session.finder)
    leases.enter_context(candidate.provided)
    named = names[1] if names else asked.base
    base = find_named(named, session.finder) if named else find_base(home, candidate.artifact, session.finder)
    leases.enter_context(base.provided)
    return candidate, base


@contextlib.contextmanager
def _open_turn(home: Home, request: MeasuringRequest, code: CodeFolders) -> Iterator[MeasuringSession]:
    """A session as soon as no night holds the home or waits for it; a night that begins meanwhile waits for its end."""
    told = ""
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(lock.take_turn(home))
                session = stack.enter_context(open_session(home, request, code))
                break
            except lock.HeldError as error:
                stack.close()
                if str(error) != told:
                    told = str(error)
                    _log.info("Waiting: %s", told)
                time.sleep(_POLL_S)
        yield session


def _begin(
    session: MeasuringSession, candidate: Found, base: Found, names: Sequence[str], claim: Claim
) -> tuple[Try, Path]:
    """The try of these experiments that an earlier call began, or a new one; and its file."""
    home, here = session.workspace.home, hardware.facts()
    machine = f"{here['host']} ({here['hw_model']})"
    fingerprints = {name: session.runner.fingerprint(name) for name in names}
    new = Try(claim.id, TryState.RUNNING, candidate.tvm, base.tvm, 0.0, machine, fingerprints)
    earlier = results.find_earlier(home, lambda old: _counts(old, new, claim))
    if earlier is None:
        is_taken = (home.tries / f"{claim.id}.json").exists()
        stamp = files.make_id(home) if is_taken else claim.id
        return replace(new, stamp=stamp, requests={claim.id: claim.asked(0.0)}), home.tries / f"{stamp}.json"
    old, path = earlier
    _log.info("continuing with the %d runs in %s", sum(old.runs.values()), path)
    requests = {**old.requests, claim.id: old.requests.get(claim.id, claim.asked(old.measured_s))}
    return replace(old, state=TryState.RUNNING, errors={}, requests=requests), path


def _counts(old: Try, new: Try, claim: Claim) -> bool:
    """Whether what the old one measured answers the new one."""
    is_same = (old.candidate.key, old.base.key, old.machine, old.experiments) == (
        new.candidate.key, new.base.key, new.machine, new.experiments,
    )  # fmt: skip
    return is_same and (not claim.request.fresh or old.stamp == claim.request.goes_on)


def _choose_experiments(
    session: MeasuringSession, request: MeasuringRequest
) -> tuple[dict[str, Alone | None], dict[str, str]]:
    """Those that say something of a TVM, with why one cannot be measured in turn, and why the others do not."""
    jobs = {job.name: job for job in session.workspace.plan.experiments}
    alone = {name: jobs[name].alone for name in session.workspace.select_experiments(request.experiments)}
    left_out = {name: _SAYS_NOTHING[why] for name, why in alone.items() if why in _SAYS_NOTHING}
    if len(left_out) == len(alone):
        raise DashboardError(f"Nothing to measure: {'; '.join(f'{name} {why}' for name, why in left_out.items())}.")
    return {name: why for name, why in alone.items() if name not in left_out}, left_out


@dataclass
class _Trying:
    """A try at work. in_turn: experiments that pairs of processes measure. rounds: as in `TryRequest`."""

    home: Home
    request: MeasuringRequest
    code: CodeFolders
    candidate: Artifact
    base: Artifact
    path: Path
    result: Try
    in_turn: frozenset[str]
    rounds: int
    _used_s: float = 0.0
    _took_s: dict[str, float] = field(default_factory=dict)
    _lost: set[str] = field(default_factory=set)
    """Series that a run was asked for and did not give; they are not asked for again."""

    def measure(self) -> Try:
        """Measure until nothing more is wanted, the budget is over, or somebody interrupts it."""
        state = TryState.INTERRUPTED
        try:
            state = self._measure()
        except KeyboardInterrupt:
            _log.info("interrupted; the measurements are kept in %s", self.path)
        finally:
            self.result = replace(self.result, state=state)
            results.write(self.path, self.result)
        return self.result

    def _measure(self) -> TryState:
        while wanting := [name for name in self.result.experiments if self._wants(name)]:
            for name in wanting:
                outcome = self._run(name)
                if outcome is None or outcome.state is RoundState.BUDGET:
                    return self._end_early()
                self._count(outcome)
                results.write(self.path, self.result)
        return TryState.DONE

    def _end_early(self) -> TryState:
        for name in self.result.experiments:
            if not self.result.runs.get(name):
                self._give_up(name, f"the time budget of {self.request.budget_s:.0f} s ran out during its first run")
        return TryState.OVER

    def _wants(self, name: str) -> bool:
        if name in self.result.errors:
            return False
        runs = self.result.runs.get(name, 0)
        if name not in self.in_turn and runs >= (self.rounds or ROUNDS):
            return False
        return runs < (1 if name in self.in_turn else 2) or bool(self._list_wanted(name))

    def _list_wanted(self, name: str) -> Sequence[str]:
        wanted = results.list_wanted(self.result, name, self.rounds)
        return [item.id for item in wanted if item.id not in self._lost]

    def _run(self, name: str) -> RoundOutcome | None:
        """One run of the experiment, of the points that are not known well enough; None where the time is over."""
        left_s = self.request.budget_s - self._used_s
        if left_s <= self._took_s.get(name, 0.0):
            return None
        ids = set(self._list_wanted(name))
        points = results.list_points(item for item in self.result.series if item.id in ids)
        number = sum(self.result.runs.values())
        seed = None if self.request.seed is None else self.request.seed + number
        with _open_turn(self.home, replace(self.request, budget_s=left_s, seed=seed), self.code) as session:
            session.budget.restart()
            if name in self.in_turn:
                asked = Round(name, (self.candidate,), points, number, beside=self.base)
            else:
                asked = Round(name, (self.base, self.candidate), points, self.result.runs.get(name, 0))
            outcome = session.measure(asked)
            if outcome.is_measured and session.runner.fingerprint(name) != self.result.experiments[name]:
                text = "its code or config changed meanwhile; run the same command again to start over"
                outcome = replace(outcome, state=RoundState.FAILED, error=text)
        self._used_s += outcome.elapsed_s
        self._took_s[name] = outcome.elapsed_s
        return outcome

    def _count(self, outcome: RoundOutcome) -> None:
        name = outcome.round.experiment
        if not outcome.is_measured:
            side = self.candidate if outcome.round.tvms[outcome.at] is self.candidate else self.base
            which = f"on TVM {side.version}: " if len(outcome.round.tvms) > 1 else ""
            return self._give_up(name, which + outcome.error)
        before = {item.id: item.pairs for item in self.result.series}
        wanted = set(self._list_wanted(name))
        self.result = results.add(self.result, outcome)
        after = {item.id: item.pairs for item in self.result.series}
        measured = {item.experiment for item in self.result.series} | {item.experiment for item in self.result.numbers}
        if name not in measured:
            return self._give_up(name, "no value was measured on both")
        self._lost |= {item for item in wanted if after[item] == before[item]}
        _log.info("%s: run %d, %s", name, self.result.runs[name], self._describe_progress(name))
        return None

    def _give_up(self, name: str, why: str) -> None:
        _log.info("%s: %s", name, why)
        self.result = replace(self.result, errors={**self.result.errors, name: why})

    def _describe_progress(self, name: str) -> str:
        if self.rounds:
            return f"{len(self._list_wanted(name))} series remaining"
        wide = [item for item in results.list_wanted(self.result, name) if item.id not in self._lost]
        widest = max((item.change.within if item.change else math.inf for item in wide), default=0.0)
        return f"{len(wide)} series remaining, the widest ±{100 * widest:.2g} %" if wide else "known well enough"
