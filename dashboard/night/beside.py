"""An experiment of any language beside the reference: its `run` several times, with either TVM in turn.

The runs are in pairs, the first of each drawn by lot; what they leave is analyzed and compared.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dashboard.night.context import Context
from dashboard.plan.job import Job
from tvmdash import common, records
from tvmdash.common.files import trees
from tvmdash.config_util import Beside
from tvmdash.dashboard_info import StepResult, stages
from tvmdash.errors import DashboardError
from tvmdash.measure.reduction import combine_pairs
from tvmdash.records.metrics import COMPARABLE, Declarations

FOLDER, DATA_FILE = "pairs", "data.json"
Numbers = Mapping[str, float]


@dataclass(frozen=True)
class Half:
    """One run, with tonight's TVM or the reference; its stages leave what they leave in `folder`.

    is_the_nights: it is the run that every night has, and what it measured is published.
    """

    pair: int
    of_reference: bool
    folder: Path
    is_the_nights: bool = False

    def of(self, stage: str) -> Path:
        return self.folder / stage

    def log(self, stage: str) -> Path:
        return self.folder / f"{stage}.log"


Perform = Callable[[Half], None]
"""Performs a stage of that half; DashboardError or OSError where it fails."""
PerformWithin = Callable[[Half, float], None]
"""A function that performs a stage of that half within so many seconds."""


def plan_halves(root: Path, pairs: int, seed: str) -> list[Half]:
    """List all runs in their order; `root` is the folder of the job."""
    rng, halves = random.Random(seed), list[Half]()
    for number in range(pairs):
        halves += rng.sample(_pair(root, number), 2)
    return halves


def list_pairs(root: Path, pairs: int) -> list[Sequence[Half]]:
    """Pair the half of tonight's TVM with that of the reference."""
    return [_pair(root, number) for number in range(pairs)]


def _pair(root: Path, number: int) -> Sequence[Half]:
    """Tonight's half and the reference's; of the first pair tonight's is the night's own."""
    folder, own = root / FOLDER, number == 0
    tonight = Half(number, of_reference=False, folder=root if own else folder / f"{number}-tonight", is_the_nights=own)
    return tonight, Half(number, of_reference=True, folder=folder / f"{number}-reference")


def takes_turns(context: Context, job: Job) -> bool:
    """Return True where the experiment runs several times tonight, in turn with the reference."""
    return job.beside is Beside.RUNS and context.workspace(job).reference.is_file()


def plan_turns(context: Context, job: Job) -> list[Half]:
    """Order tonight's runs, and remove what is left of earlier ones."""
    root = context.workspace(job).root
    trees.remove(root / FOLDER)
    return plan_halves(root, job.config["pairs"], f"{context.plan.seed} {job.name}")


def run_in_turn(
    halves: Sequence[Half], limit_s: float, nights: Callable[[], StepResult], perform: PerformWithin
) -> StepResult:
    """Run the halves in turn; return the result of the night's own run, which `nights` performs.

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
            # A half that the limit would kill is worth nothing: the time stays with the night's own run.
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
    """Return why the half failed, empty where it did not."""
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
        # Half a pair has nothing to be divided by: a night ended in the middle compares the pairs before it.
        whole = [pair for pair in list_pairs(workspace.root, job.config["pairs"]) if all(map(_is_whole, pair))]
        for half in (half for pair in whole for half in pair if not half.is_the_nights):
            perform(half)
        numbers = [[read_numbers(half.of("analyze") / DATA_FILE) for half in pair] for pair in whole]
    except (DashboardError, OSError) as error:
        return f" (not compared with the reference: {error})"
    found = compare_pairs([(new, old) for new, old in numbers], declared)
    if not found:
        return " (not compared with the reference; fields.json declares no metric as a time or a rate)" if whole else ""
    common.write_json(workspace.ratios, {"ratios": found})
    return ""


def _is_whole(half: Half) -> bool:
    """Return True where its run ended well; a killed one has left no status."""
    try:
        return stages.read_status(half.of("run")).success
    except DashboardError:
        return False


def compare_pairs(pairs: Sequence[tuple[Numbers, Numbers]], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Compare `pairs` of tonight's numbers with the reference's, by path; only times and rates above 0."""
    declarations = Declarations(declared)
    paths = dict.fromkeys(path for tonight, _ in pairs for path in tonight)
    found = {}
    for path in paths:
        both = [(new.get(path, 0.0), old.get(path, 0.0)) for new, old in pairs]
        logs = [math.log(new / old) for new, old in both if new > 0 and old > 0]
        if logs and declarations.of(path).kind in COMPARABLE:
            ratio = combine_pairs(logs)
            found[path] = {
                "clock": "wall",
                "log_ratios": logs,
                "ratio": ratio.ratio,
                "low": ratio.low,
                "high": ratio.high,
            }
    return found


def read_numbers(path: Path) -> Numbers:
    """Read the numbers that an analyze stage left in the file; none where it left records."""
    value = common.read_json(path)
    records.check_data(value)
    return {} if "records" in value else dict(records.numeric_leaves(value))
