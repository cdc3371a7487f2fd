"""A whole new site beside the old one, swapped in by one rename."""

from __future__ import annotations

import contextlib
import datetime
import html
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from data import site as site_data
from files.files import write_new
from files.incremental import IncrementalSite, fingerprint
from files.static import copy_static
from pages import site as site_pages
from render import page as pages
from views.commits import Links
from views.context import SiteContext

from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.dashboard_info import Home, Night
from tvmdash.dashboard_info.home_secrets import find_secrets_of_home
from tvmdash.dashboard_info.pages import LIVE_FILE, LiveState, as_script
from tvmdash.redaction import blank_out, redact

CACHE_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Made from the home's records by the website subsystem; archives of the home leave it out.\n"
    "# https://bford.info/cachedir/\n"
)

_MOST_LIVE_BYTES = 1 << 20


@dataclass(frozen=True)
class Published:
    """The first page as a URL, how many nights have a page, and how many of these were rendered now."""

    page: str
    nights: int
    rendered_nights: int


def publish(
    home: Home,
    tonight: Night,
    output: Path,
    now: datetime.datetime,
    *,
    receipt_nights: int = 30,
    links: Links = Links(),  # noqa: B008 - frozen
) -> Published:
    """Make `output` the site of `home`, with `tonight` on its first page.

    Killed at any instant, `output` is the old site or the new one, whole. It belongs to the site: other files in it
    are gone afterwards. Secrets are hidden in every file of it.
    """
    target = output.resolve()  # where the operator made it a link, the folder behind it is what is swapped
    site = SiteContext(home, tonight, target, now, links=links)
    with common.folder_beside(target) as new:
        (new / "CACHEDIR.TAG").write_text(CACHE_TAG, encoding="ascii")
        copy_static(pages.STATIC, new)
        _keep_live_file(target, new)
        carrier = IncrementalSite.begin(target, new, site.made_by)
        first = site_data.write(site, new, carrier, receipt_nights)
        written = site_pages.write(site, new, carrier, first)
        write_scripts(carrier)
        carrier.close()
        hide_secrets(home, target if carrier.is_same_code else None, new)
    return Published((output / "index.html").as_uri(), written.nights, len(written.rendered))


_FOLDERS = ("nights/", "receipts/")


def write_scripts(carrier: IncrementalSite) -> None:
    """Write a script of the same content beside each data file: from disk a browser lets no page read data."""
    sources = {name: made_from for name, (made_from, _) in carrier.files.items() if name.startswith(_FOLDERS)}
    sources["index.json"] = fingerprint((carrier.new / "index.json").read_text("ascii"))
    for name, made_from in sources.items():
        if name.endswith(".json") and not carrier.carry(_script_of(name), made_from):
            content = as_script(name, (carrier.new / name).read_bytes().rstrip(b"\n"))
            carrier.write(_script_of(name), content, made_from)


def _script_of(name: str) -> str:
    return name.removesuffix(".json") + ".js"


def _keep_live_file(old: Path, new: Path) -> None:
    """Keep the old site's news of the running night: it goes on while this one is made."""
    content = as_script("live.json", json.dumps({"state": LiveState.NONE}).encode())
    with contextlib.suppress(OSError), trees.open_file(old, LIVE_FILE) as file:
        content = file.read(_MOST_LIVE_BYTES)
    write_new(f"{new}/{LIVE_FILE}", content)


_COUNTED_BYTES = frozenset((".pftrace", ".png", ".gz", ".zip"))
"""Endings of files whose parts must keep their lengths."""


def hide_secrets(home: Home, old: Path | None, new: Path) -> int:
    """Hide what looks like a secret, and those that the home's configs name, in all files of a new site; how many.

    Files that were carried over from the site `old`, where it is of the same code and configs, are clean. A changed
    file is written anew: one that was carried over is the old site's as well.
    """
    forms = tuple(
        sorted(
            {form for value in find_secrets_of_home(home) for form in _forms(value)},
            # the longest first: a secret may be a part of another
            key=lambda form: (-len(form), form),
        )
    )
    changed = 0
    static = {entry.path for entry in trees.walk(pages.STATIC).files}
    for entry in trees.walk(new).files:
        if entry.path in static or (old and _is_carried(entry, f"{old}/{entry.path}")):
            continue
        path = new / entry.path
        content = path.read_bytes()
        text = content.decode("utf-8", errors="surrogateescape")
        clean = (blank_out if path.suffix in _COUNTED_BYTES else redact)(text, forms)
        if clean != text:
            write_new(str(path), clean.encode("utf-8", errors="surrogateescape"))
            changed += 1
    return changed


def _is_carried(entry: trees.TreeEntry, source: str) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(entry.status, os.stat(source))
    return False


def _forms(value: str) -> Iterator[str]:
    """Yield a value as it stands in text, in HTML and in JSON."""
    yield from (value, html.escape(value), html.escape(value).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"))
    yield from (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
