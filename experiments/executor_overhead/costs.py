"""From run times to what one call costs."""

from __future__ import annotations

from collections.abc import Mapping

from tvmdash.experiment import plots
from tvmdash.experiment.info import History
from tvmdash.plot_util.specs import Estimate, GroupedBar
from tvmdash.series.store import Series
from tvmdash.summary_util import format_ratio, geometric_mean_ratio
from tvmdash.text import format_list, format_quantity

BASE = "bytecode"
COUNTS = ("calls", "operators")
Cells = Mapping[tuple[str, str], Series]
"""Tonight's run times by program and executor."""


def cells(history: History) -> Cells:
    """Tonight's run times."""
    tonight = plots.measured_tonight(history, {"run_time"})
    return {(str(s.labels["workload"]).partition(".")[2], s.labels["build_config"]["executor"]): s for s in tonight}


def counted(series: Series) -> tuple[str, int] | None:
    """What a run has many of, and how many; None for an ordinary network."""
    sizes = series.labels["workload_args"]
    return next(((name.removesuffix("s"), int(sizes[name])) for name in COUNTS if name in sizes), None)


def cost_ns(series: Series) -> Estimate:
    """Run time over count, in ns, with the run time's interval; no value where nothing is counted."""
    calls = counted(series)
    if calls is None:
        return Estimate(None)
    value, low, high = (
        None if ms is None else ms * 1e6 / calls[1] for ms in (series.values[-1], series.low[-1], series.high[-1])
    )
    return Estimate(value, low, high)


def cost_plot(history: History) -> GroupedBar:
    """What one call, or one operator, costs: each program on each executor."""
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
    """Lines: how the executors stand to bytecode, and what a call costs on each."""
    series_of = cells(history)
    return [*_against_bytecode(series_of), *_costs(series_of), *_call_alone(series_of)]


def _against_bytecode(series_of: Cells) -> list[str]:
    lines = []
    for executor in dict.fromkeys(executor for _, executor in series_of if executor != BASE):
        pairs = [
            (series_of[name, BASE].values[-1], series.values[-1])
            for (name, other), series in series_of.items()
            if other == executor and (name, BASE) in series_of
        ]
        if pairs:
            lines.append(f"- {executor} against {BASE}: {format_ratio(geometric_mean_ratio(pairs))}")
    return lines


def _costs(series_of: Cells) -> list[str]:
    lines = []
    for program in dict.fromkeys(program for program, _ in series_of):
        own = [
            (executor, series) for (name, executor), series in series_of.items() if name == program and counted(series)
        ]
        if own:
            noun, count = counted(own[0][1]) or ("", 0)
            costs = [f"{executor} {_ns(cost_ns(series).value)}" for executor, series in own]
            lines.append(f"- {program}, for each of {count} {noun}s: {format_list(costs, 4)}")
    return lines


def _call_alone(series_of: Cells) -> list[str]:
    """A chain of calls has the operators of the straight program; what it takes longer is its calls'."""
    costs = [
        f"{executor} {_ns((series.values[-1] - series_of['operators', executor].values[-1]) * 1e6 / _calls(series))}"
        for (name, executor), series in series_of.items()
        if name == "calls" and _same_operators(series_of.get(("operators", executor)), series)
    ]
    return [f"- a call alone (calls less operators): {format_list(costs, 4)}"] if costs else []


def _same_operators(straight: Series | None, chain: Series) -> bool:
    return straight is not None and straight.labels["workload_args"]["operators"] == 2 * _calls(chain)


def _calls(series: Series) -> int:
    return int(series.labels["workload_args"]["calls"])


def _ns(value: float | None) -> str:
    return format_quantity(value or 0.0, "ns")
