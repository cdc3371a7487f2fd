"""The points of an experiment on the devices that its config asks for: an axis that every experiment can include."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tvmdash.config_util import Config, values_of
from tvmdash.experiment.engines import Engine
from tvmdash.experiment.info import Axis, Measurable, Point
from tvmdash.machine.cuda import find_cuda_card
from tvmdash.machine.devices import CPU, FIELD, Device, find_device

AXIS = Axis(FIELD, "runtime_config")


def list_points(experiment: Measurable[Config], config: Config) -> list[Point]:
    """Return every point that the config asks for: those on the processor, then those on each device.

    On the processor a point does not name it, so that series of the time before there were devices go on.
    """
    asked = _list_asked(config)
    on_cpu = experiment.points(config)
    if FIELD not in {axis.name for axis in experiment.axes} or asked == (CPU,):
        return on_cpu
    return [point for name in asked for point in (on_cpu if name == CPU else _move(experiment, config, on_cpu, name))]


def list_engines(experiment: Measurable[Config], config: Config) -> list[Engine]:
    """Return the engines that the config asks for: of its points, of the inputs, and its packages."""
    wanted = {experiment.inputs_engine, *(point.engine for point in list_points(experiment, config))}
    return [*(engine for engine in experiment.engines if engine.name in wanted), *experiment.packages(config)]


def _list_asked(config: Config) -> Sequence[str]:
    return tuple(values_of(config).get(FIELD, (CPU,)))


def _move(experiment: Measurable[Config], config: Config, points: list[Point], name: str) -> Iterator[Point]:
    """Yield the points that can run on that device, moved there; a process has no points of two devices."""
    device = find_device(name)
    of_device = {engine.instead_of: engine.name for engine in experiment.engines if engine.device == device.kind}
    for point in points:
        values, group = {**point.values, FIELD: name}, f"{point.group} on {name}"
        if experiment.runs_on_devices(point, config):
            target = json.dumps(_make_target(device, json.loads(point.target)), sort_keys=True)
            yield replace(point, values=values, target=target, group=group, device=name)
        elif point.engine in of_device and device.tracker is None:
            engine = of_device[point.engine]
            yield replace(point, values=values, target=device.kind, group=group, device=name, engine=engine)


def _make_target(device: Device, of_cpu: Mapping[str, Any]) -> dict[str, Any]:
    """Return TVM's target for it; of a local CUDA card with its architecture, where the config does not set it."""
    target = device.make_target(of_cpu)
    card = find_cuda_card(device.index) if device.kind == "cuda" and device.tracker is None else None
    return {"arch": card.arch, **target} if card else target
