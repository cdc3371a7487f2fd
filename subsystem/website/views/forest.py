"""The forest plot of a night: a row a series with its interval; what is told first, what did not move as a bound."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markup.sparks import clean
from markupsafe import Markup, escape

from tvmdash.records.metrics import BETTER, CHANGED, COMPILE_TIME, FOREIGN, RUN_TIME, WAYS, WORSE, Way, is_worse, way
from tvmdash.series import naming
from tvmdash.text import format_percent, format_percent_range
from tvmdash.verdict import Evidence
from views.context import SiteContext
from views.series import BLIND, GONE, MISSING, STATES, SUSPECT, UNJUDGED, YOUNG, SeriesView

MOST_TOLD, MOST_CALM, MOST_FOLDED = 12, 8, 100
_HEIGHT, _MIDDLE = 28, 14
_FINE = 0.03
"""Effects below are drawn to scale, those beyond by their logarithm: a regression of 400 % leaves 1 % to be seen."""
_LEAST_REACH = 0.02
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)
_IS_WORSE: Mapping[str, bool | None] = {WORSE: True, BETTER: False, CHANGED: None}
_APART = 16.0
"""Percent of the width between two labels."""


@dataclass(frozen=True)
class ForestRow:
    """A series. low, high: 95 % around `effect`; where nothing was measured in turn, None, and `noise` of one night."""

    view: SeriesView
    name: str
    way: Way | None
    effect: float
    low: float | None
    high: float | None
    noise: float | None
    wall: float | None
    compiled: float | None
    compiled_way: Way | None
    paired: bool

    @property
    def kind(self) -> str:
        """The class of its marks."""
        return self.way or (self.view.state if self.view.state in (SUSPECT, BLIND) else "calm")

    @property
    def is_told(self) -> bool:
        return self.way is not None or self.compiled_way is not None or self.view.state == SUSPECT

    @property
    def interval(self) -> str:
        return "" if self.low is None or self.high is None else format_percent_range(self.low, self.high)

    @property
    def reach(self) -> float:
        """Its farthest distance from "as before"."""
        return max(abs(bound) for bound in (self.low or self.effect, self.high or self.effect, self.effect))


@dataclass(frozen=True)
class NightForest:
    """The plot. groups: what is shown, by experiment; folded: what did not move further than `bound`.

    reference: beside which TVM all rows stand; "" where they stand beside the TVMs or nights before.
    """

    groups: tuple[tuple[str, str, tuple[ForestRow, ...]], ...]
    folded: tuple[ForestRow, ...]
    bound: float
    reference: str
    scale: ForestScale

    @property
    def rows(self) -> list[ForestRow]:
        return [row for _, _, rows in self.groups for row in rows]

    @property
    def has_compiled(self) -> bool:
        return any(row.compiled is not None for row in self.rows)

    @property
    def has_history(self) -> bool:
        return any(sum(value is not None for value in row.view.values) > 1 for row in self.rows)

    @property
    def basis(self) -> str:
        """The comparison that the rows make."""
        if self.reference:
            return "Both measured in turn."
        paired = {row.paired for row in self.rows}
        if paired == {True}:
            return "Against the builds before, each measured in turn with a reference."
        more = "; what was measured in turn with a reference, against the builds before" if True in paired else ""
        return f"Against the nights before{more}."

    @property
    def more_is(self) -> str:
        """The meaning of the right side, where that is the same of all."""
        if any(row.view.direction != "lower" for row in self.rows):
            return ""
        return "slower" if all(row.view.metric in (RUN_TIME, COMPILE_TIME) for row in self.rows) else "worse"

    @property
    def is_of_run_times(self) -> bool:
        return all(row.view.metric == RUN_TIME for row in self.rows)


@dataclass(frozen=True)
class ForestScale:
    """From effects to percent of the width, whatever that is: the browser draws at the width shown."""

    low: float
    high: float
    middle: str

    @classmethod
    def of(cls, rows: Iterable[ForestRow], reference: str) -> ForestScale:
        known = [value for row in rows for value in (row.effect, row.low, row.high, row.wall, row.compiled)]
        ends = [value for value in known if value is not None]
        return cls(
            _stretch(min(-_LEAST_REACH, *ends)) - 0.2,
            _stretch(max(_LEAST_REACH, *ends)) + 0.2,
            "equal" if reference else "as before",
        )

    def x(self, effect: float) -> float:
        return round(100 * (_stretch(effect) - self.low) / (self.high - self.low), 2)

    def ticks(self) -> list[tuple[float, str]]:
        """Choose round effects with room for their labels; no effect always has one."""
        kept = [(self.x(0.0), self.middle)]
        for effect in (sign * size for size in _TICKS for sign in (-1, 1) if sign * size > -1):
            at = self.x(effect)
            if 5 <= at <= 95 and all(abs(at - other) >= _APART for other, _ in kept):
                kept.append((at, format_percent(effect).replace(".0 %", " %")))
        return sorted(kept)

    def draw_axis(self) -> Markup:
        parts = [f'<text x="{x}%" y="14">{label}</text>' for x, label in self.ticks()]
        words = ", ".join(label for _, label in self.ticks())
        return _svg("forest-axis", 20, f"The scale: {words}", parts)

    def draw(self, row: ForestRow) -> Markup:
        ticks = [(x, "zero" if x == self.x(0.0) else "grid") for x, _ in self.ticks()]
        parts = [f'<line class="{kind}" x1="{x}%" x2="{x}%" y1="0" y2="{_HEIGHT}"/>' for x, kind in ticks]
        words = f"{row.name}: {format_percent(row.effect)}"
        if row.low is not None and row.high is not None:
            words += f", 95 % {row.interval}"
            parts.append(self._line("reach", row.low, row.high))
        elif row.noise:
            parts.append(self._line("noise", -2 * row.noise, 2 * row.noise))
        if row.compiled is not None:
            words += f", compile time {format_percent(row.compiled)}"
            kind = f"compiled is-{row.compiled_way or 'calm'}"
            parts.append(f'<text class="{kind}" x="{self.x(row.compiled)}%" y="{_MIDDLE + 5}">◇</text>')
        if row.wall is not None:
            words += f", by the wall clock {format_percent(row.wall)}"
            parts.append(f'<circle class="wall" cx="{self.x(row.wall)}%" cy="{_MIDDLE}" r="4"/>')
        parts.append(f'<circle class="point" cx="{self.x(row.effect)}%" cy="{_MIDDLE}" r="4.5"/>')
        return _svg(f"forest-row is-{row.kind}", _HEIGHT, words, parts)

    def _line(self, kind: str, low: float, high: float) -> str:
        return f'<line class="{kind}" x1="{self.x(low)}%" x2="{self.x(high)}%" y1="{_MIDDLE}" y2="{_MIDDLE}"/>'


def _stretch(effect: float) -> float:
    # an effect of -100 % has no logarithm
    return math.asinh(math.log1p(max(effect, -0.99)) / _FINE)


def _svg(kind: str, height: int, text: str, parts: Sequence[str]) -> Markup:
    head = f'<svg class="{kind}" width="100%" height="{height}" role="img" aria-label="{escape(clean(text))}">'
    return Markup(f"{head}{''.join(parts)}</svg>")  # noqa: S704 - escaped above


def make_forest(context: SiteContext, wall: Mapping[str, float]) -> NightForest | None:
    """Plot tonight's run times and whatever else is told in percent; None where there is none.

    wall: by series, its ratio to the reference by the wall clock. Controls have their own line.
    """
    beside = context.verdict.value.beside if context.verdict.value else None
    first = beside is not None and beside.is_first
    views = [view for view in context.series if view.state not in (MISSING, GONE) and not is_control(context, view)]
    compiled = {_place(view): view for view in views if view.metric == COMPILE_TIME}
    rows = []
    for view in views:
        said = _say(context, view, first=first)
        shown = view.metric in (RUN_TIME, FOREIGN.name) or view.state in (*WAYS, SUSPECT)
        if not shown or said is None or view.exact_change:
            continue
        other = compiled.get(_place(view)) if view.metric == RUN_TIME else None
        of_compiling = _say(context, other, first=first) if other else None
        name = view.short_name.replace(" run time", "", 1) if view.metric == RUN_TIME else view.short_name
        rows.append(
            ForestRow(
                view, name, way_of(view, first=first), *said, view.noise if said[1] is None else None,
                wall.get(naming.id_of(view.id)) if first else None, of_compiling[0] if of_compiling else None,
                way_of(other, first=first) if other else None, _is_paired(context, view),
            )
        )  # fmt: skip
    if not rows:
        return None
    new = context.verdict.value.new if context.verdict.value else ()
    rows.sort(
        key=lambda row: (
            not row.is_told, row.view.incident not in new, WORSE not in (row.way, row.compiled_way), -abs(row.effect),
        )
    )  # fmt: skip
    told = [row for row in rows if row.is_told]
    calm = [row for row in rows if not row.is_told]
    shown_rows, folded = told[:MOST_TOLD] + calm[:MOST_CALM], told[MOST_TOLD:] + calm[MOST_CALM:]
    names = dict.fromkeys((row.view.experiment, row.view.page) for row in shown_rows)
    groups = [(*name, tuple(row for row in shown_rows if row.view.experiment == name[0])) for name in names]
    reference = beside.reference if first and beside is not None else ""
    bound = max((row.reach for row in folded), default=0.0)
    return NightForest(
        tuple(groups), tuple(folded), bound, reference, ForestScale.of(shown_rows + folded[:MOST_FOLDED], reference)
    )


def is_control(context: SiteContext, view: SeriesView) -> bool:
    """Tell whether its program is never built again, so that what moves it is the machine."""
    said = context.alerts.series.get(view.id)
    return said is not None and said.control


def _place(view: SeriesView) -> str:
    """Return a key that the numbers of one point share."""
    return json.dumps([view.experiment, view.labels], sort_keys=True, default=str)


def _say(context: SiteContext, view: SeriesView, *, first: bool) -> tuple[float, float | None, float | None] | None:
    """Return the effect beside the reference on the first night beside one, else beside the TVMs or nights before."""
    if first:
        return (view.beside.effect, view.beside.low, view.beside.high) if view.beside else None
    said = context.judged.get(view.id)
    if said is not None and said.effect is not None and said.relative and view.state not in (YOUNG, UNJUDGED):
        return said.effect, said.low, said.high
    return None if view.change is None else (view.change, None, None)


def _is_paired(context: SiteContext, view: SeriesView) -> bool:
    said = context.judged.get(view.id)
    return said is not None and said.evidence is Evidence.PAIRED


def count_told(context: SiteContext) -> dict[str, int]:
    """Count the series by state, those that need attention first; on the first night, beside the reference."""
    told = context.verdict.value
    first = told is not None and told.beside is not None and told.beside.is_first
    counted = Counter((way_of(view, first=True) if first else None) or view.state for view in context.series)
    return {state: counted[state] for state in STATES if counted[state]}


def way_of(view: SeriesView, *, first: bool) -> Way | None:
    """Return the way that it moved, where that is told."""
    if first and view.beside is not None:
        return way(is_worse(view.beside.effect, view.direction)) if view.beside.differs else None
    return way(_IS_WORSE[view.state]) if view.state in _IS_WORSE else None
