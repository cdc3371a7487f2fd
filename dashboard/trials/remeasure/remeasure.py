"""Measure points of tonight's experiments again, with the artifacts of tonight and of earlier nights."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from dashboard.plan.job import CodeFolders
from dashboard.trials.remeasure.files import read_rounds, stamp_of, values_of, write_outcomes
from dashboard.trials.request import MeasuringRequest
from dashboard.trials.rounds import RoundOutcome
from dashboard.trials.session import open_session
from tvmdash.dashboard_info import Home

_log = logging.getLogger("remeasure")


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


def summarize(outcomes: Sequence[RoundOutcome]) -> str:
    """A line for each round."""
    return "\n".join(map(_format, outcomes))


def _format(outcome: RoundOutcome) -> str:
    what = f"{len(values_of(outcome))} values" if outcome.is_measured else f"{outcome.state}: {outcome.error}"
    build = outcome.artifact or "no artifact"
    return f"{outcome.round.experiment} of {stamp_of(outcome)} ({build}): {what}, {outcome.elapsed_s:.1f} s"
