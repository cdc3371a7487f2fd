"""Which incident a change from A to B belongs to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tvmdash.contracts.signoff import SignoffSeries
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import Incident
from tvmdash.signoff.between import ToldBetween
from tvmdash.signoff.measured import MeasuredSeries
from tvmdash.signoff.ratios import compare_ratios
from tvmdash.signoff.tvms import HomeTvm, HomeTvms

_ON_THE_OTHER_SIDE = 0.5
"""A is past a step where it lies farther from the last good TVM than this share of the step."""


@dataclass(frozen=True)
class Attribution:
    """What is needed to find it. series: by key."""

    told: ToldBetween
    tvms: HomeTvms
    a: HomeTvm
    series: Mapping[str, MeasuredSeries]

    def find_incident(self, item: SignoffSeries) -> Incident | None:
        """The last incident in which the series moved that way, between A and B."""
        log = find_log(item)
        for incident, moved in reversed(self.told.moved.get(item.id, ())):
            if moved.effect * log > 0 and (self.told.window.is_whole or self._comes_after_a(item.id, incident, moved)):
                return incident
        return None

    def _comes_after_a(self, key: str, incident: Incident, moved: Moved) -> bool:
        """Whether A, never the home's own TVM, is as the last good one was; else whether it was known before."""
        good = self.tvms.find_id(incident.versions[0])
        if good == self.a.id:
            return True
        known = compare_ratios([self.series[key]], good, self.a.id).get(key) if good else None
        if known is None or known.log is None or not moved.relative:
            return incident.begin >= min(self.a.beside, default="~")
        return known.log / math.log1p(moved.effect) < _ON_THE_OTHER_SIDE


def find_log(item: SignoffSeries) -> float:
    """Which way a series moved."""
    if item.before is not None and item.after is not None:
        return item.after - item.before
    return math.log1p(item.effect or 0.0)
