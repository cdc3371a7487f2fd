"""results/backfills/<stamp>.json: what each call of `backfill` could not get or measure, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

FOLDER = "backfills"


@dataclass(frozen=True)
class Failed:
    """What a call that began at `stamp` could not do. experiment: empty where the TVM itself could not be had."""

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
        """Each TVM that could not be had, and why the last time."""
        return {one.tvm: one.error for one in self.failed if not one.experiment}


def file(home: Home, stamp: str) -> Path:
    """What the call that began at `stamp` leaves."""
    return home.root / "results" / FOLDER / f"{stamp}.json"


def files(home: Home) -> list[Path]:
    """Of all calls, oldest first."""
    return sorted(file(home, "x").parent.glob("*.json"))


def read(home: Home) -> Calls:
    """What all calls on the home could not do."""
    calls = Calls()
    for path in files(home):
        try:
            value = common.read_json(path)
        except DashboardError as error:
            calls.broken.append(str(error))
            continue
        for tvm, why in common.object_in(value, "unbuilt").items():
            calls.failed.append(Failed(path.stem, "", tvm, str(why)))
        for what, why in common.object_in(value, "failed").items():
            experiment, _, tvm = what.rpartition(key_of("", ""))
            if experiment:  # else a TVM that was not at hand, and was not to be built
                calls.failed.append(Failed(path.stem, experiment, tvm, str(why)))
    return calls


def key_of(experiment: str, tvm: str) -> str:
    """What a failure is told under."""
    return f"{experiment} on {tvm}"
