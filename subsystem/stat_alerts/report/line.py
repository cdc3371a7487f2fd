"""A line of the night's report, and which incidents it tells of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tvmdash.incidents.ledger import Incident
from tvmdash.incidents.text import describe


@dataclass(frozen=True)
class ReportLine:
    """`incidents`: the IDs of those it tells of; none where it is about anything else."""

    text: str
    incidents: frozenset[str] = frozenset()

    def is_told_of(self, incidents: frozenset[str]) -> bool:
        """Return True where it tells of incidents, and of none but these."""
        return bool(self.incidents) and self.incidents <= incidents


def lines_about(incidents: Iterable[Incident]) -> Iterator[ReportLine]:
    for incident in incidents:
        yield ReportLine(describe(incident), frozenset({incident.id}))
