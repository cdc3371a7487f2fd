"""The points of a run: how raw data names them, which are asked for, and which share a process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.engines import Engine
from tvmdash.errors import DashboardError
from tvmdash.experiment_info import Axis, Measurable, Point

IDENTITY = ("workload", "workload_args", "engine", "engine_config", "target", "build_config", "runtime_config")
"""What names a point in the list of TVMDASH_POINTS: a record's columns, without the machine's."""


@dataclass(frozen=True)
class Group:
    """Points that are measured in the same processes, which are started with `environment`."""

    name: str
    engine: Engine
    environment: Mapping[str, str]
    points: tuple[Point, ...]


def named(axes: Sequence[Axis], point: Point) -> dict[str, Any]:
    """The point as raw data holds it: its axis values sorted into the record's columns."""
    columns: dict[str, dict[str, Any]] = {column: {} for column in Axis.COLUMNS}
    for axis in axes:
        if axis.name in point.values:
            columns[axis.column][axis.name] = point.values[axis.name]
    return {
        "workload": point.workload,
        "values": dict(point.values),
        "group": point.group,
        "engine": point.engine,
        "target": point.target,
        "columns": columns,
    }


def key(named_point: Mapping[str, Any]) -> str:
    """One text for a point as raw data holds it, equal for equal points."""
    return json.dumps(named_point, sort_keys=True)


def planned(experiment: Measurable, config: Mapping[str, Any]) -> list[Point]:
    """The points that this run is asked for: the config's, or those of them that TVMDASH_POINTS lists."""
    points = experiment.points(config)
    known = {engine.name for engine in experiment.engines}
    for point in points:
        if point.engine not in known:
            raise DashboardError(f"{point.workload}: engine {point.engine!r} is not among the experiment's `engines`.")
    asked = os.environ.get("TVMDASH_POINTS")
    return _chosen(points, experiment.axes, Path(asked)) if asked else points


def _chosen(points: Sequence[Point], axes: Sequence[Axis], file: Path) -> list[Point]:
    asked = common.read_json(file)
    if not isinstance(asked, list) or not all(isinstance(item, dict) and set(IDENTITY) <= set(item) for item in asked):
        raise DashboardError(f"{file}: not a list of points. Each is an object with {', '.join(IDENTITY)}.")
    wanted = {json.dumps([item[column] for column in IDENTITY], sort_keys=True) for item in asked}
    found = [point for point in points if _identity(named(axes, point)) in wanted]
    if not found:
        raise DashboardError(f"{file}: none of its {len(asked)} points is one of this experiment's {len(points)}.")
    return found


def _identity(point: Mapping[str, Any]) -> str:
    columns = point["columns"]
    return json.dumps([columns[name] if name in columns else point[name] for name in IDENTITY], sort_keys=True)


def grouped(experiment: Measurable, points: Sequence[Point], config: Mapping[str, Any]) -> list[Group]:
    """The points by processes, in the order of the author: one engine and one environment in each."""
    engines = {engine.name: engine for engine in experiment.engines}
    environments: dict[str, dict[str, str]] = {}
    members: dict[tuple[str, str, str], list[Point]] = {}
    for point in points:
        environment = experiment.environment(point, config)
        text = json.dumps(environment, sort_keys=True)
        environments[text] = environment
        members.setdefault((point.group, point.engine, text), []).append(point)
    names = [_name(place, list(members)) for place in members]
    return [
        Group(name, engines[engine], environments[text], tuple(inside))
        for name, ((_, engine, text), inside) in zip(names, members.items(), strict=True)
    ]


def _name(place: tuple[str, str, str], places: Sequence[tuple[str, str, str]]) -> str:
    """The group's own name, with as much more as tells it from its namesakes."""
    group, engine, text = place
    namesakes = [other for other in places if other[0] == group]
    several = len({other[1] for other in namesakes}) > 1
    again = sum(other[1] == engine for other in namesakes) > 1
    return group + (f" on {engine}" if several else "") + (f" with {text}" if again else "")
