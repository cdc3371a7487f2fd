"""The plan of `backfill`: nights of the past, measured now on the TVMs of then, kept apart from the home's own."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from dashboard.artifacts.spec import GIT, provider_of, source_of
from dashboard.artifacts.wheel.source import PYPI
from dashboard.night import repository
from dashboard.plan.job import REPOSITORY, CodeFolders
from dashboard.trials import result as results
from dashboard.trials.queue import take_turn
from dashboard.trials.rounds import BuildCandidate, MeasuringRequest, Round, RoundOutcome, RoundState
from dashboard.trials.trial import Measuring, name_machine, open_turn
from dashboard.trials.tvms import Choice, choose, list_range, order_by_gaps
from dashboard.trials.workspace import select_experiments
from tvmdash import common, records
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records import PointValue
from tvmdash.trials import files
from tvmdash.trials.trial import Backfill, BackfillStep, Trial, TrialKind, TrialState, TrialTvm

_log = logging.getLogger("backfill")
Which = tuple[str, str, str]
"""A TVM: its remote, its commit or version, the options that it was built with."""


def backfill(
    home: Home, request: MeasuringRequest, *, code: CodeFolders, choice: Choice | None = None, retry: bool = False
) -> tuple[Trial, Path]:
    """Measure what is wanted of the request's range and not there yet, until it is done or the budget over.

    With `retry` also what could not be built before. DashboardError where the range or an experiment is none.
    """
    (tvms,), choice, opening = request.tvms, choice or Choice(), partial(open_turn, home, code)
    with take_turn(home):
        with opening(request) as session:
            names = select_experiments(session.workspace.plan, request.experiments)
            wanted = choose(list_range(tvms, session.finder), choice)
            fingerprints = {name: session.runner.fingerprint(name) for name in names}
        have = {name: count_measured(home, name, fingerprints[name]) for name in names}
        rounds = range(1, request.rounds + 1)
        todo = [step for number in rounds for step in _plan_round(wanted, have, number, gaps=choice.gaps)]
        lacking = {candidate.id for candidate, _ in todo}
        there = len({candidate.id for candidate in wanted} - lacking)
        stamp, (first, *_, last) = files.make_id(home), [wanted[0], *wanted]
        newest, oldest = (TrialTvm(each.id, "", each.id) for each in (last, first))
        trial = Trial(
            stamp, TrialState.RUNNING, newest, oldest, 0.0, name_machine(), fingerprints, kind=TrialKind.BACKFILL,
            backfill=Backfill(tvms, len(wanted), there=there, left=len(todo)),
        )  # fmt: skip
        unbuilt = {} if retry else _read_unbuilt(home)
        steps = [(each, name) for each, own in todo for name in own]
        plan = _Filling(home, steps, wanted, unbuilt, rebuild=request.rebuild)
        path = home.tries / f"{stamp}.json"
        return Measuring(request, opening, path, trial).perform(plan), path


def _read_unbuilt(home: Home) -> dict[str, str]:
    """Read which TVMs no call could have since one could not, and why."""
    unbuilt: dict[str, str] = {}
    for item in files.read_all(home):
        if item.result is None:
            _log.warning("%s Retrying what it says could not be built.", item.fault)
        elif call := item.result.backfill:
            unbuilt = {tvm: why for tvm, why in {**unbuilt, **call.unbuilt}.items() if tvm not in call.had}
    return unbuilt


def _plan_round(
    wanted: list[BuildCandidate], have: Mapping[str, Counter[Which]], number: int, *, gaps: bool
) -> Iterator[tuple[BuildCandidate, list[str]]]:
    """Yield the TVMs of a round, with the experiments that have fewer measurements of them than rounds."""
    lacking = {candidate.id: [name for name in have if have[name][_which(candidate)] < number] for candidate in wanted}
    # There and back, so that a machine that slowly changes favours neither end.
    order: Iterable[BuildCandidate] = wanted if number % 2 else reversed(wanted)
    if gaps:
        order = order_by_gaps(wanted, {ident for ident, names in lacking.items() if not names})
    return ((candidate, lacking[candidate.id]) for candidate in order if lacking[candidate.id])


@dataclass
class _Filling:
    """A backfill at work.

    todo: TVMs and experiments, in order. wanted: the TVMs, oldest first. unbuilt: what could not be built before.
    """

    home: Home
    todo: Sequence[tuple[BuildCandidate, str]]
    wanted: Sequence[BuildCandidate]
    unbuilt: Mapping[str, str]
    rebuild: bool
    _at: int = 0
    _away: set[str] = field(default_factory=set)

    def choose(self, trial: Trial) -> Round | None:
        """Choose the next experiment on the next TVM that can be had."""
        while self._at < len(self.todo):
            candidate, name = self.todo[self._at]
            if candidate.id not in self._away and candidate.id not in self.unbuilt:
                return Round(name, (candidate.spec,), needs_values=False)
            self._at += 1
        return None

    def take(self, trial: Trial, outcome: RoundOutcome) -> Trial:
        """Add the night that was kept, or the reason why there is none."""
        (candidate, name), part = self.todo[self._at], _part_of(trial)
        self._at += 1
        if outcome.state is RoundState.UNBUILT:
            self._away.add(candidate.id)
            _log.info("could not obtain %s: %s", candidate.suspect.text, outcome.error)
            why = {candidate.id: outcome.error}
            part = (
                replace(part, unbuilt={**part.unbuilt, **why})
                if self.rebuild
                else replace(part, failed={**part.failed, **why})
            )
        else:
            part = replace(part, had=tuple(dict.fromkeys((*part.had, candidate.id))))
            part = self._keep(part, candidate, name, outcome)
        runs = {**trial.runs, name: trial.runs.get(name, 0) + outcome.is_measured}
        return replace(trial, runs=runs, backfill=replace(part, left=len(self.todo) - self._at))

    def _keep(self, part: Backfill, candidate: BuildCandidate, name: str, outcome: RoundOutcome) -> Backfill:
        if not outcome.is_measured:
            _log.info("%s on %s: %s", name, candidate.suspect.text, outcome.error)
            return replace(part, failed={**part.failed, f"{name} on {candidate.id}": outcome.error})
        (run,) = outcome.runs
        date = candidate.suspect.date or run.artifact.facts.get("committed", "")
        facts: dict[str, Any] = {"committed": date or None, "repository": repository.describe(REPOSITORY)}
        path = put(self.home, name, dict(run.data), facts)
        _log.info("%s on %s: %s", name, candidate.suspect.text, path.name)
        return replace(part, done=(*part.done, f"{name}/{path.name}"))

    def conclude(self, trial: Trial) -> Trial:
        """Add the TVMs that were not tried again, and the steps between all that was ever measured of the range."""
        passed = {one.id: self.unbuilt[one.id] for one, _ in self.todo[: self._at] if one.id in self.unbuilt}
        part = _part_of(trial)
        left = len(self.todo) - self._at
        measured = [_read_rounds(self.home, name, fingerprint) for name, fingerprint in trial.experiments.items()]
        known = [each.id for each in self.wanted if any(_which(each) in rounds for rounds in measured)]
        names = {each.id: _which(each) for each in self.wanted}

        def compare(before: str, after: str) -> BackfillStep:
            step = BackfillStep(before, after)
            for rounds in measured:
                for both in zip(rounds.get(names[before], ()), rounds.get(names[after], ()), strict=False):
                    step = results.collect_round(step, *both)
            return results.judge(step)

        steps = tuple(compare(*both) for both in itertools.pairwise(known))
        whole = compare(known[0], known[-1]) if len(known) > 1 else BackfillStep("", "")
        part = replace(part, unbuilt={**passed, **part.unbuilt}, left=left, steps=steps)
        return replace(trial, series=whole.series, numbers=whole.numbers, backfill=part)


def _part_of(trial: Trial) -> Backfill:
    assert trial.backfill is not None
    return trial.backfill


def put(home: Home, experiment: str, value: dict[str, Any], facts: Mapping[str, Any]) -> Path:
    """Keep a night's data under a stamp of its own, marked as backfill; the file."""
    folder = home.backfill(experiment)
    folder.mkdir(parents=True, exist_ok=True)
    moment = common.utc_now()
    taken = {*records.data_stamps(folder), *home.data_stamps(experiment)}
    # Stamps have whole seconds, and short experiments end within one.
    while common.stamp_of(moment) in taken:
        moment += datetime.timedelta(seconds=1)
    stamp = common.stamp_of(moment)
    night = {**value["night"], "stamp": stamp, "backfill": True, **facts}
    path = folder / f"data_{stamp}.json"
    common.write_json(path, {**value, "timestamp": stamp, "night": night})
    return path


def _which(candidate: BuildCandidate) -> Which:
    spec = candidate.spec
    remote = spec.shown if provider_of(spec) == GIT else source_of(spec).id
    return remote, candidate.id, json.dumps(dict(spec.options), sort_keys=True)


def count_measured(home: Home, experiment: str, fingerprint: str) -> Counter[Which]:
    """Count the measurements of each TVM with this code and config, among the home's nights and its backfill."""
    every = (home.data(experiment), home.backfill(experiment))
    return Counter(which for folder in every for which, _ in _list_measured(folder, fingerprint))


def _read_rounds(home: Home, experiment: str, fingerprint: str) -> dict[Which, list[Sequence[PointValue]]]:
    """Read the values of each round, by TVM."""
    rounds: dict[Which, list[Sequence[PointValue]]] = {}
    for which, path in _list_measured(home.backfill(experiment), fingerprint):
        with contextlib.suppress(DashboardError):
            rounds.setdefault(which, []).append(list(records.read_data(path, experiment).values()))
    return rounds


def _list_measured(folder: Path, fingerprint: str) -> Iterator[tuple[Which, Path]]:
    """The data files in the folder that are of this code and config, oldest first, and the TVM of each."""
    for path in (folder / f"data_{stamp}.json" for stamp in records.data_stamps(folder)):
        with contextlib.suppress(DashboardError):  # what cannot be read is measured again
            night = common.object_in(common.read_json(path), "night")
            artifact = night.get("artifact")
            if night.get("fingerprint") == fingerprint and isinstance(artifact, dict):
                facts = artifact["facts"]
                source = (facts["remote"], artifact["commit"], facts["options"]) if "remote" in facts else None
                yield source or (facts.get("source", PYPI), artifact["version"], "{}"), path
