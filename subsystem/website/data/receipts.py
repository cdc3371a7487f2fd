"""receipts/: what reproduces one experiment's points of one night, with raw samples and operators."""

from __future__ import annotations

import json
import logging
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from files.files import WRONG, reason_of
from files.incremental import NONE, IncrementalSite, fingerprint, mark
from views.context import SiteContext

from data.catalogue import SiteCatalogue
from tvmdash import common, config_util, records
from tvmdash.common import structured
from tvmdash.dashboard_info import OF_REFERENCE, VARIANT_SIGN, Home
from tvmdash.errors import DashboardError
from tvmdash.machine import identity as machine_identity
from tvmdash.records import description
from tvmdash.records.metrics import FOREIGN, Declarations
from tvmdash.text import format_bytes
from tvmdash.trials.receipt import FOLDER, SCHEMA_VERSION, Pins, Receipt, ReceiptRecord, place_of

Ids = Mapping[tuple[str, str], str]
"""The name of a series' files, by its ID and unit."""
_MOST_TRACED = 5
"""Open incidents whose nights keep their traces."""
_NO_TRACE = "The site has the traces of the last night, and of the nights around the newest open incidents."
_log = logging.getLogger("website")


@dataclass(frozen=True)
class ReceiptPlace:
    """One experiment in one night: its data file, the folder of its raw measurements, and the files made of both."""

    experiment: str
    stamp: str
    data: Path
    raw: Path

    @property
    def name(self) -> str:
        """Of the receipts in the site, without its ending."""
        return place_of(self.experiment, self.stamp)

    def sources(self) -> tuple[str, str]:
        """Return two texts that change when the data and the raw measurements do; NONE where there are none."""
        return fingerprint(self.experiment, mark(self.data)), mark(self.raw / CATALOGUE)


@dataclass(frozen=True)
class _Wanted:
    """A receipt that the site is to have. keeps: what the old one says of raw measurements is taken from there."""

    place: ReceiptPlace
    made_from: str
    keeps: bool
    has_trace: bool

    @property
    def file(self) -> str:
        return f"{self.place.name}.json"

    @property
    def trace(self) -> str:
        return f"{self.place.name}.perfetto-trace"


class _Names:
    """The names of series' files; the ID of a series, a hash, is made once for all nights."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._newest = {name: series_ids for (name, _), series_ids in ids.items()}
        self._found: dict[tuple[str, ...], str | None] = {}

    def of_record(self, night: records.NightData, record: records.Record, identity: str) -> dict[str, str | None]:
        """Name the files by metric; `identity` is that of the record."""
        labels = record.labels
        series_ids = {}
        for metric, _ in record.metrics():
            home = "" if night.home is None else night.home.name
            known = (night.experiment, metric.name, identity, record.env_name, record.hw_model, home)
            if known not in self._found:
                key = records.SeriesKey.of(night.experiment, metric.name, labels, night.home)
                self._found[known] = self.of(key, metric.unit)
            series_ids[metric.name] = self._found[known]
        return series_ids

    def of(self, key: records.SeriesKey, unit: str) -> str | None:
        """Name the file of the series with this unit; before it had one, a number was the same series."""
        return self._ids.get((key.id, unit)) or (None if unit else self._newest.get(key.id))


def write_receipts(site: SiteContext, catalogue: SiteCatalogue, carrier: IncrementalSite, nights: int) -> None:
    """Have the receipts of the last `nights` nights; only those of which something changed are made.

    Perfetto traces are made for tonight, and for the nights before and after the newest open incidents.
    """
    carrier.folder(FOLDER)
    raw = raw_folder(site.home)
    names = _Names({(entry.outline.id, entry.outline.unit): entry.id for entry in catalogue.entries})
    stamps = site.stamps[-nights:] if nights else []
    traced = {site.tonight.stamp}
    for incident in site.alerts.open[:_MOST_TRACED]:
        traced |= {incident.after, incident.begin}
    for name, experiment in catalogue.experiments.items():
        for stamp in (stamp for stamp in stamps if stamp in experiment.nights.versions):
            source = ReceiptPlace(name, stamp, site.home.data_file(name, stamp), raw / name / f"raw_{stamp}")
            if source.data.is_file():
                wanted = _wanted_of(source, stamp in traced, carrier)
                if not _carried(wanted, carrier):
                    try:
                        _make(wanted, names, carrier)
                    except DashboardError as error:
                        _log.warning("%s, %s: no receipt. %s", name, stamp, error)


def raw_folder(home: Home) -> Path:
    """Return the folder of raw measurements; one that is not there where the config cannot be read."""
    folder = top_config(home, "tmp_data_dir") or "no config"
    return Path(os.path.normpath(home.root / os.path.expanduser(folder))) / "raw"


def top_config(home: Home, name: str) -> str:
    """Read a text of the top-level config; empty where it cannot be read, which whoever runs the night is told."""
    try:
        return str(config_util.read_config(home.config_file, config_util.HOME_FIELDS)[name])
    except DashboardError:
        return ""


def _wanted_of(source: ReceiptPlace, has_trace: bool, carrier: IncrementalSite) -> _Wanted:  # noqa: FBT001
    """Keep what was once read of raw measurements, whatever code read it: nobody else has it."""
    data, raw = source.sources()
    was = carrier.made_from(f"{source.name}.json").split()
    keeps = len(was) == 3 and was[0] == data and raw in ((NONE, was[1]) if carrier.is_same_code else (NONE,))
    return _Wanted(source, f"{data} {was[1] if keeps else raw} {int(has_trace)}", keeps, has_trace)


def _carried(wanted: _Wanted, carrier: IncrementalSite) -> bool:
    carrier.folder(f"{FOLDER}/{wanted.place.stamp}")
    if not carrier.carry(wanted.file, wanted.made_from):
        return False
    carrier.carry(wanted.trace, wanted.made_from)
    return True


def _make(wanted: _Wanted, names: _Names, carrier: IncrementalSite) -> None:
    file, trace = wanted.file, wanted.trace
    try:
        receipt = _made(wanted.place, names, _read_receipt(carrier.old / file) if wanted.keeps else None)
    except WRONG as error:
        raise DashboardError(reason_of(wanted.place.data, error)) from error
    if wanted.has_trace and (wanted.place.raw / CATALOGUE).is_file():
        fault = write_trace(wanted.place.raw, carrier.new / trace)
        receipt = replace(receipt, trace=None if fault else Path(trace).name, trace_words=fault)
        if not fault:
            carrier.adopt(trace, wanted.made_from)
    value = {"schema_version": SCHEMA_VERSION, **structured.to_json(receipt)}
    carrier.write(file, json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii"), wanted.made_from)


def _read_receipt(path: Path) -> Receipt | None:
    """Read the old site's receipt; None where it is damaged, or of other code."""
    try:
        return structured.from_json(Receipt, common.read_json(path), path)
    except (DashboardError, *WRONG) as error:
        _log.warning("What the old receipt says of raw measurements is lost. %s", error)
        return None


def _made(source: ReceiptPlace, names: _Names, old: Receipt | None) -> Receipt:
    """Make the receipt, with the measurements of `old` where there is one."""
    value = common.read_json(source.data)  # it was checked when it was taken into the index
    measured, fault = ({}, old.samples_words) if old else read_measured(source.raw)
    data = records.night_of(value, source.experiment, source.stamp, machine_identity.of_folder(source.data.parent))
    night = common.object_in(value, "night")
    points = tuple(_records(data, names, measured))
    if old is not None and len(old.records) == len(points):
        points = tuple(map(_with_measured_of, points, old.records))
    return Receipt(
        stamp=source.stamp,
        experiment=source.experiment,
        tvm_hash=value.get("tvm_hash"),
        night=night,
        environment=common.object_in(value, "environment"),
        failures=tuple(value.get("failures", ())) if "records" in value else (),
        repeat=repeat_of(source, night),
        data_file=f"results/experiments/data/{source.experiment}/{source.data.name}",
        records=points,
        samples_words=fault,
        trace_words=_NO_TRACE,
    )


def _with_measured_of(point: ReceiptRecord, old: ReceiptRecord) -> ReceiptRecord:
    """Merge two records of the same place in the same data file."""
    return replace(old, series=point.series, record=point.record)


def _records(night: records.NightData, names: _Names, measured: Mapping[str, Measured]) -> Iterator[ReceiptRecord]:
    """Yield each record with the IDs of its series by metric; of a foreign experiment, each of its numbers."""
    declarations = Declarations(night.declarations)
    for record in night.records:
        value = dict(vars(record))
        labels = record.labels
        identity = identity_of(labels["workload"], record.engine, record.target, labels)
        raw = measured.get(identity, Measured())
        if identity in measured:  # which has every digit of them
            value["additional_info"] = {k: v for k, v in record.additional_info.items() if k != description.SAMPLES}
        yield raw.of_record(names.of_record(night, record, identity), value)
    for path, number in night.leaves.items():
        series = {FOREIGN.name: names.of(night.key_of_leaf(path), declarations.of(path).unit)}
        yield ReceiptRecord(series, {"path": path, "value": number})


def repeat_of(source: ReceiptPlace, night: Mapping[str, Any]) -> str:
    """Return the command that measures the receipt again; empty where the night does not pin what that needs."""
    if Pins.lacking(night):
        return ""
    return f"python3 -m dashboard reproduce HOME {shlex.quote(f'{source.experiment}/{source.stamp}')}"


MOST_TRACE_ROWS = 1_000_000
MOST_TRACE_BYTES = 32 << 20
CATALOGUE = "catalogue.json"
_COLUMNS = ("workload_args", "engine_config", "build_config", "runtime_config")


@dataclass
class Measured:
    """One point, as a receipt holds it, while it is read."""

    samples_ms: list[float] = field(default_factory=list)
    runs: int = 0
    operators: list[tuple[str, int, int]] = field(default_factory=list)
    passes: list[tuple[str, int]] = field(default_factory=list)
    profiled: dict[tuple[str, int], dict[int, dict[str, float]]] = field(default_factory=dict)
    known: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def of_record(self, series: Mapping[str, str | None], record: Mapping[str, Any]) -> ReceiptRecord:
        from tvmtraces.analysis import sum_up

        times = sum_up([list(runs.values()) for runs in self.profiled.values()])
        operator_ms = {name: tuple(float(f"{ms:.7g}") for ms in of_processes) for name, of_processes in times.items()}
        lists = (tuple(self.operators), tuple(self.passes), operator_ms, self.known)
        return ReceiptRecord(series, record, tuple(self.samples_ms), self.runs, *lists)


def identity_of(workload: str, engine: str, target: str, columns: Mapping[str, Any]) -> str:
    """Return the identity that a record shares with the trial it was made of."""
    return json.dumps([workload, engine, target, [columns.get(name) for name in _COLUMNS]], sort_keys=True)


def read_measured(raw: Path) -> tuple[dict[str, Measured], str]:
    """Read the points by `identity_of`; say why there are none, or nothing."""
    if not (raw / CATALOGUE).is_file():
        return {}, "The raw measurements of this night were not kept as a sealed run."
    from tvmtraces.connection import open_traces  # reading traces costs imports that most publishes do without

    try:
        with open_traces([raw]) as traces:
            return _measured(traces), ""
    except DashboardError as error:
        return {}, f"The raw measurements could not be read: {error}"


def _measured(traces: Any) -> dict[str, Measured]:
    from tvmtraces.analysis import name_operator, read_known

    measured_of: dict[str, Measured] = {}
    of_trial: dict[tuple[str, int], Measured] = {}
    reference = f"%{VARIANT_SIGN}{OF_REFERENCE}"  # in the statement: a parameter would make DuckDB import pandas
    for guid, trial, identity, facts in traces.execute(
        "SELECT T.guid, T.id, T.identity, T.facts FROM trials T"  # noqa: S608
        " JOIN processes P ON P.guid = T.guid AND P.process = T.process"
        f" WHERE T.error IS NULL AND coalesce(P.experiment, '') NOT LIKE '{reference}' ORDER BY T.id"
    ):
        key = _key(identity)
        if key:
            of_trial[guid, trial] = measured_of.setdefault(key, Measured())
            of_trial[guid, trial].known = read_known(facts)
    nothing = Measured()
    for guid, trial, elapsed_ns, number in traces.execute(
        "SELECT guid, trial, elapsed_ns, number FROM samples WHERE elapsed_ns IS NOT NULL"
        " ORDER BY timestamp, trial, position"
    ):
        of_trial.get((guid, trial), nothing).samples_ms.append(float(f"{elapsed_ns / number / 1e6:.7g}"))
    for guid, trial, name, calls, total in traces.execute(
        "SELECT guid, trial, name, count(*), sum(duration) FROM kernels GROUP BY guid, trial, name"
        " ORDER BY 5 DESC, name"
    ):
        of_trial.get((guid, trial), nothing).operators.append((name, int(calls), int(total)))
    for guid, trial, repetition, name, elapsed_ms in traces.execute(
        "SELECT guid, trial, repetition, name, sum(duration) / 1e6 FROM kernels WHERE trial IS NOT NULL"
        " GROUP BY guid, trial, repetition, name ORDER BY ALL"
    ):
        run = of_trial.get((guid, trial), nothing).profiled.setdefault((guid, trial), {}).setdefault(repetition, {})
        run[name_operator(name)] = run.get(name_operator(name), 0.0) + elapsed_ms
    for guid, trial, runs in traces.execute(
        "SELECT guid, trial, count(DISTINCT repetition) FROM kernels GROUP BY guid, trial"
    ):
        of_trial.get((guid, trial), nothing).runs += int(runs)
    for guid, trial, name, total, _ in traces.execute(
        "SELECT guid, trial, name, sum(duration), min(position) FROM passes GROUP BY guid, trial, name ORDER BY 5, name"
    ):
        of_trial.get((guid, trial), nothing).passes.append((name, int(total)))
    return measured_of


def _key(identity: str | None) -> str:
    try:
        point = common.parse_json((identity or "").encode(errors="replace"), "identity")
        return identity_of(point["workload"], point["engine"], point["target"], point["columns"])
    except (DashboardError, ValueError, KeyError, TypeError, AttributeError):
        return ""  # of a program that measures in its own way: its samples belong to no record that is known


def write_trace(raw: Path, target: Path) -> str:
    """Write a trace for ui.perfetto.dev; say why there is none, or nothing."""
    if not (raw / CATALOGUE).is_file():
        return "No traces were recorded on this night."
    from tvmtraces.connection import open_traces
    from tvmtraces.convert import write_perfetto
    from tvmtraces.export.events import trace_events

    try:
        rows = sum(int(table["rows"]) for table in common.read_json(raw / CATALOGUE)["tables"].values())
        if rows > MOST_TRACE_ROWS:
            return f"The trace is omitted because it has {rows} rows; the limit is {MOST_TRACE_ROWS}."
        with open_traces([raw]) as traces:
            events = trace_events(traces)
            write_perfetto(target, events.events, flows=events.flows)
    except (DashboardError, KeyError, TypeError, ValueError, AttributeError) as error:
        target.unlink(missing_ok=True)
        return f"Writing the trace failed: {error}"
    size = target.stat().st_size
    if size > MOST_TRACE_BYTES:
        target.unlink()
        return (
            f"The trace is omitted because it is {format_bytes(size)}; the limit is {format_bytes(MOST_TRACE_BYTES)}."
        )
    return ""
