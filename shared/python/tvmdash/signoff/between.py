"""The incidents between A and B and the bisections that the home has on record: their causes and commits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tvmdash import store
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import FALSE_ALARM, NOT_TVMS, Incident
from tvmdash.judge.two import Difference, PairStanding
from tvmdash.signoff.measured import MeasuredSeries, TwoTvms
from tvmdash.signoff.ratios import compare_ratios
from tvmdash.signoff.sources import Sources
from tvmdash.signoff.tvms import HomeTvm, HomeTvms
from tvmdash.trials.signoff import SignoffBisection, SignoffIncident, SignoffSeries
from tvmdash.trials.trial import Trial
from tvmdash.verdict import TELL

_ON_THE_OTHER_SIDE = 0.5
"""A is past a step where it lies farther from the last good TVM than this share of the step."""


@dataclass(frozen=True)
class NightsBetween:
    """The nights after A and up to B; from the home's first night on where A was never its own TVM.

    is_whole: both were the home's own, A before B, so that the incidents between are all that was told.
    """

    after: str
    until: str
    is_whole: bool

    @classmethod
    def of(cls, a: HomeTvm, b: HomeTvm) -> NightsBetween:
        """Find the nights between these two; none where B was measured before A."""
        last = max((*b.own, *b.beside), default="")
        begin = max((stamp for stamp in a.own if not b.own or stamp < b.own[0]), default="")
        if a.own and not begin:
            return cls(last, last, is_whole=False)
        return cls(begin, last, is_whole=bool(begin and b.own))


@dataclass(frozen=True)
class ToldBetween:
    """Known facts about series between the two, by key: incidents that stand, and answers of `bisect` (by ID).

    visible: the least change that the nights would have told of a series, where they are whole.
    """

    a: HomeTvm
    tvms: HomeTvms
    window: NightsBetween
    moved: Mapping[str, Sequence[tuple[Incident, Moved]]]
    bisections: Mapping[str, Sequence[Trial]]
    visible: Mapping[str, float]

    def sum_moved(self, key: str) -> Difference | None:
        """Multiply a series' changes in the ledger, for want of pairs; None where it tells nothing, or not all."""
        every = self.moved.get(key, ()) if self.window.is_whole else ()
        moved = [each for incident, each in every if _is_tvms(incident) and each.relative]
        if not moved:
            return None
        effect = math.prod(1 + each.effect for each in moved) - 1
        low, high = (moved[0].low, moved[0].high) if len(moved) == 1 else (None, None)
        return Difference(PairStanding.CHANGED if abs(effect) >= TELL else PairStanding.UNDECIDED, effect, low, high)

    def find_incident(self, item: SignoffSeries, measured: MeasuredSeries) -> Incident | None:
        """The last incident in which the series moved that way, between A and B."""
        for incident, moved in reversed(self.moved.get(item.id, ())):
            is_between = self.window.is_whole or self._comes_after_a(measured, incident, moved)
            if moved.effect * item.log > 0 and is_between:
                return incident
        return None

    def _comes_after_a(self, measured: MeasuredSeries, incident: Incident, moved: Moved) -> bool:
        """Return True where A, never the home's own TVM, lies on the good side; without pairs, where A is older."""
        good = self.tvms.find_id(incident.versions[0])
        if good == self.a.id:
            return True
        known = compare_ratios([measured], TwoTvms(good, self.a.id)).get(measured.key) if good else None
        if known is None or not moved.relative:
            # "~" sorts behind every stamp.
            return incident.begin >= min(self.a.beside, default="~")
        return math.log1p(known.difference.effect) / math.log1p(moved.effect) < _ON_THE_OTHER_SIDE

    def list_incidents(self, series: Iterable[SignoffSeries]) -> Iterator[SignoffIncident]:
        """Yield the incidents of these series."""
        wanted = {item.incident for item in series}
        known: dict[str, Incident] = {incident.id: incident for moved in self.moved.values() for incident, _ in moved}
        for incident in (incident for name, incident in known.items() if name in wanted):
            last = incident.changes[-1]
            yield SignoffIncident(incident.id, incident.versions, incident.state, last.who, last.words)

    def list_bisections(self, series: Iterable[SignoffSeries]) -> Iterator[SignoffBisection]:
        """Yield the bisection of each of these series that moved, or of its incident."""
        for item in (item for item in series if item.has_moved):
            said = [
                done.bisection for done in self.bisections.get(item.id, ())
                if done.bisection and (change := done.series[0].change) and change.effect * item.log > 0
            ]  # fmt: skip
            of_incident = (found for found, _ in self.moved.get(item.id, ()) if found.id == item.incident)
            if said:
                suspects = said[-1].suspects
                yield SignoffBisection(item.id, suspects, said[-1].probability, len(suspects))
            elif (incident := next(of_incident, None)) and (kept := incident.bisected):
                yield SignoffBisection(item.id, kept.suspects, kept.probability, kept.count)


def _is_tvms(incident: Incident) -> bool:
    return incident.kind == ledgers.CHANGE and incident.blame not in NOT_TVMS


def read_told(found: Sources, a: HomeTvm, b: HomeTvm) -> ToldBetween:
    """Read the home's ledger, its verdicts and its bisections."""
    window = NightsBetween.of(a, b)
    ledger = incident_file.read_ledger(found.home)
    moved: dict[str, list[tuple[Incident, Moved]]] = {}
    for incident in sorted(ledger.incidents.values(), key=lambda incident: incident.begin):
        if window.after < incident.begin <= window.until and incident.state != FALSE_ALARM:
            for each in incident.moved:
                if not (each.recovered and each.recovered <= window.until):
                    moved.setdefault(each.series, []).append((incident, each))
    visible = _read_visible(found, window) if window.is_whole else {}
    return ToldBetween(a, found.tvms, window, moved, _read_bisections(found, window), visible)


def _read_visible(found: Sources, window: NightsBetween) -> Mapping[str, float]:
    """Read what was judged on the last night of B, or on the next one that was judged."""
    night = "SELECT min(night) FROM verdicts WHERE night >= ?"
    with store.connect(found.home.root) as index:
        query = f"SELECT series, visible FROM verdicts WHERE visible IS NOT NULL AND night = ({night})"  # noqa: S608
        return dict(index.execute(query, (window.until,)).fetchall())


def _read_bisections(found: Sources, window: NightsBetween) -> Mapping[str, Sequence[Trial]]:
    """Read those that have an answer, by series, without those of what was there before A."""
    every: dict[str, list[Trial]] = {}
    for done in found.trials:
        if done.bisection and done.bisection.is_answered:
            bad = found.tvms.find_id(done.bisection.bad.id)
            own = found.tvms.tvms[bad].own if bad and window.after else ()
            if not own or max(own) > window.after:
                every.setdefault(done.series[0].id, []).append(done)
    return every
