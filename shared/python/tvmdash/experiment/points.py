"""The points of a run: the product of the axes, their names in raw data, the selected ones, and their processes."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.config_util import Config
from tvmdash.config_util.fields import ENGINE, FIELD_SETS, WORKLOAD, Fields
from tvmdash.errors import DashboardError
from tvmdash.experiment.engines import Engine
from tvmdash.experiment.info import Axis, Measurable, Point
from tvmdash.experiment.on_devices import AXIS, list_points
from tvmdash.experiment.per_operator import AXIS as OPERATOR
from tvmdash.machine.devices import FIELD

IDENTITY = ("workload", "workload_args", "engine", "engine_config", "target", "build_config", "runtime_config")
"""Columns that identify a point in the list of TVMDASH_POINTS: a record's, without the machine's."""


@dataclass(frozen=True)
class MeasuringJob:
    """One point of a task: the most samples, and whether it is to be profiled.

    one_core: it is timed on one core at a time, because it runs on one thread and its CPU time says how long it takes.
    built: a process before this one compiled it. alone: nothing else ran while it was compiled for this process, or
    runs while this one compiles it, so that its compile time counts.
    """

    point: Mapping[str, Any]
    repeat: int
    profile: bool
    one_core: bool = False
    built: bool = False
    alone: bool = True


@dataclass(frozen=True)
class PointGroup:
    """Points that are measured in the same processes, which are started with `environment`."""

    name: str
    engine: Engine
    environment: Mapping[str, str]
    points: tuple[Point, ...]


@dataclass(frozen=True)
class VariedField:
    """A config field whose values the points vary, the record column that holds them, and their name in it."""

    field: str
    column: str
    name: str

    def values(self, config: Mapping[str, Any]) -> Sequence[Any]:
        """Return the values that the config asks for."""
        value = config[self.field]
        return value if isinstance(value, (list, tuple)) else [value]


@dataclass(frozen=True)
class Combination:
    """One value of each axis. workload, engine: None where no axis names them."""

    workload: str | None
    engine: str | None
    values: Mapping[str, Any]


def varied_fields(fields: Fields) -> list[VariedField]:
    """Return the fields that have an axis, the experiment's own first; none where it has none of its own."""
    shared = {name: field for fields in FIELD_SETS.values() for name, field in fields.items()}
    with_axis = {name: field for name, field in fields.items() if field.axis}
    if all(field is shared.get(name) for name, field in with_axis.items()):
        return []
    ordered = sorted(with_axis, key=lambda name: name in shared)
    parts = [(name, *with_axis[name].axis.partition(".")[::2]) for name in ordered]
    return [VariedField(name, column, named or name) for name, column, named in parts]


def axes_of(fields: Fields) -> tuple[Axis, ...]:
    """Return the axes that the fields declare, and the device where they include it."""
    declared = tuple(Axis(item.name, item.column) for item in varied_fields(fields) if item.column in Axis.COLUMNS)
    return (*declared, AXIS) if FIELD in fields else declared


def combinations(fields: Fields, config: Mapping[str, Any]) -> Iterator[Combination]:
    """Yield the product of the axes; the first field's values change slowest."""
    varied = varied_fields(fields)
    for chosen in itertools.product(*(item.values(config) for item in varied)):
        pairs = list(zip(varied, chosen, strict=True))
        yield Combination(
            workload=next((f"{item.name}.{value}" for item, value in pairs if item.column == WORKLOAD), None),
            engine=next((str(value) for item, value in pairs if item.column == ENGINE), None),
            values={item.name: value for item, value in pairs if item.column in Axis.COLUMNS},
        )


def name_values(axes: Sequence[Axis], point: Point) -> dict[str, Any]:
    """Return the point as raw data holds it: its axis values sorted into the record's columns."""
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
    """Return one text for a point as raw data holds it, equal for equal points."""
    return json.dumps(named_point, sort_keys=True)


def plan_points(experiment: Measurable[Config], config: Config) -> list[Point]:
    """Return the points that this run is asked for: the config's, or those of them that TVMDASH_POINTS lists."""
    points = list_points(experiment, config)
    known = {engine.name for engine in experiment.engines}
    for point in points:
        if point.engine not in known:
            raise DashboardError(f"{point.workload}: the experiment's `engines` do not include {point.engine!r}.")
    asked = os.environ.get("TVMDASH_POINTS")
    return _choose(points, experiment.axes, Path(asked)) if asked else points


def _choose(points: Sequence[Point], axes: Sequence[Axis], file: Path) -> list[Point]:
    asked = common.read_json(file)
    if not isinstance(asked, list) or not all(isinstance(item, dict) and set(IDENTITY) <= set(item) for item in asked):
        raise DashboardError(f"{file}: expected a list of points, each an object with {', '.join(IDENTITY)}.")
    named = [*asked, *_name_networks(asked)]
    wanted = {json.dumps([item[column] for column in IDENTITY], sort_keys=True) for item in named}
    chosen = [point for point in points if _identity(name_values(axes, point)) in wanted]
    if not chosen:
        raise DashboardError(
            f"{file}: none of its {len(asked)} points matches one of this experiment's {len(points)} points."
        )
    return chosen


def _name_networks(asked: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the points whose operators are asked for by themselves."""
    for item in asked:
        args = item["workload_args"]
        if isinstance(args, dict) and OPERATOR in args:
            yield {**item, "workload_args": {name: value for name, value in args.items() if name != OPERATOR}}


def _identity(point: Mapping[str, Any]) -> str:
    columns = point["columns"]
    return json.dumps([columns[name] if name in columns else point[name] for name in IDENTITY], sort_keys=True)


def group_points(experiment: Measurable[Config], points: Sequence[Point], config: Config) -> list[PointGroup]:
    """Group the points by process, in the author's order: one engine and one environment in each."""
    engines = {engine.name: engine for engine in experiment.engines}
    environments: dict[str, dict[str, str]] = {}
    members: dict[tuple[str, str, str], list[Point]] = {}
    for point in points:
        environment = experiment.environment(point, config)
        text = json.dumps(environment, sort_keys=True)
        environments[text] = environment
        members.setdefault((point.group, point.engine, text), []).append(point)
    names = [_name(key, list(members)) for key in members]
    return [
        PointGroup(name, engines[engine], environments[text], tuple(inside))
        for name, ((_, engine, text), inside) in zip(names, members.items(), strict=True)
    ]


def _name(key: tuple[str, str, str], places: Sequence[tuple[str, str, str]]) -> str:
    """Return the group's own name, with as much more as tells it from its namesakes."""
    group, engine, text = key
    namesakes = [other for other in places if other[0] == group]
    several = len({other[1] for other in namesakes}) > 1
    again = sum(other[1] == engine for other in namesakes) > 1
    return group + (f" on {engine}" if several else "") + (f" with {text}" if again else "")
