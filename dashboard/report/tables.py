"""Tables of an experiment's numbers, one for each metric, few columns wide."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dashboard.report.markdown import escape, format_folded, format_table
from dashboard.report.points import Shown, name_points
from tvmdash.records import NightData, PointValue
from tvmdash.records.metrics import METRICS
from tvmdash.text import format_estimate, format_exact, three_digits

_COLUMNS = 5
_LEAVES = 60
FAILED = "failed"
RUN_TIME = METRICS[0].name


def format_tables(points: Sequence[Shown]) -> Iterator[str]:
    """The run times, then whatever else records carry, folded."""
    by_metric: dict[str, list[Shown]] = {metric.name: [] for metric in METRICS}
    for shown_point in points:
        by_metric.setdefault(shown_point.point.key.metric if shown_point.point else RUN_TIME, []).append(shown_point)
    times = by_metric.pop(RUN_TIME)
    if any(shown_point.point for shown_point in times):
        yield from ["", "**Run time**, median and its 95 % interval:", "", *_format_domain(times)]
    others: dict[str, list[Shown]] = {}
    for own in filter(None, by_metric.values()):
        others.setdefault(_name_metric(own[0]), []).extend(own)
    if len({shown_point.way for own in others.values() for shown_point in own}) == 1:  # then a metric can be a column
        together = [replace(shown_point, way=title) for title, own in others.items() for shown_point in own]
        others = {", ".join(others).capitalize(): together}
    for title, own in others.items():
        yield from ["", *format_folded(escape(title), _format_domain(own))]


def _name_metric(shown_point: Shown) -> str:
    """As its author calls it, else as in `Compile time`."""
    point = shown_point.point
    name = (point.title or point.key.metric.replace("_", " ")) if point else RUN_TIME
    return name[:1].upper() + name[1:]


def format_numbers(data: NightData) -> Iterator[str]:
    """Yield the run times, and the experiment's own numbers."""
    others = {metric.name for metric in METRICS} - {RUN_TIME}
    yield from format_tables(
        [
            shown_point
            for shown_point in name_points(data)
            if not shown_point.point or shown_point.point.key.metric not in others
        ]
    )
    yield from format_leaves(data)


def format_leaves(data: NightData) -> Iterator[str]:
    """The numbers of a foreign experiment by their path."""
    rows = [[escape(path, 120), three_digits(value)] for path, value in data.leaves.items()]
    if rows:
        yield from ["", *format_table(["number", "value"], rows[:_LEAVES])]
    if len(rows) > _LEAVES:
        yield from ["", f"And {len(rows) - _LEAVES} more numbers."]


def _format_domain(points: Sequence[Shown]) -> list[str]:
    apart = _split_by_domain(points)
    if len(apart) > 1:
        return [line for part in apart for line in ["", *_format_domain(part)]][1:]
    cases = list(dict.fromkeys(shown_point.case for shown_point in points))
    ways = list(dict.fromkeys(shown_point.way for shown_point in points))
    cells: dict[tuple[str, str], list[str]] = {}
    for shown_point in points:
        cells.setdefault((shown_point.case, shown_point.way), []).append(_format_cell(shown_point.point))
    if 2 * len(cells) <= len(cases) * len(ways):
        return _format_list_of_cells(cells)
    if len(ways) > _COLUMNS and len(ways) > len(cases):
        turned = {(way, case): texts for (case, way), texts in cells.items()}
        return list(_format_crossed("", ways, cases, turned))
    return list(_format_crossed("workload", cases, ways, cells))


def _split_by_domain(points: Sequence[Shown]) -> list[list[Shown]]:
    """By the workloads' domains where these are done in other ways, as operators and what the machine can do."""
    domains: dict[str, list[Shown]] = {}
    for shown_point in points:
        domains.setdefault(shown_point.case.partition(".")[0] if "." in shown_point.case else "", []).append(
            shown_point
        )
    ways = {frozenset(shown_point.way for shown_point in part) for part in domains.values()}
    return list(domains.values()) if len(ways) > 1 else [list(points)]


def _format_cell(point: PointValue | None) -> str:
    """A number with its interval; one without noise with all its digits."""
    if point is None:
        return FAILED
    if point.kind == "exact":
        return escape(format_exact(point.value, point.unit))
    return escape(format_estimate(point.value, point.low, point.high, point.unit))


def _format_list_of_cells(cells: dict[tuple[str, str], list[str]]) -> list[str]:
    rows = [[escape(case), escape(way), "; ".join(texts)] for (case, way), texts in cells.items()]
    return format_table(["workload", "how", "value"], rows, words=2)


def _format_crossed(
    corner: str, rows: Sequence[str], columns: Sequence[str], cells: dict[tuple[str, str], list[str]]
) -> Iterator[str]:
    """Tables of these rows, as many as it takes for all columns; of two numbers for one place both are shown."""
    count = math.ceil(len(columns) / _COLUMNS)
    width = math.ceil(len(columns) / count)
    for begin in range(0, len(columns), width):
        part = columns[begin : begin + width]
        lines = [[escape(row), *("; ".join(cells.get((row, column), [])) for column in part)] for row in rows]
        if begin:
            yield ""
        yield from format_table(
            [corner, *(escape(column) or "value" for column in part)], [line for line in lines if any(line[1:])]
        )
