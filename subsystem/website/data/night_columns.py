"""The points of each night as one column-wise JSON, so that two nights are compared in two requests."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from files import forked
from files.incremental import IncrementalSite, fingerprint

from data.catalogue import Catalogue, Entry, Experiment, Stores
from data.shards import format_column
from tvmdash.series.store import NightPoints, Store

SCHEMA_VERSION = 1
FOLDER = "columns"
_LEAST_IN_PROCESS = 50
"""Fewer nights are written sooner than a process is forked."""
_CODE_BITS = 2**32
"""So much of a module's hash tells it apart, and a script reads it as a number."""


@dataclass(frozen=True)
class _Night:
    """The file of a night, and the experiments that have data of it."""

    stamp: str
    experiments: tuple[Experiment, ...]
    made_from: str

    @property
    def file(self) -> str:
        return f"{FOLDER}/{self.stamp}.json"


def write_night_columns(catalogue: Catalogue, stores: Stores, carrier: IncrementalSite) -> None:
    """Bring columns/ up to date: only nights with new data are written."""
    carrier.folder(FOLDER)
    missing = [night for night in _nights(catalogue) if not carrier.carry(night.file, night.made_from)]
    ids: dict[str, dict[int, Entry]] = {}
    for entry in catalogue.entries:
        ids.setdefault(entry.outline.experiment, {})[entry.outline.number] = entry
    work = functools.partial(_write, stores=stores, entries=ids, carrier=carrier)
    for part in forked.in_parts(work, missing, least=_LEAST_IN_PROCESS):
        carrier.take_in(part)


def _nights(catalogue: Catalogue) -> list[_Night]:
    measured: dict[str, list[Experiment]] = {}
    for experiment in catalogue.experiments.values():
        for stamp in experiment.nights.stamps:
            measured.setdefault(stamp, []).append(experiment)
    return [_Night(stamp, tuple(known), _made_from(stamp, known)) for stamp, known in sorted(measured.items())]


def _made_from(stamp: str, experiments: Sequence[Experiment]) -> str:
    facts = []
    for experiment in experiments:
        nights = experiment.nights
        facts += [experiment.name, nights.born, nights.versions[stamp], nights.machines.get(stamp, "")]
    return fingerprint(*facts)


def _write(
    nights: Sequence[_Night],
    *,
    stores: Stores,
    entries: Mapping[str, Mapping[int, Entry]],
    carrier: IncrementalSite,
) -> IncrementalSite:
    written = carrier.part()
    with stores.for_fork() as opened:
        references: dict[str, Mapping[str, str]] = {}
        for night in nights:
            columns = _Columns({}, [], [], [], [], [])
            for experiment in night.experiments:
                store = opened.of(experiment.name)
                if experiment.name not in references:
                    references[experiment.name] = _references(store, experiment.name)
                columns.experiments[experiment.name] = {
                    "tvm": experiment.nights.versions[night.stamp],
                    "machine": experiment.nights.machines.get(night.stamp, ""),
                    "reference": references[experiment.name].get(night.stamp, ""),
                }
                columns.add(entries.get(experiment.name, {}), store.points_of_night(experiment.name, night.stamp))
            written.write(night.file, columns.to_json(night.stamp).encode("ascii"), night.made_from)
    return written


def _references(store: Store, experiment: str) -> Mapping[str, str]:
    return {stamp: build.reference or "" for stamp, build in store.builds(experiment).items()}


@dataclass(frozen=True)
class _Columns:
    """The points of one night, numbers as JSON writes them."""

    experiments: dict[str, dict[str, str]]
    ids: list[str]
    values: list[str]
    low: list[str]
    high: list[str]
    code: list[str]

    def add(self, entries: Mapping[int, Entry], points: NightPoints) -> None:
        """Take in the points of one experiment, as far as the catalogue knows their series."""
        kept = [at for at, number in enumerate(points.numbers) if number in entries]
        self.ids.extend(entries[points.numbers[at]].id for at in kept)
        for texts, column in ((self.values, points.values), (self.low, points.low), (self.high, points.high)):
            texts.extend(format_column([column[at] for at in kept], digits=7))
        self.code.extend("null" if (code := points.code[at]) is None else str(code % _CODE_BITS) for at in kept)

    def to_json(self, stamp: str) -> str:
        """The file's content."""
        head = json.dumps({"schema_version": SCHEMA_VERSION, "stamp": stamp, "experiments": self.experiments})
        ids = ",".join(f'"{name}"' for name in self.ids)
        columns = {"value": self.values, "low": self.low, "high": self.high, "code": self.code}
        parts = [f'"{name}":[{",".join(column)}]' for name, column in columns.items()]
        return f'{head[:-1]},"id":[{ids}],{",".join(parts)}}}\n'
