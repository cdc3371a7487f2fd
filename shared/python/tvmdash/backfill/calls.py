"""What each call of `backfill` could not get or measure, and why."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from pathlib import Path

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.trials import files as trial_files
from tvmdash.trials.trial import Backfill

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
        return {failure.tvm: failure.error for failure in self.failed if not failure.experiment}


def files(home: Home) -> list[Path]:
    """Those that may be of a call: before, each lay in results/backfills."""
    return [*sorted(home.backfills.glob("*.json")), *trial_files.list_files(home)]


def read(home: Home) -> Calls:
    """What all calls on the home could not do."""
    calls = Calls()
    for item in sorted(map(trial_files.read, files(home)), key=lambda item: item.path.name):
        if item.result is None:
            calls.broken.append(item.fault)
        elif item.result.backfill:
            try:
                _take(calls, item.result.backfill, _end(item.path.stem, item.result.measured_s))
            except DashboardError as error:
                calls.broken.append(f"{item.path}: {error}")
    return calls


def _take(calls: Calls, call: Backfill, stamp: str) -> None:
    calls.failed = [failure for failure in calls.failed if failure.experiment or failure.tvm not in call.had]
    calls.failed += [Failed(stamp, "", tvm, why) for tvm, why in call.unbuilt.items()]
    for what, why in call.failed.items():
        experiment, _, tvm = what.rpartition(key_of("", ""))
        if experiment:  # else a TVM that was not at hand, and was not to be built
            calls.failed.append(Failed(stamp, experiment, tvm, why))


def _end(begin: str, measured_s: float) -> str:
    """When the call had ended, or else when it began."""
    moment = common.parse_stamp(begin)
    if 0 < measured_s < _LONGEST_S:
        moment += datetime.timedelta(seconds=measured_s + _ROUNDED_S)
    return common.stamp_of(moment)


def key_of(experiment: str, tvm: str) -> str:
    """What a failure is told under."""
    return f"{experiment} on {tvm}"
