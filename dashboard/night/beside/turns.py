"""The runs of one experiment in turn: performed one after the other, analyzed, compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dashboard.night.beside import ratios
from dashboard.night.beside.halves import FOLDER, Half, list_pairs, plan_halves
from dashboard.night.context import Context
from dashboard.plan.job import Job
from tvmdash import stages
from tvmdash.config_util import Beside
from tvmdash.dashboard_info import StepResult
from tvmdash.errors import DashboardError
from tvmdash.files import trees

DATA_FILE = "data.json"
Perform = Callable[[Half], None]
"""Performs a stage of that half; DashboardError or OSError where it fails."""
PerformWithin = Callable[[Half, float], None]
"""The same, within so many seconds."""


def takes_turns(context: Context, job: Job) -> bool:
    """Whether the experiment runs several times tonight, in turn with the reference."""
    return job.beside is Beside.RUNS and context.workspace(job).reference.is_file()


def plan_turns(context: Context, job: Job) -> list[Half]:
    """The runs of tonight in their order; nothing is there of earlier ones."""
    root = context.workspace(job).root
    trees.remove(root / FOLDER)
    return plan_halves(root, job.config["pairs"], f"{context.plan.seed} {job.name}")


def run_in_turn(
    halves: Sequence[Half], limit_s: float, nights: Callable[[], StepResult], perform: PerformWithin
) -> StepResult:
    """What the night's own run comes to, after those that take turns with it; `nights` performs that one.

    All of them share the time that the stage is allowed, of which the night's own may take all. Once a half has failed,
    or another would not fit, no other is begun: the pairs that are whole count.
    """
    begun, longest_s, ended, result = time.monotonic(), 0.0, "", None
    for half in halves:
        started = time.monotonic()
        left_s = limit_s - (started - begun)
        if half.is_the_nights:
            result = nights()
            if not result.success:
                return result
        elif not ended:
            fits = left_s > longest_s
            ended = (
                _fault_of(perform, half, left_s)
                if fits
                else f"the stage's time limit of {limit_s:g} s was nearly reached"
            )
        longest_s = max(longest_s, time.monotonic() - started)
    assert result is not None
    pairs = len(halves) // 2
    said = f"beside the reference until {ended}" if ended else f"in {pairs} pairs with the reference"
    message = f"{result.message} ({said})"
    return replace(result, message=message, elapsed_s=round(time.monotonic() - begun, 3))


def _fault_of(perform: PerformWithin, half: Half, left_s: float) -> str:
    """Why the half failed, empty where it did not."""
    which = "the reference's" if half.of_reference else "tonight's"
    try:
        half.folder.mkdir(parents=True)
        perform(half, left_s)
    except (DashboardError, OSError) as error:
        return f"{which} run in pair {half.pair + 1} failed: {error}"
    return ""


def compare(context: Context, job: Job, perform: Perform, declared: Mapping[str, Any]) -> str:
    """Analyze what the halves measured, and leave the ratios of all pairs of which both halves are whole.

    Why there are none, to stand behind the stage's message; empty where there are.
    """
    workspace = context.workspace(job)
    workspace.ratios.unlink(missing_ok=True)
    try:
        whole = [pair for pair in list_pairs(workspace.root, job.config["pairs"]) if all(map(_is_whole, pair))]
        for half in (half for pair in whole for half in pair if not half.is_the_nights):
            perform(half)
        numbers = [[ratios.read_numbers(half.of("analyze") / DATA_FILE) for half in pair] for pair in whole]
    except (DashboardError, OSError) as error:
        return f" (not compared with the reference: {error})"
    found = ratios.compare_pairs([(new, old) for new, old in numbers], declared)
    if not found:
        return " (not compared with the reference; fields.json declares no metric as a time or a rate)" if whole else ""
    ratios.write_ratios(workspace, found)
    return ""


def _is_whole(half: Half) -> bool:
    """Whether its run ended well: what was killed has left no status."""
    try:
        return stages.read_status(half.of("run")).success
    except DashboardError:
        return False
