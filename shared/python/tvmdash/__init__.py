"""The library that experiments and subsystems import; docs/explanation/architecture.md maps its packages."""

from __future__ import annotations

import importlib

__version__ = "0.9.0"
"""The version of dashboard and library, which are released together; CHANGELOG.md says what each brought."""

_FACE = {
    "Experiment": "exp_templates",
    "Point": "exp_templates",
    "Prepared": "exp_templates",
    "Home": "dashboard_info",
    "Night": "dashboard_info",
    "Record": "records",
    "Report": "subsys_templates",
    "Subsystem": "subsys_templates",
    "connect": "traces",
}
"""The names that authors use most; each is loaded on first use."""
_NAMED = {
    "slack_delivery": "slack_util.delivery",
    "within_night": "measure.within_night",
}
"""Modules at the names that subsystems.md first gave them: `from tvmdash import within_night` still works."""

__all__ = [*_FACE]  # noqa: PLE0604 - the stub beside this file lists them for type checkers


def __getattr__(name: str) -> object:
    if name not in _FACE and name not in _NAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_FACE.get(name) or _NAMED[name]}")
    value = getattr(module, name) if name in _FACE else module
    globals()[name] = value
    return value
