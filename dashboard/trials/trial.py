"""The course of a trial.

A trial is two TVMs measured round by round. A round is one run of an experiment: by pairs of processes in turn where
the experiment supports that, else first on one TVM and then on the other, which takes turns from round to round. A
command is a plan: it says which round comes next and what its outcome means. `Measuring` does the rest for all:

- A round holds the home; between two rounds it is free, so that a night that waits goes first. `reproduce` alone holds
  it from its first round to its last.
- What a round gave is in the trial's file before the next begins: the same command goes on there, after a kill too.
- The budget counts measuring and what is built for a round, neither waiting nor getting the two TVMs.

`session` gets the TVMs of a round and has the night's own engine run it; `result` judges what was measured by the
night's own judge; `tvmdash.trials` has the file (`trial`) and its words (`text`).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from dashboard.night import lock
from dashboard.plan.job import CodeFolders
from dashboard.trials.rounds import MeasuringRequest, Round, RoundOutcome, RoundState
from dashboard.trials.session import MeasuringSession, open_session
from tvmdash.dashboard_info import Home
from tvmdash.machine import hardware
from tvmdash.trials import files
from tvmdash.trials.trial import Trial, TrialState

_POLL_S = 2.0
_log = logging.getLogger("trial")


class Plan(Protocol):
    """A command's plan for its rounds, and their meaning. Each method gets the trial as it stands."""

    def choose(self, trial: Trial) -> Round | None:
        """Return the next round; None where the trial has its answer."""

    def take(self, trial: Trial, outcome: RoundOutcome) -> Trial:
        """The trial with what came of a round; DashboardError where it cannot go on."""

    def conclude(self, trial: Trial) -> Trial:
        """Complete the trial at its end, whatever ended it."""


Opening = Callable[[MeasuringRequest], contextlib.AbstractContextManager[MeasuringSession]]
"""Opens the session that one round is measured in."""


@dataclass
class Measuring:
    """A trial at work. request: its budget is what is left of it."""

    request: MeasuringRequest
    opening: Opening
    path: Path
    trial: Trial
    _used_s: float = 0.0
    _took_s: dict[str, float] = field(default_factory=dict)

    def perform(self, plan: Plan) -> Trial:
        """Measure until the plan has its answer, the budget is over, or somebody interrupts it; also kept in the file.

        DashboardError as the plan raises it; what was measured before is kept.
        """
        state = TrialState.INTERRUPTED
        try:
            state = self._measure(plan)
        except KeyboardInterrupt:
            _log.info("interrupted; the measurements are kept in %s", self.path)
        self.trial = plan.conclude(replace(self.trial, state=state))
        files.save(self.path, self.trial)
        return self.trial

    def _measure(self, plan: Plan) -> TrialState:
        while (asked := plan.choose(self.trial)) is not None:
            outcome = self._run(asked)
            if outcome is None or outcome.state is RoundState.BUDGET:
                return TrialState.OVER
            took_s = outcome.elapsed_s + outcome.built_s
            self.trial = plan.take(replace(self.trial, measured_s=round(self.trial.measured_s + took_s, 3)), outcome)
            files.save(self.path, self.trial)
        return TrialState.DONE

    def _run(self, asked: Round) -> RoundOutcome | None:
        """Measure the round; None where it would not fit in what is left, going by the experiment's last one."""
        name, left_s = asked.experiment, self.request.budget_s - self._used_s
        if left_s <= self._took_s.get(name, 0.0):
            return None
        seed = None if self.request.seed is None else self.request.seed + sum(self.trial.runs.values())
        with self.opening(replace(self.request, budget_s=left_s, seed=seed)) as session:
            session.budget.restart(left_s)
            outcome = session.measure(asked)
            if outcome.is_measured and session.runner.fingerprint(name) != self.trial.experiments[name]:
                text = "its code or config changed meanwhile; run the same command again to start over"
                outcome = replace(outcome, state=RoundState.CHANGED, error=text)
        self._used_s += outcome.elapsed_s + outcome.built_s
        self._took_s[name] = outcome.elapsed_s
        return outcome


@contextlib.contextmanager
def open_turn(home: Home, code: CodeFolders, request: MeasuringRequest) -> Iterator[MeasuringSession]:
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


def begin(home: Home, new: Trial, goes_on: Callable[[Trial], bool]) -> tuple[Trial, Path]:
    """The trial of the same two TVMs that an earlier call began and that `goes_on`, or the new one; and its file.

    What was measured with another code or config of an experiment, or on another machine, does not count.
    """
    earlier = files.find_earlier(home, lambda old: _is_alike(old, new) and goes_on(old))
    if earlier is None:
        is_taken = (home.tries / f"{new.stamp}.json").exists()
        stamp = files.make_id(home) if is_taken or not new.stamp else new.stamp
        return replace(new, stamp=stamp), home.tries / f"{stamp}.json"
    old, path = earlier
    _log.info("continuing with the %d runs in %s", sum(old.runs.values()), path)
    asked = replace(old, kind=new.kind, until=new.until, left_out=new.left_out)
    return replace(asked, state=TrialState.RUNNING, errors={}, ended=""), path


def _is_alike(old: Trial, new: Trial) -> bool:
    return (old.candidate.key, old.base.key, old.machine, old.experiments) == (
        new.candidate.key, new.base.key, new.machine, new.experiments,
    )  # fmt: skip


def name_machine() -> str:
    """Name this machine as trials do."""
    here = hardware.facts()
    return f"{here['host']} ({here['hw_model']})"
