"""How long, and whether, suspects may be measured again tonight."""

from __future__ import annotations

from tvmdash.config_util import JobConfig
from tvmdash.dashboard_info import Home, Night
from tvmdash.measure import within_night


def confirming(wanted_s: float, config: JobConfig, home: Home, tonight: Night) -> tuple[float, str]:
    """The seconds allowed, and in words why there are none (else empty)."""
    if not wanted_s:
        return 0.0, "confirm_seconds is 0"
    return within_night.allowed_s(wanted_s, config, home, tonight)
