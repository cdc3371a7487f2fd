"""Secrets are hidden in every file of a new site before readers see it, whoever wrote the file."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pages
from site_files import write_new

from tvmdash.redaction import blank, redact

_COUNTED_BYTES = frozenset((".pftrace", ".png", ".gz", ".zip"))
"""Endings of files whose parts must keep their lengths."""


def hide_secrets(new: Path, known: Sequence[str]) -> int:
    """Hide what looks like a secret, and the `known` ones, in all files below `new` but our own static ones; how many.

    A changed file is written anew: one that was carried over is the old site's as well.
    """
    forms = tuple(sorted({form for value in known for form in _forms(value)}, key=lambda form: (-len(form), form)))
    changed = 0
    for path in _files(new):
        content = path.read_bytes()
        text = content.decode("utf-8", errors="surrogateescape")
        clean = (blank if path.suffix in _COUNTED_BYTES else redact)(text, forms)
        if clean != text:
            write_new(str(path), clean.encode("utf-8", errors="surrogateescape"))
            changed += 1
    return changed


def _forms(value: str) -> Iterator[str]:
    """A value as it stands in text, in HTML and in JSON."""
    yield from (value, html.escape(value), html.escape(value).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"))
    yield from (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])


def _files(new: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(new):
        for name in sorted(names):
            path = Path(folder, name)
            if not path.is_symlink() and not (pages.STATIC / path.relative_to(new)).is_file():
                yield path
