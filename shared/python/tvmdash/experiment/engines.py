"""Engines that run a workload: TVM, or a rival that an experiment's setup stage installs into a place of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tvmdash.errors import DashboardError


@dataclass(frozen=True)
class EngineFacts:
    """An engine's own account: `version`; for TVM its commit or exact version as `tvm_hash`; other facts.

    config: what it is built with, for the record's engine_config.
    """

    version: str
    tvm_hash: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Engine:
    """An engine by the name that its points carry.

    `requirements` are for pip, exact and whole: they are installed with --no-deps, and only processes of this engine
    see them, before everything else on PYTHONPATH. `pip_options` go to pip with them; `otherwise` is installed in its
    place where pip fails. `facts` is asked in the measuring process; without it the version is that of the first
    requirement. pairable: it is the night's own TVM; a reference can be measured beside it in the same way. device: the
    kind of devices that it is for, whose points of the engine `instead_of` it measures. It is installed where a point
    of the config runs on it.
    """

    name: str
    requirements: tuple[str, ...] = ()
    facts: Callable[[], EngineFacts] | None = None
    pip_options: tuple[str, ...] = ()
    otherwise: Engine | None = None
    pairable: bool = False
    device: str = ""
    instead_of: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.-]*", self.name):
            raise DashboardError(f"engine {self.name!r}: invalid name. Use letters, digits, ' ', '_', '.' and '-'.")
        if not self.requirements and self.facts is None:
            raise DashboardError(f"engine {self.name}: set `facts`; without requirements, its version is unknown.")
        loose = [text for text in self.requirements if "==" not in text and not text.endswith(".whl")]
        if loose:
            raise DashboardError(f"engine {self.name}: {loose[0]!r} is not an exact pin. Use e.g. onnx==1.19.1.")

    def say(self) -> EngineFacts:
        """Return the facts; call it in the measuring process."""
        if self.facts is not None:
            return self.facts()
        import importlib.metadata  # 40 ms that no process of TVM needs

        name = re.split(r"[=\[; ]", self.requirements[0].rpartition("/")[2])[0]
        package = name.partition("-")[0] if name.endswith(".whl") else name
        return EngineFacts(importlib.metadata.version(package))
