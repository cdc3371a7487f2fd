"""The cost of a call: call-heavy programs in the virtual machine's bytecode, compiled, and out of a shared library."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from programs import Sizes, arguments, program

from tvmdash import relax_util
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import plots
from tvmdash.networks import accuracy
from tvmdash.networks.ops import Array
from tvmdash.plot_util.specs import Estimate, GroupedBar, Plot
from tvmdash.relax_util import Compiled, CompileOptions, workloads
from tvmdash.relax_util.linking import link
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary, format_ratio, geometric_mean_ratio
from tvmdash.text import format_list, format_quantity
from tvmdash.trial_util import Timer


@dataclass(frozen=True, kw_only=True)
class ExecutorOverheadConfig(Sizes, ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    programs: tuple[str, ...]
    executors: tuple[str, ...]
    threads: int
    mcpu: str


class ExecutorOverhead(Experiment[ExecutorOverheadConfig]):
    """Every program on every executor; a process for each program, as deep recursion may end one."""

    engines = (workloads.TVM,)
    axes = (
        Axis("executor", "build_config"),
        *(Axis(name, "workload_args") for name in ("calls", "operators", "arguments", "n", "batch")),
        Axis("threads", "runtime_config"),
    )

    def points(self, config: ExecutorOverheadConfig) -> list[Point]:
        target = workloads.target_text(config)
        return [
            Point(_workload(name), {"executor": executor, **arguments(name, config), **shared}, name, target)
            for shared in [{"threads": config.threads}]
            for name in config.programs
            for executor in config.executors
        ]

    def prepare(self, point: Point, config: ExecutorOverheadConfig, seed: int) -> Prepared:
        what, how = program(point.group, arguments(point.group, config), seed), point.values["executor"]
        options = CompileOptions(json.loads(point.target), what.pipeline, exec_mode=MODES[how][0])
        compiled = relax_util.compile_module(what.build(), options)
        made = executor(how, compiled, what.inputs, config.threads)
        ready = workloads.make_prepared(
            compiled, made.timer, lambda: _checked(made.run(), what.expected), details=made.facts
        )
        return replace(ready, inputs=what.inputs)

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Add the cost of a call to the default graphs."""
        return {**super().plots(history), "cost_of_a_call": cost_plot(history)}

    def summary(self, history: History) -> Summary:
        """Replace each program's fastest and slowest by the cost of a call on each executor."""
        return super().summary(history).without(SectionKind.EXTREMES).with_lines(summarize_history(history))


def _workload(name: str) -> str:
    return f"network.{name}" if name == "mlp" else f"executor.{name}"


def _checked(answer: Array, expected: Array) -> dict[str, float]:
    """Check whole numbers exactly, float32 within its tolerance."""
    if answer.dtype.kind != "i":
        return accuracy.check_answer(answer, expected)
    return {**accuracy.check_answer(answer, expected, "float64"), "tolerance": 0.0}


BASE = "bytecode"
COUNTS = ("calls", "operators")
Cells = Mapping[tuple[str, str], Series]
"""Tonight's run times by program and executor."""


def cells(history: History) -> Cells:
    tonight = plots.measured_tonight(history, {"run_time"})
    return {(str(s.labels["workload"]).partition(".")[2], s.labels["build_config"]["executor"]): s for s in tonight}


def counted(series: Series) -> tuple[str, int] | None:
    """Name what a run has many of, and count it; None for an ordinary network."""
    sizes = series.labels["workload_args"]
    return next(((name.removesuffix("s"), int(sizes[name])) for name in COUNTS if name in sizes), None)


def cost_ns(series: Series) -> Estimate:
    """Return run time over count, in ns, with the run time's interval; no value where nothing is counted."""
    calls = counted(series)
    if calls is None:
        return Estimate(None)
    value, low, high = (
        None if ms is None else ms * 1e6 / calls[1] for ms in (series.values[-1], series.low[-1], series.high[-1])
    )
    return Estimate(value, low, high)


def cost_plot(history: History) -> GroupedBar:
    """Draw the cost of a call, or of an operator: each program on each executor."""
    counted_cells = {key: series for key, series in cells(history).items() if counted(series)}
    programs, executors = (tuple(dict.fromkeys(key[part] for key in counted_cells)) for part in (0, 1))
    rows = tuple(
        tuple(
            cost_ns(counted_cells[name, executor]) if (name, executor) in counted_cells else None
            for executor in executors
        )
        for name in programs
    )
    title = f"{history.experiment}, night {history.stamps[-1]}: run time by calls or operators"
    return GroupedBar(title, "ns", programs, executors, rows, lower_is_better=True)


def summarize_history(history: History) -> list[str]:
    """Write how the executors stand to bytecode, and what a call costs on each."""
    series_of = cells(history)
    return [*_against_bytecode(series_of), *_costs(series_of), *_call_alone(series_of)]


def _against_bytecode(series_of: Cells) -> list[str]:
    lines = []
    for way in dict.fromkeys(way for _, way in series_of if way != BASE):
        pairs = [
            (series_of[name, BASE].values[-1], series.values[-1])
            for (name, other), series in series_of.items()
            if other == way and (name, BASE) in series_of
        ]
        if pairs:
            lines.append(f"- {way} against {BASE}: {format_ratio(geometric_mean_ratio(pairs))}")
    return lines


def _costs(series_of: Cells) -> list[str]:
    lines = []
    for subject in dict.fromkeys(subject for subject, _ in series_of):
        own = [(way, series) for (name, way), series in series_of.items() if name == subject and counted(series)]
        if own:
            noun, count = counted(own[0][1]) or ("", 0)
            costs = [f"{way} {_ns(cost_ns(series).value)}" for way, series in own]
            lines.append(f"- {subject}, for each of {count} {noun}s: {format_list(costs, 4)}")
    return lines


def _call_alone(series_of: Cells) -> list[str]:
    """Cost the call alone: a chain of calls has the operators of the straight program, and its calls beside them."""
    costs = [
        f"{way} {_ns((series.values[-1] - series_of['operators', way].values[-1]) * 1e6 / _calls(series))}"
        for (name, way), series in series_of.items()
        if name == "calls" and _same_operators(series_of.get(("operators", way)), series)
    ]
    return [f"- a call alone (calls less operators): {format_list(costs, 4)}"] if costs else []


def _same_operators(straight: Series | None, chain: Series) -> bool:
    return straight is not None and straight.labels["workload_args"]["operators"] == 2 * _calls(chain)


def _calls(series: Series) -> int:
    return int(series.labels["workload_args"]["calls"])


def _ns(value: float | None) -> str:
    return format_quantity(value or 0.0, "ns")


MODES: Mapping[str, tuple[str, bool]] = {
    "bytecode": ("bytecode", False),
    "compiled": ("compiled", False),
    "library": ("bytecode", True),
    "compiled_library": ("compiled", True),
}
"""The virtual machine's mode, and whether the module is exported to a shared library and loaded from there."""


@dataclass(frozen=True)
class Executor:
    """A module that can be called; `facts` say what it cost to make the library, where there is one."""

    run: Callable[[], Array]
    timer: Timer
    facts: Mapping[str, float]


def executor(name: str, compiled: Compiled, inputs: tuple[Array, ...], threads: int) -> Executor:
    """Load `main` with `inputs`, which lie on the device before a clock starts."""
    module, facts = _from_library(compiled.executable) if MODES[name][1] else (compiled.executable, {})
    loaded = relax_util.load(replace(compiled, executable=module), threads)
    return Executor(lambda: loaded.run(*inputs), loaded.timer(*inputs), facts)


def _from_library(executable: Any) -> tuple[Any, dict[str, float]]:
    import tvm

    with tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
        begun = time.perf_counter_ns()
        path = link(executable, Path(folder) / "module", device="", cc="", is_here=True)
        exported = time.perf_counter_ns()
        module = tvm.runtime.load_module(str(path))  # it stays mapped when its file is gone
        loaded = time.perf_counter_ns()
        size_bytes = path.stat().st_size
    return module, {
        "export_ms": (exported - begun) / 1e6,
        "load_ms": (loaded - exported) / 1e6,
        "library_bytes": size_bytes,
    }


if __name__ == "__main__":
    raise SystemExit(ExecutorOverhead().main())
