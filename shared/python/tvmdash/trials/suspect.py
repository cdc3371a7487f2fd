"""A TVM that may have brought a change, as `bisect` names it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suspect:
    """A TVM of a range: the commit's 40 digits, or the version; of a version, title, author and date are empty."""

    id: str = ""
    title: str = ""
    author: str = ""
    date: str = ""

    @property
    def text(self) -> str:
        """As in `1b565e7c3 "Title" by Ada, 2026-08-07`."""
        if not self.title:
            return self.id
        return f'{self.id[:12]} "{self.title}" by {self.author}, {self.date[:10]}'
