"""The same point on several machines: what is left of a series' identity once its machine is taken out of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.machine.identity import ENV_NAME

_MACHINE = (ENV_NAME, "hw_model")
_OF_MACHINE = ("mcpu", "mattr", "num-cores", "mtriple")
"""What of a target follows from the machine."""
_HOST, _VARIANT = "~", "@"


def machine_of(labels: Mapping[str, Any]) -> str:
    """The machine that measures the series with these labels; empty where they name none."""
    return str(labels.get(ENV_NAME) or "")


def point_of(experiment: str, metric: str, labels: Mapping[str, Any]) -> str:
    """Equal for series that are the same but for the machine."""
    kept = {name: item for name, item in labels.items() if name not in _MACHINE}
    if isinstance(kept.get("target"), str):
        kept["target"] = _strip_target(kept["target"])
    return json.dumps([strip_host(experiment), metric, kept], sort_keys=True, default=str)


def strip_host(name: str) -> str:
    """An experiment's or a series' name without the host in it: of `cnn~desk@release mlp` it is `cnn@release mlp`."""
    before, sign, rest = name.partition(_HOST)
    if not sign or " " in before:
        return name
    ends = [rest.find(end) for end in (_VARIANT, " ") if end in rest]
    return before + (rest[min(ends) :] if ends else "")


def _strip_target(target: str) -> Any:
    try:
        value = common.parse_json(target.encode(errors="replace"), "target")
    except DashboardError:
        return target
    return _strip_machine(value) if isinstance(value, dict) else value


def _strip_machine(target: Mapping[str, Any]) -> dict[str, Any]:
    """The target without what follows from the machine, also of what runs on it beside a device."""
    return {
        name: _strip_machine(item) if isinstance(item, dict) else item
        for name, item in target.items()
        if name not in _OF_MACHINE
    }
