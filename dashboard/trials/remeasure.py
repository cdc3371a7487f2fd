"""Measure points of tonight's experiments again, with the artifacts of tonight and of earlier nights.

It reads a file of what is to be measured again and leaves one of what came of it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dashboard.plan.job import CodeFolders
from dashboard.trials.rounds import MeasuringRequest, Round, RoundOutcome, TvmOfNight
from dashboard.trials.session import open_session
from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.structured import Stamp
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.measure.prebuilt import MOST_LAYOUTS
from tvmdash.records.metrics import RATIOS
from tvmdash.verdict.remeasured import RatioRun

SCHEMA_VERSION = 1
_log = logging.getLogger("remeasure")


@dataclass(frozen=True)
class RoundAsked:
    """A round in a request: these points on the artifact of the night `stamp`; see `Round`."""

    experiment: str
    stamp: Stamp
    points: tuple[Mapping[str, Any], ...] = ()
    beside: Stamp | None = None
    layout: int = 0
    metrics: tuple[str, ...] = ()


def read_rounds(path: Path) -> list[Round]:
    """The rounds in a request; DashboardError names the place of what is wrong."""
    value = common.read_json(path)
    if not isinstance(value, list):
        raise DashboardError(f"{path}: $: not a list of rounds. Write [{{experiment, stamp, points}}, ...].")
    return [_parse_round(item, path, f"$[{number}]") for number, item in enumerate(value)]


def _parse_round(value: common.Json, path: Path, at: str) -> Round:
    asked = structured.from_json(RoundAsked, value, path, at=at)
    if unknown := set(value if isinstance(value, dict) else ()) - {field.name for field in fields(RoundAsked)}:
        raise DashboardError(f"{path}: {at}.{unknown.pop()}: not a field of a round.")
    if not 0 <= asked.layout <= MOST_LAYOUTS:
        raise DashboardError(f"{path}: {at}.layout: {asked.layout} is not a whole number from 0 to {MOST_LAYOUTS}.")
    if not all(map(str.isidentifier, asked.metrics)):
        raise DashboardError(f"{path}: {at}.metrics: {[*asked.metrics]!r:.80} is not a list of metrics' names.")
    own, other = TvmOfNight(asked.stamp), TvmOfNight(asked.beside) if asked.beside else None
    return Round(asked.experiment, (own,), asked.points, beside=other, layout=asked.layout, metrics=asked.metrics)


def stamp_of(outcome: RoundOutcome) -> str:
    """Return the night on whose artifact the round was to be measured."""
    (tvm,) = outcome.round.tvms
    assert isinstance(tvm, TvmOfNight)
    return tvm.stamp


def values_of(outcome: RoundOutcome) -> dict[str, float]:
    """Return the round's values by the ID of the series."""
    return {value.key.id: value.value for run in outcome.runs for value in run.values}


def ratios_of(outcome: RoundOutcome) -> dict[str, RatioRun]:
    """Return the round's ratios to the TVM beside, by the ID of the series of times that they are ratios of."""
    ratios = {}
    for value in (value for run in outcome.runs for value in run.values):
        if value.key.metric in RATIOS and value.value > 0 and value.samples:
            run = RatioRun(math.log(value.value), value.std or 0.0, value.samples, value.layout)
            ratios[replace(value.key, metric=RATIOS[value.key.metric]).id] = run
    return ratios


def write_outcomes(path: Path, night: str, outcomes: Sequence[RoundOutcome]) -> None:
    """Leave the outcomes so far; whoever is killed later loses none of them."""
    rounds = [_to_json(number, outcome) for number, outcome in enumerate(outcomes)]
    common.write_json(path, {"schema_version": SCHEMA_VERSION, "night": night, "rounds": rounds})


def _to_json(number: int, outcome: RoundOutcome) -> dict[str, Any]:
    return {
        "experiment": outcome.round.experiment,
        "stamp": stamp_of(outcome),
        "round": number,
        "state": outcome.state,
        "artifact": outcome.artifact,
        "values": values_of(outcome),
        "ratios": {series: structured.to_json(ratio) for series, ratio in ratios_of(outcome).items()},
        "seconds": round(outcome.elapsed_s, 3),
        "error": outcome.error,
    }


def remeasure(
    home: Home, rounds_file: Path, result: Path, request: MeasuringRequest, *, code: CodeFolders
) -> list[RoundOutcome]:
    """Do the rounds of the file in their order; what came of each, also left in the file `result`.

    Within a night it is part of that night; else it takes the home's lock, or raises HeldError. A round that would not
    fit in the budget, going by the experiment's round before, is not begun.
    """
    rounds, outcomes = read_rounds(rounds_file), list[RoundOutcome]()
    with open_session(home, request, code) as session:
        write_outcomes(result, session.workspace.stamp, outcomes)
        for asked in rounds:
            outcome = session.measure(asked)
            if outcome.is_measured:
                counts = len(values_of(outcome)), outcome.elapsed_s
                _log.info("%s with %s: %d values in %.1f s", asked.experiment, outcome.artifact, *counts)
            else:
                _log.warning("%s with the artifact of %s: %s", asked.experiment, stamp_of(outcome), outcome.error)
            outcomes.append(outcome)
            write_outcomes(result, session.workspace.stamp, outcomes)
    return outcomes
