"""What the night comes to: its level, from the incidents and from how each series stands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from judging.exact import Exact
from judging.judge import Judged, Options
from judging.table import Table

from report import beside, findings, verdict_text
from report.expected import find_expected
from report.findings import Findings
from report.standings import MovedPart, SeriesStanding, moved_parts, see_exact, standings
from tvmdash.dashboard_info import Home, Night
from tvmdash.detect.beside.decisions import chance_of_night
from tvmdash.detect.series import Decision
from tvmdash.incidents.ledger import Incident, Ledger
from tvmdash.verdict import ByChance, Evidence, JudgedSeries, Level, NightVerdict, Sensitivity, Standing


def conclude(
    home: Home,
    tonight: Night,
    table: Table,
    judged: Judged,
    ledger: Ledger,
    options: Options,
    sensitivity: Sensitivity | None = None,
) -> tuple[NightVerdict, dict[int, SeriesStanding]]:
    """The verdict on the night, and by row how each series stands."""
    expected = find_expected(home, tonight, table, judged.night, options.annotations)
    stands = standings(table, judged, ledger, expected.rows, options.settings)
    for row in expected.rows - set(stands):
        stands[row] = SeriesStanding(Standing.MISSING)
    exact = beside.exact_on_both(home, table, judged.night)
    stands |= see_exact(stands, exact)
    compared = beside.compare(table, judged, exact)
    findings_of_night = findings.find(tonight, table, judged, ledger, stands, compared)
    level = _level(findings_of_night)
    verdict = NightVerdict(
        tonight.stamp,
        level,
        verdict_text.headline(level, findings_of_night),
        findings_of_night.expected,
        findings_of_night.seen,
        findings_of_night.blind,
        new=_ids(findings_of_night.new),
        open=_ids(findings_of_night.still),
        improved=_ids(findings_of_night.better),
        fixed=_ids(findings_of_night.fixed),
        changed=_ids(findings_of_night.changed),
        suspects=tuple(findings_of_night.suspects),
        missing=tuple(findings_of_night.missing),
        beside=findings_of_night.beside,
        sensitivity=sensitivity,
        unchanged=findings_of_night.counts[Standing.UNCHANGED],
        by_chance=_by_chance(judged),
        appeared=expected.appeared,
        vanished=expected.vanished,
        series=tuple(judged_series(table, judged, ledger, stands)),
        machines=tuple(findings_of_night.machines.values()),
        lead=verdict_text.lead(level, findings_of_night),
        retired=expected.retired,
        muted=findings_of_night.muted,
    )
    return verdict, stands


def nothing_measured(tonight: Night) -> NightVerdict:
    """The verdict on a night that left no data."""
    return NightVerdict(tonight.stamp, Level.NO_DATA, verdict_text.NOTHING_MEASURED)


def _by_chance(judged: Judged) -> ByChance | None:
    """For the series that are judged by their ratios tonight."""
    count = sum(said.decision is not None for said in judged.beside.values())
    return ByChance(count, chance_of_night(1), chance_of_night(count)) if count else None


def _ids(incidents: Sequence[Incident]) -> tuple[str, ...]:
    return tuple(incident.id for incident in incidents)


def _level(findings: Findings) -> Level:
    """The gravest that holds."""
    rows = (
        (Level.NO_DATA, not findings.seen),
        (Level.REGRESSION, bool(findings.new or findings.still)),
        (Level.SUSPECT, any(suspect.worse is not False for suspect in findings.suspects)),
        (Level.CHANGED, bool(findings.changed) or findings.is_new_beside),
        (Level.INCOMPLETE, bool(findings.missing)),
        (Level.BLIND, 2 * findings.blind > findings.seen),
        (Level.IMPROVED, findings.has_improved),
    )
    return next((level for level, holds in rows if holds), Level.STEADY)


_DIGITS = 6
_WITHOUT_VALUE = (Standing.MISSING, Standing.GONE)


def judged_series(
    table: Table, judged: Judged, ledger: Ledger, stands: Mapping[int, SeriesStanding]
) -> Iterator[JudgedSeries]:
    """Every series of `stands`, in the order of the table."""
    decisions = {row: decision for row, decision, _ in judged.decisions()}
    parts = moved_parts(ledger, table.stamps[judged.night])
    for row in sorted(stands):
        key, stand = table.rows[row].key, stands[row]
        if stand.kind in _WITHOUT_VALUE:
            yield JudgedSeries(key, stand.kind)
        elif stand.kind == Standing.MOVED and key in parts:
            yield _moved(key, stand, parts[key], decisions.get(row))
        elif row in judged.exact:
            yield _exact(key, stand, judged.exact[row])
        elif stand.exact:
            yield JudgedSeries(key, stand.kind, Evidence.EXACT, visible=_rounded(stand.visible))
        else:
            yield _other(key, stand, judged, row, decisions[row])


def _moved(key: str, stand: SeriesStanding, part: MovedPart, decision: Decision | None) -> JudgedSeries:
    incident, moved = part.incident, part.moved
    evidence = Evidence.PAIRED if stand.paired else Evidence.HISTORY
    if moved.is_exact:
        evidence = Evidence.EXACT
    elif moved.again_new:
        evidence = Evidence.MEASURED_AGAIN
    effect, low, high, visible = map(_rounded, (moved.effect, moved.low, moved.high, stand.visible))
    return JudgedSeries(
        key, stand.kind, evidence, decision.reason if decision else None, effect, low, high, moved.relative, visible,
        incident.id, incident.cause,
    )  # fmt: skip


def _exact(key: str, stand: SeriesStanding, number: Exact) -> JudgedSeries:
    """The number, as it was or, on a night of which nothing is told, silently another one."""
    effect = (number.value - number.before) / abs(number.before) if number.before else None
    return JudgedSeries(key, stand.kind, Evidence.EXACT, effect=_rounded(effect), visible=_rounded(stand.visible))


def _other(key: str, stand: SeriesStanding, judged: Judged, row: int, decision: Decision) -> JudgedSeries:
    """A series about which nothing is told, or only a suspicion."""
    said = judged.beside[row].decision if row in judged.beside else None
    found: tuple[float | None, ...] = (decision.effect, decision.effect_low, decision.effect_high)
    if stand.kind == Standing.SUSPECT:
        found = (stand.effect, stand.low, stand.high)
    elif said is not None:
        found = (said.effect, said.low, said.high)
    evidence = Evidence.PAIRED if stand.paired else Evidence.HISTORY
    if decision.reruns or (stand.kind == Standing.SUSPECT and stand.low is not None and not stand.paired):
        evidence = Evidence.MEASURED_AGAIN
    relative = decision.state.unit is None
    effect, low, high = map(_rounded, found)
    visible = _rounded(stand.visible)
    return JudgedSeries(key, stand.kind, evidence, decision.reason, effect, low, high, relative, visible)


def _rounded(value: float | None) -> float | None:
    """As the file holds it; None of what has no bound."""
    return None if value is None or not math.isfinite(value) else round(value, _DIGITS)
