"""The analyze stage: what a run left, as the value of data.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tvmdash import analysis_util, common
from tvmdash.errors import DashboardError
from tvmdash.experiment.points import key
from tvmdash.experiment.rounds import KILLED, MINUTES, ONCE, Precision
from tvmdash.experiment.run import ENDED_FILE, PLAN_FILE
from tvmdash.measure.capture import Trial, read_trials
from tvmdash.records import SCHEMA_VERSION
from tvmdash.stats.reduction import Reduced


def results(raw: Path, precision: Precision) -> dict[str, Any]:
    """The records and failures of the run in `raw`; DashboardError where it measured nothing.

    A run that was killed gives what it had committed: the point that it was at costs only that one trial. For a point
    without any, the reason where it is known.
    """
    plan = common.read_json(raw / PLAN_FILE)
    groups = {key(point): group for point, group in zip(plan["points"], plan["groups"], strict=True)}
    once = {key(point) for point, only in zip(plan["points"], plan["once"], strict=True) if only}
    killed = not (raw / ENDED_FILE).exists()
    captured = list(read_trials(raw))
    trials = _sort_as_planned(_drop_last(captured) if killed else captured, list(groups))
    if not trials:
        raise DashboardError(f"{raw}: no trial was captured; the run stage's log says why.")
    ended: dict[str, str] = {} if killed else common.read_json(raw / ENDED_FILE)

    def ended_by(of_point: Sequence[Trial], reduced: Reduced) -> str:
        name = key(of_point[0].point)
        why = ONCE if name in once else precision.ended_by(reduced, broken=groups.get(name) in ended)
        return KILLED if killed and why == MINUTES else why

    several = len({point["engine"] for point in plan["points"]}) > 1
    records, failures = analysis_util.reduce(trials, ended_by, name_engines=several)
    begun = {key(trial.point) for trial in trials}
    missing = [point for point in plan["points"] if key(point) not in begun]
    for point in missing:
        reason = f"not begun: {ended.get(groups[key(point)], 'the run was ended before')}"
        failures.append(analysis_util.failure_of(point, reason, name_engine=several))
    process = next((trial.process for trial in trials if trial.process["engine"]["tvm_hash"]), trials[0].process)
    return {
        "schema_version": SCHEMA_VERSION,
        "tvm_hash": process["engine"]["tvm_hash"],
        "environment": process,
        "records": [record.to_json() for record in records],
        "failures": [asdict(failure) for failure in failures],
    }


def _drop_last(trials: Sequence[Trial]) -> list[Trial]:
    """The trials of a killed run without the one that it was at; a process that died earlier did so by itself."""
    newest = max(trials, key=lambda trial: trial.started_ns, default=None)
    return [trial for trial in trials if trial is not newest or trial.finished]


def _sort_as_planned(trials: list[Trial], planned: Sequence[str]) -> list[Trial]:
    """The trials as the author listed their points, each point's in the order they were taken."""
    order = {name: number for number, name in enumerate(planned)}
    return sorted(trials, key=lambda trial: (order.get(key(trial.point), len(order)), trial.started_ns))
