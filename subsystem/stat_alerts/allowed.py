"""How long, and whether, suspects may be measured again tonight."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import calling

from tvmdash import common
from tvmdash.dashboard_info import Home, Night
from tvmdash.errors import DashboardError
from tvmdash.stages import pipeline

SHARE = 0.75
"""Of the stage's time limit: the rest is for judging, for the last analysis, for tidying up."""


def confirming(config: Mapping[str, Any], home: Home, tonight: Night) -> tuple[float, str]:
    """The seconds allowed, and in words why there are none (else empty)."""
    if not config["confirm_seconds"]:
        return 0.0, "confirm_seconds is 0"
    if os.environ.get("TVMDASH_NIGHT") != tonight.stamp or calling.repository() is None:
        return 0.0, "not within a night"
    return min(float(config["confirm_seconds"]), SHARE * _timeout_s(config, home)), ""


def _timeout_s(config: Mapping[str, Any], home: Home) -> float:
    """The stage's own time limit, as the night takes it: the job's, else the home's, else the protocol's."""
    try:
        value = common.read_json(home.config_file)
    except DashboardError:  # the night has read it; what became of it meanwhile is not this stage's affair
        value = {}
    timeouts = value.get("timeouts", {}) if isinstance(value, dict) else {}
    own = config.get("timeouts", {}).get("run") or (timeouts.get("run") if isinstance(timeouts, dict) else None)
    return float(own) if isinstance(own, (int, float)) and own else float(pipeline("subsystem").stage("run").timeout_s)
