"""Changes between two nights beside TVM: the experiment itself, the dashboard, the system, the packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tvmdash import common
from tvmdash.dashboard_info import DEPENDENCIES, Home
from tvmdash.errors import DashboardError
from tvmdash.machine import hardware
from tvmdash.text import elide

_MACHINE = (
    *("system", "distribution", "libc", "python", "cpu_microcode", *hardware.STATE),
    *("cores", "memory_bytes", "gpus", "gpu_driver"),
)
_FACTS = {"ffi_version": "tvm-ffi", **DEPENDENCIES, "proved_with_numpy": "numpy"}
"""Facts of an artifact on which TVM stands, and what people call them."""


def notes_of(home: Home, experiment: str, before: str, after: str) -> list[str]:
    """Write a sentence on each difference between two nights' data files beside TVM; none where one is not readable."""
    try:
        first, second = (common.read_json(home.data_file(experiment, stamp)) for stamp in (before, after))
        return list(_differences(first, second))
    except (DashboardError, AttributeError, TypeError):  # foreign data says nothing of itself
        return []


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    then, now = first.get("night", {}), second.get("night", {})
    if then.get("fingerprint") != now.get("fingerprint"):
        changed = sorted(
            key for key, value in now.get("config", {}).items() if then.get("config", {}).get(key) != value
        )
        what = f" ({', '.join(changed)} of its config)" if changed else ""
        yield f"the experiment's own code or config changed{what}"
    pairs = [
        *((name, _machine(first).get(name), _machine(second).get(name)) for name in _MACHINE),
        *((shown, _facts(then).get(name), _facts(now).get(name)) for name, shown in _FACTS.items()),
    ]
    for name, old, new in pairs:
        if old != new and old is not None and new is not None:
            yield f"{name}: {elide(str(old), 40)} → {elide(str(new), 40)}"


def _machine(data: Mapping[str, Any]) -> Mapping[str, Any]:
    machine: Mapping[str, Any] = data.get("environment", {}).get("machine", {})
    return machine


def _facts(night: Mapping[str, Any]) -> Mapping[str, Any]:
    facts: Mapping[str, Any] = night.get("artifact", {}).get("facts", {})
    return facts
