"""The numbers of a night in graphs and words."""

from __future__ import annotations

from collections.abc import Mapping

from tvmdash.experiment import plots as series_plots
from tvmdash.experiment.info import History
from tvmdash.plot_util.specs import Plot
from tvmdash.summary_util import SectionKind, Summary
from tvmdash.text import format_exact, format_list

TOLD = ("kernels", "instructions", "registers", "spills", "shared_memory", "code_size", "source_size")


def plots(usual: Mapping[str, Plot], _history: History) -> Mapping[str, Plot]:
    """The default graphs."""
    return usual


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
