"""What surrounds each page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Frame:
    """What surrounds a page: which one it is, the way to the site's root ("" or "../"), when it was written (ISO).

    A page that is kept as it is for ever has no `max_age_hours`, and never looks old. tries: whether the site has pages
    of these.
    """

    page: str
    root: str = ""
    written: str = ""
    max_age_hours: int | None = None
    tries: bool = False
