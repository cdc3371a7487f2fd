"""A character-level generator of names: a loop around a compiled cell, a recursive Relax function, PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import on_relax
import on_torch
from generator import Size, Task, checked, task

from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import configuration_text, reference_engines
from tvmdash.plot_util.specs import Bar, BarValue, Plot
from tvmdash.relax_util import workloads
from tvmdash.series.store import Series
from tvmdash.summary_util import Summary
from tvmdash.trial_util import python_timer


@dataclass(frozen=True, kw_only=True)
class CharRnnConfig(ExperimentConfig):
    """As fields.json describes it."""

    ways: tuple[str, ...]
    hidden: int
    names: int
    longest: int
    threads: int
    mcpu: str


class CharRnn(Experiment[CharRnnConfig]):
    """The same names in every way; one process for each engine."""

    engines = (workloads.TVM, reference_engines.TORCH)
    axes = (
        Axis("hidden", "workload_args"),
        Axis("names", "workload_args"),
        Axis("letters", "workload_args"),
        Axis("program", "build_config"),
        Axis("mode", "build_config"),
        Axis("threads", "runtime_config"),
    )

    def points(self, config: CharRnnConfig) -> list[Point]:
        asked = _task(config, config.data_seed)
        sizes = {"hidden": asked.size.hidden, "names": asked.size.names, "letters": asked.letters}
        shared = {**sizes, "threads": config.threads}
        return [_point(way, shared, config) for way in config.ways]

    def prepare(self, point: Point, config: CharRnnConfig, seed: int) -> Prepared:
        asked, threads = _task(config, seed), config.threads
        if point.engine == "torch":
            names = on_torch.make(asked, threads)
            return Prepared(python_timer(names), lambda: checked(names(), asked.names))
        made = on_relax.make(asked, point, threads)
        compiled = made.compiled
        return Prepared(
            timer=python_timer(made.names),
            check=lambda: checked(made.names(), asked.names),
            compile_ms=compiled.compile_ms,
            code_size_bytes=compiled.code_size_bytes,
            passes_ms=compiled.pass_times_ms,
            details={"module_hash": compiled.module_hash},
        )

    def plots(self, history: History) -> Mapping[str, Plot]:
        """The default graphs, and letters per second."""
        return {**super().plots(history), "letters_per_second": letters_plot(history)}

    def summary(self, history: History) -> Summary:
        """The default words, the fastest way, and how many letters a second each gives."""
        summary = configuration_text.summary(super().summary(history), history)
        rates = [f"{bar.label} {bar.value:,.0f}" for bar in letters_plot(history).bars]
        return summary.with_lines([f"- letters per second: {'; '.join(rates)}"])


def letters_plot(history: History) -> Bar:
    """Tonight's letters per second of each way, with the run time's interval turned round."""
    bars = [
        BarValue(way, *(_rate(series, ms) for ms in (series.values[-1], series.high[-1], series.low[-1])))
        for ways in configuration_text.group_cases(history).values()
        for way, series in ways.items()
    ]
    title = f"{history.experiment}, night {history.stamps[-1]}: letters per second"
    return Bar(title, "letters per second", tuple(bars), lower_is_better=False)


def _rate(series: Series, ms: float | None) -> float | None:
    return 1e3 * series.labels["workload_args"]["letters"] / ms if ms else None


def _task(config: CharRnnConfig, seed: int) -> Task:
    return task(Size(config.hidden, config.names, config.longest), seed)


def _point(way: str, shared: Mapping[str, Any], config: CharRnnConfig) -> Point:
    engine, program, *mode = way.split()
    values = {**shared, "program": program, **dict(zip(("mode",), mode, strict=False))}
    target = workloads.target_text(config) if engine == "tvm" else "cpu"
    return Point("char_rnn.names", values, "names", target, engine)


if __name__ == "__main__":
    raise SystemExit(CharRnn().main())
