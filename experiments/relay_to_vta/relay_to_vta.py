"""ResNet-18's convolutions by Relay on VTA: in its simulator here, or on boards through TVM's RPC tracker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import vta_device
from vta_device import SIM, LoadedOnVta, make_problem

from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, Point, Prepared
from tvmdash.experiment.engines import Engine
from tvmdash.networks import accuracy

TVM = Engine("tvm", ("attrs==25.4.0", "cloudpickle==3.1.2", "psutil==7.2.2", "tornado==6.6.1"), facts=vta_device.facts)
"""TVM with what AutoTVM and RPC import."""


@dataclass(frozen=True, kw_only=True)
class RelayToVtaConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    targets: tuple[str, ...]
    layers: tuple[int, ...]
    tracker_host: str
    tracker_port: int
    host_targets: Mapping[str, str]
    bitstreams: Mapping[str, str]
    wait_seconds: float
    threads: int


class RelayToVta(Experiment[RelayToVtaConfig]):
    """Every layer on every target; a process for each target, with one session."""

    engines = (TVM,)
    axes = (Axis("device", "runtime_config"),)

    def points(self, config: RelayToVtaConfig) -> list[Point]:
        return [
            Point(f"layer.resnet18_c{number}", {"device": target}, target, f"vta {target}")
            for target in config.targets
            for number in config.layers
        ]

    def prepare(self, point: Point, config: RelayToVtaConfig, seed: int) -> Prepared:
        target, name = point.values["device"], point.workload.partition(".")[2]
        given = make_problem(name, seed)
        loaded = vta_device.load(given, target, config.host_targets.get(target, ""), _remote(target, config))
        return Prepared(
            timer=loaded.timer(),
            check=lambda: {**accuracy.check_answer(loaded.run(), given.expected, "int8"), **_counted(loaded)},
            compile_ms=loaded.compile_ms,
            layout="NCHW1n16c",
            details={"library_bytes": loaded.library_bytes, "macs": given.macs},
        )


def _remote(target: str, config: RelayToVtaConfig) -> Any:
    if target == SIM:
        return vta_device.simulator()
    if not config.tracker_host:
        raise DashboardError(f"$.tracker_host: it is empty; {target} is asked for at the tracker there.")
    address = config.tracker_host, config.tracker_port
    return vta_device.board(target, address, config.wait_seconds, config.bitstreams.get(target, ""))


def _counted(loaded: LoadedOnVta) -> dict[str, Any]:
    """Return the simulator's counts of one call, and the bytes among it as a metric."""
    counts = loaded.counted()
    moved = sum(count for name, count in counts.items() if name.endswith("_nbytes"))
    return {"memory_traffic": moved, "simulator": counts} if counts else {}


if __name__ == "__main__":
    raise SystemExit(RelayToVta().main())
