"""One TVM of a range: a commit or a release."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.artifacts.artifact import ArtifactSpec
from tvmdash.contracts.bisection import Suspect


@dataclass(frozen=True)
class Candidate:
    """One build that could be the first slow one. id: the commit's 40 digits, or the version.

    Of a version, title, author and date are empty.
    """

    spec: ArtifactSpec
    id: str
    title: str = ""
    author: str = ""
    date: str = ""

    @property
    def suspect(self) -> Suspect:
        """It without how it is built."""
        return Suspect(self.id, self.title, self.author, self.date)

    @property
    def text(self) -> str:
        """As in `1b565e7c3 "Title" by Ada, 2026-08-07`."""
        return self.suspect.text
