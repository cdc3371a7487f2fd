"""Tables of an experiment's numbers in GitHub's Markdown, one for each metric, few columns wide."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvmdash.records import Failure, NightData, PointValue
from tvmdash.records.metrics import METRICS
from tvmdash.text import elide, format_estimate, format_exact, three_digits

_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks that turn the direction of a text, also of what stands behind it."""
_SPECIAL = re.compile(r"([\\`*\[\]#|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "://": "&colon;//"}


def escape(text: str, limit: int = 400) -> str:
    """Return `text` on one line of at most `limit` columns, to be shown as it is but at the begin of a line."""
    shown = _SPECIAL.sub(r"\\\1", _DIRECTIONS.sub("\ufffd", elide(text, limit)))
    for special, entity in _ENTITIES.items():
        shown = shown.replace(special, entity)
    return shown


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> list[str]:
    """Format a table of cells that are Markdown; the first `words` columns are words, the others numbers."""
    marks = ["---" if at < words else "---:" for at in range(len(head))]
    return [f"| {' | '.join(head)} |", f"|{'|'.join(marks)}|", *(f"| {' | '.join(row)} |" for row in rows)]


def format_folded(title: str, lines: Sequence[str]) -> list[str]:
    """Fold lines away until their reader asks for them."""
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


_CASE, _WAY = ("workload_args", "runtime_config"), ("engine_config", "build_config")
_CASE_COLUMNS, _WAY_COLUMNS = 90, 50
Labels = Mapping[str, Any]


@dataclass(frozen=True)
class Shown:
    """One number of the night: `case` is what was done, `way` who did it and how. No point: it failed."""

    case: str
    way: str
    point: PointValue | None = None


def name_points(data: NightData) -> list[Shown]:
    """Name the points of records and of failures; a failure stands in the places of its run time."""
    points = [point for point in data.values() if "workload" in point.key.labels]
    lost = [_find_labels(failure, points) for failure in data.failures]
    labels = [point.key.labels for point in points] + lost
    names = _PointNames(labels)
    placed = [names.name_point(point) for point in labels]
    values: list[PointValue | None] = [*points, *([None] * len(lost))]
    return [Shown(*naming, point) for naming, point in zip(placed, values, strict=True)]


def format_failed_point(failure: Failure) -> str:
    values = ", ".join(f"{name} {value}" for name, value in failure.values.items())
    return elide(f"{failure.workload} ({values})" if values else failure.workload, 120)


def format_common_values(data: NightData) -> str:
    """Format the values that all points share, beside the workload: as in "threads 1, batch 1"."""
    values: dict[str, set[str]] = {}
    for record in data.records:
        for column in (*_CASE, *_WAY):
            for name, value in record.labels[column].items():
                values.setdefault(name, set()).add(str(value))
    for failure in data.failures:
        for name, value in failure.values.items():
            if name in values:
                values[name].add(str(value))
    same = {
        name: next(iter(values_of_name))
        for name, values_of_name in values.items()
        if len(values_of_name) == 1
        and all(any(name in record.labels[column] for column in (*_CASE, *_WAY)) for record in data.records)
    }
    return ", ".join(f"{name} {value}" for name, value in same.items())


def _find_labels(failure: Failure, points: Sequence[PointValue]) -> dict[str, Any]:
    """Sort a failure's values into the columns in which this night's records have them."""
    columns = {name: column for point in points for column in (*_CASE, *_WAY) for name in point.key.labels[column]}
    engines = {str(point.key.labels["engine"]) for point in points}
    engine = failure.values.get("engine") or (next(iter(engines)) if len(engines) == 1 else "tvm")
    labels: dict[str, Any] = {"workload": failure.workload, "engine": engine, **{name: {} for name in (*_CASE, *_WAY)}}
    for name, value in failure.values.items():
        if name != "engine":
            labels[columns.get(name, "build_config")][name] = value
    return labels


class _PointNames:
    """Names with no more than tells one point from another."""

    def __init__(self, labels: Sequence[Labels]) -> None:
        self._engines = len({point["engine"] for point in labels}) > 1
        self._ways = _find_differing([dict(_flatten(point, _WAY)) for point in labels])
        by_workload: dict[str, list[dict[str, Any]]] = {}
        for point in labels:
            by_workload.setdefault(point["workload"], []).append(dict(_flatten(point, _CASE)))
        self._cases = {workload: _find_differing(values) for workload, values in by_workload.items()}
        domains = {str(point["workload"]).partition(".")[0] + "." for point in labels}
        self._domain = next(iter(domains)) if len(domains) == 1 else "network."
        self._targets = self._are_targets_needed(labels)

    def name_point(self, labels: Labels) -> tuple[str, str]:
        case = str(labels["workload"]).removeprefix(self._domain)
        parts = [
            f"{name} {value}" for name, value in _flatten(labels, _CASE) if name in self._cases[labels["workload"]]
        ]
        way = [str(labels["engine"])] if self._engines else []
        way += [_format_value(name, value) for name, value in _flatten(labels, _WAY) if name in self._ways]
        if self._targets and labels.get("target"):
            way.append(str(labels["target"]))
        return elide(", ".join([case, *parts]), _CASE_COLUMNS), elide(", ".join(way), _WAY_COLUMNS)

    @staticmethod
    def _are_targets_needed(labels: Sequence[Labels]) -> bool:
        columns = ("workload", "engine", *_CASE, *_WAY)
        targets: dict[str, set[str]] = {}
        for point in labels:
            same = json.dumps([point.get(column) for column in columns], sort_keys=True)
            targets.setdefault(same, set()).update([point["target"]] if "target" in point else [])
        return any(len(targets_of_workload) > 1 for targets_of_workload in targets.values())


def _flatten(labels: Labels, columns: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for column in columns:
        yield from labels[column].items()


def _find_differing(values: Sequence[Mapping[str, Any]]) -> set[str]:
    """Find the names with two values; that other points lack one does not count."""
    values_of: dict[str, set[str]] = {}
    for labels in values:
        for name, value in labels.items():
            values_of.setdefault(name, set()).add(str(value))
    return {name for name, seen in values_of.items() if len(seen) > 1}


def _format_value(name: str, value: object) -> str:
    """Omit the name of a value that is a word and speaks for itself."""
    return value if isinstance(value, str) else f"{name} {value}"


_COLUMNS = 5
_LEAVES = 60
FAILED = "failed"
RUN_TIME = METRICS[0].name


def format_tables(points: Sequence[Shown]) -> Iterator[str]:
    """Format the run times, then whatever else records carry, folded."""
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
    """Name a metric as its author does, else as in `Compile time`."""
    point = shown_point.point
    name = (point.title or point.key.metric.replace("_", " ")) if point else RUN_TIME
    return name[:1].upper() + name[1:]


def format_numbers(data: NightData) -> Iterator[str]:
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
    """Yield the numbers of a foreign experiment by their path."""
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
    """Split by the workloads' domains where these are done in other ways, as operators and machine tests."""
    domains: dict[str, list[Shown]] = {}
    for shown_point in points:
        domains.setdefault(shown_point.case.partition(".")[0] if "." in shown_point.case else "", []).append(
            shown_point
        )
    ways = {frozenset(shown_point.way for shown_point in part) for part in domains.values()}
    return list(domains.values()) if len(ways) > 1 else [list(points)]


def _format_cell(point: PointValue | None) -> str:
    """Format a number with its interval; one without noise with all its digits."""
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
