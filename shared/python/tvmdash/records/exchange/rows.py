"""Records with the place that they belong to, out of data files and back into them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tvmdash import common, records
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.machine import identity
from tvmdash.records import Record
from tvmdash.records.migrations import migrate

_ORIGIN, _WHOLE = ("experiment", "night", "tvm_hash"), ("pins", "environment")
_MARK = "imported"
NO_MEDIAN = "the source has no median; the mean is used instead"
IMPORTED = "imported"
"""Experiment of records that name none."""
_LONGEST_PAUSE = datetime.timedelta(hours=6)
"""Longest pause between two measurements of one night."""


@dataclass(frozen=True)
class PlacedRecord:
    """A record, the experiment and the night it is of, and the TVM that was measured.

    pins, environment: what the data file says of its night and of the machine, so that a record alone can be repeated.
    """

    experiment: str
    night: str
    tvm_hash: str
    record: Record
    pins: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return an object with the record's columns and the five others."""
        return {**self.origin(), **self.record.to_json()}

    def origin(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*_ORIGIN, *_WHOLE)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], experiment: str = IMPORTED) -> PlacedRecord:
        """Parse the result of `to_json`, or the columns alone, checked; DashboardError names the place in it.

        The columns alone, which are all that apache/tvm#4304 has, are of `experiment`, of the commit behind the
        engine's version, and of no night yet: see `find_nights`. Without a median the mean stands for it.
        """
        commit = str(value.get("engine_version", "")).rpartition(":")[2]
        bare = {"experiment": experiment, "night": "", "tvm_hash": commit}
        origin = {name: value.get(name, bare[name]) for name in _ORIGIN}
        for name, text in origin.items():
            if not isinstance(text, str):
                raise DashboardError(f"$.{name}: {text!r:.60} is not a text.")
        try:
            if "night" in value:
                common.parse_stamp(str(origin["night"]))
        except DashboardError as error:
            raise DashboardError(f"$.night: {error}") from error
        _check_name(str(origin["experiment"]))
        whole = {name: value.get(name, {}) for name in _WHOLE}
        for name, item in whole.items():
            if not isinstance(item, dict):
                raise DashboardError(f"$.{name}: {type(item).__name__} is not an object.")
        columns = {name: item for name, item in value.items() if name not in (*_ORIGIN, *_WHOLE)}
        info, mean = columns.get("additional_info"), columns.get("execution_elapsed_ms_mean")
        if "night" not in value and isinstance(info, dict):
            stated = {"execution_elapsed_ms_median": mean, "doubts": [NO_MEDIAN]} if mean is not None else {}
            columns["additional_info"] = {"docker_tag": None, "docker_hash": None, **stated, **info}
        records.check_data({"schema_version": records.SCHEMA_VERSION, "tvm_hash": "", "records": [columns]})
        experiment, night, tvm_hash = (str(origin[name]) for name in _ORIGIN)
        return cls(experiment, night, tvm_hash, Record.from_json(columns), **whole)

    @property
    def moment(self) -> datetime.datetime:
        """Return when it was measured; a timestamp without a zone is taken for UTC."""
        try:
            moment = datetime.datetime.fromisoformat(self.record.timestamp)
            return moment.astimezone(datetime.UTC) if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        except (ValueError, OverflowError) as error:
            text = f"{self.record.timestamp!r:.40} is not an ISO 8601 date and time."
            raise DashboardError(text, place=f"{self.experiment}/{self.night}: $.timestamp") from error


def find_nights(rows: Iterable[PlacedRecord]) -> Iterator[PlacedRecord]:
    """Yield the rows, each with its night.

    In the order of their timestamps a night ends where another TVM, six hours without a measurement or what the night
    has measured already comes. It is named by its first timestamp.
    """
    bare = []
    taken: set[tuple[str, str]] = set()
    for row in rows:
        if row.night:
            taken.add((row.experiment, row.night))
            yield row
        else:
            bare.append(row)
    last: PlacedRecord | None = None
    seen: set[str] = set()
    night = ""
    for row in sorted(bare, key=lambda row: (row.experiment, row.moment)):
        measured = json.dumps(row.record.labels, sort_keys=True)
        goes_on = last is not None and (last.experiment, last.tvm_hash) == (row.experiment, row.tvm_hash)
        if last is None or not goes_on or row.moment - last.moment > _LONGEST_PAUSE or measured in seen:
            moment, seen = row.moment, set()
            # two nights may begin in one second, and a stamp names one alone
            while (row.experiment, night := common.stamp_of(moment)) in taken:
                moment += datetime.timedelta(seconds=1)
            taken.add((row.experiment, night))
        seen.add(measured)
        last = row
        yield replace(row, night=night)


_MOST_BYTES = 255
"""Limit of a folder's name."""


def _check_name(experiment: str) -> None:
    """Raise DashboardError where the name cannot be that of a folder."""
    fits = 0 < len(experiment.encode()) <= _MOST_BYTES and experiment.isprintable()
    if not fits or "/" in experiment or experiment in {".", ".."}:
        raise DashboardError(
            f"$.experiment: {experiment!r:.60} is not a valid experiment name. Use a name that works as a folder name."
        )


def records_in(source: Path) -> Iterator[PlacedRecord]:
    """Yield the records of a home, of data files, of a folder of these or of such folders; in order of nights.

    A data file's folder is named after its experiment. Files without records hold none. DashboardError for a file that
    cannot be read.
    """
    for path in _data_files(source):
        value = migrate(common.read_json(path))
        if "records" not in value:
            continue
        records.check_data(value)
        home = identity.of_folder(path.parent)
        night = records.night_of(value, path.parent.name, path.stem.removeprefix("data_"), home)
        pins = {name: item for name, item in common.object_in(value, "night").items() if name != _MARK}
        environment = common.object_in(value, "environment")
        for record in night.records:
            yield PlacedRecord(night.experiment, night.stamp, night.tvm_hash, record, pins, environment)


def _data_files(source: Path) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    if not source.is_dir():
        raise DashboardError(f"{source}: no such file or folder. Give a home, a data folder or a data file.")
    data = Home(source).data("any").parent
    top = data if data.is_dir() else source
    for folder in [top, *sorted(path for path in top.iterdir() if path.is_dir())]:
        for stamp in records.data_stamps(folder):
            yield folder / f"data_{stamp}.json"


_IMPORTED: Mapping[str, Any] = {_MARK: {"format": "records"}}
"""Such a file's night: it is not of the home that it may come to lie in, and keeps its own names."""


@dataclass(frozen=True)
class WrittenFiles:
    """Files that `keep` wrote, and files that existed already with the same records."""

    written: tuple[Path, ...]
    there: tuple[Path, ...]


def keep(rows: Iterable[PlacedRecord], folder: Path) -> WrittenFiles:
    """Write records to FOLDER/EXPERIMENT/data_<night>.json; twice is as good as once.

    DashboardError, with nothing written, where such a file is there with other contents, or where one night of an
    experiment has two TVMs, or two configs or machines.
    """
    files: dict[Path, dict[str, Any]] = {}
    for row in rows:
        path = folder / row.experiment / f"data_{row.night}.json"
        start = _start_file(row)
        whole = files.setdefault(path, {**start, "records": []})
        if whole["tvm_hash"] != row.tvm_hash:
            raise DashboardError(
                f"{path}: would mix records of two TVMs, {whole['tvm_hash']} and {row.tvm_hash}. Split the source."
            )
        if any(whole.get(name) != start.get(name) for name in ("night", "environment")):
            raise DashboardError(f"{path}: would mix records of different configs or machines. Split the source.")
        whole["records"].append(row.record.to_json())
    there = tuple(path for path, value in files.items() if path.exists() and _same(path, value))
    other = [path for path in files if path.exists() and path not in there]
    if other:
        raise DashboardError(f"{other[0]}: already exists with different contents. Choose another folder.")
    written = tuple(path for path in files if path not in there)
    for path in written:
        path.parent.mkdir(parents=True, exist_ok=True)
        common.write_json(path, files[path])
    return WrittenFiles(written, there)


def _start_file(row: PlacedRecord) -> dict[str, Any]:
    """Return the data file of the record's night, without records."""
    start = {"schema_version": records.SCHEMA_VERSION, "timestamp": row.night, "tvm_hash": row.tvm_hash}
    environment = {"environment": dict(row.environment)} if row.environment else {}
    return {**start, **environment, "night": {**_IMPORTED, **row.pins}}


def _same(path: Path, value: Mapping[str, Any]) -> bool:
    stored = common.read_json(path)
    return isinstance(stored, dict) and all(stored.get(name) == item for name, item in value.items() if name != "night")
