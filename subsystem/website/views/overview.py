"""TVM as a whole: the geometric mean of its run times over nights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markup.night_chart import ChartMark, Curve, NightChart
from markupsafe import Markup

from tvmdash import common
from tvmdash.dashboard_info import host_of
from tvmdash.incidents.headline import format_headline
from tvmdash.judge.means import Ratio, combine_ratios
from tvmdash.records.metrics import RUN_TIME
from tvmdash.series import store
from tvmdash.series.store import Outline, Series
from views.context import SiteContext
from views.series import match_ratios, read_levels

NIGHTS = 90
_FEWEST_NIGHTS, _FEWEST_SERIES = 3, 2
_HEIGHT = 200


@dataclass(frozen=True)
class Overall:
    """The geometric mean over nights, as a picture; series: over how many; low, high: 95 % around the last `change`."""

    picture: Markup
    series: int
    change: float
    low: float
    high: float


def read_overall(context: SiteContext) -> Overall | None:
    """Combine the run times of TVM that this machine measured last; None of fewer than three nights or two series.

    What was measured in turn counts by its ratios, which hold nothing of the machine. The interval is over workloads.
    """
    stamps = context.stamps[-NIGHTS:]
    logs: list[Mapping[str, float]] = []
    versions: dict[str, str] = {}
    for experiment in context.home.experiments_with_data():
        if host_of(experiment):
            continue
        with store.open_for_reading(context.home.store_file, context.home.data(experiment), experiment) as opened:
            outlines, builds = opened.outlines(experiment), opened.builds(experiment)
            ratios = match_ratios(outlines)
            counted = [outline for outline in outlines if _is_counted(outline)]
            versions.update(opened.versions(experiment) if counted else {})
            for outline in counted:
                ratio = ratios.get(outline.number)
                levels = read_levels(opened, ratio, builds, stamps[0]) if ratio else {}
                logs.append(levels or _read_logs(opened.points_of(outline, since=stamps[0])))
    last = max((max(series) for series in logs if series), default="")
    basket = [series for series in logs if last in series]
    nights = sorted({stamp for series in basket for stamp in series})
    if len(nights) < _FEWEST_NIGHTS or len(basket) < _FEWEST_SERIES:
        return None
    first = now = [series[min(series)] for series in basket]
    means: dict[str, Ratio] = {}
    for night in nights:  # a series without a value on it is where it was last
        now = [series.get(night, level) for series, level in zip(basket, now, strict=True)]
        means[night] = combine_ratios([math.exp(level - begin) for level, begin in zip(now, first, strict=True)])
    changes = tuple(means[stamp].value - 1 if stamp in means else None for stamp in stamps)
    chart = NightChart(
        tuple(map(common.format_day, stamps)),
        tuple(versions.get(stamp, "") for stamp in stamps),
        (Curve("Geometric mean of the run times", changes),),
        tuple(_marks(context, stamps)),
        _HEIGHT,
    )
    low, high = means[last].bounds
    picture = chart.draw("The geometric mean of all run times over nights")
    return Overall(picture, len(basket), means[last].value - 1, low - 1, high - 1)


def _is_counted(outline: Outline) -> bool:
    return outline.metric == RUN_TIME and outline.labels.get("engine", "tvm") == "tvm"


def _read_logs(series: Series) -> dict[str, float]:
    pairs = zip(series.stamps, series.values, strict=True)
    return {stamp: math.log(value) for stamp, value in pairs if value is not None and value > 0}


def _marks(context: SiteContext, stamps: Sequence[str]) -> list[ChartMark]:
    """Mark the incidents that began on these nights."""
    found = []
    for incident in context.alerts.incidents:
        if incident.begin in stamps and not incident.into and incident.id not in context.alerts.silent:
            address = f"incidents/{incident.id}.html"
            found.append(ChartMark(stamps.index(incident.begin), incident.way, format_headline(incident), address))
    return found
