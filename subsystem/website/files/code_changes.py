"""The files of changes of generated code: the last as its experiment left it, those before it as kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.records.code_changes import FILE

FOLDER, KEPT = "code", "code_changes"


def list_nights(home: Home, old: Path, shown: Collection[str]) -> dict[tuple[str, str], Path]:
    """Find by experiment and stamp the file of changes: an experiment's own, or one that was kept.

    A dashboard of before kept them in its site `old` alone, which no archive has.
    """
    found: dict[tuple[str, str], Path] = {}
    for experiment in home.experiments_with_data():
        for stamp in shown:
            for path in (old / file_of(experiment, stamp), kept_file(home, experiment, stamp)):
                if path.is_file():
                    found[experiment, stamp] = path
        own = home.graph(experiment) / FILE
        stamp = home.stamp_of(own.parent) or ""
        if common.is_stamp(stamp) and own.is_file():
            found[experiment, stamp] = own
    return found


def kept_file(home: Home, experiment: str, stamp: str) -> Path:
    """Return where the home keeps a night's differences as long as the site shows them."""
    return home.root / "results" / KEPT / Path(file_of(experiment, stamp)).name


def file_of(experiment: str, stamp: str, ending: str = ".json") -> str:
    """Name the file of a night's differences, or with `.html` the page that shows them, from the site's root."""
    return f"{FOLDER}/{stamp}-{common.safe_name(experiment)}{ending}"


def id_of(workload: str, values: Mapping[str, Any]) -> str:
    """Identify a point in addresses; `values` are those of its axes."""
    named = json.dumps([workload, dict(values)], sort_keys=True, default=str)
    return hashlib.sha256(named.encode()).hexdigest()[:12]
