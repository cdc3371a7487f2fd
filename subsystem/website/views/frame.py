"""The frame of each page."""

from __future__ import annotations

from dataclasses import dataclass

TRIES, HOSTS = "tries", "hosts"
"""Pages that only some sites have."""


@dataclass(frozen=True)
class Frame:
    """The frame of a page: its name, the way to the site's root ("" or "../"), when it was written (ISO).

    A page that is kept as it is for ever has no `max_age_hours`, and never looks old. also: the pages of the navigation
    that this site has and not every site.
    """

    page: str
    root: str = ""
    written: str = ""
    max_age_hours: int | None = None
    also: frozenset[str] = frozenset()
