"""All series of a home as one table of numbers: a row a series, a column a night."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvmdash import store
from tvmdash.change_noise import FloatArray, IntArray
from tvmdash.change_series import History
from tvmdash.dashboard_info import Home
from tvmdash.store import Series

REACH = 300
"""Nights of history that a night is judged with."""
GONE_NIGHTS = 30
"""A series without a value for so many nights has ended."""
_HIDDEN = frozenset({"workload", "env_name", "hw_model", "target", "engine_config"})


@dataclass(frozen=True)
class Row:
    """One series. fleet: the machine and kind of metric that it is judged with. key: its ID, once a unit."""

    key: str
    experiment: str
    metric: str
    unit: str
    lower_is_better: bool
    name: str
    fleet: str


@dataclass(frozen=True)
class Table:
    """`values[row, column]` is night `offset + column`; NaN where there is no value, code 0 where unknown.

    stamps: all nights of the home, from its first. versions: by experiment and stamp.
    """

    stamps: tuple[str, ...]
    offset: int
    rows: tuple[Row, ...]
    values: FloatArray
    std: FloatArray
    repeats: FloatArray
    code: IntArray
    versions: Mapping[str, Mapping[str, str]]

    def history(self, row: int, night: int) -> History:
        """The row's last REACH nights up to `night`."""
        stop = night + 1 - self.offset
        start = max(0, stop - REACH)
        part = (row, slice(start, stop))
        return History(self.values[part], self.std[part], self.repeats[part], self.code[part], self.offset + start)

    def index_of(self, stamp: str) -> int:
        """The number of the first night that is not before `stamp`."""
        return bisect.bisect_left(self.stamps, stamp)

    def fleets(self, night: int) -> dict[str, list[int]]:
        """The rows of each fleet that had a value lately, in the order they first came."""
        stop = night + 1 - self.offset
        lately = np.isfinite(self.values[:, max(0, stop - GONE_NIGHTS) : stop])
        alive = np.asarray(lately.any(axis=1))
        found: dict[str, list[int]] = {}
        for index, row in enumerate(self.rows):
            if alive[index]:
                found.setdefault(row.fleet, []).append(index)
        return found

    def version(self, row: int, night: int) -> str:
        """The TVM that the row's experiment measured on a night; empty where unknown."""
        return self.versions[self.rows[row].experiment].get(self.stamps[night], "")


def read_table(home: Home, tonight: str, reach: int | None) -> Table:
    """The home's series up to the night `tonight`, the last `reach` nights (all with None)."""
    names = sorted(path.name for path in home.data("x").parent.glob("*") if path.is_dir())
    versions, series = {}, []
    for name in names:
        with store.open_for_reading(home.store_file, home.data(name), name) as opened:
            versions[name] = {stamp: one for stamp, one in opened.versions(name).items() if stamp <= tonight}
    stamps = sorted({stamp for one in versions.values() for stamp in one})
    offset = 0 if reach is None else max(0, len(stamps) - reach)
    since = stamps[offset] if stamps else ""
    for name in names:
        with store.open_for_reading(home.store_file, home.data(name), name) as opened:
            series += opened.series(name, since=since)
    return make_table(series, stamps, offset, versions)


def make_table(
    series: Sequence[Series], stamps: Sequence[str], offset: int, versions: Mapping[str, Mapping[str, str]]
) -> Table:
    """The table of `series` over `stamps[offset:]`."""
    column = {stamp: index for index, stamp in enumerate(stamps[offset:])}
    known = [one for one in series if one.stamps]
    shape = (len(known), len(column))
    values, std, repeats = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
    code = np.zeros(shape, np.int64)
    numbers = {
        name: np.array([store.code_number(one[stamp]) if one.get(stamp) else 0 for stamp in stamps[offset:]], np.int64)
        for name, one in versions.items()
    }
    for index, one in enumerate(known):
        kept = [(column[stamp], at) for at, stamp in enumerate(one.stamps) if stamp in column]
        where, source = np.array(kept, np.int64).reshape(-1, 2).T
        values[index, where] = np.array(one.values, float)[source]
        std[index, where] = np.array(one.std, float)[source]
        if one.samples:
            repeats[index, where] = np.array(one.samples, float)[source]
        version = numbers[one.experiment]
        if any(one.code):
            code[index, where] = np.array([number or 0 for number in one.code], np.int64)[source]
        else:  # a compile time, a size, a number of a foreign experiment: what could change it is TVM as a whole
            code[index, where] = version[where]
    return Table(tuple(stamps), offset, tuple(_rows(known)), values, std, repeats, code, versions)


def _rows(series: Sequence[Series]) -> Iterator[Row]:
    names = _names(series)
    seen: set[str] = set()
    for one, name in zip(series, names, strict=True):
        key = one.id if one.id not in seen else f"{one.id}~{one.unit}"
        seen.add(one.id)
        yield Row(key, one.experiment, one.metric, one.unit, one.lower_is_better, name, fleet_of(one))


def fleet_of(series: Series) -> str:
    """The fleet of a series: what its machine does to one of them, it does to all.

    Sizes in bytes are no times, and a foreign experiment's numbers are of unknown kind: they stand apart.
    """
    machine = [str(series.labels[name]) for name in ("hw_model", "env_name") if series.labels.get(name)]
    if not machine:
        return f"numbers of {series.experiment}"
    kind = "sizes" if series.unit == "bytes" else "times"
    return f"{kind} on {', '.join(machine)}"


def _names(series: Sequence[Series]) -> list[str]:
    """A name for each: experiment, workload, metric, and the labels that tell it from the others of its experiment."""
    flat = [dict(_flat(one.labels)) for one in series]
    varying: dict[tuple[str, str], set[str]] = {}
    first: dict[tuple[str, str], dict[str, str]] = {}
    for one, labels in zip(series, flat, strict=True):
        kind = (one.experiment, one.metric)
        before = first.setdefault(kind, labels)
        varying.setdefault(kind, set()).update(
            key for key in labels.keys() | before.keys() if labels.get(key) != before.get(key)
        )
    names = []
    for one, labels in zip(series, flat, strict=True):
        kept = [f"{key} {value}" for key, value in labels.items() if key in varying[one.experiment, one.metric]]
        workload = str(one.labels.get("workload") or one.labels.get("path") or "").removeprefix("network.")
        metric = "" if one.metric == "value" else f" {one.metric.replace('_', ' ')}"
        told = f" ({', '.join(kept)})" if kept else ""
        names.append(f"{one.experiment} {workload}{metric}{told}")
    return _unique(names, [one.id for one in series])


def _unique(names: Sequence[str], keys: Sequence[str]) -> list[str]:
    return [f"{name} [{key[:6]}]" if names.count(name) > 1 else name for name, key in zip(names, keys, strict=True)]


def _flat(labels: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in labels.items():
        if key in _HIDDEN or key == "path":
            continue
        if isinstance(value, Mapping):
            yield from ((str(inner), str(item)) for inner, item in value.items())
        else:
            yield key, str(value)


def last_values(table: Table, row: int, count: int) -> list[float | None]:
    """The row's values of the last `count` nights, None where there is none."""
    return [float(value) if math.isfinite(value) else None for value in table.values[row, -count:]]


def finite(values: Iterable[float]) -> FloatArray:
    """Those of `values` that are finite."""
    array = np.asarray(list(values), float)
    return np.asarray(array[np.isfinite(array)])
