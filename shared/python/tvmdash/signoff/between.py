"""What the nights between A and B and `bisect` have said already: incidents, their cause, the commits that did it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvmdash import store
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import FALSE_ALARM, NOT_TVMS, Incident
from tvmdash.signoff.comparing import SeriesChange
from tvmdash.signoff.sources import Sources
from tvmdash.signoff.tvms import HomeTvm
from tvmdash.trials.signoff import SignoffBisection, SignoffEvidence
from tvmdash.trials.trial import Trial
from tvmdash.verdict import TELL


@dataclass(frozen=True)
class NightsBetween:
    """The nights after A and up to B; from the home's first night on where A was never its own TVM.

    is_whole: both were the home's own, A before B, so that the incidents between are all that was told.
    """

    after: str
    until: str
    is_whole: bool

    def holds(self, stamp: str) -> bool:
        """Whether a level that began that night lies between the two."""
        return self.after < stamp <= self.until


def find_window(a: HomeTvm, b: HomeTvm) -> NightsBetween:
    """The window of these two; an empty one where B was measured before A."""
    last = max((*b.own, *b.beside), default="")
    begin = max((stamp for stamp in a.own if not b.own or stamp < b.own[0]), default="")
    if a.own and not begin:
        return NightsBetween(last, last, is_whole=False)
    return NightsBetween(begin, last, is_whole=bool(begin and b.own))


@dataclass(frozen=True)
class ToldBetween:
    """What is known of the series between the two, by key: incidents that stand, and answers of `bisect` (by ID).

    visible: the least change that the nights would have told of a series.
    """

    window: NightsBetween
    moved: Mapping[str, Sequence[tuple[Incident, Moved]]]
    bisections: Mapping[str, Sequence[Trial]]
    visible: Mapping[str, float]

    def find_bisection(self, series: str, incident: Incident | None, log: float) -> SignoffBisection | None:
        """What bisect found of the series, or of its incident."""
        for done in reversed(self.bisections.get(series, ())):
            found, change = done.bisection, done.series[0].change
            if found and change and change.effect * log > 0:
                return SignoffBisection(series, found.suspects, found.probability, len(found.suspects))
        said = incident.bisected if incident else None
        return SignoffBisection(series, said.suspects, said.probability, said.count) if said else None

    def compare(self, key: str) -> SeriesChange | None:
        """What the ledger says of a series that has no pairs; None where its nights could not have told a change."""
        moved = [each for incident, each in self.moved.get(key, ()) if _is_tvms(incident) and each.relative]
        if moved and self.window.is_whole:
            log = math.fsum(math.log1p(each.effect) for each in moved)
            only = moved[0] if len(moved) == 1 else None
            low, high = (_find_log(end) for end in ((only.low, only.high) if only else (None, None)))
            return SeriesChange(SignoffEvidence.LEDGER, log, low, high, is_real=abs(math.expm1(log)) >= TELL)
        if self.window.is_whole and key in self.visible:
            return SeriesChange(SignoffEvidence.LEDGER, visible=self.visible[key])
        return None


def _find_log(end: float | None) -> float | None:
    return None if end is None else math.log1p(end)


def _is_tvms(incident: Incident) -> bool:
    return incident.kind == ledgers.CHANGE and incident.blame not in NOT_TVMS


def read_told(found: Sources, a: HomeTvm, b: HomeTvm) -> ToldBetween:
    """What the home's ledger, its verdicts and its bisections say."""
    window = find_window(a, b)
    ledger = incident_file.read_ledger(found.home)
    moved: dict[str, list[tuple[Incident, Moved]]] = {}
    for incident in sorted(ledger.incidents.values(), key=lambda incident: incident.begin):
        if window.holds(incident.begin) and incident.state != FALSE_ALARM:
            for each in incident.moved:
                if not (each.recovered and each.recovered <= window.until):
                    moved.setdefault(each.series, []).append((incident, each))
    return ToldBetween(window, moved, _read_bisections(found, window), _read_visible(found, window))


def _read_visible(found: Sources, window: NightsBetween) -> Mapping[str, float]:
    """By what was judged on the last night of B, or on the next one that was judged."""
    night = "SELECT min(night) FROM verdicts WHERE night >= ?"
    with store.connect(found.home.root) as index:
        query = f"SELECT series, visible FROM verdicts WHERE visible IS NOT NULL AND night = ({night})"  # noqa: S608
        return dict(index.execute(query, (window.until,)).fetchall())


def _read_bisections(found: Sources, window: NightsBetween) -> Mapping[str, Sequence[Trial]]:
    """Those that have an answer, by series, without those of what was there before A."""
    every: dict[str, list[Trial]] = {}
    for done in found.trials:
        if done.bisection and done.bisection.is_answered:
            own = [stamp for stamp in _list_own(found, done.bisection.bad.id) if window.after]
            if not (own and max(own) <= window.after):
                every.setdefault(done.series[0].id, []).append(done)
    return every


def _list_own(found: Sources, name: str) -> Sequence[str]:
    known = found.tvms.find_id(name) if name else None
    return found.tvms.tvms[known].own if known else ()
