"""`backfill`: nights of the past, measured now on the TVMs of then; kept apart from the home's own nights."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dashboard.artifacts.spec import GIT, provider_of, source_of
from dashboard.night import repository
from dashboard.plan.job import REPOSITORY, CodeFolders
from dashboard.trials.backfill import folder
from dashboard.trials.backfill.order import Choice, choose, order_by_gaps
from dashboard.trials.candidate import Candidate
from dashboard.trials.request import MeasuringRequest
from dashboard.trials.rounds import MeasuringError, Round, RoundOutcome, RoundState
from dashboard.trials.session import MeasuringSession, open_session
from dashboard.trials.tvm_range import list_range
from tvmdash import common
from tvmdash.backfill import calls as backfill_calls
from tvmdash.dashboard_info import Home
from tvmdash.text import elide, format_duration, format_list

_log = logging.getLogger("backfill")


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

    @property
    def account(self) -> backfill_calls.Call:
        """As results/backfills holds it."""
        lists = {"done": tuple(self.done), "had": tuple(self.had)}
        return backfill_calls.Call(**{**vars(self), **lists})


def backfill(
    home: Home, request: MeasuringRequest, *, code: CodeFolders, choice: Choice | None = None, retry: bool = False
) -> Filled:
    """Measure what is wanted of the request's range and not there yet, until it is done or the budget over.

    With `retry` also what could not be built before. DashboardError where the range or an experiment is none;
    HeldError where a night holds the home.
    """
    (tvms,), choice = request.tvms, choice or Choice()
    with open_session(home, request, code, tries=request.rounds) as session:
        names = session.workspace.select_experiments(request.experiments)
        candidates = list_range(tvms, session.finder)
        filled = Filled(session.workspace.stamp, tvms, 0)
        filling = _Filling(session, filled, {} if retry else _read_unbuilt(home))
        have = {name: folder.count_measured(home, name, session.runner.fingerprint(name)) for name in names}
        filling.fill(choose(candidates, choice), have, choice)
    return filled


def _read_unbuilt(home: Home) -> dict[str, str]:
    """What earlier calls could not build, and why."""
    calls = backfill_calls.read(home)
    for fault in calls.broken:
        _log.warning("%s Retrying what an earlier run could not build.", fault)
    return calls.unbuilt


@dataclass
class _Filling:
    session: MeasuringSession
    filled: Filled
    unbuilt: dict[str, str]

    def fill(self, wanted: list[Candidate], have: Mapping[str, Counter[folder.Which]], choice: Choice) -> None:
        begun, filled, rounds = time.monotonic(), self.filled, range(1, self.session.request.rounds + 1)
        todo = [step for number in rounds for step in _plan_round(wanted, have, number, gaps=choice.gaps)]
        lacking = {candidate.id for candidate, _ in todo}
        filled.wanted, filled.there = len(wanted), len({candidate.id for candidate in wanted} - lacking)
        try:
            for at, (candidate, names) in enumerate(todo):
                filled.left = len(todo) - at
                self._measure_night(candidate, names)
                filled.left -= 1
        except MeasuringError as error:
            _log.info("%s", error)
        finally:
            filled.elapsed_s = round(time.monotonic() - begun, 3)
            home = self.session.workspace.home
            home.backfills.mkdir(parents=True, exist_ok=True)
            common.write_json(home.backfills / f"{filled.stamp}.json", filled.account.to_json())

    def _measure_night(self, candidate: Candidate, names: list[str]) -> None:
        """A night of one TVM: these experiments. MeasuringError where the time is over."""
        if candidate.id in self.unbuilt:
            self.filled.unbuilt[candidate.id] = self.unbuilt[candidate.id]
            return
        for name in names:
            outcome = self.session.measure(Round(name, (candidate.spec,), needs_values=False))
            if outcome.state is RoundState.BUDGET:
                outcome.raise_error()
            if outcome.state is RoundState.UNBUILT:
                where = self.filled.unbuilt if self.session.request.rebuild else self.filled.failed
                where[candidate.id] = outcome.error
                _log.info("could not obtain %s: %s", candidate.text, outcome.error)
                return
            if candidate.id not in self.filled.had:  # it is asked for in each round
                self.filled.had.append(candidate.id)
            self._keep(candidate, outcome)

    def _keep(self, candidate: Candidate, outcome: RoundOutcome) -> None:
        name = outcome.round.experiment
        if not outcome.is_measured:
            self.filled.failed[backfill_calls.key_of(name, candidate.id)] = outcome.error
            _log.info("%s on %s: %s", name, candidate.text, outcome.error)
            return
        (run,) = outcome.runs
        date = candidate.date or run.artifact.facts.get("committed", "")
        facts: dict[str, Any] = {"committed": date or None, "repository": repository.describe(REPOSITORY)}
        path = folder.put(self.session.workspace.home, name, dict(run.data), facts)
        self.filled.done.append(f"{name}/{path.name}")
        _log.info("%s on %s: %s", name, candidate.text, path.name)


def _plan_round(
    wanted: list[Candidate], have: Mapping[str, Counter[folder.Which]], number: int, *, gaps: bool
) -> Iterator[tuple[Candidate, list[str]]]:
    """What is measured in this round: TVMs, and the experiments that have fewer measurements of them than rounds.

    Every second round goes from the newest to the oldest: a machine that slowly changes favours neither.
    """
    lacking = {candidate.id: [name for name in have if have[name][_which(candidate)] < number] for candidate in wanted}
    order: Iterable[Candidate] = wanted if number % 2 else reversed(wanted)
    if gaps:
        order = order_by_gaps(wanted, {ident for ident, names in lacking.items() if not names})
    return ((candidate, lacking[candidate.id]) for candidate in order if lacking[candidate.id])


def _which(candidate: Candidate) -> folder.Which:
    spec = candidate.spec
    remote = spec.shown if provider_of(spec) == GIT else source_of(spec).id
    return folder.which(remote, candidate.id, dict(spec.options))


def summarize(filled: Filled) -> str:
    """A few lines for people."""
    now = f"{len(filled.done)} nights measured now in {format_duration(filled.elapsed_s)}"
    rest = f"{len(filled.unbuilt)} TVMs could not be built, {filled.left} remain"
    lines = [f"{filled.wanted} TVMs in {filled.artifacts}: {filled.there} already measured, {now}, {rest}."]
    lines += [f"  {name}: {elide(why, 200)}" for name, why in list({**filled.unbuilt, **filled.failed}.items())[:10]]
    if filled.left:
        lines.append("The time budget ran out. Run the same command again to continue.")
    if filled.unbuilt:
        lines.append(f"Use --retry to try again to build: {format_list(list(filled.unbuilt), 5)}.")
    return "\n".join(lines)
