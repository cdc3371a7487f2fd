"""What came of a reproduction, as a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dashboard.trials.reproduce.facts import Fact
from dashboard.trials.reproduce.verdict import Line, conclude
from tvmdash import structured
from tvmdash.contracts.reproduction import SCHEMA_VERSION, Drawn, ReproducedSeries, ReproductionResult


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
        return conclude(self.lines)

    def to_json(self) -> dict[str, Any]:
        """As the file holds it."""
        lines = (
            ReproducedSeries(old=line.old, new=line.new, found=line.found, verdict=line.verdict, why=line.why,
                             **vars(line.series))
            for line in self.lines
        )  # fmt: skip
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        own |= {"verdict": self.verdict, "differs": tuple(self.differs), "lines": tuple(lines)}
        return result_to_json(ReproductionResult(**own))


def result_to_json(result: ReproductionResult) -> dict[str, Any]:
    """As both files hold it."""
    return {"schema_version": SCHEMA_VERSION, **structured.to_json(result)}
