"""The analyze stage: from a run's raw data to the value of data.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tvmdash import analysis_util, common
from tvmdash.errors import DashboardError
from tvmdash.experiment.config import KILLED, MINUTES, ONCE, UNCHANGED, Precision
from tvmdash.experiment.info import Clock
from tvmdash.experiment.paired.pairs import OF_PAIR, WALL, combine, describe, is_of_reference, match_pairs
from tvmdash.experiment.per_operator import split
from tvmdash.experiment.points import key
from tvmdash.experiment.rounds import find_content, is_unchanged
from tvmdash.experiment.run import ENDED_FILE, PLAN_FILE
from tvmdash.measure.capture import Trial, read_trials
from tvmdash.measure.reduction import Reduced
from tvmdash.records import SCHEMA_VERSION, Failure, description


@dataclass(frozen=True)
class _Planned:
    """Content of plan.json and ended.json by the key of the point. killed: the run did not come to its end.

    measured: as in `paired.reference.Reference`.
    """

    points: tuple[dict[str, Any], ...]
    groups: dict[str, str]
    once: frozenset[str]
    clocks: dict[str, Clock]
    ended: dict[str, str]
    killed: bool
    measured: dict[str, int]

    @classmethod
    def read(cls, raw: Path) -> _Planned:
        plan = common.read_json(raw / PLAN_FILE)
        names = [key(point) for point in plan["points"]]
        killed = not (raw / ENDED_FILE).exists()
        return cls(
            tuple(plan["points"]),
            dict(zip(names, plan["groups"], strict=True)),
            frozenset(name for name, only in zip(names, plan["once"], strict=True) if only),
            dict(zip(names, plan.get("clocks", [WALL] * len(names)), strict=True)),
            {} if killed else common.read_json(raw / ENDED_FILE),
            killed,
            plan.get("measured", {}),
        )

    @property
    def names_engines(self) -> bool:
        """Return True where more than one engine is in it."""
        return len({point["engine"] for point in self.points}) > 1


def results(raw: Path, precision: Precision) -> dict[str, Any]:
    """Return the records and failures of the run in `raw`; DashboardError where it measured nothing.

    A run that was killed gives what it had committed: the point that it was at costs only that one trial. For a point
    without any, the reason where it is known.
    """
    planned = _Planned.read(raw)
    captured = list(read_trials(raw))
    of_reference = [trial for trial in captured if is_of_reference(trial)]
    trials = [trial for trial in captured if not is_of_reference(trial)]
    trials = _sort_as_planned(_drop_last(trials) if planned.killed else trials, list(planned.groups))
    if not trials:
        raise DashboardError(f"{raw}: no trial was recorded. See the log of the run stage.")
    pairs = match_pairs(trials, of_reference)

    def ended_by(of_point: Sequence[Trial], reduced: Reduced) -> str:
        name = key(of_point[0].point)
        ratio = combine(pairs.get(name, ()), planned.clocks.get(name, WALL))
        broken = planned.groups.get(name) in planned.ended
        why = ONCE if name in planned.once else precision.ended_by(reduced, ratio, broken=broken)
        if ratio is not None and is_unchanged(of_point, planned.measured, precision):
            why = UNCHANGED
        return KILLED if planned.killed and why == MINUTES else why

    def beside(of_point: Sequence[Trial]) -> Mapping[str, Any]:
        name, ran = key(of_point[0].point), find_content(of_point)
        paired = describe(pairs.get(name, ()), planned.clocks.get(name, WALL))
        if paired is None:
            return {}
        counted = {"hash": ran, "pairs": len(pairs[name]) + planned.measured.get(ran, 0)} if ran else None
        return {"paired": paired, "content": counted}

    records, failures = analysis_util.reduce(trials, ended_by, beside, name_engines=planned.names_engines)
    points = analysis_util.group_by_point(trials)
    whole = [of_point for of_point in points if not any(trial.error for trial in of_point)]
    records = [part for record, of_point in zip(records, whole, strict=True) for part in split(record, of_point)]
    failures += _failures_of_missing(planned, trials)
    process = next((trial.process for trial in trials if trial.process["engine"]["tvm_hash"]), trials[0].process)
    return {
        "schema_version": SCHEMA_VERSION,
        "tvm_hash": process["engine"]["tvm_hash"],
        "environment": {name: value for name, value in process.items() if name not in (*OF_PAIR, description.FACT)},
        "records": [record.to_json() for record in records],
        "failures": [asdict(failure) for failure in failures],
    }


def _failures_of_missing(planned: _Planned, trials: Sequence[Trial]) -> Iterator[Failure]:
    """Yield a failure for each point that no process began, with the reason where it is known."""
    begun = {key(trial.point) for trial in trials}
    for point in planned.points:
        if key(point) not in begun:
            reason = f"not started: {planned.ended.get(planned.groups[key(point)], 'the run was stopped earlier')}"
            yield analysis_util.failure_of(point, reason, name_engine=planned.names_engines)


def _drop_last(trials: Sequence[Trial]) -> list[Trial]:
    """Drop the trial that a killed run was at; a process that died earlier did so by itself."""
    newest = max(trials, key=lambda trial: trial.started_ns, default=None)
    return [trial for trial in trials if trial is not newest or trial.finished]


def _sort_as_planned(trials: list[Trial], planned: Sequence[str]) -> list[Trial]:
    """Sort the trials as the author listed their points, each point's in the order they were taken."""
    order = {name: number for number, name in enumerate(planned)}
    return sorted(trials, key=lambda trial: (order.get(key(trial.point), len(order)), trial.started_ns))
