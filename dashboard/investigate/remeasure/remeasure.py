"""Measure points of tonight's experiments again, with the artifacts of tonight and of earlier nights."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from dashboard.investigate.remeasure.files import Answer, read_rounds, write_answers
from dashboard.investigate.request import MeasuringRequest
from dashboard.investigate.session import open_session
from dashboard.plan.job import CodeFolders
from tvmdash.dashboard_info import Home

_log = logging.getLogger("remeasure")


def remeasure(
    home: Home, rounds_file: Path, result: Path, request: MeasuringRequest, *, code: CodeFolders
) -> list[Answer]:
    """Do the rounds of the file in their order; what came of each, also left in the file `result`.

    Within a night it is part of that night; else it takes the home's lock, or raises HeldError. A round that would not
    fit in the budget, going by the experiment's round before, is not begun.
    """
    rounds = read_rounds(rounds_file)
    with open_session(home, request, code) as session:
        answers: list[Answer] = []
        write_answers(result, session.workspace.stamp, answers)
        for number, (stamp, asked) in enumerate(rounds):
            answer = Answer.of(number, stamp, session.measure(asked))
            if answer.is_measured:
                counts = len(answer.values), answer.seconds
                _log.info("%s with %s: %d values in %.1f s", answer.experiment, answer.artifact, *counts)
            else:
                _log.warning("%s with the artifact of %s: %s", answer.experiment, stamp, answer.error)
            answers.append(answer)
            write_answers(result, session.workspace.stamp, answers)
    return answers


def summarize_answers(answers: Sequence[Answer]) -> str:
    """A line for each round."""
    lines = []
    for answer in answers:
        what = f"{len(answer.values)} values" if answer.is_measured else f"{answer.state}: {answer.error}"
        build = answer.artifact or "no artifact"
        lines.append(f"{answer.experiment} of {answer.stamp} ({build}): {what}, {answer.seconds:.1f} s")
    return "\n".join(lines)
