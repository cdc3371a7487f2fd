"""How many examples a property of costly examples is tried with: few as a rule, many by `tests/run.sh --slow`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

THOROUGH = os.environ.get("TVMDASH_THOROUGH") == "1"


def examples(few: int, many: int) -> settings:
    """The settings of such a test."""
    return settings(max_examples=many if THOROUGH else few, deadline=None, suppress_health_check=list(HealthCheck))
