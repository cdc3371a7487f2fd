"""The nights that `backfill` measured on the TVMs of the past, as the data files tell them."""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash import common, records
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

_COMMIT = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True)
class BackfillNight:
    """One experiment on one TVM. round: the code that measured it, and the how-manieth time it measured this TVM.

    version: a commit's first digits, else a version's number. committed: when (UTC), None for a release.
    """

    experiment: str
    stamp: str
    round: str
    version: str
    committed: datetime.datetime | None
    data: records.NightData
    machine: Mapping[str, Any]

    @property
    def order(self) -> tuple[float, Any]:
        """Releases by number, then commits by date."""
        return self.committed.timestamp() if self.committed else -math.inf, _number(self.version)


def read(home: Home) -> tuple[list[BackfillNight], list[str]]:
    """All of them, experiment by experiment, oldest first; and what is wrong with each file that cannot be read."""
    broken: list[str] = []
    return [night for folder in _list_folders(home) for night in _read_nights(folder, broken)], broken


def files(home: Home) -> list[Path]:
    """What `read` reads."""
    return [path for folder in _list_folders(home) for path in sorted(folder.glob("data_*.json"))]


def name_of(tvm: str) -> str:
    """What a TVM is called: the first digits of a commit, else its version as it is."""
    return _shorten(tvm) if _COMMIT.fullmatch(tvm) else tvm


def _list_folders(home: Home) -> list[Path]:
    parent = home.backfill("x").parent
    return sorted(path for path in parent.glob("*") if path.is_dir()) if parent.is_dir() else []


def _read_nights(folder: Path, broken: list[str]) -> list[BackfillNight]:
    nights = []
    times: Counter[tuple[str, str]] = Counter()
    for stamp in records.data_stamps(folder):
        path = folder / f"data_{stamp}.json"
        try:
            common.parse_stamp(stamp)
            data = records.read_data(path, folder.name)
            value = common.read_json(path)
            night = common.object_in(value, "night")
            committed = _parse_moment(path, night.get("committed"))
        except DashboardError as error:
            broken.append(str(error))
            continue
        artifact = common.object_in(night, "artifact")
        version = str(artifact.get("version") or data.tvm_hash)
        if committed:
            version = _shorten(str(artifact.get("commit") or version))
        machine = common.object_in(common.object_in(value, "environment"), "machine")
        code = str(night.get("fingerprint"))
        times[code, version] += 1
        nights.append(
            BackfillNight(folder.name, stamp, f"{code} {times[code, version]}", version, committed, data, machine)
        )
    return nights


def _shorten(commit: str) -> str:
    return commit[:12]


def _parse_moment(path: Path, committed: object) -> datetime.datetime | None:
    """When a commit was made, in UTC; None for what is none."""
    if not committed:
        return None
    try:
        moment = datetime.datetime.fromisoformat(str(committed))
        aware = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        return aware.astimezone(datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise DashboardError(f"{path}: $.night.committed: {error}. Write a date as in 2026-11-21T03:15:00Z.") from error


def _number(version: str) -> object:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version)
    except InvalidVersion:
        return Version("0")
