"""Points by machines: how each stands tonight where it is measured, and on which machines it moved."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvmdash.dashboard_info import host_of
from tvmdash.judge.means import combine_ratios
from tvmdash.records.metrics import WAYS
from tvmdash.series import naming
from tvmdash.text import format_list, format_percent, format_percent_range
from tvmdash.verdict import JudgedSeries, Standing
from views.context import SiteContext
from views.hosts import Machine
from views.series import GONE, MISSING, SERIES_WORDS, SUSPECT, SeriesView

NOT_THERE = "absent"
FEWEST_COMBINED = 5
"""One number over machines is told from so many on."""
MOST_CELLS, LEAST_ROWS = 12_000, 50
_NAMED, _CHARTED = 3, 50
_WORDS = {**SERIES_WORDS, MISSING: "not measured tonight", NOT_THERE: "not measured there"}


class Where(enum.StrEnum):
    """On which of the machines that measure it a point moved. In the order of their places in the matrix."""

    MIXED = "mixed"
    """On some and not on others, or not the same way."""
    ONLY = "only"
    """On one, and on no other."""
    UNSURE = "unsure"
    """On some, and of no other can it be said."""
    ALL = "all"
    NOWHERE = "nowhere"


_ORDER = {Where.MIXED: 0, Where.ONLY: 0, Where.UNSURE: 1, Where.ALL: 2, Where.NOWHERE: 3}


@dataclass(frozen=True)
class Cell:
    """A point on a machine. view: its series, None where the machine has none of it; said: tonight's verdict on it."""

    machine: str
    state: str
    view: SeriesView | None = None
    said: JudgedSeries | None = None
    tonight: bool = False

    @property
    def words(self) -> str:
        return _WORDS[self.state]

    @property
    def remark(self) -> str:
        """A note where an open incident's machine did not measure tonight."""
        return _WORDS[MISSING] if self.state in WAYS and not self.tonight else ""

    @property
    def effect(self) -> float | None:
        """The change that the verdict gives, as a fraction; None where it gives none, or none in percent."""
        return self.said.effect if self.said is not None and self.said.relative else None

    @property
    def change(self) -> str:
        """As in "+8.0 %"; of an exact number that moved, in its unit."""
        if self.view is not None and self.view.exact_change:
            return self.view.exact_change
        return format_percent(self.effect) if self.effect is not None else ""

    @property
    def interval(self) -> str:
        """The change's 95 % interval, where it has one."""
        said = self.said
        if self.effect is None or said is None or said.low is None or said.high is None:
            return ""
        return format_percent_range(said.low, said.high)

    @property
    def beside(self) -> str:
        """The comparison with the reference tonight, with the 95 % interval; empty where it was measured alone."""
        beside = self.view.beside if self.view is not None and self.tonight else None
        return f"{format_percent(beside.effect)} ({format_percent_range(beside.low, beside.high)})" if beside else ""

    def would_show(self, effect: float) -> bool:
        """Return True where it did not move, and a change of this size would have been told."""
        said = self.said
        if said is None or self.state in WAYS:
            return False
        steady = said.standing is Standing.STEADY and said.visible is not None and said.visible <= effect
        return steady or said.standing is Standing.UNCHANGED


@dataclass(frozen=True)
class MatrixRow:
    """A point on all machines. words: on which it moved; together: the change over all of them, with its interval."""

    name: str
    page: str
    experiment: str
    cells: tuple[Cell, ...]
    where: Where
    words: str
    together: str
    together_of: str

    @property
    def ids(self) -> list[str]:
        """The series of it that the explorer shows at once."""
        return [cell.view.id for cell in self.cells if cell.view is not None][:_CHARTED]


@dataclass(frozen=True)
class Matrix:
    """The rows, those first on which machines disagree; `rows_in_all` counts those that are left out as well."""

    machines: tuple[Machine, ...]
    rows: tuple[MatrixRow, ...]
    rows_in_all: int
    combines: bool


@dataclass(frozen=True)
class _Point:
    """A row as `naming` wants it: a series without its machine."""

    id: str
    experiment: str
    metric: str
    unit: str
    title: str
    labels: Mapping[str, Any]
    views: dict[str, SeriesView] = field(default_factory=dict)


def make_matrix(context: SiteContext, machines: Sequence[Machine]) -> Matrix:
    """Make a row of the series that had a value lately and are the same but for the machine."""
    points = _group(context.series, context.tonight.stamp)
    names = naming.short_names(points)
    rows = [
        _make_row(point, name, machines, context.judged, context.tonight.stamp)
        for point, name in zip(points, names, strict=True)
    ]
    rows.sort(key=_need)
    most = max(LEAST_ROWS, MOST_CELLS // max(1, len(machines)))
    return Matrix(tuple(machines), tuple(rows[:most]), len(rows), any(row.together for row in rows))


def _group(series: Iterable[SeriesView], tonight: str) -> list[_Point]:
    """Group series by point; of an exchanged machine's two, the one that was measured last stands for it."""
    points: dict[tuple[str, str], _Point] = {}
    for view in series:
        key = (naming.point_of(view.experiment, view.metric, view.labels), view.unit)
        experiment = naming.strip_host(view.experiment)
        point = points.setdefault(key, _Point(view.id, experiment, view.metric, view.unit, view.title, view.labels))
        host = host_of(view.experiment)
        known = point.views.get(host)
        if known is None or _rank(view, tonight) > _rank(known, tonight):
            point.views[host] = view
    return list(points.values())


def _rank(view: SeriesView, tonight: str) -> tuple[bool, str]:
    return view.last_stamp == tonight, view.last_stamp


def _make_row(
    point: _Point, name: str, machines: Sequence[Machine], judged: Mapping[str, JudgedSeries], tonight: str
) -> MatrixRow:
    cells = tuple(_make_cell(point.views.get(machine.host), machine.name, judged, tonight) for machine in machines)
    where, words = describe_where(cells)
    first = next(iter(point.views.values()))
    return MatrixRow(name, first.page, point.experiment, cells, where, words, *combine(cells))


def _make_cell(view: SeriesView | None, machine: str, judged: Mapping[str, JudgedSeries], tonight: str) -> Cell:
    if view is None:
        return Cell(machine, NOT_THERE)
    return Cell(machine, view.state, view, judged.get(view.id), view.last_stamp == tonight)


def _need(row: MatrixRow) -> tuple[int, bool, bool, float, str, str]:
    states = {cell.state for cell in row.cells}
    largest = max((abs(cell.effect or 0.0) for cell in row.cells if cell.state in (*WAYS, SUSPECT)), default=0.0)
    return _ORDER[row.where], SUSPECT not in states, MISSING not in states, -largest, row.experiment, row.name


def describe_where(cells: Sequence[Cell]) -> tuple[Where, str]:
    """Find the machines that measure a point on which it moved, as the verdict has it, and say it in words.

    Where it did not move counts only where so small a change would have been told; of the others it cannot be said.
    """
    there = [cell for cell in cells if cell.state not in (NOT_THERE, GONE)]
    moved = [cell for cell in there if cell.state in WAYS]
    if not moved:
        return Where.NOWHERE, ""
    least = min(abs(cell.effect or 0.0) for cell in moved)
    rest = [cell for cell in there if cell not in moved]
    calm = [cell for cell in rest if cell.would_show(least)]
    unknown = [cell for cell in rest if cell not in calm]
    where = _judge_where(moved, calm, unknown)
    return where, _format_where(where, moved, calm, unknown)


def _judge_where(moved: Sequence[Cell], calm: Sequence[Cell], unknown: Sequence[Cell]) -> Where:
    if len({cell.state for cell in moved}) > 1:
        return Where.MIXED
    if not calm:
        return Where.UNSURE if unknown else Where.ALL
    return Where.ONLY if len(moved) == 1 and not unknown else Where.MIXED


def _format_where(where: Where, moved: Sequence[Cell], calm: Sequence[Cell], unknown: Sequence[Cell]) -> str:
    if where is Where.ALL:
        of = f"all {len(moved)}" if len(moved) > 1 else f"{moved[0].machine}, measured there alone"
        return f"{moved[0].words} on {of}"
    if where is Where.ONLY:
        return f"{moved[0].words} only on {moved[0].machine}"
    on = {way: [cell.machine for cell in moved if cell.state == way] for way in WAYS}
    parts = [f"{_WORDS[way]} on {format_list(names, _NAMED)}" for way, names in on.items() if names]
    parts += [f"not on {format_list([cell.machine for cell in calm], _NAMED)}"] if calm else []
    text = ", ".join(parts)
    if unknown:
        text += f"; unknown for {format_list([cell.machine for cell in unknown], _NAMED)}"
    return f"mixed: {text}" if where is Where.MIXED else text


def combine(cells: Sequence[Cell]) -> tuple[str, str]:
    """Combine the change over machines with its 95 % interval; empty for fewer than FEWEST_COMBINED machines.

    exp(m) - 1, where m is the mean of log(1 + change) over the n machines, and exp(m ± t(97.5 %, n - 1) s / √n) - 1
    where s is the standard deviation of these logarithms: machines are what is drawn, so each counts once, and the
    intervals of single machines do not enter. The changes are the verdict's; where it has too few, the ratios to the
    reference.
    """
    measured = [cell for cell in cells if cell.tonight]
    changes = [cell.effect for cell in measured if cell.effect is not None]
    beside = [cell.view.beside.effect for cell in measured if cell.view is not None and cell.view.beside is not None]
    for effects, what in ((changes, "change"), (beside, "beside the reference")):
        ratios = [1 + effect for effect in effects if effect > -1]
        if len(ratios) >= FEWEST_COMBINED:
            mean = combine_ratios(ratios)
            low, high = mean.bounds
            text = f"{format_percent(mean.value - 1)} ({format_percent_range(low - 1, high - 1)})"
            return text, f"{what}, {len(ratios)} machines"
    return "", ""
