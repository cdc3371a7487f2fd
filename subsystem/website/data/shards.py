"""The points of each series as column-wise JSON and as CSV; docs/reference/website-data.md describes both."""

from __future__ import annotations

import fnmatch
import functools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from files import forked
from files.incremental import IncrementalSite, fingerprint

from data.catalogue import CatalogueEntry, MeasuredNights, SiteCatalogue, Stores
from tvmdash.incidents.headline import format_headline
from tvmdash.incidents.ledger import FALSE_ALARM, MACHINE, Incident
from tvmdash.series.store import Series
from tvmdash.text import elide

SCHEMA_VERSION = 1
FOLDER = "series"
CSV_HEADER = "stamp,value,low,high,std,samples,tvm,machine,code"
_LEAST_IN_PROCESS = 100
"""Fewer shards are written sooner than a process is forked."""
_MANY_POINTS = 100_000
"""Fewer are read one by one sooner than numpy is loaded."""


@dataclass(frozen=True)
class _Shard:
    """The two files of a series' points from the stamp `since` on and before `until`, and what stands in them."""

    name: str
    entry: CatalogueEntry
    nights: MeasuredNights
    since: str
    until: str
    points: int
    facts: str
    told: str
    made_from: str

    def files(self) -> tuple[str, str]:
        """JSON and CSV."""
        return f"{FOLDER}/{self.name}.json", f"{FOLDER}/{self.name}.csv"


def write_shards(catalogue: SiteCatalogue, stores: Stores, carrier: IncrementalSite) -> None:
    """Bring series/ up to date: only series with a new point, or of which something else is said now, are written."""
    carrier.folder(FOLDER)
    shards = [shard for shard in _shards(catalogue) if not _carried(carrier, shard)]
    shards.sort(key=lambda shard: shard.entry.outline.experiment)
    many = sum(shard.points for shard in shards) >= _MANY_POINTS
    work = functools.partial(_write, stores=stores, carrier=carrier, many=many)
    for part in forked.in_parts(work, shards, least=_LEAST_IN_PROCESS):
        carrier.take_in(part)


def _shards(catalogue: SiteCatalogue) -> Iterator[_Shard]:
    boundary, incidents = catalogue.boundary, Concerned.by(catalogue.alerts.incidents)
    for entry in catalogue.entries:
        nights = catalogue.experiments[entry.outline.experiment].nights
        facts, alerts = _facts(entry), make_tonight_part(catalogue, entry, incidents.of(entry))
        upto = nights.upto.get(entry.count.last_stamp, "")
        made_from = fingerprint(upto, str(entry.count.points), boundary, facts, alerts)
        recent = entry.count.points - entry.count.past
        yield _Shard(entry.id, entry, nights, boundary, "~", recent, facts, alerts, made_from)
        if entry.count.past:  # changes once a year, or when an old night is taken in
            upto = nights.upto.get(nights.last(boundary), "")
            made_from = fingerprint(upto, str(entry.count.past), boundary, facts)
            past = entry.count.past
            yield _Shard(f"{entry.id}.past", entry, nights, "", boundary, past, facts, NOTHING_TOLD, made_from)


def _carried(carrier: IncrementalSite, shard: _Shard) -> bool:
    return all(carrier.carry(file, shard.made_from) for file in shard.files())


def _write(shards: Sequence[_Shard], *, stores: Stores, carrier: IncrementalSite, many: bool) -> IncrementalSite:
    """Write them; in a process of its own if need be."""
    frames, written = _Frames(), carrier.part()
    sources: dict[tuple[str, str, str], list[_Shard]] = {}
    for shard in shards:
        sources.setdefault((shard.entry.outline.experiment, shard.since, shard.until), []).append(shard)
    with stores.for_fork() as opened:
        for (experiment, since, until), group in sources.items():
            outlines = [shard.entry.outline for shard in group]
            for shard, points in zip(group, opened.points(experiment, outlines, since, until, many=many), strict=True):
                columns = frames.columns(points, shard.nights)
                as_json, as_csv = shard.files()
                written.write(as_json, columns.json(shard.facts, shard.told).encode("ascii"), shard.made_from)
                written.write(as_csv, columns.csv().encode("utf-8", errors="replace"), shard.made_from)
    return written


def _facts(entry: CatalogueEntry) -> str:
    """What the series is, as the inside of a JSON object."""
    outline = entry.outline
    value = {
        "schema_version": SCHEMA_VERSION,
        "id": entry.id,
        "key": entry.key,
        "name": entry.name,
        "experiment": outline.experiment,
        "metric": outline.metric,
        "unit": outline.unit,
        "direction": outline.direction,
        "labels": entry.labels,
        "identity": outline.labels,
    }
    return format_inside(value)


@dataclass(frozen=True)
class _ShardFrame:
    """What all series with points on the same nights of an experiment have in common, as texts."""

    stamps: tuple[str, ...]
    tvm: list[str]
    machine: list[str]
    json: str

    @classmethod
    def of(cls, stamps: tuple[str, ...], nights: MeasuredNights) -> _ShardFrame:
        tvm, tvms = _pooled([nights.versions.get(stamp, "") for stamp in stamps])
        machine, machines = _pooled([nights.machines.get(stamp) or "" for stamp in stamps])
        cells = [_cell(text) for text in tvms]
        places = f'"tvm":[{",".join(tvm)}],"machine":[{",".join(machine)}]'
        pools = f'"tvms":{json.dumps(tvms)},"machines":{json.dumps(machines)}'
        listed = ",".join([f'"{stamp}"' for stamp in stamps])
        return cls(stamps, [cells[int(at)] for at in tvm], machine, f'"stamp":[{listed}],{places},{pools}')


class _Frames:
    """The frames of one publish, each made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, tuple[str, ...]], _ShardFrame] = {}

    def columns(self, series: Series, nights: MeasuredNights) -> _ShardColumns:
        """The series in its frame."""
        key = (series.experiment, series.stamps)
        if key not in self._made:
            self._made[key] = _ShardFrame.of(series.stamps, nights)
        return _ShardColumns(series, self._made[key])


class _ShardColumns:
    """The points of a series as texts, formatted once for both kinds of file."""

    def __init__(self, series: Series, frame: _ShardFrame) -> None:
        digits = 15 if series.unit == "bytes" else 7
        self._frame = frame
        self._numbers = [
            format_column(column, digits) for column in (series.values, series.low, series.high, series.std)
        ]
        self._samples = _named(series.samples, {count: str(count) for count in set(series.samples)})
        self._code = _named(series.code, {code: str(at) for at, code in enumerate(dict.fromkeys(series.code))})

    def json(self, facts: str, alerts: str) -> str:
        """The shard."""
        names = ("value", "low", "high", "std", "samples", "code")
        columns = (*self._numbers, self._samples, self._code)
        parts = [f'"{name}":[{",".join(column)}]' for name, column in zip(names, columns, strict=True)]
        return f"{{{facts},{self._frame.json},{','.join(parts)},{alerts}}}\n"

    def csv(self) -> str:
        """The same points, one a line."""
        frame = self._frame
        numbers = [*self._numbers, self._samples]
        columns = (frame.stamps, *map(_blank, numbers), frame.tvm, frame.machine, _blank(self._code))
        return "\n".join([CSV_HEADER, *map(",".join, zip(*columns, strict=True)), ""])


def format_column(values: Sequence[float | None], digits: int) -> list[str]:
    """Each number with so many significant digits, as JSON writes it."""
    form = f"%.{digits}g"
    if None not in values and all(map(math.isfinite, values)):  # type: ignore[arg-type]
        return (",".join([form] * len(values)) % tuple(values)).split(",") if values else []
    return ["null" if value is None or not math.isfinite(value) else form % value for value in values]


def _named(values: Sequence[int | None], names: dict[int | None, str]) -> list[str]:
    """The name of each value, null for None."""
    return list(map({**names, None: "null"}.__getitem__, values))


def _pooled(values: Sequence[str]) -> tuple[list[str], list[str]]:
    """Each distinct value once, in the order they come, and for each value its place among them."""
    pool = {value: str(at) for at, value in enumerate(dict.fromkeys(values))}
    return [pool[value] for value in values], list(pool)


def _blank(column: list[str]) -> list[str]:
    return ["" if text == "null" else text for text in column] if "null" in column else column


def _cell(text: str) -> str:
    """The text as a cell: quoted where it must be, and never a formula of a spreadsheet."""
    safe = f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
    quoted = safe.replace('"', '""')
    return f'"{quoted}"' if any(sign in safe for sign in '",\r\n') else safe


_HEADLINE_CHARS = 300


def make_tonight_part(catalogue: SiteCatalogue, entry: CatalogueEntry, concerned: Sequence[Incident]) -> str:
    """What is said of the series tonight, as the inside of a JSON object; `concerned`: its incidents."""
    alerts = catalogue.alerts
    notes = [
        {"stamp": note.night, "kind": note.kind, "words": note.words, "break": note.is_break}
        for note in alerts.annotations
        if note.night and any(fnmatch.fnmatch(text, note.scope) for text in (entry.outline.experiment, entry.name))
    ]
    value = {
        "noise": _seven(entry.view.scatter) if entry.view and entry.view.grade else None,
        "steps": list(_steps(concerned, entry)),
        "annotations": notes,
        "incidents": [_incident(incident, entry) for incident in concerned],
    }
    return format_inside(value)


NOTHING_TOLD = '"noise":null,"steps":[],"annotations":[],"incidents":[]'


def format_inside(value: Mapping[str, Any]) -> str:
    """The members of a JSON object, without its braces."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)[1:-1]


@dataclass(frozen=True)
class Concerned:
    """All incidents, oldest first, and the places among them of those that concern a series or a whole fleet."""

    incidents: Sequence[Incident]
    of_series: Mapping[str, Sequence[int]]
    of_fleet: Mapping[str, Sequence[int]]

    @classmethod
    def by(cls, newest_first: Sequence[Incident]) -> Concerned:
        of_series: dict[str, list[int]] = {}
        of_fleet: dict[str, list[int]] = {}
        incidents = newest_first[::-1]
        for place, incident in enumerate(incidents):
            if incident.kind == MACHINE:
                of_fleet.setdefault(incident.fleet, []).append(place)
                continue
            for series in {moved.series for moved in incident.moved}:
                of_series.setdefault(series, []).append(place)
        return cls(incidents, of_series, of_fleet)

    def of(self, entry: CatalogueEntry) -> list[Incident]:
        """Those that concern a series, oldest first."""
        places = [*self.of_series.get(entry.key, ()), *self.of_fleet.get(entry.fleet, ())]
        return [self.incidents[place] for place in sorted(places)]


def _steps(incidents: Sequence[Incident], entry: CatalogueEntry) -> Iterator[dict[str, Any]]:
    """Where the level of the series shifted, by how much as a fraction, and whose doing it was."""
    for incident in incidents:
        if incident.kind == MACHINE:
            yield {"stamp": incident.begin, "size": _seven(incident.size), "kind": incident.blame}
        for moved in incident.moved:
            if moved.series == entry.key and incident.state != FALSE_ALARM:
                size = moved.effect if moved.relative else None
                yield {"stamp": incident.begin, "size": _seven(size), "kind": incident.blame}
                if moved.recovered:
                    back = -size / (1 + size) if size is not None and size > -1 else None
                    yield {"stamp": moved.recovered, "size": _seven(back), "kind": "recovered"}


def _incident(incident: Incident, entry: CatalogueEntry) -> dict[str, Any]:
    moved = next((moved for moved in incident.moved if moved.series == entry.key), None)
    size = incident.size if moved is None else moved.effect if moved.relative else None
    return {
        "id": incident.id,
        "kind": incident.kind,
        "state": incident.state,
        "begin": incident.begin,
        "end": incident.end,
        "percent": None if size is None else _seven(100 * size),
        "way": incident.way if moved is None else moved.way,
        "headline": elide(format_headline(incident), _HEADLINE_CHARS),
    }


def _seven(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.7g}")
