"""Default graphs and summary of an experiment, from its records alone."""

from __future__ import annotations

import datetime
import re
import statistics
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tvmdash import common, records, summary_util
from tvmdash.errors import DashboardError
from tvmdash.experiment import engine_text, per_operator
from tvmdash.experiment.info import Axis, History
from tvmdash.plot_util.specs import (
    Bar,
    BarValue,
    Distribution,
    Estimate,
    GroupedBar,
    HeatMap,
    Line,
    Longitudinal,
    Plot,
    finite,
)
from tvmdash.records.metrics import RATIOS
from tvmdash.series import store
from tvmdash.series.naming import label_of
from tvmdash.series.store import Series
from tvmdash.summary_util import Failure, Measured, Summary
from tvmdash.text import format_quantity

TIMES = frozenset({"run_time", "value"})
"""Metrics that are drawn by default: one a point."""
RECENT = datetime.timedelta(days=14)
LEAST_MAPPED = 3
"""Fewer workloads or configurations are read as easily from bars as from a heat map."""
SPREAD_NIGHTS, LEAST_NIGHTS, SPREAD_SERIES = 30, 10, 12
"""Nights in a distribution of values, the least number of them, and the most series."""


def read_history(experiment: str, axes: tuple[Axis, ...], data: Path, index: Path | None) -> History:
    """Return the experiment's series, in the order of tonight's records; `index` is the home's, or None."""
    with store.open_for_reading(index, data, experiment) as opened:
        series = tuple(opened.series(experiment))
        stamps = tuple(opened.stamps(experiment))
    if not stamps:
        raise DashboardError(f"{data}: no night has readable data.")
    tonight = records.read_data(data / f"data_{stamps[-1]}.json", experiment)
    failures = tuple(
        Failure(label_of(failure.workload, failure.values), failure.error, failure.workload, failure.values)
        for failure in tonight.failures
    )
    order = {value.key.id: index for index, value in enumerate(tonight.values())}
    ordered = tuple(sorted(series, key=lambda item: order.get(item.id, len(order))))
    has_own = any(axis.name == per_operator.AXIS for axis in axes)
    single = tuple(item for item in ordered if not has_own and per_operator.is_operator(item.labels))
    known = {item.id for item in single}
    return History(experiment, axes, tuple(item for item in ordered if item.id not in known), stamps, failures, single)


def find_varying(history: History, series: Sequence[Series]) -> list[str]:
    """Return the axes on which these series differ; the workload counts as one."""
    values = [history.values(item) for item in series]
    names = dict.fromkeys(name for value in values for name in value)
    return [name for name in names if len({str(value.get(name)) for value in values}) > 1]


def measured_tonight(history: History, metrics: Collection[str] | None = None) -> list[Series]:
    """Return the series (of these metrics) that have a value of the newest night, which is then their last."""
    return [
        series
        for series in history.series
        if series.stamps[-1:] == history.stamps[-1:] and (metrics is None or series.metric in metrics)
    ]


def default_plots(history: History) -> dict[str, Plot]:
    """Return tonight's run times as bars and as a map, each workload's lines over nights, and the spread of nights."""
    timed = [series for series in history.series if series.metric in TIMES]
    tonight = measured_tonight(history, TIMES)
    plots: dict[str, Plot] = {"tonight": tonight_plot(history, tonight)}
    if isinstance(plots["tonight"], GroupedBar) and (shown := make_map(plots["tonight"])):
        plots["tonight_map"] = shown
    if spread := spread_plot(history, tonight):
        plots["spread"] = spread
    for workload in dict.fromkeys(history.values(series)["workload"] for series in timed):
        of_workload = [series for series in timed if history.values(series)["workload"] == workload]
        plots.update(longitudinal_plots(history, workload, of_workload))
    return plots


def default_summary(history: History) -> Summary:
    """Return tonight's values, failures first, and TVM against each rival and on each device."""
    tonight = measured_tonight(history)
    names = [name for name in find_varying(history, tonight) if name not in {"workload", "network"}]
    points = [_make_measured(history, series, names) for series in tonight if series.metric not in RATIOS]
    count = sum(series.metric in TIMES for series in tonight)
    title = f"{history.experiment}, night {history.stamps[-1]}"
    times = [series for series in tonight if series.metric == "run_time"]
    compared = [*engine_text.compare_with_each(times), *engine_text.compare_devices(times)]
    summary = summary_util.default_summary(title, points, history.failures, count=count, engines=compared)
    return summary.with_lines(_describe_operators(history)) if history.operators else summary


def _describe_operators(history: History) -> list[str]:
    """Return a line for each network that was profiled tonight: its operators' sum and its time."""
    summed: dict[str, float] = {}
    for series in history.operators:
        if series.stamps[-1] == history.stamps[-1] and series.metric == "run_time":
            point = per_operator.name_whole(series.labels)
            summed[point] = summed.get(point, 0.0) + series.values[-1]
    whole = measured_tonight(history, {"run_time"})
    names = [name for name in find_varying(history, whole) if name not in {"workload", "network"}]
    times = {per_operator.name_whole(series.labels): series for series in whole}
    return [
        f"- {_name_point(history, times[point], names)}: its operators take {format_quantity(ms, 'ms')},"
        f" {ms / times[point].values[-1]:.0%} of the {format_quantity(times[point].values[-1], 'ms')} end to end"
        for point, ms in summed.items()
        if point in times
    ]


def _name_point(history: History, series: Series, names: Sequence[str]) -> str:
    return ", ".join(filter(None, (str(history.values(series)["workload"]), _name(history, series, names))))


def _make_measured(history: History, series: Series, names: Sequence[str]) -> Measured:
    workload = str(history.values(series)["workload"])
    configuration = _name(history, series, names)
    metric = "" if series.metric in TIMES else series.metric.replace("_", " ")
    return Measured(
        label=", ".join(part for part in (workload, configuration, metric) if part),
        value=series.values[-1],
        previous=None,
        unit=series.unit,
        lower_is_better=series.direction != "higher",
        workload=workload if series.metric == "run_time" else "",
        configuration=configuration,
    )


def tonight_plot(history: History, series: Sequence[Series]) -> Plot:
    """Draw one night's values as bars, grouped by workload where there are several."""
    unit = series[0].unit if series else ""
    groups = list(dict.fromkeys(str(history.values(item)["workload"]) for item in series))
    inner = [name for name in find_varying(history, series) if name not in {"workload", "network"}]
    named = {(str(history.values(item)["workload"]), _name(history, item, inner)): item for item in series}
    names = list(dict.fromkeys(name for _, name in named))
    title = f"{history.experiment}, night {history.stamps[-1]}"
    if len(groups) == 1 or names == [""]:
        bars = tuple(BarValue(name or group, *_estimate(item)) for (group, name), item in named.items())
        return Bar(title, unit, bars, lower_is_better=True if unit else None)
    rows = tuple(tuple(_make_estimate(named.get((group, name))) for name in names) for group in groups)
    return GroupedBar(title, unit, tuple(groups), tuple(names), rows, lower_is_better=True if unit else None)


def compare_ways(title: str, series_of: Mapping[str, Mapping[str, Series]]) -> GroupedBar:
    """Draw tonight's times by case and way, with their intervals."""
    ways = tuple(dict.fromkeys(way for row in series_of.values() for way in row))
    rows = tuple(tuple(_make_estimate(row.get(way)) for way in ways) for row in series_of.values())
    return GroupedBar(title, "ms", tuple(series_of), ways, rows, lower_is_better=True)


def make_map(plot: GroupedBar) -> HeatMap | None:
    """Return each group's values as multiples of its lowest; None where they are few or sparse, or are no times."""
    values = [[None if estimate is None else finite(estimate.value) for estimate in row] for row in plot.values]
    numbers = [value for row in values for value in row if value is not None]
    few = min(len(plot.groups), len(plot.series)) < LEAST_MAPPED
    sparse = len(numbers) * 2 < len(plot.groups) * len(plot.series)
    if few or sparse or not plot.lower_is_better or min(numbers) <= 0:
        return None
    lowest = [min((value for value in row if value is not None), default=1.0) for row in values]
    ratios = tuple(
        tuple(None if value is None else value / best for value in row)
        for row, best in zip(values, lowest, strict=True)
    )
    title = f"{plot.title}: against the fastest of each row"
    return HeatMap(title, "times the fastest", plot.groups, plot.series, ratios, lower_is_better=True)


def spread_plot(history: History, series: Sequence[Series]) -> Distribution | None:
    """Draw the values of the last nights, each against its series' median, of the series that vary most."""
    since = history.stamps[-SPREAD_NIGHTS:][0]
    inner = find_varying(history, series)
    spreads: list[tuple[float, str, tuple[float, ...]]] = []
    for item in series:
        values = [value for stamp, value in zip(item.stamps, item.values, strict=True) if stamp >= since]
        middle = statistics.median(values)
        if len(values) >= LEAST_NIGHTS and middle > 0:
            percents = tuple(round(100 * (value / middle - 1), 6) + 0.0 for value in values)  # no -0.0
            name = _name(history, item, inner) or str(history.values(item)["workload"])
            spreads.append((max(percents) - min(percents), name, percents))
    if not spreads:
        return None
    spreads.sort(key=lambda entry: -entry[0])
    shown = spreads[:SPREAD_SERIES]
    which = f", the {len(shown)} of {len(spreads)} series that vary most" if len(spreads) > len(shown) else ""
    title = f"{history.experiment}: the last {len(history.stamps[-SPREAD_NIGHTS:])} nights{which}"
    return Distribution(
        title,
        "% above the median of its nights",
        tuple(name for _, name, _ in shown),
        tuple(spread for *_, spread in shown),
    )


def longitudinal_plots(history: History, workload: str, series: Sequence[Series]) -> dict[str, Plot]:
    """Draw the workload's lines over all nights and over the last two weeks."""
    inner = find_varying(history, series)
    lines = tuple(Line(_name(history, item, inner) or workload, item.stamps, tuple(item.values)) for item in series)
    start = common.stamp_of(common.parse_stamp(history.stamps[-1]) - RECENT)
    plots: dict[str, Plot] = {}
    file = re.sub(r"[^A-Za-z0-9_-]+", "_", workload)[:80] or "values"
    unit, lower = series[0].unit, True if series[0].unit else None
    plots[f"{file}_all_time"] = Longitudinal(f"{workload}: all nights", unit, lines, "all", lower_is_better=lower)
    if history.stamps[0] < start:
        plots[f"{file}_two_weeks"] = Longitudinal(
            f"{workload}: two weeks", unit, lines, "two_weeks", lower_is_better=lower
        )
    return plots


def _name(history: History, series: Series, names: Sequence[str]) -> str:
    values = history.values(series)
    return ", ".join(
        f"{name} {values[name]}" if not isinstance(values[name], str) else values[name]
        for name in names
        if name in values
    )


def _estimate(series: Series) -> tuple[float, float | None, float | None]:
    return series.values[-1], series.low[-1], series.high[-1]


def _make_estimate(series: Series | None) -> Estimate | None:
    return Estimate(*_estimate(series)) if series is not None else None
