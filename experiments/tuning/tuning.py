"""meta_schedule within a fixed budget: the best time after N trials, failures, search time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import search
from search import SearchBudget, Searched

from tvmdash import networks, relax_util
from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment.engines import Engine
from tvmdash.experiment.plots import measured_tonight, tonight_plot
from tvmdash.networks import accuracy
from tvmdash.plot_util.specs import Plot
from tvmdash.relax_util import CompileOptions, lowering, tuning, workloads
from tvmdash.relax_util.tuning import Subject
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary, format_duration, format_quantity

TVM = Engine(
    "tvm",
    (
        "xgboost-cpu==3.2.0",
        "scipy==1.17.1",
    ),
    facts=workloads.engine_facts,
)
"""With what its cost model needs; psutil and cloudpickle are in the dashboard's environment."""


@dataclass(frozen=True, kw_only=True)
class TuningConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    networks: tuple[str, ...]
    trials: tuple[int, ...]
    trials_per_round: int
    build_seconds: float
    run_seconds: float
    pipeline: str
    batch: int
    threads: int
    mcpu: str


class Tuning(Experiment[TuningConfig]):
    """A search for each network, and the network after its first N trials; a network's points share their processes."""

    engines = (TVM,)
    axes = (
        Axis("trials", "build_config"),
        Axis("batch", "workload_args"),
        Axis("threads", "runtime_config"),
    )

    def points(self, config: TuningConfig) -> list[Point]:
        shared = {"batch": config.batch, "threads": config.threads}
        target = workloads.target_text(config)
        points = []
        for network in config.networks:
            most = {"trials": max(config.trials), **shared}
            points.append(Point(f"tuning.search_{network}", most, group=network, target=target, once=True))
            points += [
                Point(f"network.{network}", {"trials": trials, **shared}, group=network, target=target)
                for trials in config.trials
            ]
        return points

    def prepare(self, point: Point, config: TuningConfig, seed: int) -> Prepared:
        kind, _, name = point.workload.replace("search_", "").partition(".")
        network, target = networks.NETWORKS[name](), json.loads(point.target)
        subject = Subject(name, config.batch, target, config.pipeline)
        weights = networks.make_weights(network, seed)
        module = tuning.lowered(lowering.lower(network, weights, config.batch), config.pipeline, target)
        trials, details = point.values["trials"], {}
        if trials:
            searched = search.done(subject, module, self._budget(config), seed)
            if kind == "tuning":
                return _make_prepared(searched, subject)
            database = searched.folder / f"first-{trials}"
            tuning.copy_good(searched.folder, database, trials)
            module = tuning.schedule(module, database, target)
            details = {"kernels": searched.kernels, "kernels_scheduled": len(tuning.scheduled(module))}
        compiled = relax_util.compile_module(module, CompileOptions(target, "default"))
        loaded, x = relax_util.load(compiled, config.threads), networks.make_input(network, seed, config.batch)
        return Prepared(
            timer=loaded.timer(x),
            check=lambda: accuracy.check_answer(loaded.run(x), networks.reference(network, weights, x)),
            compile_ms=compiled.compile_ms,
            compile_cpu_ms=compiled.compile_cpu_ms,
            code_size_bytes=compiled.code_size_bytes,
            memory_bytes=compiled.planned_memory_bytes,
            inputs=(x,),
            build=compiled.options.describe(),
            layout="NCHW",
            details={**details, "module_hash": compiled.module_hash},
        )

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Draw tonight's networks as bars, and every line over nights."""
        return plots(history, super().plots(history))

    def summary(self, history: History) -> Summary:
        """Add each network's times after so many trials to the default words."""
        return summary(super().summary(history), history)

    @staticmethod
    def _budget(config: TuningConfig) -> SearchBudget:
        return SearchBudget(max(config.trials), config.trials_per_round, config.build_seconds, config.run_seconds)


def _make_prepared(searched: Searched, subject: Subject) -> Prepared:
    """Make the search itself a workload, timed already; its database is kept for cnn_comp.

    One that lost most of its trials is a failure, and nothing is kept of it: it would stay for as long as the build.
    """
    if searched.failed * 2 > searched.trials:
        raise DashboardError(searched.describe())
    kept = tuning.keep(subject, searched.folder, searched.trials, searched.facts())
    elapsed_ns = round(searched.search_s * 1e9)
    details = {**searched.facts(), "trials_made": searched.trials, "database_kept": kept}
    return Prepared(timer=lambda _number, repeat: [elapsed_ns] * repeat, details=details)


NETWORK, SEARCH = "network.", "tuning.search_"


def plots(history: History, default: Mapping[str, Plot]) -> dict[str, Plot]:
    """Leave the searches out of tonight's bars: they take minutes where the networks take milliseconds."""
    timed = [series for series in measured_tonight(history, {"run_time"}) if _workload(series).startswith(NETWORK)]
    return {**default, "tonight": tonight_plot(history, timed)}


def summary(default: Summary, history: History) -> Summary:
    """Replace the fastest and slowest of `default` by each network's times after so many trials."""
    return default.without(SectionKind.EXTREMES).with_lines(summarize_history(history))


def summarize_history(history: History) -> list[str]:
    """Write a line for each network that was measured or searched tonight."""
    after: dict[str, dict[int, float]] = {}
    search_ms: dict[str, float] = {}
    for series in measured_tonight(history, {"run_time"}):
        workload = _workload(series)
        if workload.startswith(SEARCH):
            search_ms[workload.removeprefix(SEARCH)] = series.values[-1]
        else:
            trials = int(series.labels["build_config"]["trials"])
            after.setdefault(workload.removeprefix(NETWORK), {})[trials] = series.values[-1]
    return [_line(name, after.get(name, {}), search_ms.get(name)) for name in {**after, **search_ms}]


def _line(name: str, after: Mapping[int, float], search_ms: float | None) -> str:
    times = [
        f"{format_quantity(ms, 'ms')} {f'after {trials} trials' if trials else 'untuned'}"
        for trials, ms in sorted(after.items())
    ]
    search = [f"the search took {format_duration(search_ms / 1e3)}"] if search_ms else []
    return f"- {name}: {', '.join(times + search)}"


def _workload(series: Series) -> str:
    return str(series.labels["workload"])


if __name__ == "__main__":
    raise SystemExit(Tuning().main())
