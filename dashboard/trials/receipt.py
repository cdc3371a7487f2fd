"""A published number: what was measured then, on what, and how; from a data file, a receipt, or an exported record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tvmdash import common, records
from tvmdash.common import structured
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records import PointValue
from tvmdash.records.exchange import named_format, read_records
from tvmdash.records.metrics import RATIOS
from tvmdash.trials import receipt as receipts
from tvmdash.trials.receipt import Pins


@dataclass(frozen=True)
class PinnedRun:
    """One experiment of one night, with all that pins it."""

    source: str
    experiment: str
    stamp: str
    values: tuple[PointValue, ...]
    pins: Pins
    environment: Mapping[str, Any]

    @property
    def repeatable(self) -> tuple[PointValue, ...]:
        """The numbers that are measured again; a ratio to the reference is that of one of them."""
        return tuple(value for value in self.values if value.key.metric not in RATIOS)

    @property
    def ratios(self) -> Mapping[str, PointValue]:
        """Ratios to the reference, measured in turn, by the ID of the series that they are ratios of."""
        found = (value for value in self.values if value.key.metric in RATIOS and value.value > 0)
        return {replace(value.key, metric=RATIOS[value.key.metric]).id: value for value in found}


def read(home: Home, name: str) -> PinnedRun:
    """The receipt in a file, or of `EXPERIMENT/STAMP` of the home; DashboardError says what it lacks.

    The file is a data file, a receipt of the website, or what `records export` wrote of one night, one line of it even.
    """
    experiment, slash, stamp = name.rpartition("/")
    of_night = bool(slash) and common.is_stamp(stamp) and "/" not in experiment
    path = home.data_file(experiment, stamp) if of_night else Path(name).expanduser()
    style = None if of_night else named_format(path)
    if style and style != "json":
        return _read_exported(path, style)
    value = common.read_json(path)
    if isinstance(value, list) or (isinstance(value, dict) and isinstance(value.get("night"), str)):
        return _read_exported(path, "json" if isinstance(value, list) else "jsonl")
    night = value.get("night") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(night, dict):
        kinds = "a data_<stamp>.json, a receipt, an exported record, or EXPERIMENT/STAMP"
        raise DashboardError(f"{path}: does not identify a night. Give {kinds}.")
    pins = _read_pins(night, path, "$.night")
    owner = pins.experiment or str(value.get("experiment") or path.parent.name)
    when = pins.stamp or str(value.get("stamp") or "")
    values = tuple(_values(home, path, value, owner, when))
    return PinnedRun(str(path), owner, when, values, pins, common.object_in(value, "environment"))


def _read_pins(night: Mapping[str, Any], path: Path, at: str) -> Pins:
    lacks = Pins.lacking(night)
    if lacks:
        why = "imported, added by hand, or measured without TVM"
        raise DashboardError(f"{path}: its night has no {' and '.join(lacks)}: {why}.")
    known = {name: value for name, value in night.items() if value is not None}
    return structured.from_json(Pins, known, path, at=at)


def _read_exported(path: Path, style: str) -> PinnedRun:
    """The records of one night that `records export` wrote; one of them is enough."""
    rows = list(read_records(path, style))
    if not rows:
        raise DashboardError(
            f"{path}: contains no records. Give a file written by `records export`, or one line of it."
        )
    nights = {(row.experiment, row.night, row.tvm_hash) for row in rows}
    if len(nights) != 1 or any(row.pins != rows[0].pins for row in rows):
        raise DashboardError(
            f"{path}: contains records of {len(nights)} nights. Give the records of one night, or a single line."
        )
    first = rows[0]
    pins = _read_pins(first.pins, path, "$.pins")
    recorded = {"night": {"imported": {}}, "records": [row.record.to_json() for row in rows]}
    values = tuple(records.night_of(recorded, first.experiment, first.night, None).values())
    return PinnedRun(str(path), first.experiment, first.night, values, pins, first.environment)


def _values(home: Home, path: Path, value: Mapping[str, Any], experiment: str, stamp: str) -> Iterator[PointValue]:
    if "data_file" not in value:  # a data file
        yield from records.read_data(path, experiment, home=home.machine()).values()
        return
    receipt = structured.from_json(receipts.Receipt, value, path)
    recorded = [entry.record for entry in receipt.records]
    leaves = {str(record["path"]): float(record["value"]) for record in recorded if "path" in record}
    whole = [record for record in recorded if "path" not in record]
    night = records.night_of({"night": receipt.night, "records": whole}, experiment, stamp, home.machine())
    yield from replace(night, leaves=leaves).values()
