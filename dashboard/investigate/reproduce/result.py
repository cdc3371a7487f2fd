"""What came of a reproduction, as a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dashboard.investigate.reproduce.facts import Fact
from dashboard.investigate.reproduce.pick import Drawn
from dashboard.investigate.reproduce.verdict import Line, verdict_of_all

SCHEMA_VERSION = 2
"""2: a verdict for each series and for all; labels and metric of each."""


@dataclass
class Reproduction:
    """What came of it. is_same_machine is None where the receipt does not say. differs: facts, then and now."""

    stamp: str
    source: str
    experiment: str
    night: str
    artifact: Mapping[str, Any]
    is_same_machine: bool | None
    is_same_code: bool
    code: str
    matters: float
    differs: list[Fact] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    rounds: int = 0
    ended: str = ""
    elapsed_s: float = 0.0
    drawn: Drawn | None = None

    @property
    def verdict(self) -> str:
        """The verdict over all series."""
        return verdict_of_all(self.lines)

    def to_json(self) -> dict[str, Any]:
        """As the file holds it."""
        lines = [{**asdict(line)["series"], **asdict(line)} for line in self.lines]
        for line in lines:
            del line["series"]  # its fields stand beside the others
        return {"schema_version": SCHEMA_VERSION, "verdict": self.verdict, **asdict(self), "lines": lines}
