"""What an experiment's last night measured beside the same reference: that needs one pair of processes tonight."""

from __future__ import annotations

import sqlite3

from dashboard.artifacts.artifact import Artifact
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records import data_stamps
from tvmdash.records.metrics import ENOUGH_RATIOS, FEWEST_ALONE
from tvmdash.series import store


def count_measured(home: Home, experiment: str, reference: Artifact) -> dict[str, int]:
    """How many pairs the experiment's last night had beside this reference, by the hash of all that a point ran.

    With those of the nights before that ran the same. What that night measured as its own TVM is now the reference
    itself, which needs no other reference. Nothing is told where times are still judged: they need all their processes.
    """
    stamps = data_stamps(home.data(experiment))
    try:
        value = common.read_json(home.data_file(experiment, stamps[-1])) if stamps else {}
        if stamps and _is_judged_by_times(home, experiment):
            return {}
    except (DashboardError, sqlite3.Error):  # whoever reads that night's data, or the index, says so
        return {}
    night = common.object_in(value, "night")
    keys = {common.object_in(night, name).get("key") for name in ("artifact", "reference")}
    records = value.get("records") if isinstance(value, dict) and reference.key in keys else None
    counts: dict[str, int] = {}
    for record in records if isinstance(records, list) else ():
        content = common.object_in(common.object_in(record, "additional_info"), "content")
        name, pairs = content.get("hash"), content.get("pairs")
        if isinstance(name, str) and isinstance(pairs, int):
            counts[name] = pairs
    return counts


def _is_judged_by_times(home: Home, experiment: str) -> bool:
    """Whether the experiment's nights beside a reference are too few yet to take the place of those before them."""
    with store.open_for_reading(home.store_file, home.data(experiment), experiment) as index:
        beside = [build.reference is not None for build in index.builds(experiment).values()]
    return beside.count(False) >= FEWEST_ALONE and beside.count(True) < ENOUGH_RATIOS
