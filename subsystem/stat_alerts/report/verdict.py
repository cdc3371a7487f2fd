"""What the night comes to: its level, from the incidents and from how each series stands."""

from __future__ import annotations

from collections.abc import Sequence

from judging.judge import Judged, Options
from judging.table import Table

from report import beside, findings, verdict_text
from report.expected import find_expected
from report.findings import Findings
from report.judged_series import judged_series
from report.standings import SeriesStanding, see_exact, standings
from tvmdash.dashboard_info import Home, Night
from tvmdash.detect.beside.decisions import chance_of_night
from tvmdash.incidents.ledger import Incident, Ledger
from tvmdash.verdict import ByChance, Level, NightVerdict, Sensitivity, Standing


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
