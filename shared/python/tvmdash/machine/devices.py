"""Devices for points besides this machine's processor, as a home's config names them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tvmdash import config_util
from tvmdash.config_util import ConfigError
from tvmdash.errors import DashboardError

CPU = "cpu"
"""The processor of the machine that measures; every home has it, and no config needs to name it."""
KINDS = ("opencl", "cuda", "rocm", "metal", "vulkan")
"""Kinds of devices for which TVM has a runtime."""
REMOTE = "remote:"
"""Prefix of names of devices that are reached through TVM's RPC tracker."""
VARIABLE = "TVMDASH_DEVICES"
"""Variable that holds the home's `devices` as JSON for a stage; unset, a kind stands for itself."""
FIELD = "device"
"""Name of a point's device: config field, axis, and entry of a record's runtime_config."""
FACT = "device"
"""Entry of a record's `additional_info` about the device, with its `model`."""
_LOCAL = re.compile(rf"({'|'.join(KINDS)})(?::(\d{{1,3}}))?", re.ASCII)
_REMOTE = re.compile(rf"{REMOTE}[A-Za-z0-9][A-Za-z0-9._-]{{0,39}}", re.ASCII)
_OF_REMOTE = ("tracker_host", "tracker_port", "key", "kind", "cc")


@dataclass(frozen=True)
class Device:
    """A device by the name that configs and records have for it.

    kind, index: TVM's own names for it, on the machine where it is. target: what the config says of TVM's target for
    it. tracker: host and port of the RPC tracker that has it under `key`; None where it is in this machine. cc: the
    compiler that links for it.
    """

    name: str
    kind: str
    index: int = 0
    target: Mapping[str, Any] = field(default_factory=dict)
    tracker: tuple[str, int] | None = None
    key: str = ""
    cc: str = ""

    def make_target(self, of_cpu: Mapping[str, Any]) -> dict[str, Any]:
        """Return TVM's target: the device's kind with host `of_cpu`; the config's fields take precedence."""
        if self.kind == CPU:
            return dict(self.target or of_cpu)
        return {"kind": self.kind, "host": dict(of_cpu), **self.target}


def read_devices(value: Mapping[str, Any], shown: str) -> dict[str, Device]:
    """Parse the devices in `value` of the config `shown`, in its order; ConfigError lists every fault."""
    devices, faults = dict[str, Device](), list[str]()
    for name, fields in value.items():
        where = f"$.devices.{name}"
        local = _LOCAL.fullmatch(name)
        if not local and not _REMOTE.fullmatch(name):
            faults.append(
                f"{shown}: {where}: not a device. Use {', '.join(KINDS)}, optionally with a number (cuda:1), or "
                f"{REMOTE}NAME. {CPU} is always available."
            )
            continue
        try:
            checked = config_util.check(fields, config_util.DEVICE_FIELDS, shown, at=where)
        except ConfigError as error:
            faults += error.faults
            continue
        faults += [f"{shown}: {where}{fault}" for fault in _find_faults(name, checked, fields)]
        devices[name] = _make_device(name, checked)
    if faults:
        raise ConfigError(faults)
    return devices


def _make_device(name: str, checked: Mapping[str, Any]) -> Device:
    local = _LOCAL.fullmatch(name)
    if local:
        return Device(name, local[1], int(local[2] or 0), checked["target"])
    tracker = checked["tracker_host"], checked["tracker_port"]
    key = checked["key"] or name.removeprefix(REMOTE)
    return Device(name, checked["kind"], 0, checked["target"], tracker, key, checked["cc"])


def _find_faults(name: str, checked: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    """Yield faults of the device beyond the types of its fields."""
    if not name.startswith(REMOTE):
        yield from (
            f".{field}: only remote devices have this field. Remove it." for field in _OF_REMOTE if field in given
        )
        return
    if not checked["tracker_host"]:
        yield ".tracker_host: required field is missing. Give the host name of TVM's RPC tracker."
    if checked["kind"] == CPU and not checked["target"]:
        yield '.target: required field is missing. Give the TVM target, e.g. {"kind": "llvm", "mcpu": "cortex-a72"}.'


def format_devices(devices: Mapping[str, Device]) -> str:
    """Return the devices as `find_device` reads them."""
    return json.dumps({name: _describe(device) for name, device in devices.items()}, sort_keys=True)


def _describe(device: Device) -> dict[str, Any]:
    if device.tracker is None:
        return {"target": dict(device.target)}
    host, port = device.tracker
    where = {"tracker_host": host, "tracker_port": port, "key": device.key}
    return {**where, "kind": device.kind, "cc": device.cc, "target": dict(device.target)}


def find_device(name: str) -> Device:
    """Return the device of that name in the home that this process measures for; DashboardError without one."""
    listed = os.environ.get(VARIABLE)
    if listed is None and _LOCAL.fullmatch(name):
        listed = json.dumps({name: {}})
    devices = read_devices(json.loads(listed or "{}"), VARIABLE)
    if name not in devices:
        raise DashboardError(
            f"device {name}: not a device of this home. Declare it in $.devices of the home's config.json."
        )
    return devices[name]


def device_of(labels: Mapping[str, Any]) -> str:
    """Return the device of a series with these labels; this machine's processor where they name none."""
    runtime = labels.get("runtime_config")
    return str(runtime.get(FIELD, CPU)) if isinstance(runtime, Mapping) else CPU
