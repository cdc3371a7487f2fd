"""The machine while a stage ran: telemetry_<stamp>.json, written by the night.

Columns are lists of equal length, one entry for each reading, null where it gave none. Their names end in a unit; a dot
before the unit's name separates a part of the machine, as in `temperature_c.coretemp Package id 0` or `cpu_mhz.3`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tvmdash import common
from tvmdash.common import structured
from tvmdash.errors import DashboardError

SCHEMA_VERSION = 1
SECONDS = "elapsed_s"
_KEPT_DIGITS = 3

Column = tuple[float | None, ...]


@dataclass(frozen=True)
class Cost:
    """Cost of recording itself: CPU time as a share of one core, and the longest reading in ms of CPU time."""

    cpu_share: float
    longest_ms: float


@dataclass(frozen=True)
class Telemetry:
    """One run of one experiment. `begun_unix_s` is the wall clock at `elapsed_s` 0; `cores` are those it may use."""

    experiment: str
    stamp: str
    begun_unix_s: float
    rate_per_s: float
    cores: int
    memory_total_bytes: int
    cost: Cost
    columns: Mapping[str, Column]

    @property
    def seconds(self) -> Sequence[float]:
        """Return the times of the readings since the run's begin."""
        return [second or 0.0 for second in self.columns.get(SECONDS, ())]

    def column(self, name: str) -> list[float | None]:
        """Return the column, as long as `seconds`; all None where this machine has none."""
        return list(self.columns.get(name) or [None] * len(self.seconds))

    def named(self, prefix: str) -> dict[str, list[float | None]]:
        """Return the columns `prefix.PART` by PART."""
        return {
            name[len(prefix) + 1 :]: list(column)
            for name, column in self.columns.items()
            if name.startswith(f"{prefix}.")
        }


def folder(root: Path, experiment: str) -> Path:
    """Return the folder of an experiment's telemetry in the home at `root`."""
    return root / "results" / "experiments" / "telemetry" / experiment


def file(root: Path, experiment: str, stamp: str) -> Path:
    """Return the file of one night's telemetry of an experiment."""
    return folder(root, experiment) / f"telemetry_{stamp}.json"


def write(path: Path, telemetry: Telemetry) -> None:
    """Write it atomically, numbers with three decimals."""
    columns = {name: tuple(map(_rounded, column)) for name, column in telemetry.columns.items()}
    value = {"schema_version": SCHEMA_VERSION, **structured.to_json(replace(telemetry, columns=columns))}
    path.parent.mkdir(parents=True, exist_ok=True)
    common.write_text(path, json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n")


def _rounded(value: float | None) -> float | None:
    return round(value, _KEPT_DIGITS) if isinstance(value, float) else value


def read(path: Path) -> Telemetry:
    """Read the telemetry in `path`; DashboardError names the fault."""
    value = common.read_json(path)
    structured.check_version(value, SCHEMA_VERSION, path, remedy="Update the dashboard.")
    read_back = structured.from_json(Telemetry, value, path, remedy="Move it away.")
    lengths = {len(column) for column in read_back.columns.values()}
    if len(lengths) > 1:
        raise DashboardError(f"{path}: $.columns: lengths differ ({sorted(lengths)}). Move it away.")
    return read_back
