"""tuning: real searches of TVM's meta_schedule whose builds and runs are made up; tests/slow has real ones."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import types

import pytest

from tests.experiments import trying
from tvmdash import networks
from tvmdash.errors import DashboardError
from tvmdash.experiment.info import Axis, History
from tvmdash.plot_util.specs import Bar
from tvmdash.relax_util import lowering, tuning
from tvmdash.relax_util.tuning import Subject
from tvmdash.series.store import Series
from tvmdash.summary_util import Section, SectionKind, Summary

pytestmark = pytest.mark.usefixtures("tvm_artifact")
SUBJECT = Subject("mlp", 1, {"kind": "llvm", "num-cores": 1}, "zero")
TRIALS = 6


@pytest.fixture(scope="module")
def code():
    return trying.modules("tuning")


@pytest.fixture(scope="module")
def lowered():
    network = networks.NETWORKS["mlp"]()
    module = lowering.lower(network, networks.make_weights(network, 0))
    return tuning.lowered(module, SUBJECT.pipeline, SUBJECT.target)


@pytest.fixture(autouse=True)
def _quick(tmp_path, monkeypatch, code):
    """A place for databases; and what makes a search in a test's process seconds instead of half a minute."""
    from tvm.s_tir.meta_schedule import relax_integration

    monkeypatch.setenv("TVMDASH_TUNING", str(tmp_path / "tuning"))
    monkeypatch.setenv("TVMDASH_ARTIFACT", "build")
    monkeypatch.setattr(code.search, "STRATEGY", "replay-trace")  # draws at random, where the other breeds hundreds
    # intrinsics for tensor cores, which take a dozen CPU seconds to import, and which no kernel here uses
    monkeypatch.setitem(sys.modules, "tvm.s_tir.tensor_intrin", types.ModuleType("tensor_intrin"))
    # TVM sets its logging up once in a process: a second search stumbles over the first one's
    silent = logging.getLogger("search of a test")
    monkeypatch.setattr(relax_integration, "get_loggers_from_work_dir", lambda _place, names: [silent] * len(names))


def made_up(*errors: tuple[str | None, str | None]):
    """Builder and runner that go through the errors, each by itself and round again; only what was built is run."""
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
    from tvm.s_tir.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerResult

    builds, runs = [], []

    def next_of(seen, place):
        seen.append(errors[len(seen) % len(errors)][place])
        return seen[-1]

    @derived_object
    class Builder(PyBuilder):
        def build(self, build_inputs):
            made = [next_of(builds, 0) for _ in build_inputs]
            return [
                BuilderResult(None if error else os.path.join(tempfile.mkdtemp(), "x.tar"), error) for error in made
            ]

    @derived_object
    class Future(PyRunnerFuture):
        def __init__(self, number, error):
            super().__init__()
            self.number, self.error = number, error

        def done(self):
            return True

        def result(self):
            return RunnerResult(None if self.error else [1.0 / (1 + self.number)], self.error)

    @derived_object
    class Runner(PyRunner):
        def run(self, runner_inputs):
            return [Future(len(runs), next_of(runs, 1)) for _ in runner_inputs]

    return lambda _budget, _workers: {"builder": Builder(), "runner": Runner(), "cost_model": "random"}


def search(code, monkeypatch, lowered, *errors):
    monkeypatch.setattr(code.search, "_machinery", made_up(*errors))
    monkeypatch.setattr(code.search, "_found", {})
    return code.search.done(SUBJECT, lowered, code.search.SearchBudget(TRIALS, 3, 1.0, 1.0), 0)


def test_a_search_counts_its_trials_and_those_that_failed(code, monkeypatch, lowered):
    found = search(code, monkeypatch, lowered, (None, None), ("no compiler", None), (None, "too slow"))
    assert (found.trials, found.failed_builds, found.failed_runs) == (6, 2, 1)  # the third of four runs
    assert found.kernels == 4
    assert found.describe() == "3 of 6 trials failed (2 builds, 1 runs), the first with: no compiler"


def test_a_search_in_which_everything_fails_is_an_error_for_all_its_points(code, monkeypatch, lowered):
    with pytest.raises(DashboardError, match=r"nothing was found: 6 of 6 trials failed .*with: Timeout"):
        search(code, monkeypatch, lowered, ("Timeout", None))
    with pytest.raises(DashboardError, match="nothing was found"):
        code.search.done(SUBJECT, lowered, code.search.SearchBudget(TRIALS, 3, 1.0, 1.0), 0)


def test_processes_of_a_run_share_its_search_and_another_run_makes_its_own(code, monkeypatch, lowered):
    found = search(code, monkeypatch, lowered, (None, None))
    monkeypatch.setattr(code.search, "_found", {})
    monkeypatch.setattr(code.search, "_machinery", None)  # a second search would call it
    assert code.search.done(SUBJECT, lowered, code.search.SearchBudget(TRIALS, 3, 1.0, 1.0), 0) == found
    monkeypatch.setenv("TVMDASH_NIGHT", "another")
    again = search(code, monkeypatch, lowered, (None, "too slow"), (None, None))
    assert again.failed_runs == 3
    assert not found.folder.exists()


def test_a_good_search_is_kept_and_one_that_lost_most_of_its_trials_is_a_failure(code, monkeypatch, lowered):
    bad = search(code, monkeypatch, lowered, ("Timeout", None), ("Timeout", None), (None, None))
    with pytest.raises(DashboardError, match="4 of 6 trials failed"):
        code.tuning._make_prepared(bad, SUBJECT)
    with pytest.raises(DashboardError, match="not tuned"):
        tuning.find(SUBJECT)
    monkeypatch.setenv("TVMDASH_NIGHT", "another")
    good = search(code, monkeypatch, lowered, (None, None), (None, None), ("Timeout", None))
    told = code.tuning._make_prepared(good, SUBJECT)
    assert told.details["failed_builds"] == 2
    assert told.timer(1, 1) == [round(good.search_s * 1e9)]
    folder, facts = tuning.find(SUBJECT)
    assert facts["trials"] == TRIALS
    kernels = tuning.scheduled(tuning.schedule(lowered, folder, SUBJECT.target))
    assert 0 < len(kernels) <= 4


def a_series(workload, trials, value):
    labels = {"workload": workload, "engine": "tvm", "build_config": {"trials": trials}}
    name = f"{workload} {trials}"
    return Series(name, "e", "run_time", "ms", True, labels, (trying.STAMP,), (value,), (value,), (value,), (0.0,))


def test_the_words_say_what_each_budget_brought_and_the_bars_leave_out_the_search(code):
    points = (("network.mlp", 64, 0.5), ("network.mlp", 0, 2.0), ("tuning.search_mlp", 64, 193_000.0))
    axes = (Axis("trials", "build_config"),)
    history = History("e", axes, tuple(a_series(*point) for point in points), (trying.STAMP,), ())
    measured = Section(SectionKind.MEASURED, ("3 points measured.",))
    extremes = Section(SectionKind.EXTREMES, ("- mlp: the quickest is a",))
    words = code.tuning.summary(Summary.of_sections("t", [measured, extremes]), history)
    assert words.value.splitlines() == [
        "3 points measured.",
        "- mlp: 2.00 ms untuned, 0.500 ms after 64 trials, the search took 3 min 13 s",
    ]
    bars = code.tuning.plots(history, {})["tonight"]
    assert isinstance(bars, Bar)
    assert [bar.value for bar in bars.bars] == [0.5, 2.0]
