"""The points of an experiment on the devices that its config asks for: an axis that every experiment can include."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from tvmdash.config_util import Config, values_of
from tvmdash.devices import CPU, find_device
from tvmdash.experiment.info import Axis, Measurable, Point

FIELD = "device"
"""The config field, and the axis."""
AXIS = Axis(FIELD, "runtime_config")


def list_points(experiment: Measurable[Config], config: Config) -> list[Point]:
    """Every point that the config asks for: those on the processor as ever, then those on each device.

    On the processor a point does not name it, so that series of the time before there were devices go on.
    """
    asked = values_of(config).get(FIELD, (CPU,))
    on_cpu = experiment.points(config)
    if FIELD not in {axis.name for axis in experiment.axes} or tuple(asked) == (CPU,):
        return on_cpu
    return [point for name in asked for point in (on_cpu if name == CPU else _move(experiment, config, on_cpu, name))]


def _move(experiment: Measurable[Config], config: Config, points: list[Point], name: str) -> Iterator[Point]:
    """Those of the points that can run on that device, on it; a process has no points of two devices."""
    device = find_device(name)
    for point in points:
        if experiment.runs_on_devices(point, config):
            target = json.dumps(device.make_target(json.loads(point.target)), sort_keys=True)
            values = {**point.values, FIELD: name}
            yield replace(point, values=values, target=target, group=f"{point.group} on {name}", device=name)
