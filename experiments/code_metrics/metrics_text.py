"""The numbers of a night in graphs and words."""

from __future__ import annotations

from collections.abc import Mapping

from tvmdash.experiment import plots as series_plots
from tvmdash.experiment.info import History
from tvmdash.plot_util.specs import Estimate, GroupedBar, Plot
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary
from tvmdash.text import format_exact, format_list

TOLD = ("kernels", "instructions", "registers", "spills", "shared_memory", "code_size", "source_size")

DRAWN = ("registers", "code_size", "source_size", "shared_memory", "instructions")
"""Those that have a graph of tonight."""


def plots(usual: Mapping[str, Plot], history: History) -> Mapping[str, Plot]:
    """The lines over nights, and each of tonight's numbers of whole networks, by target."""
    lines = {name: plot for name, plot in usual.items() if name not in {"tonight", "tonight_map"}}
    return {**{metric: bars for metric in DRAWN if (bars := _draw(history, metric))}, **lines}


def _draw(history: History, metric: str) -> GroupedBar | None:
    found = {
        (str(series.labels["workload"]).partition(".")[2], str(series.labels["build_config"]["target"])): series
        for series in series_plots.measured_tonight(history, {metric})
        if "batch" in series.labels["workload_args"]
    }
    if not found:
        return None
    networks, targets = (tuple(dict.fromkeys(name[place] for name in found)) for place in (0, 1))
    rows = tuple(tuple(_estimate(found.get((network, target))) for target in targets) for network in networks)
    title = f"{history.experiment}, night {history.stamps[-1]}: {metric.replace('_', ' ')}"
    return GroupedBar(title, next(iter(found.values())).unit, networks, targets, rows, lower_is_better=True)


def _estimate(series: Series | None) -> Estimate | None:
    return None if series is None else Estimate(series.values[-1], None, None)


def summary(usual: Summary, history: History) -> Summary:
    """`usual` without its lines on the fastest and slowest, and with what each target's code adds up to."""
    return usual.without(SectionKind.EXTREMES).with_lines(summarize_history(history))


def summarize_history(history: History) -> list[str]:
    """A line for each target: its numbers over all workloads."""
    totals: dict[str, dict[tuple[str, str], float]] = {}
    for series in series_plots.measured_tonight(history, set(TOLD)):
        of_target = totals.setdefault(str(series.labels["build_config"]["target"]), {})
        name = (series.metric, series.unit)
        of_target[name] = of_target.get(name, 0.0) + series.values[-1]
    lines = []
    for target, numbers in totals.items():
        ordered = sorted(numbers.items(), key=lambda item: TOLD.index(item[0][0]))
        told = [_format(metric, unit, value) for (metric, unit), value in ordered]
        lines.append(f"- {target}: {format_list(told, len(TOLD))}")
    return lines


def _format(metric: str, unit: str, value: float) -> str:
    number = format_exact(value, unit)
    return number if unit == metric else f"{number} of {metric.replace('_', ' ')}"
