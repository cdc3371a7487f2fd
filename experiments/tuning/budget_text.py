"""What the budget brought tonight, in words and as a graph."""

from __future__ import annotations

from collections.abc import Mapping

from tvmdash.exp_templates import History
from tvmdash.experiment.plots import measured_tonight, tonight_plot
from tvmdash.plot_util.specs import Plot
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary, format_duration, format_quantity

NETWORK, SEARCH = "network.", "tuning.search_"


def plots(history: History, default: Mapping[str, Plot]) -> dict[str, Plot]:
    """`default`, tonight's bars without the searches, which take minutes where the networks take milliseconds."""
    timed = [series for series in measured_tonight(history, {"run_time"}) if _workload(series).startswith(NETWORK)]
    return {**default, "tonight": tonight_plot(history, timed)}


def summary(default: Summary, history: History) -> Summary:
    """`default`, its fastest and slowest replaced by each network's times after so many trials."""
    return default.without(SectionKind.EXTREMES).with_lines(summarize_history(history))


def summarize_history(history: History) -> list[str]:
    """A line for each network that was measured or searched tonight."""
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
