"""A home's JSON files: data_<stamp>.json (records), telemetry_<stamp>.json, results/nights/<stamp>.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash import common, records
from tvmdash.errors import DashboardError
from tvmdash.machine import telemetry
from tvmdash.machine.telemetry import SECONDS
from tvmdash.records.migrations import migrate
from tvmtraces.batches import Batch, WantedRows, batch_of_rows


@dataclass(frozen=True)
class DataSource:
    """The records of one night of one experiment."""

    path: Path
    guids: tuple[str, ...] = ()
    kind: str = "data"

    def read(self, wanted: WantedRows) -> Iterator[Batch]:
        if "record" in wanted.tables:
            night = records.read_data(self.path, self.path.parent.name)
            rows = [record_row(record, night.experiment, night.stamp, night.tvm_hash) for record in night.records]
            yield batch_of_rows("record", rows)

    def counts(self) -> dict[str, int]:
        """Count the rows that the table must get from here."""
        return {"record": len(migrate(common.read_json(self.path)).get("records", ()))}


def record_row(record: records.Record, experiment: str, night: str, tvm_hash: str) -> dict[str, Any]:
    """A record as a row of the table: objects become JSON texts with sorted keys."""
    columns = {
        name: json.dumps(value, sort_keys=True, ensure_ascii=False) if isinstance(value, Mapping) else value
        for name, value in record.to_json().items()
    }
    return {"experiment": experiment, "night": night, "tvm_hash": tvm_hash, **columns}


@dataclass(frozen=True)
class NightSource:
    """One night of a home."""

    path: Path
    guids: tuple[str, ...] = ()
    kind: str = "night"

    def read(self, wanted: WantedRows) -> Iterator[Batch]:
        if not wanted.tables.keys() & {"night", "stage"}:
            return
        try:
            night = common.read_json(self.path)
            if "night" in wanted.tables:
                yield batch_of_rows("night", [_night_row(night, self.path)])
            if "stage" in wanted.tables:
                yield batch_of_rows("stage", list(_stage_rows(night)))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DashboardError(f"{self.path}: not a night's record: {error!r}. Leave it out.") from error

    def counts(self) -> dict[str, int]:
        """Count the rows that the tables must get from here."""
        jobs = common.read_json(self.path)["jobs"]
        return {"night": 1, "stage": sum(len(job["steps"]) for job in jobs)}


@dataclass(frozen=True)
class TelemetrySource:
    """The machine's telemetry while one experiment of one night ran: telemetry_<stamp>.json."""

    path: Path
    guids: tuple[str, ...] = ()
    kind: str = "telemetry"

    def read(self, wanted: WantedRows) -> Iterator[Batch]:
        """Yield a row for each reading that gave a number."""
        if "telemetry" in wanted.tables:
            recorded = telemetry.read(self.path)
            begun = round(recorded.begun_unix_s * 1e9)
            moments = [begun + round(second * 1e9) for second in recorded.seconds]
            yield batch_of_rows("telemetry", list(_telemetry_rows(recorded, moments)))

    def counts(self) -> dict[str, int]:
        """Count the rows that the table must get from here."""
        columns = telemetry.read(self.path).columns.items()
        return {"telemetry": sum(value is not None for name, column in columns if name != SECONDS for value in column)}


_UNITS = frozenset({"mhz", "bytes", "cores", "c"})
"""Units that stand in the names of sensors, as in `cpu_mhz_max`; `c` is degrees Celsius."""


def _telemetry_rows(recorded: telemetry.Telemetry, moments: Sequence[int]) -> Iterator[dict[str, Any]]:
    for name, column in recorded.columns.items():
        unit = next((word for word in name.partition(".")[0].split("_") if word in _UNITS), "")
        if name != SECONDS:
            for moment, value in zip(moments, column, strict=True):
                if value is not None:
                    yield {"timestamp": moment, "name": name, "unit": unit, "value": value}


def _nanoseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e9)


def _night_row(night: Mapping[str, Any], path: Path) -> dict[str, Any]:
    artifacts = night.get("artifacts") or []
    return {
        "night": night["stamp"],
        "state": night["state"],
        "start": round(common.parse_stamp(night["stamp"]).timestamp()) * 10**9,
        "duration": _nanoseconds(night.get("elapsed_s")),
        "seed": night.get("seed"),
        "commit": (night.get("repository") or {}).get("commit"),
        "tvm": ", ".join(str(artifact["key"]) for artifact in artifacts) or None,
        "notes": "\n".join(night.get("notes") or []) or None,
        "source": path.name,
    }


def _stage_rows(night: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for job in night["jobs"]:
        for step in job["steps"]:
            yield {
                "night": night["stamp"],
                "kind": job["kind"],
                "job": job["name"],
                "stage": step["stage"],
                "state": step["state"],
                "message": step["message"],
                "start": step.get("started_ns"),
                "duration": _nanoseconds(step.get("elapsed_s")),
            }


_STAMPED: Mapping[str, type[DataSource | TelemetrySource]] = {"data": DataSource, "telemetry": TelemetrySource}
"""The files of a home whose names end in a stamp, by how these begin."""


def find_kind(path: Path) -> type[DataSource | NightSource | TelemetrySource] | None:
    """Find the kind of a home's JSON file by its name; None for any other file."""
    kind, _, stamp = path.stem.rpartition("_")
    if path.suffix != ".json" or not common.is_stamp(stamp):
        return None
    if not kind:
        return NightSource if path.parent.name == "nights" else None
    return _STAMPED.get(kind)
