"""A published number: what was measured then, on what, and how; from a data file or a receipt of the website."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tvmdash import common, records, structured
from tvmdash.contracts import receipts
from tvmdash.contracts.receipts import Pins
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records import PointValue


@dataclass(frozen=True)
class Receipt:
    """One experiment of one night, with all that pins it."""

    source: str
    experiment: str
    stamp: str
    values: tuple[PointValue, ...]
    config: Mapping[str, Any]
    seed: int
    fingerprint: str
    artifact: Mapping[str, Any]
    repository: Mapping[str, Any]
    environment: Mapping[str, Any]


def read(home: Home, name: str) -> Receipt:
    """The receipt in a file, or of `EXPERIMENT/STAMP` of the home; DashboardError says what it lacks."""
    experiment, slash, stamp = name.rpartition("/")
    of_night = bool(slash) and common.is_stamp(stamp) and "/" not in experiment
    path = home.data_file(experiment, stamp) if of_night else Path(name).expanduser()
    value = common.read_json(path)
    night = value.get("night") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(night, dict):
        raise DashboardError(f"{path}: names no night. Give a data_<stamp>.json, a receipt, or EXPERIMENT/STAMP.")
    lacks = Pins.lacking(night)
    if lacks:
        why = "imported, added by hand, or measured without TVM"
        raise DashboardError(f"{path}: its night does not say its {' and '.join(lacks)}: {why}.")
    pins = structured.from_json(Pins, night, path, at="$.night")
    owner = pins.experiment or str(value.get("experiment") or path.parent.name)
    when = pins.stamp or str(value.get("stamp") or "")
    values = tuple(_values(home, path, value, owner, when))
    environment = common.object_in(value, "environment")
    return Receipt(
        str(path), owner, when, values, pins.config, pins.seed, pins.fingerprint, pins.artifact, pins.repository or {},
        environment,
    )  # fmt: skip


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
