"""The devices that a config names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tvmdash.errors import DashboardError

TRACKER_PORT = 9190
"""Where TVM's tracker listens unless it is told otherwise."""


@dataclass(frozen=True)
class Device:
    """A device of a tracker; without a `tracker_host` it is this machine, through a server on 127.0.0.1.

    key: its name at the tracker. target: what is compiled for, as JSON. kind: TVM's device on the far side, as in `cpu`
    or `opencl`. cc: the compiler that links for it, here; where it is empty, this machine's own links for this machine,
    and any other device links what it is sent.
    """

    name: str
    target: str
    tracker_host: str = ""
    tracker_port: int = TRACKER_PORT
    key: str = ""
    kind: str = "cpu"
    cc: str = ""

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine."""
        return not self.tracker_host


_TYPES: Mapping[str, tuple[type, ...]] = {"tracker_port": (int,), "target": (str, dict)}


def devices(value: Mapping[str, Mapping[str, Any]], own_target: Mapping[str, Any], own_key: str) -> dict[str, Device]:
    """The config's `devices` by their names; this machine has `own_key`, and `own_target` unless another is given."""
    if not value:
        raise DashboardError('$.devices: no device given. Add one, e.g. {"sim": {}}.')
    return {name: _device(name, given, own_target, own_key) for name, given in value.items()}


def _device(name: str, given: Mapping[str, Any], own_target: Mapping[str, Any], own_key: str) -> Device:
    json_path = f"$.devices.{name}"
    known = [field.name for field in fields(Device) if field.name != "name"]
    for field, item in given.items():
        if field not in known:
            raise DashboardError(f"{json_path}.{field}: unknown field. Use one of: {', '.join(known)}.")
        wanted = _TYPES.get(field, (str,))
        if not isinstance(item, wanted) or isinstance(item, bool) or item == "":
            names = " or ".join(kind.__name__ for kind in wanted)
            raise DashboardError(
                f"{json_path}.{field}: {item!r} is not a valid {names}. Use one, or leave the field out."
            )
    here = "tracker_host" not in given
    if not here and "target" not in given:
        raise DashboardError(f"{json_path}.target: required field is missing. Give the TVM target, e.g. {EXAMPLE}.")
    target = given.get("target", own_target)
    key = own_key if here else given.get("key", name)
    return Device(**{**given, "name": name, "key": key, "target": json.dumps(target, sort_keys=True)})


EXAMPLE = '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72", "num-cores": 4}'
