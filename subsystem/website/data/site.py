"""The site's data files: the catalogue, the shards of series, receipts, incidents and their feed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from files.incremental import IncrementalSite, fingerprint
from views import night as night_views
from views.context import SiteContext
from views.series import BLIND, GONE, MISSING, NIGHTS, STEADY, SUSPECT, UNJUDGED, YOUNG

from data import code_changes, receipts, shards
from data.catalogue import CatalogueEntry, CatalogueExperiment, SiteCatalogue, Stores, read_catalogue
from data.shards import format_column
from tvmdash import common
from tvmdash.dashboard_info import Night, host_of
from tvmdash.dashboard_info.pages import as_script
from tvmdash.incidents.headline import format_headline
from tvmdash.incidents.ledger import Incident, iso_of
from tvmdash.incidents.text import describe
from tvmdash.records.metrics import BETTER, CHANGED, WORSE
from tvmdash.series.store import Store
from tvmdash.text import clean_lines, elide


def write(site: SiteContext, new: Path, carrier: IncrementalSite, receipt_nights: int) -> str:
    """Fill the new site with all data files, carrying over from the old one what has not changed.

    Gives the name of the file of series/ with what needs attention most; empty where there are no series.
    """
    with Stores(site.home) as stores:
        catalogue = read_catalogue(site, stores)
        shards.write_shards(catalogue, stores, carrier)
        write_night_columns(catalogue, stores, carrier)
    receipts.write_receipts(site, catalogue, carrier, receipt_nights)
    code_changes.write_code_changes(site, carrier)
    (new / "incidents.json").write_bytes(incidents_of(site, catalogue))
    (new / "feed.xml").write_bytes(feed_of(site, receipts.top_config(site.home, "website_url")))
    (new / "index.json").write_bytes(index_of(site, catalogue))
    return catalogue.entries[0].pack if catalogue.entries else ""


SCHEMA_VERSION = 1
TITLE = "TVM nightly benchmarks: incidents"
MOST_ENTRIES = 100
_ATOM = "http://www.w3.org/2005/Atom"
_TITLE_CHARS = 300
_TEXT_CHARS = 4000


def incidents_of(site: SiteContext, catalogue: SiteCatalogue) -> bytes:
    """Write all incidents that ever were, newest first, with their words; `files`: IDs of the series that moved."""
    ids = {entry.key: entry.id for entry in catalogue.entries}
    value = {
        "schema_version": SCHEMA_VERSION,
        "written": f"{site.now:%Y-%m-%dT%H:%M:%SZ}",
        "night": site.tonight.stamp,
        "incidents": [_make_incident_json(incident, site, ids) for incident in site.alerts.incidents],
    }
    return (json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n").encode("ascii")


def _make_incident_json(incident: Incident, site: SiteContext, ids: Mapping[str, str]) -> dict[str, Any]:
    return {
        **incident.to_json(),
        "headline": elide(format_headline(incident), _TITLE_CHARS),
        "words": describe(incident),
        "silent": incident.id in site.alerts.silent,
        "files": [ids.get(moved.series) for moved in incident.moved],
    }


def feed_of(site: SiteContext, website_url: str) -> bytes:
    """Write the feed of the last incidents that changed, newest first, without what was silenced.

    Its addresses are those below `website_url`; without one they are relative to the feed's own.
    """
    base = f"{website_url.rstrip('/')}/" if website_url else ""
    reported = [incident for incident in site.alerts.incidents if incident.id not in site.alerts.silent]
    reported = sorted(reported, key=_updated, reverse=True)[:MOST_ENTRIES]
    name = uuid.uuid5(uuid.NAMESPACE_URL, base or "tvmdash")
    feed = ElementTree.Element("feed", {"xmlns": _ATOM})
    _add(feed, "id", name.urn)
    _add(feed, "title", TITLE)
    _add(feed, "updated", _updated(reported[0]) if reported else iso_of(site.tonight.stamp))
    _add(_add(feed, "author"), "name", "TVM nightly benchmarks")
    _add(feed, "link", rel="alternate", type="text/html", href=f"{base}alerts.html")
    _add(feed, "link", rel="self", type="application/atom+xml", href=f"{base}feed.xml")
    for incident in reported:
        _add_entry(feed, incident, name, base)
    text = ElementTree.tostring(feed, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()


def _add_entry(feed: ElementTree.Element, incident: Incident, name: uuid.UUID, base: str) -> None:
    entry = _add(feed, "entry")
    _add(entry, "id", uuid.uuid5(name, incident.id).urn)
    _add(entry, "title", elide(f"{format_headline(incident)} ({incident.state.replace('_', ' ')})", _TITLE_CHARS))
    _add(entry, "published", iso_of(incident.found))
    _add(entry, "updated", _updated(incident))
    _add(entry, "link", rel="alternate", type="text/html", href=f"{base}alerts.html#incident-{incident.id}")
    _add(entry, "category", term=incident.state)
    _add(entry, "content", elide(describe(incident), _TEXT_CHARS), type="text")


def _updated(incident: Incident) -> str:
    """Return when it was last changed, by the detector or by a person."""
    known = [change.at for change in incident.changes if _is_moment(change.at)]
    return max([iso_of(incident.found), *known])


def _is_moment(text: str) -> bool:
    return len(text) == 20 and common.is_stamp(text.replace("-", "").replace(":", ""))


def _add(parent: ElementTree.Element, tag: str, text: str = "", **attributes: str) -> ElementTree.Element:
    child = ElementTree.SubElement(parent, tag, {key: clean_lines(value) for key, value in attributes.items()})
    child.text = clean_lines(text) or None
    return child


FOLDER = "columns"
_TEN_NIGHTS = 7
"""Nights whose stamps begin with the same so many digits share a file: at most ten, where each has its own day."""
_CODE_BITS = 2**32
"""A part of a module's hash that tells it apart, and that a script reads exactly as a number."""


@dataclass(frozen=True)
class _NightColumns:
    """The file of some nights, and of each the experiments that have data of it."""

    name: str
    nights: Mapping[str, Sequence[CatalogueExperiment]]

    @property
    def file(self) -> str:
        return f"{FOLDER}/{self.name}.js"

    @property
    def made_from(self) -> str:
        facts: list[str] = []
        for stamp, experiments in self.nights.items():
            for name, nights in ((each.name, each.nights) for each in experiments):
                facts += [name, nights.born, nights.versions[stamp], nights.machines.get(stamp, "")]
        return fingerprint(*facts)


def write_night_columns(catalogue: SiteCatalogue, stores: Stores, carrier: IncrementalSite) -> None:
    """Bring columns/ up to date: only files of nights with new data are written."""
    carrier.folder(FOLDER)
    missing = [block for block in _blocks(catalogue) if not carrier.carry(block.file, block.made_from)]
    ids: dict[str, dict[int, CatalogueEntry]] = {}
    for entry in catalogue.entries:
        ids.setdefault(entry.outline.experiment, {})[entry.outline.number] = entry
    references: dict[str, Mapping[str, str]] = {}
    for block in missing:
        places: dict[str, int] = {}
        codes: dict[int, int] = {}
        before: dict[int, int | None] = {}
        nights = []
        for stamp, experiments in block.nights.items():
            measured = {}
            points: dict[int, _PointOfNight] = {}
            for experiment in experiments:
                name, store = experiment.name, stores.of(experiment.name)
                if name not in references:
                    references[name] = _references(store, name)
                measured[name] = {
                    "tvm": experiment.nights.versions[stamp],
                    "machine": experiment.nights.machines.get(stamp, ""),
                    "reference": references[name].get(stamp, ""),
                }
                own, found = ids.get(name, {}), store.points_of_night(name, stamp)
                for at, number in enumerate(found.numbers):
                    if number in own:
                        place = places.setdefault(own[number].id, len(places))
                        code = found.code[at]
                        coded = None if code is None else codes.setdefault(code % _CODE_BITS, len(codes) + 1)
                        is_same = coded is not None and before.get(place) == coded
                        before[place] = coded
                        points[place] = (found.values[at], found.low[at], found.high[at], 0 if is_same else coded)
            nights.append(_format_night(stamp, measured, points))
        head = f'"schema_version":{shards.SCHEMA_VERSION},{shards.format_inside({"id": [*places], "code": [*codes]})}'
        text = f'{{{head},"nights":{{{",".join(nights)}}}}}'
        content = as_script(f"{FOLDER}/{block.name}.json", text.encode("ascii"))
        carrier.write(block.file, content, block.made_from)


def _blocks(catalogue: SiteCatalogue) -> list[_NightColumns]:
    blocks: dict[str, dict[str, list[CatalogueExperiment]]] = {}
    for experiment in catalogue.experiments.values():
        for stamp in experiment.nights.stamps:
            blocks.setdefault(stamp[:_TEN_NIGHTS], {}).setdefault(stamp, []).append(experiment)
    return [_NightColumns(name, dict(sorted(nights.items()))) for name, nights in sorted(blocks.items())]


def _references(store: Store, experiment: str) -> Mapping[str, str]:
    return {stamp: build.reference or "" for stamp, build in store.builds(experiment).items()}


_PointOfNight = tuple[float | None, float | None, float | None, int | None]
"""A value, its interval, and the place of its code, from 1 on; 0 of what ran the night before in the file."""


def _format_night(stamp: str, measured: Mapping[str, Any], points: Mapping[int, _PointOfNight]) -> str:
    """Format a night as a member of a JSON object; `at`: the places of its series, or how many of the first it has."""
    values, low, high, code = zip(*points.values(), strict=True) if points else ((), (), (), ())
    columns = {
        "value": format_column(values, digits=7),
        "low": shards.format_distances(values, low, -1),
        "high": shards.format_distances(values, high, 1),
        "code": ["null" if place is None else str(place) for place in code],
    }
    unknown = {"low": "0", "high": "0"}  # a point without an interval is one of its own
    parts = [
        f'"{name}":[{",".join(column).replace("null", unknown.get(name, "null"))}]' for name, column in columns.items()
    ]
    at = json.dumps(len(points) if [*points] == [*range(len(points))] else [*points], separators=(",", ":"))
    head = json.dumps(measured, separators=(",", ":"))
    return f'"{stamp}":{{"experiments":{head},"at":{at},{",".join(parts)}}}'


_TITLE = "TVM nightly benchmarks"
Column = Callable[[CatalogueEntry], Any]
_NOISE_DIGITS, _MOST_FOUND = 3, 500
"""Nobody knows a scatter more exactly; so many incidents, the newest, are found by the search."""


def index_of(site: SiteContext, catalogue: SiteCatalogue) -> bytes:
    """Write index.json. It grows with the number of series and experiments, not with that of nights."""
    value = {
        "schema_version": SCHEMA_VERSION,
        "written": f"{site.now:%Y-%m-%dT%H:%M:%SZ}",
        "night": site.tonight.stamp,
        "title": _TITLE,
        "max_age_hours": site.max_age_hours,
        "stamps": site.stamps[-NIGHTS:],
        "nights": {night.stamp: _night(night, catalogue) for night in reversed(site.last_nights)},
        "years": sorted({int(stamp[:4]) for stamp in site.stamps}),
        "incidents": [
            {
                "id": incident.id,
                "headline": elide(format_headline(incident), _TITLE_CHARS),
                "begin": incident.begin,
                "versions": list(incident.versions),
            }
            for incident in site.alerts.incidents[:_MOST_FOUND]
        ],
        "experiments": [
            {"name": experiment.name, "title": experiment.title, "page": experiment.page, "active": experiment.active}
            for experiment in catalogue.experiments.values()
        ],
        "verdicts": _verdicts(catalogue),
        "series": _series(catalogue),
    }
    return (json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n").encode("ascii")


def _night(night: Night, catalogue: SiteCatalogue) -> dict[str, Any]:
    own_first = sorted(catalogue.experiments.values(), key=lambda experiment: bool(host_of(experiment.name)))
    machines = (experiment.nights.machines.get(night.stamp) for experiment in own_first)
    return {
        "state": night_views.judge(night, is_tonight=True).state,
        "tvm": [night_views.format_version(artifact) for artifact in night.artifacts],
        "machine": next(filter(None, machines), ""),
    }


def _verdicts(catalogue: SiteCatalogue) -> dict[str, int]:
    states = [entry.state for entry in catalogue.entries]
    failed = sum(experiment.failures for experiment in catalogue.experiments.values())
    names = {"regressions": WORSE, "improvements": BETTER, "steady": STEADY, "missing": MISSING, "young": YOUNG,
             "changed": CHANGED, "unjudged": UNJUDGED, "suspects": SUSPECT, "blind": BLIND,
             "gone": GONE}  # fmt: skip
    return {**{name: states.count(state) for name, state in names.items()}, "failed": failed}


def _series(catalogue: SiteCatalogue) -> Mapping[str, Sequence[Any]]:
    entries = catalogue.entries
    alerts = catalogue.alerts.series
    places = {name: at for at, name in enumerate(catalogue.experiments)}
    columns: Mapping[str, Column] = {
        "id": lambda entry: entry.id,
        "pack": lambda entry: entry.pack,
        "experiment": lambda entry: places[entry.outline.experiment],
        "name": lambda entry: entry.name,
        "metric": lambda entry: entry.outline.metric,
        "unit": lambda entry: entry.outline.unit,
        "direction": lambda entry: entry.outline.direction,
        "labels": lambda entry: entry.labels,
        "last": lambda entry: _rounded(entry.last),
        "low": lambda entry: _rounded(entry.low),
        "high": lambda entry: _rounded(entry.high),
        "last_stamp": lambda entry: entry.count.last_stamp,
        "change": lambda entry: (
            _rounded(1 + entry.view.change) if entry.view and entry.view.change is not None else None
        ),
        "state": lambda entry: entry.state,
        "verdict": lambda entry: alerts[entry.key].verdict if entry.key in alerts else "",
        "grade": lambda entry: entry.view.grade if entry.view else "",
        "visible": lambda entry: _rounded(entry.view.visible, _NOISE_DIGITS) if entry.view else None,
        "noise": lambda entry: _rounded(entry.view.scatter, _NOISE_DIGITS) if entry.view else None,
        "ratio_noise": lambda entry: (
            _rounded(entry.view.noise, _NOISE_DIGITS) if entry.view and entry.view.beside else None
        ),
        "points": lambda entry: entry.count.points,
        "past": lambda entry: int(entry.count.past > 0),
        "incident": lambda entry: entry.view.incident if entry.view else None,
    }
    return {name: [column(entry) for entry in entries] for name, column in columns.items()}


def _rounded(value: float | None, digits: int = 7) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")
