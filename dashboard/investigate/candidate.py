"""One TVM of a range: a commit or a release."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dashboard.artifacts.artifact import ArtifactSpec


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

    def to_json(self) -> dict[str, Any]:
        """Without how it is built."""
        return {name: value for name, value in asdict(self).items() if name != "spec"}

    @property
    def text(self) -> str:
        """As in `1b565e7c3 "Title" by Ada, 2026-08-07`."""
        if not self.title:
            return self.id
        return f'{self.id[:12]} "{self.title}" by {self.author}, {self.date[:10]}'
