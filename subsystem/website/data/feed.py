"""The ledger of incidents as data (incidents.json) and as an Atom feed (feed.xml, RFC 4287)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from views.context import SiteContext

from data.catalogue import Catalogue
from tvmdash import common
from tvmdash.incidents.headline import format_headline
from tvmdash.incidents.ledger import Incident, iso_of
from tvmdash.incidents.text import describe
from tvmdash.text import clean_lines, elide

SCHEMA_VERSION = 1
TITLE = "TVM nightly benchmarks: incidents"
MOST_ENTRIES = 100
_ATOM = "http://www.w3.org/2005/Atom"
_TITLE_CHARS = 300
_TEXT_CHARS = 4000


def incidents_of(site: SiteContext, catalogue: Catalogue) -> bytes:
    """All incidents that ever were, newest first, with their words; `files` are the IDs of the series that moved."""
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
    """The feed of the last incidents that changed, newest first, without what was silenced.

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
    """When it was last changed, by the detector or by a person."""
    known = [change.at for change in incident.changes if _is_moment(change.at)]
    return max([iso_of(incident.found), *known])


def _is_moment(text: str) -> bool:
    return len(text) == 20 and common.is_stamp(text.replace("-", "").replace(":", ""))


def _add(parent: ElementTree.Element, tag: str, text: str = "", **attributes: str) -> ElementTree.Element:
    child = ElementTree.SubElement(parent, tag, {key: clean_lines(value) for key, value in attributes.items()})
    child.text = clean_lines(text) or None
    return child
