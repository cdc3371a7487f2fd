"""The runs of one experiment in turn: performed one after the other, analyzed, compared."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
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

DATA_FILE = "data.json"
Perform = Callable[[Half], None]
"""Performs a stage of that half; DashboardError or OSError where it fails."""


def takes_turns(context: Context, job: Job) -> bool:
    """Whether the experiment runs several times tonight, in turn with the reference."""
    return job.beside is Beside.RUNS and context.workspace(job).reference.is_file()


def run_in_turn(context: Context, job: Job, nights: Callable[[], StepResult], perform: Perform) -> StepResult:
    """What the night's own run comes to, after those that take turns with it; `nights` performs that one.

    Once a half has failed no other is begun: the pairs that are whole count.
    """
    root, begun, fault = context.workspace(job).root, time.monotonic(), ""
    shutil.rmtree(root / FOLDER, ignore_errors=True)
    result, pairs = None, job.config["pairs"]
    for half in plan_halves(root, pairs, f"{context.plan.seed} {job.name}"):
        if half.is_the_nights:
            result = nights()
            if not result.success:
                return result
        elif not fault:
            fault = _fault_of(perform, half)
    assert result is not None
    said = f"beside the reference only until a run failed: {fault}" if fault else f"in {pairs} pairs with the reference"
    message = f"{result.message} ({said})"
    return replace(result, message=message, elapsed_s=round(time.monotonic() - begun, 3))


def _fault_of(perform: Perform, half: Half) -> str:
    """Why the half failed, empty where it did not."""
    which = "the reference's" if half.of_reference else "tonight's"
    try:
        half.folder.mkdir(parents=True)
        perform(half)
    except (DashboardError, OSError) as error:
        return f"{which} in pair {half.pair + 1}: {error}"
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
        return " (not compared with the reference: no number is declared as a time or a rate)" if whole else ""
    ratios.write_ratios(workspace, found)
    return ""


def _is_whole(half: Half) -> bool:
    """Whether its run ended well: what was killed has left no status."""
    try:
        return stages.read_status(half.of("run")).success
    except DashboardError:
        return False
