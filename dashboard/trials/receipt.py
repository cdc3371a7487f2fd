"""A published number: what was measured then, on what, and how; from a data file, a receipt, or an exported record.

It is named, or drawn by lot from the old nights of a home.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import runs_here
from dashboard.trials.rounds import key_of, point_of
from tvmdash import common, records, structured
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records import PointValue
from tvmdash.records.metrics import RATIOS
from tvmdash.records_exchange import named_format, read_records
from tvmdash.trials import files as trial_files
from tvmdash.trials import receipt as receipts
from tvmdash.trials.receipt import Pins
from tvmdash.trials.trial import Drawn


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
    reference: Mapping[str, Any] = field(default_factory=dict)

    @property
    def repeatable(self) -> tuple[PointValue, ...]:
        """The numbers that are measured again; a ratio to the reference is that of one of them."""
        return tuple(value for value in self.values if value.key.metric not in RATIOS)

    @property
    def ratios(self) -> Mapping[str, PointValue]:
        """What was measured in turn with the reference, by the ID of the series that it is the ratio of."""
        found = (value for value in self.values if value.key.metric in RATIOS and value.value > 0)
        return {replace(value.key, metric=RATIOS[value.key.metric]).id: value for value in found}


def read(home: Home, name: str) -> Receipt:
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
    environment = common.object_in(value, "environment")
    return Receipt(
        str(path), owner, when, values, pins.config, pins.seed, pins.fingerprint, pins.artifact, pins.repository or {},
        environment, pins.reference or {},
    )  # fmt: skip


def _read_pins(night: Mapping[str, Any], path: Path, at: str) -> Pins:
    lacks = Pins.lacking(night)
    if lacks:
        why = "imported, added by hand, or measured without TVM"
        raise DashboardError(f"{path}: its night has no {' and '.join(lacks)}: {why}.")
    return structured.from_json(Pins, night, path, at=at)


def _read_exported(path: Path, style: str) -> Receipt:
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
    return Receipt(
        str(path), first.experiment, first.night, values, pins.config, pins.seed, pins.fingerprint, pins.artifact,
        pins.repository or {}, first.environment, pins.reference or {},
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


RANDOM = "random"
"""In place of a receipt's name."""
_DAY_S = 86400.0


def draw(home: Home, folder: Path, *, before: str, seed: int, sample: int, rebuild: bool) -> tuple[Receipt, Drawn]:
    """A receipt of a night before the stamp `before`, and the series of `sample` of its points (0: all).

    Those whose artifact is in `folder` and runs here come first; others only where there is none and `rebuild`.
    An older night is likelier in proportion to its age, one that was repeated n times is 1 + n times less likely.
    The draw depends on the seed, `before` and what is there. DashboardError where there is nothing to draw.
    """
    rng = random.Random(f"{seed} {before}")
    at_hand = frozenset(artifact.key for artifact in artifact_store.artifacts_in(folder) if runs_here(artifact))
    for keys in (at_hand, None) if rebuild else (at_hand,):
        weights = _weigh_receipts(home, before, keys)
        for name in _order_by_weight(weights, rng):
            receipt = _read_receipt(home, name, keys)
            if receipt is None:
                continue
            chance = round(weights[name] / sum(weights.values()), 6)
            return receipt, Drawn(
                seed, receipt.experiment, receipt.stamp, _sample(receipt, sample, rng), len(weights), chance
            )
    what = "" if rebuild else f" whose TVM is in {folder}"
    raise DashboardError(
        f"{home.root}: no earlier night{what} has a complete receipt (artifact, code, config, "
        "machine). Run a night first."
    )


def _sample(receipt: Receipt, count: int, rng: random.Random) -> tuple[str, ...]:
    """The IDs of all series of so many points: to measure one point takes as long for one of them as for all."""
    points: dict[str, list[str]] = {}
    for value in receipt.repeatable:
        points.setdefault(key_of(point_of(value.key.labels)), []).append(value.key.id)
    if not 0 < count < len(points):
        return ()
    return tuple(sorted(ident for text in rng.sample(sorted(points), count) for ident in points[text]))


def _weigh_receipts(home: Home, before: str, keys: frozenset[str] | None) -> dict[str, float]:
    """The weight of each EXPERIMENT/STAMP that may be drawn, by the nights' own records; of these artifacts, or any."""
    now = common.parse_stamp(before)
    nights = {
        stamp for stamp in home.night_stamps() if stamp < before and (keys is None or keys & _list_used(home, stamp))
    }
    times = Counter(_list_repeated(home))
    parent = home.data("x").parent
    names = [
        f"{folder.name}/{stamp}"
        for folder in (sorted(parent.iterdir()) if parent.is_dir() else ())
        for stamp in records.data_stamps(folder)
        if stamp in nights
    ]
    ages = {name: (now - common.parse_stamp(name.rpartition("/")[2])).total_seconds() / _DAY_S for name in names}
    return {name: age / (1 + times[name]) for name, age in ages.items()}


def _list_used(home: Home, stamp: str) -> set[str]:
    """The keys of the artifacts that the night used; a night whose record cannot be read is not drawn."""
    with contextlib.suppress(DashboardError):
        value = common.read_json(home.night_file(stamp))
        artifacts: Any = value.get("artifacts") if isinstance(value, dict) else None
        return {str(artifact.get("key")) for artifact in artifacts or () if isinstance(artifact, dict)}
    return set()


def _list_repeated(home: Home) -> Iterator[str]:
    """EXPERIMENT/STAMP of each reproduction so far."""
    for item in trial_files.read_all(home):
        if item.result and (done := item.result.reproduction):
            yield f"{done.experiment}/{done.night}"


def _order_by_weight(weights: dict[str, float], rng: random.Random) -> list[str]:
    """All of them in the order in which they would be drawn one after the other without putting back.

    Source: Efraimidis & Spirakis 2006, "Weighted random sampling with a reservoir".
    """
    keys = {name: -math.log(1.0 - rng.random()) / weight for name, weight in weights.items() if weight > 0}
    return sorted(keys, key=keys.__getitem__)


def _read_receipt(home: Home, name: str, keys: frozenset[str] | None) -> Receipt | None:
    """The receipt, where it pins what it needs, holds a value and, with `keys`, its artifact is one of them."""
    with contextlib.suppress(DashboardError):  # imported, added by hand or damaged: another is drawn
        receipt = read(home, name)
        if receipt.repeatable and (keys is None or receipt.artifact.get("key") in keys):
            return receipt
    return None
