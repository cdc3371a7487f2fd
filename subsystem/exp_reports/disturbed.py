"""What telemetry found abnormal on the machine during tonight's runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

_PAGE = Path("telemetry") / "page.json"


def of_night(home: Home, stamp: str) -> Mapping[str, str]:
    """By experiment, in sentences; empty where telemetry told nothing of the night `stamp`.

    Telemetry is another subsystem, which may be off, or have left something else: then nothing is known.
    """
    try:
        page = common.read_json(home.output(_PAGE.parent.name) / _PAGE.name)
        if page["stamp"] != stamp:
            return {}
        return {str(run["experiment"]): " ".join(map(str, run["abnormal"])) for run in page["runs"] if run["abnormal"]}
    except (DashboardError, KeyError, TypeError):
        return {}
