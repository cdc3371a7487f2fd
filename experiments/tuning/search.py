"""One search of meta_schedule for a network: run once in a run, its trials counted, those that failed as well."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.errors import DashboardError
from tvmdash.relax_util import tuning
from tvmdash.relax_util.targets import make_target
from tvmdash.relax_util.tuning import Subject

_DONE = "search.json"
STRATEGY = "evolutionary"


@dataclass(frozen=True)
class SearchBudget:
    """The budget of a search.

    `trials` in all, `trials_per_round` of one kernel at a time; `build_seconds` for one build and `run_seconds` for one
    run. A builder process imports TVM first, many seconds on a busy machine: TVM's own 30 s are not enough there.
    """

    trials: int
    trials_per_round: int
    build_seconds: float
    run_seconds: float


@dataclass(frozen=True)
class Searched:
    """A search that is done: its database's folder, and how it went. `trials` are those that were made."""

    folder: Path
    search_s: float
    trials: int
    failed_builds: int
    failed_runs: int
    kernels: int
    first_error: str

    @property
    def failed(self) -> int:
        """Trials without a time."""
        return self.failed_builds + self.failed_runs

    def describe(self) -> str:
        """Say how many trials failed, and how the first did."""
        text = f"{self.failed} of {self.trials} trials failed ({self.failed_builds} builds, {self.failed_runs} runs)"
        return f"{text}, the first with: {self.first_error}" if self.first_error else text

    def facts(self) -> dict[str, Any]:
        """Return the search's facts for records and the kept database."""
        return {name: value for name, value in asdict(self).items() if name not in {"folder", "trials"}}


class _Counted:
    """Counts of failed trials."""

    def __init__(self) -> None:
        self.failed_builds = self.failed_runs = 0
        self.first_error = ""

    def add(self, build_error: str | None, run_error: str | None) -> None:
        self.failed_builds += bool(build_error)
        self.failed_runs += bool(run_error) and not build_error
        self.first_error = self.first_error or (build_error or run_error or "")[-300:]


_found: dict[str, Searched | Exception] = {}


def done(subject: Subject, module: Any, budget: SearchBudget, seed: int) -> Searched:
    """Search for `subject`: now, or as an earlier process of this run did, whose error is raised again."""
    name = subject.folder
    if name not in _found:
        try:
            _found[name] = _searched(subject, module, budget, seed)
        except Exception as error:  # noqa: BLE001 - every point of this search fails with it
            _found[name] = error
    searched = _found[name]
    if isinstance(searched, Exception):
        raise searched
    return searched


def _searched(subject: Subject, module: Any, budget: SearchBudget, seed: int) -> Searched:
    run = f"{os.environ.get('TVMDASH_NIGHT', 'by-hand')}-{os.getppid()}"  # the measuring processes of a run share it
    parent = tuning.build_folder() / ".searches" / subject.folder
    folder = parent / run
    if not (folder / _DONE).exists():
        trees.remove(parent)
        folder.mkdir(parents=True)
        searched = _search(subject, module, budget, seed, folder)
        common.write_json(folder / _DONE, {**searched.facts(), "trials": searched.trials})
    return Searched(folder=folder, **common.read_json(folder / _DONE))


def _search(subject: Subject, module: Any, budget: SearchBudget, seed: int, folder: Path) -> Searched:
    from tvm.s_tir import meta_schedule

    workers, counted = len(os.sched_getaffinity(0)), _Counted()
    begun = time.perf_counter_ns()
    extracted = meta_schedule.relax_integration.extract_tasks(module, make_target(subject.target), params={})
    tasks, weights = meta_schedule.relax_integration.extracted_tasks_to_tune_contexts(
        extracted, str(folder), strategy=STRATEGY, num_threads=workers, seed=seed
    )
    meta_schedule.tune.tune_tasks(
        tasks=tasks,
        task_weights=weights,
        work_dir=str(folder),
        max_trials_global=budget.trials,
        num_trials_per_iter=budget.trials_per_round,
        **_machinery(budget, workers),
        database=meta_schedule.database.JSONDatabase(*(str(folder / name) for name in tuning.FILES)),
        measure_callbacks=[*meta_schedule.MeasureCallback.create("default"), _watch(counted)],
    )
    search_s = (time.perf_counter_ns() - begun) / 1e9
    lines = (folder / tuning.RECORDS).read_text(encoding="utf-8").splitlines()
    good = sum(not tuning.failed(line) for line in lines)
    searched = Searched(
        folder, search_s, len(lines), counted.failed_builds, counted.failed_runs, len(tasks), counted.first_error
    )
    if not good:
        raise DashboardError(f"nothing was found: {searched.describe()}")
    return searched


def _machinery(budget: SearchBudget, workers: int) -> dict[str, Any]:
    """Make what builds and runs the trials, as arguments of tune_tasks."""
    from tvm.s_tir import meta_schedule

    return {
        "builder": meta_schedule.builder.LocalBuilder(max_workers=workers, timeout_sec=budget.build_seconds),
        "runner": meta_schedule.runner.LocalRunner(timeout_sec=budget.run_seconds),
        "cost_model": "xgb",
    }


def _watch(counted: _Counted) -> Any:
    """Make a callback that counts failures: meta_schedule itself ends without an error where all have failed."""
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.measure_callback import PyMeasureCallback

    class SearchWatch(PyMeasureCallback):  # type: ignore[misc, no-any-unimported, unused-ignore]
        def apply(self, _scheduler: Any, _task: int, _candidates: Any, builds: Any, runs: Any) -> None:
            for build, run in zip(builds, runs, strict=True):
                counted.add(build.error_msg and str(build.error_msg), run.error_msg and str(run.error_msg))

    return derived_object(SearchWatch)()
