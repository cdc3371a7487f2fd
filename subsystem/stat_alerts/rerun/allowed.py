"""How long, and whether, suspects may be measured again tonight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvmdash.dashboard_info import Home, Night
from tvmdash.measure import within_night


def confirming(config: Mapping[str, Any], home: Home, tonight: Night) -> tuple[float, str]:
    """The seconds allowed, and in words why there are none (else empty)."""
    if not config["confirm_seconds"]:
        return 0.0, "confirm_seconds is 0"
    return within_night.allowed_s(float(config["confirm_seconds"]), config, home, tonight)
