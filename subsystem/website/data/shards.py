"""The points of series, column by column, a few series in a file; docs/reference/website-data.md describes it."""

from __future__ import annotations

import fnmatch
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from files.incremental import IncrementalSite, fingerprint

from data.catalogue import CatalogueEntry, MeasuredNights, SiteCatalogue, Stores
from tvmdash.dashboard_info.pages import as_script
from tvmdash.incidents.headline import format_headline
from tvmdash.incidents.ledger import FALSE_ALARM, MACHINE, Incident
from tvmdash.series.store import Series
from tvmdash.text import elide

SCHEMA_VERSION = 2
FOLDER = "series"
_FINE = 100_000
"""Distances from a value are told in such parts of it: nobody measures an interval more exactly."""
_MANY_POINTS = 100_000
"""Fewer are read one by one sooner than numpy is loaded."""


@dataclass(frozen=True)
class _Pack:
    """The file of some series' points from the stamp `since` on and before `until`; told: what is said of each."""

    name: str
    entries: tuple[CatalogueEntry, ...]
    nights: MeasuredNights
    since: str
    until: str
    points: int
    told: tuple[str, ...]
    made_from: str

    @property
    def file(self) -> str:
        return f"{FOLDER}/{self.name}.js"


def write_shards(catalogue: SiteCatalogue, stores: Stores, carrier: IncrementalSite) -> None:
    """Bring series/ up to date: only files with a new point, or of which something else is said now, are written."""
    carrier.folder(FOLDER)
    packs = [pack for pack in _packs(catalogue) if not carrier.carry(pack.file, pack.made_from)]
    many = sum(pack.points for pack in packs) >= _MANY_POINTS
    frames: dict[tuple[str, tuple[str, ...]], str] = {}
    groups: dict[tuple[str, str, str], list[_Pack]] = {}
    for pack in packs:
        groups.setdefault((pack.entries[0].outline.experiment, pack.since, pack.until), []).append(pack)
    for (experiment, since, until), group in groups.items():
        outlines = [entry.outline for pack in group for entry in pack.entries]
        points = stores.points(experiment, outlines, since, until, many=many)
        for pack in group:
            series = list(itertools.islice(points, len(pack.entries)))
            stamps = tuple(sorted(set().union(*(one.stamps for one in series))))
            if (experiment, stamps) not in frames:
                frames[experiment, stamps] = _format_frame(stamps, pack.nights)
            each = [_format_series(one, stamps, told) for one, told in zip(series, pack.told, strict=True)]
            head = f'"schema_version":{SCHEMA_VERSION},{frames[experiment, stamps]}'
            text = as_script(f"{FOLDER}/{pack.name}.json", f'{{{head},"series":[{",".join(each)}]}}'.encode("ascii"))
            carrier.write(pack.file, text, pack.made_from)


def _packs(catalogue: SiteCatalogue) -> Iterator[_Pack]:
    boundary, incidents = catalogue.boundary, Concerned.by(catalogue.alerts.incidents)
    packs: dict[str, list[CatalogueEntry]] = {}
    for entry in sorted(catalogue.entries, key=lambda entry: (entry.outline.experiment, entry.outline.number)):
        packs.setdefault(entry.pack, []).append(entry)
    for name, entries in packs.items():
        nights = catalogue.experiments[entries[0].outline.experiment].nights
        told = tuple(f"{_facts(entry)},{make_tonight_part(catalogue, entry, incidents.of(entry))}" for entry in entries)
        counts = [entry.count.points - entry.count.past for entry in entries]
        upto = nights.upto.get(max(entry.count.last_stamp for entry in entries), "")
        made_from = fingerprint(upto, boundary, *map(str, counts), *told)
        yield _Pack(name, tuple(entries), nights, boundary, "~", sum(counts), told, made_from)
        past = tuple(entry for entry in entries if entry.count.past)
        if past:  # changes once a year, or when an old night is taken in
            told = tuple(f"{_facts(entry)},{NOTHING_TOLD}" for entry in past)
            counts = [entry.count.past for entry in past]
            made_from = fingerprint(nights.upto.get(nights.last(boundary), ""), boundary, *map(str, counts), *told)
            yield _Pack(f"{name}-past", past, nights, "", boundary, sum(counts), told, made_from)


def _facts(entry: CatalogueEntry) -> str:
    """Describe the series, as the inside of a JSON object."""
    outline = entry.outline
    value = {
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


def _format_frame(stamps: tuple[str, ...], nights: MeasuredNights) -> str:
    """Format what all series of a file have in common, as the inside of a JSON object."""
    tvm, tvms = pool([nights.versions.get(stamp, "") for stamp in stamps])
    machine, machines = pool([nights.machines.get(stamp) or "" for stamp in stamps])
    listed = ",".join([f'"{stamp}"' for stamp in stamps])
    names = format_inside({"tvms": tvms, "machines": machines})
    return f'"stamp":[{listed}],"tvm":{_format_list(tvm)},"machine":{_format_list(machine)},{names}'


def _format_series(series: Series, stamps: tuple[str, ...], told: str) -> str:
    """Format a series as a JSON object; `at`: its points' places in the file's stamps, null for all of them."""
    places = {stamp: str(place) for place, stamp in enumerate(stamps)}
    at = "null" if series.stamps == stamps else f"[{','.join([places[stamp] for stamp in series.stamps])}]"
    columns = {
        "value": format_column(series.values, 15 if series.unit == "bytes" else 7),
        "low": format_distances(series.values, series.low, -1),
        "high": format_distances(series.values, series.high, 1),
        "std": format_distances(series.values, series.std, 0),
        "samples": ["null" if count is None else str(count) for count in series.samples],
        "code": pool(series.code)[0],
    }
    parts = [f'"{name}":{_format_list(column)}' for name, column in columns.items()]
    return f'{{{told},"at":{at},{",".join(parts)}}}'


def _format_list(column: Sequence[str]) -> str:
    """Format a list, or the one value that all have."""
    return column[0] if column and column.count(column[0]) == len(column) else f"[{','.join(column)}]"


def pool(values: Sequence[str | int | None]) -> tuple[list[str], list[str | int]]:
    """Return each value's place among the distinct ones, in the order they come, and these; None is nowhere."""
    places = {value: str(at) for at, value in enumerate(dict.fromkeys(value for value in values if value is not None))}
    return ["null" if value is None else places[value] for value in values], [*places]


def format_distances(values: Sequence[float | None], others: Sequence[float | None], way: int) -> list[str]:
    """Format the distance of each of `others` below (-1) or above (1) its value, in parts of it; of 0, as it is.

    way: 0 of what is a distance itself.
    """
    if all(other is None for other in others):
        return ["null"] * len(others)
    if way and all(values) and None not in others and all(map(math.isfinite, (*values, *others))):  # type: ignore[arg-type]
        pairs = zip(values, others, strict=True)
        parts = tuple([(other - value) * way / abs(value) * _FINE for value, other in pairs])  # type: ignore[operator, arg-type]
        return (",".join(["%.0f"] * len(parts)) % parts).split(",")
    return [_format_distance(value, other, way) for value, other in zip(values, others, strict=True)]


def _format_distance(value: float | None, other: float | None, way: int) -> str:
    if value is None or other is None or not math.isfinite(value) or not math.isfinite(other):
        return "null"
    distance = (other - value) * way if way else other
    return f"{distance / abs(value) * _FINE:.0f}" if value else f"{distance:.7g}"


def format_column(values: Sequence[float | None], digits: int) -> list[str]:
    """Format each number with `digits` significant digits, as JSON writes it."""
    # one format of the whole column is several times as fast as one for each number
    form = f"%.{digits}g"
    if None not in values and all(map(math.isfinite, values)):  # type: ignore[arg-type]
        return (",".join([form] * len(values)) % tuple(values)).split(",") if values else []
    return ["null" if value is None or not math.isfinite(value) else form % value for value in values]


_HEADLINE_CHARS = 300


def make_tonight_part(catalogue: SiteCatalogue, entry: CatalogueEntry, concerned: Sequence[Incident]) -> str:
    """Format tonight's remarks on the series, as the inside of a JSON object; `concerned`: its incidents."""
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
    """Format the members of a JSON object, without its braces."""
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
        """Return those that concern a series, oldest first."""
        places = [*self.of_series.get(entry.key, ()), *self.of_fleet.get(entry.fleet, ())]
        return [self.incidents[place] for place in sorted(places)]


def _steps(incidents: Sequence[Incident], entry: CatalogueEntry) -> Iterator[dict[str, Any]]:
    """Yield each shift of the series' level, its size as a fraction, and whose doing it was."""
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
