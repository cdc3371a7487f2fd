"""results/backfills/<stamp>.json: what each call of `backfill` could not get or measure, and why."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

_LONGEST_S = 365 * 86400
_ROUNDED_S = 2
"""Stamps are of whole seconds."""


@dataclass(frozen=True)
class Failed:
    """What a call that ended at `stamp` could not do. experiment: empty where the TVM itself could not be had."""

    stamp: str
    experiment: str
    tvm: str
    error: str


@dataclass
class Calls:
    """All of it, the oldest call first; `broken` are files that cannot be read, and why."""

    failed: list[Failed] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def unbuilt(self) -> dict[str, str]:
        """Each TVM that could not be had, nor later, and why the last time."""
        return {one.tvm: one.error for one in self.failed if not one.experiment}


def files(home: Home) -> list[Path]:
    """Of all calls, oldest first."""
    return sorted(home.backfills.glob("*.json"))


def read(home: Home) -> Calls:
    """What all calls on the home could not do."""
    calls = Calls()
    for path in files(home):
        try:
            value = common.read_json(path)
            _take(calls, value, _end(path.stem, value))
        except DashboardError as error:
            calls.broken.append(str(error))
    return calls


def _take(calls: Calls, value: common.Json, stamp: str) -> None:
    had = value.get("had") if isinstance(value, dict) else None
    if isinstance(had, list):
        calls.failed = [one for one in calls.failed if one.experiment or one.tvm not in had]
    for tvm, why in common.object_in(value, "unbuilt").items():
        calls.failed.append(Failed(stamp, "", tvm, str(why)))
    for what, why in common.object_in(value, "failed").items():
        experiment, _, tvm = what.rpartition(key_of("", ""))
        if experiment:  # else a TVM that was not at hand, and was not to be built
            calls.failed.append(Failed(stamp, experiment, tvm, str(why)))


def _end(begin: str, value: Any) -> str:
    """When the call had ended, or else when it began."""
    moment = common.parse_stamp(begin)
    elapsed_s = value.get("elapsed_s") if isinstance(value, dict) else None
    if isinstance(elapsed_s, (int, float)) and 0 <= elapsed_s < _LONGEST_S:
        moment += datetime.timedelta(seconds=elapsed_s + _ROUNDED_S)
    return common.stamp_of(moment)


def key_of(experiment: str, tvm: str) -> str:
    """What a failure is told under."""
    return f"{experiment} on {tvm}"
