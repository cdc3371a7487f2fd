"""What is said of a series tonight: its incidents, the steps in it, notes of people, its noise."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data.catalogue import Catalogue, Entry
from tvmdash.incidents.headline import format_headline
from tvmdash.incidents.ledger import FALSE_ALARM, MACHINE, Incident
from tvmdash.text import elide

_HEADLINE_CHARS = 300


def make_tonight_part(catalogue: Catalogue, entry: Entry, concerned: Sequence[Incident]) -> str:
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

    def of(self, entry: Entry) -> list[Incident]:
        """Those that concern a series, oldest first."""
        places = [*self.of_series.get(entry.key, ()), *self.of_fleet.get(entry.fleet, ())]
        return [self.incidents[place] for place in sorted(places)]


def _steps(incidents: Sequence[Incident], entry: Entry) -> Iterator[dict[str, Any]]:
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


def _incident(incident: Incident, entry: Entry) -> dict[str, Any]:
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
