"""What the machine did while a stage ran: telemetry_<stamp>.json, written by the night, read by whoever explains.

Columns are lists of equal length, one entry for each reading, null where it gave none. Their names end in a unit; a dot
before the unit's name separates a part of the machine, as in `temperature_c.coretemp Package id 0` or `cpu_mhz.3`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.errors import DashboardError

SCHEMA_VERSION = 1
SECONDS = "elapsed_s"
_KEPT_DIGITS = 3

Column = Sequence[float | None]


@dataclass(frozen=True)
class Cost:
    """What recording itself took: CPU time as a share of one core, and the longest reading in ms of CPU time."""

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
        """The moments of the readings, from the run's begin."""
        return [second or 0.0 for second in self.columns.get(SECONDS, ())]

    def column(self, name: str) -> list[float | None]:
        """The column, of the length of `seconds`; all None where this machine has none."""
        return list(self.columns.get(name) or [None] * len(self.seconds))

    def named(self, prefix: str) -> dict[str, list[float | None]]:
        """The columns `prefix.PART` by PART."""
        return {
            name[len(prefix) + 1 :]: list(column)
            for name, column in self.columns.items()
            if name.startswith(f"{prefix}.")
        }


def folder(root: Path, experiment: str) -> Path:
    """Where the home at `root` keeps the telemetry of an experiment."""
    return root / "results" / "experiments" / "telemetry" / experiment


def file(root: Path, experiment: str, stamp: str) -> Path:
    """One night's telemetry of an experiment."""
    return folder(root, experiment) / f"telemetry_{stamp}.json"


def write(path: Path, telemetry: Telemetry) -> None:
    """Write it whole or not at all, numbers with three decimals."""
    columns = {name: [_rounded(value) for value in column] for name, column in telemetry.columns.items()}
    value = {"schema_version": SCHEMA_VERSION, **asdict(telemetry), "columns": columns}
    path.parent.mkdir(parents=True, exist_ok=True)
    common.write_text(path, json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n")


def _rounded(value: float | None) -> float | None:
    return round(value, _KEPT_DIGITS) if isinstance(value, float) else value


def read(path: Path) -> Telemetry:
    """The telemetry in `path`; DashboardError names what is wrong."""
    value = common.read_json(path)
    try:
        version = value.pop("schema_version")
        if version != SCHEMA_VERSION:
            raise DashboardError(
                f"{path}: $.schema_version: {version!r:.40} is not {SCHEMA_VERSION}. Update the dashboard."
            )
        read_back = Telemetry(**{**value, "cost": Cost(**value["cost"])})
        lengths = {len(column) for column in read_back.columns.values()}
    except (KeyError, TypeError, AttributeError) as error:
        raise DashboardError(f"{path}: not telemetry: {error}. Move it away.") from error
    if len(lengths) > 1:
        raise DashboardError(f"{path}: $.columns: lengths differ ({sorted(lengths)}). Move it away.")
    return read_back


def abnormal(page: Path, stamp: str) -> dict[str, str] | None:
    """What the subsystem telemetry found abnormal in the night `stamp`, in sentences by experiment; "" where nothing.

    `page` is its page.json. None where it did not judge this night: it may be off, or have left something else.
    """
    try:
        value = common.read_json(page)
        if value["stamp"] != stamp:
            return None
        return {str(run["experiment"]): " ".join(map(str, run["abnormal"])) for run in value["runs"]}
    except (DashboardError, KeyError, TypeError):
        return None
