"""results/backfills/<stamp>.json: what each call of `backfill` could not get or measure, and why."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvmdash import common, structured
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

_LONGEST_S = 365 * 86400
_ROUNDED_S = 2
"""Stamps are of whole seconds."""


@dataclass(frozen=True)
class Call:
    """What one call of `backfill` did, under the `stamp` of its begin, of the TVMs in `artifacts`.

    there: TVMs that were measured before. had: TVMs that could be built or were at hand. failed, unbuilt: what could
    not be measured, by experiment and TVM, or not be had, and why. left: TVMs that the budget did not reach.
    """

    stamp: str = ""
    artifacts: str = ""
    wanted: int = 0
    done: tuple[str, ...] = ()
    there: int = 0
    had: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    unbuilt: Mapping[str, str] = field(default_factory=dict)
    left: int = 0
    elapsed_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As the file holds it."""
        return structured.to_json(self)


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
    """Of all calls, oldest first."""
    return sorted(home.backfills.glob("*.json"))


def read(home: Home) -> Calls:
    """What all calls on the home could not do."""
    calls = Calls()
    for path in files(home):
        try:
            call = structured.from_json(Call, common.read_json(path), path)
            _take(calls, call, _end(path.stem, call))
        except DashboardError as error:
            calls.broken.append(str(error))
    return calls


def _take(calls: Calls, call: Call, stamp: str) -> None:
    calls.failed = [failure for failure in calls.failed if failure.experiment or failure.tvm not in call.had]
    calls.failed += [Failed(stamp, "", tvm, why) for tvm, why in call.unbuilt.items()]
    for what, why in call.failed.items():
        experiment, _, tvm = what.rpartition(key_of("", ""))
        if experiment:  # else a TVM that was not at hand, and was not to be built
            calls.failed.append(Failed(stamp, experiment, tvm, why))


def _end(begin: str, call: Call) -> str:
    """When the call had ended, or else when it began."""
    moment = common.parse_stamp(begin)
    if call.elapsed_s is not None and 0 <= call.elapsed_s < _LONGEST_S:
        moment += datetime.timedelta(seconds=call.elapsed_s + _ROUNDED_S)
    return common.stamp_of(moment)


def key_of(experiment: str, tvm: str) -> str:
    """What a failure is told under."""
    return f"{experiment} on {tvm}"
