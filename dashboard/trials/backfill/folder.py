"""The nights that `backfill` measured: where they lie, which are there, and what is said of them."""

from __future__ import annotations

import contextlib
import datetime
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dashboard.artifacts.wheel.source import PYPI
from tvmdash import common, records
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.text import format_list


def put(home: Home, experiment: str, value: dict[str, Any], facts: Mapping[str, Any]) -> Path:
    """Keep a night's data under a stamp of its own, marked as backfill; the file."""
    folder = home.backfill(experiment)
    folder.mkdir(parents=True, exist_ok=True)
    moment = common.utc_now()
    taken = {*records.data_stamps(folder), *home.data_stamps(experiment)}
    while common.stamp_of(moment) in taken:
        moment += datetime.timedelta(seconds=1)
    stamp = common.stamp_of(moment)
    night = {**value["night"], "stamp": stamp, "backfill": True, **facts}
    path = folder / f"data_{stamp}.json"
    common.write_json(path, {**value, "timestamp": stamp, "night": night})
    return path


Which = tuple[str, str, str]
"""A TVM: its remote, its commit or version, the options that it was built with."""


def which(remote: str, ident: str, options: Mapping[str, str]) -> Which:
    """The TVM that these name, whatever toolchain or Python it was built with."""
    return remote, ident, json.dumps(dict(options), sort_keys=True)


def count_measured(home: Home, experiment: str, fingerprint: str) -> Counter[Which]:
    """How often the home has data of each TVM with this code and config, of its nights as of its backfill."""
    counts: Counter[Which] = Counter()
    for night in _nights(home, experiment):
        artifact = night.get("artifact")
        if night.get("fingerprint") == fingerprint and isinstance(artifact, dict):
            facts = artifact["facts"]
            source = (facts["remote"], artifact["commit"], facts["options"]) if "remote" in facts else None
            counts[source or (facts.get("source", PYPI), artifact["version"], "{}")] += 1
    return counts


def _nights(home: Home, experiment: str) -> Iterator[Mapping[str, Any]]:
    for folder in (home.data(experiment), home.backfill(experiment)):
        for stamp in records.data_stamps(folder):
            with contextlib.suppress(DashboardError):  # what cannot be read is measured again
                value = common.read_json(folder / f"data_{stamp}.json")
                if isinstance(value, dict) and isinstance(value.get("night"), dict):
                    yield value["night"]


def summarize(home: Home) -> str:
    """How many nights of which experiments there are; empty where there is none."""
    parent = home.backfill("x").parent
    folders = sorted(path for path in parent.glob("*") if path.is_dir()) if parent.is_dir() else []
    counts = {folder.name: records.data_stamps(folder) for folder in folders}
    texts = [f"{len(stamps)} of {name}" for name, stamps in counts.items() if stamps]
    if not texts:
        return ""
    newest = max(stamps[-1] for stamps in counts.values() if stamps)
    return f"Backfill: {format_list(texts, 6)}, the last one measured {common.parse_stamp(newest):%Y-%m-%d %H:%M} UTC."
