"""The points of one experiment as a table wants them: which case a number belongs to, and which way of doing it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvmdash.records import Failure, NightData, PointValue
from tvmdash.text import elide

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
    """The points of records and of failures; of a failure only that there is one, in the places of its run time."""
    points = [point for point in data.values() if "workload" in point.key.labels]
    lost = [_find_labels(failure, points) for failure in data.failures]
    labels = [point.key.labels for point in points] + lost
    names = _PointNames(labels)
    placed = [names.name_point(point) for point in labels]
    values: list[PointValue | None] = [*points, *([None] * len(lost))]
    return [Shown(*naming, point) for naming, point in zip(placed, values, strict=True)]


def format_failed_point(failure: Failure) -> str:
    """Which point failed."""
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
    """A failure's values sorted into the columns in which this night's records have them."""
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
        """The case and the way of one point."""
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
        """Return True where one engine did the same on two targets."""
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
    """The names with two values; one that other points lack has not, for that."""
    values_of: dict[str, set[str]] = {}
    for labels in values:
        for name, value in labels.items():
            values_of.setdefault(name, set()).add(str(value))
    return {name for name, seen in values_of.items() if len(seen) > 1}


def _format_value(name: str, value: object) -> str:
    """A value that is a word speaks for itself."""
    return value if isinstance(value, str) else f"{name} {value}"
