"""How TVM stands as a whole: workloads by variants tonight, and the geometric mean of its run times over nights."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markup.night_chart import ChartMark, Curve, NightChart
from markupsafe import Markup

from tvmdash.dashboard_info import host_of
from tvmdash.incidents.headline import format_headline
from tvmdash.records.metrics import RATIOS, RUN_TIME, RUN_TIME_RATIO
from tvmdash.series import naming, store
from tvmdash.series.store import Outline, Series, Store
from tvmdash.text import elide
from views.context import SiteContext
from views.night import format_day
from views.series import GONE, MISSING, SeriesView

NIGHTS = 90
_MOST_ROWS, _MOST_COLUMNS = 40, 14
_VARIED = ("engine_config", "target", "build_config", "runtime_config", "hw_model", "env_name")
_FEWEST_NIGHTS = 3
_HEIGHT = 200
_NAME = 60


@dataclass(frozen=True)
class MatrixCell:
    """A workload in a variant: the series that needs attention most, and how many more there are."""

    view: SeriesView
    others: int


@dataclass(frozen=True)
class MatrixColumn:
    """An experiment, or one variant of it."""

    experiment: str
    variant: str
    page: str


@dataclass(frozen=True)
class OverviewMatrix:
    """Run times of TVM: a row for each workload, what needs attention first; a cell is None where nothing is measured.

    more: rows that are left out.
    """

    columns: tuple[MatrixColumn, ...]
    rows: tuple[tuple[str, tuple[MatrixCell | None, ...]], ...]
    more: int


def make_matrix(series: Sequence[SeriesView]) -> OverviewMatrix | None:
    """Of what has a value tonight; None where there would be one row or one column."""
    views = [view for view in series if view.metric == RUN_TIME and view.labels.get("engine", "tvm") == "tvm"]
    views = [view for view in views if view.state not in (MISSING, GONE)]
    variants = _variants(views)
    columns = list(dict.fromkeys(sorted((view.experiment, variants[view.id]) for view in views)))
    if len(columns) > _MOST_COLUMNS:
        variants = dict.fromkeys(variants, "")
        columns = list(dict.fromkeys(sorted((view.experiment, "") for view in views)))[:_MOST_COLUMNS]
    cells: dict[tuple[str, tuple[str, str]], list[SeriesView]] = {}
    for view in views:
        cells.setdefault((naming.workload_of(view), (view.experiment, variants[view.id])), []).append(view)
    workloads = list(dict.fromkeys(name for view in views if (name := naming.workload_of(view))))
    if len(columns) < 2 or len(workloads) < 2:
        return None
    pages = {view.experiment: view.page for view in views}
    rows = [(name, tuple(_cell(cells.get((name, column), ())) for column in columns)) for name in workloads]
    shown = tuple(MatrixColumn(experiment, variant, pages[experiment]) for experiment, variant in columns)
    return OverviewMatrix(shown, tuple(rows[:_MOST_ROWS]), max(0, len(rows) - _MOST_ROWS))


def _variants(views: Sequence[SeriesView]) -> dict[str, str]:
    """By series, the parameters that its experiment varies."""
    facts = {view.id: dict(naming.flatten({name: view.labels.get(name) for name in _VARIED})) for view in views}
    values: dict[tuple[str, str], set[str]] = {}
    for view in views:
        for name, value in facts[view.id].items():
            values.setdefault((view.experiment, name), set()).add(str(value))
    return {
        view.id: ", ".join(
            f"{name} {elide(str(value), 24)}"
            for name, value in sorted(facts[view.id].items())
            if len(values[view.experiment, name]) > 1
        )
        for view in views
    }


def _cell(views: Sequence[SeriesView]) -> MatrixCell | None:
    """The views are in the order of their need for attention."""
    return MatrixCell(views[0], len(views) - 1) if views else None


@dataclass(frozen=True)
class Overall:
    """The geometric mean over nights, as a picture; series: how many are in the last of it."""

    picture: Markup
    series: int
    change: float


def read_overall(context: SiteContext) -> Overall | None:
    """Of all run times of TVM on this machine, each night against the one before; None before there are three nights.

    A step from night to night is the geometric mean over the series with a value on both. Where both were measured in
    turn with the same reference, it is the step of their ratios to it, which holds nothing of the machine.
    """
    stamps = context.stamps[-NIGHTS:]
    steps: list[list[float]] = [[] for _ in stamps]
    versions: dict[str, str] = {}
    for experiment in context.home.experiments_with_data():
        if host_of(experiment):
            continue
        with store.open_for_reading(context.home.store_file, context.home.data(experiment), experiment) as opened:
            outlines = opened.outlines(experiment)
            if not any(_is_counted(outline) for outline in outlines):
                continue
            versions.update(opened.versions(experiment))
            _add_steps(opened, experiment, outlines, stamps, steps)
    changes = _chain(steps)
    if sum(change is not None for change in changes) < _FEWEST_NIGHTS:
        return None
    curve = Curve("Geometric mean of the run times", tuple(changes))
    chart = NightChart(
        tuple(map(format_day, stamps)),
        tuple(versions.get(stamp, "") for stamp in stamps),
        (curve,),
        tuple(_marks(context, stamps)),
        _HEIGHT,
    )
    at, last = next((at, change) for at, change in reversed([*enumerate(changes)]) if change is not None)
    return Overall(chart.draw("The geometric mean of all run times over nights"), len(steps[at]), last)


def _is_counted(outline: Outline) -> bool:
    return outline.metric == RUN_TIME and outline.labels.get("engine", "tvm") == "tvm"


def _add_steps(
    opened: Store, experiment: str, outlines: Sequence[Outline], stamps: Sequence[str], steps: list[list[float]]
) -> None:
    """To each night, the logarithmic steps of its series since the last night with a value."""
    references = {stamp: build.reference for stamp, build in opened.builds(experiment).items()}
    ratios = {_identity(outline): outline for outline in outlines if outline.metric == RUN_TIME_RATIO}
    place = {stamp: at for at, stamp in enumerate(stamps)}
    for outline in filter(_is_counted, outlines):
        times = _values(opened.points_of(outline, since=stamps[0]), place)
        beside = ratios.get(_identity(outline))
        ratio = _values(opened.points_of(beside, since=stamps[0]), place) if beside else {}
        nights = sorted(times)
        for before, night in itertools.pairwise(nights):
            reference = references.get(stamps[night])
            alike = bool(reference) and reference == references.get(stamps[before])
            of = ratio if alike and before in ratio and night in ratio else times
            steps[night].append(math.log(of[night] / of[before]))


def _identity(outline: Outline) -> str:
    """The same for a time and for its ratio."""
    return json.dumps([RATIOS.get(outline.metric, outline.metric), outline.labels], sort_keys=True)


def _values(series: Series, place: Mapping[str, int]) -> dict[int, float]:
    pairs = zip(series.stamps, series.values, strict=True)
    return {place[stamp]: value for stamp, value in pairs if stamp in place and value is not None and value > 0}


def _chain(steps: Sequence[Sequence[float]]) -> list[float | None]:
    """The change since the first night that has a successor; None on nights without a step."""
    total, changes = 0.0, []
    begun = next((night for night, step in enumerate(steps) if step), len(steps))
    for night, step in enumerate(steps):
        total += math.fsum(step) / len(step) if step else 0.0
        changes.append(math.expm1(total) if step or night == begun - 1 else None)
    return changes


def _marks(context: SiteContext, stamps: Sequence[str]) -> list[ChartMark]:
    """The incidents that began on these nights."""
    found = []
    for incident in context.alerts.incidents:
        if incident.begin in stamps and incident.id not in context.alerts.silent:
            address = f"incidents/{incident.id}.html"
            found.append(ChartMark(stamps.index(incident.begin), incident.way, format_headline(incident), address))
    return found
