"""All situations that may be tuned on, by name."""

from __future__ import annotations

from tests.benchmarks.lab.situations import found, homes, numbers, quiet, steps
from tests.benchmarks.lab.situations.situation import Situation

ALL: dict[str, Situation] = {
    situation.name: situation for module in (found, steps, quiet, numbers, homes) for situation in module.SITUATIONS
}

__all__ = ["ALL", "Situation"]
