"""TVM against other engines on the same workloads, now and over the last nights."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

from markup.sparks import Labels, SparkCurve, chart, sparkline
from markupsafe import Markup
from render import page as pages
from views.context import SiteContext
from views.series import SeriesView

from tvmdash.text import format_quantity, three_digits

METRIC = "run_time"
TVM = "tvm"
TIMES = "\N{MULTIPLICATION SIGN}"
COMPARING = ("char_rnn", "cnn_comp", "llm", "operators", "real_models", "rnn_comp", "transformer", "treelstm")
"""The experiments of this repository that measure TVM and others; named where a home measures none of them."""
_LEAST_NIGHTS = 2
_IDENTITY = ("workload", "workload_args", "hw_model", "env_name")


@dataclass(frozen=True)
class EngineCell:
    """An engine's fastest configuration of a workload; `ratio` is how many times as long as TVM's fastest it takes.

    choice: what sets that configuration apart from the engine's others in the experiment. low and high: 95 % interval
    of the ratio, as far as both intervals are known.
    """

    engine: str
    time: str
    config: str
    choice: str
    series: str
    ratio: float | None
    low: float | None
    high: float | None
    spark: Markup

    @property
    def state(self) -> str:
        """TVM's standing: better, worse, or steady where the interval holds 1."""
        if self.ratio is None:
            return ""
        if self.low is not None and self.high is not None and self.low <= 1 <= self.high:
            return "steady"
        return "better" if self.ratio > 1 else "worse"

    @property
    def words(self) -> str:
        if self.ratio is None:
            return ""
        return _times(self.ratio)


@dataclass(frozen=True)
class WorkloadRow:
    """One workload: TVM, then the others by name, None where an engine did not measure it that night."""

    name: str
    tvm: EngineCell
    others: tuple[EngineCell | None, ...]


@dataclass(frozen=True)
class Mean:
    """Geometric mean of an engine's ratios over its workloads."""

    engine: str
    ratio: float | None
    count: int


@dataclass(frozen=True)
class EngineComparison:
    """One experiment; `alone` names its only engine where there is nothing to compare.

    night: the last one on which TVM was measured, which all values are of.
    """

    title: str
    page: str
    engines: tuple[str, ...]
    rows: tuple[WorkloadRow, ...]
    means: tuple[Mean, ...]
    line: Markup
    alone: str | None
    night: str = ""


@dataclass(frozen=True)
class _EnginePoint:
    """The value of a series on the night that is shown; its interval as far as it is known."""

    view: SeriesView
    value: float
    low: float | None
    high: float | None

    @property
    def log_width(self) -> float | None:
        """Of the interval; None where that is unknown, or reaches 0, as that of very few samples may."""
        return math.log(self.high / self.low) if self.low and self.high and 0 < self.low <= self.high else None


def _times(ratio: float) -> str:
    return f"{three_digits(ratio)} {TIMES}"


def write_engines(context: SiteContext, titles: Sequence[tuple[str, str, str]], new: Path) -> None:
    """Write engines.html; `titles` are name, title and page of the experiments."""
    by_experiment: dict[str, list[SeriesView]] = {}
    for view in context.series:
        if view.metric == METRIC and view.labels.get("engine"):
            by_experiment.setdefault(view.experiment, []).append(view)
    comparisons = [
        compare(title, page, by_experiment[name], context.shown_stamps)
        for name, title, page in titles
        if name in by_experiment
    ]
    text = pages.render(
        "engines.html",
        context.frame("engines"),
        comparisons=[comparison for comparison in comparisons if not comparison.alone],
        alone=[comparison for comparison in comparisons if comparison.alone],
        nights=len(context.shown_stamps),
        tonight=context.tonight.stamp,
        comparing=COMPARING,
    )
    (new / "engines.html").write_text(text, encoding="utf-8")


def compare(title: str, page: str, series: Sequence[SeriesView], stamps: Sequence[str]) -> EngineComparison:
    """Compare the experiment's engines on the last of the nights `stamps` on which TVM was measured."""
    engines = sorted({str(view.labels["engine"]) for view in series})
    if len(engines) < 2 or TVM not in engines:
        return EngineComparison(title, page, tuple(engines), (), (), Markup(""), " and ".join(engines))
    others = [engine for engine in engines if engine != TVM]
    last = max(view.last_stamp for view in series if view.labels["engine"] == TVM)
    night = stamps.index(last)
    groups: dict[str, list[SeriesView]] = {}
    for view in series:
        key = json.dumps([view.labels.get(name) for name in _IDENTITY], sort_keys=True, ensure_ascii=False)
        groups.setdefault(key, []).append(view)
    ours = [(group, best) for group in groups.values() if (best := _fastest(group, TVM, night, last))]
    names = _workload_names([best.view for _, best in ours])
    common = {engine: _find_common(series, engine) for engine in engines}
    rows = []
    for (group, best), name in zip(ours, names, strict=True):
        fastest = [_fastest(group, engine, night, last) for engine in others]
        cells = [_cell(theirs, best, common) if theirs else None for theirs in fastest]
        rows.append(WorkloadRow(name, _cell(best, best, common), tuple(cells)))
    means = [_mean(engine, [row.others[index] for row in rows]) for index, engine in enumerate(others)]
    line = _over_time([group for group, _ in ours], others)
    ordered = tuple(sorted(rows, key=lambda row: row.name))
    return EngineComparison(title, page, tuple(others), ordered, tuple(means), line, None, last)


def _workload_names(best: Sequence[SeriesView]) -> list[str]:
    """Name the workloads, with their arguments where the name alone stands for several."""
    short = [str(view.labels.get("workload", "")).removeprefix("network.") for view in best]
    named = []
    for view, name in zip(best, short, strict=True):
        arguments = view.labels.get("workload_args") or {}
        text = ", ".join(f"{key} {value}" for key, value in arguments.items()) if isinstance(arguments, dict) else ""
        named.append(f"{name} ({text})" if short.count(name) > 1 and text else name)
    return named


def _fastest(group: Iterable[SeriesView], engine: str, night: int, stamp: str) -> _EnginePoint | None:
    """Find the engine's series with the least time that night; only that of a series' last night has an interval."""
    there = [
        (value, view) for view in group if view.labels["engine"] == engine and (value := view.values[night] or 0) > 0
    ]
    if not there:
        return None
    value, view = min(there, key=lambda one: one[0])
    return _EnginePoint(view, value, *((view.low, view.high) if view.last_stamp == stamp else (None, None)))


def _cell(theirs: _EnginePoint, ours: _EnginePoint, common: Mapping[str, AbstractSet[str]]) -> EngineCell:
    ratio = None if theirs is ours else theirs.value / ours.value
    low = high = None
    widths = theirs.log_width, ours.log_width
    if ratio is not None and widths[0] is not None and widths[1] is not None:
        # errors of two independent times, as logarithms
        spread = math.hypot(widths[0], widths[1]) / 2
        low, high = ratio * math.exp(-spread), ratio * math.exp(spread)
    values = [
        their / our if their and our and theirs is not ours else None
        for their, our in zip(theirs.view.values, ours.view.values, strict=True)
    ]
    engine, parts = str(theirs.view.labels["engine"]), _parts(theirs.view)
    text = f"{engine} against TVM over {len(values)} nights"
    return EngineCell(
        engine,
        format_quantity(theirs.value, theirs.view.unit),
        ", ".join(parts),
        ", ".join(part for part in parts if part not in common[engine]),
        theirs.view.id,
        ratio,
        low,
        high,
        sparkline(values, text),
    )


def _parts(view: SeriesView) -> list[str]:
    named = (view.labels.get(name) for name in ("build_config", "engine_config", "runtime_config"))
    return [f"{key} {item}" for value in named if isinstance(value, dict) for key, item in value.items()]


def _find_common(series: Iterable[SeriesView], engine: str) -> AbstractSet[str]:
    """Find what all of an engine's configurations have in common."""
    return set.intersection(*(set(_parts(view)) for view in series if view.labels["engine"] == engine))


def _mean(engine: str, cells: Iterable[EngineCell | None]) -> Mean:
    ratios = [cell.ratio for cell in cells if cell and cell.ratio]
    return Mean(engine, geometric_mean(ratios) if ratios else None, len(ratios))


def _over_time(groups: Sequence[Sequence[SeriesView]], engines: Sequence[str]) -> Markup:
    """Draw the geometric mean of each engine's ratios, night by night, over the workloads that both measured then.

    Empty where that is one night only, which the table tells.
    """
    count = max((len(view.values) for group in groups for view in group), default=0)
    curves = []
    for engine in engines:
        nights = ([ratio for group in groups if (ratio := _ratio_at(group, engine, index))] for index in range(count))
        curves.append(SparkCurve(engine, [geometric_mean(ratios) if ratios else None for ratios in nights]))
    known = [value for curve in curves for value in curve.values if value is not None]
    if all(sum(value is not None for value in curve.values) < _LEAST_NIGHTS for curve in curves):
        return Markup("")
    labels = Labels(_times(max(*known, 1.0)), _times(min(*known, 1.0)), 1.0, "as fast as TVM")
    named = ", ".join(engines)
    return chart(curves, f"Geometric mean of the time of {named} relative to TVM, over {count} nights", labels)


def _ratio_at(group: Iterable[SeriesView], engine: str, index: int) -> float | None:
    least: dict[str, float] = {}
    for view in group:
        value = view.values[index]
        if value is not None and value > 0:
            name = str(view.labels["engine"])
            least[name] = min(value, least.get(name, value))
    return least[engine] / least[TVM] if engine in least and TVM in least else None
