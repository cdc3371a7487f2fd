"""The verdict on the night: its level, from the incidents and from how each series stands."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence

from judging.exact import Exact
from judging.judge import Judged, Options
from judging.sensitivity import Seen
from judging.table import Table

from report import findings, verdict_text
from report.expected import find_expected
from report.findings import Findings
from report.standings import MovedPart, SeriesStanding, moved_parts, see_exact, standings
from tvmdash import records
from tvmdash.dashboard_info import Home, Night
from tvmdash.errors import DashboardError
from tvmdash.incidents.ledger import Incident, Ledger
from tvmdash.judge.history.series import Decision
from tvmdash.records import PointValue
from tvmdash.records.metrics import is_worse, judge_exact_change
from tvmdash.series import naming
from tvmdash.text import format_list
from tvmdash.verdict import (
    BesideReference,
    Difference,
    Evidence,
    ExactDifference,
    JudgedSeries,
    Level,
    NightVerdict,
    Standing,
)


def conclude(
    home: Home,
    tonight: Night,
    table: Table,
    judged: Judged,
    ledger: Ledger,
    options: Options,
    seen: Seen,
) -> tuple[NightVerdict, dict[int, SeriesStanding]]:
    """Return the verdict on the night, and by row how each series stands."""
    expected = find_expected(home, tonight, table, judged.night, options.annotations)
    stands = standings(table, judged, ledger, expected.rows, options.settings)
    for row in expected.rows - set(stands):
        stands[row] = SeriesStanding(Standing.MISSING)
    exact = exact_on_both(home, table, judged.night)
    stands |= see_exact(stands, exact)
    compared = compare(table, judged, exact)
    findings_of_night = findings.find(tonight, table, judged, ledger, stands, compared, options)
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
        sensitivity=seen.sensitivity,
        unchanged=findings_of_night.counts[Standing.UNCHANGED],
        by_chance=seen.by_chance,
        appeared=expected.appeared,
        vanished=expected.vanished,
        series=tuple(judged_series(table, judged, ledger, stands)),
        machines=tuple(findings_of_night.machines.values()),
        lead=verdict_text.lead(level, findings_of_night),
        retired=expected.retired,
        muted=findings_of_night.muted,
        title=verdict_text.title(level, findings_of_night),
        reasons=verdict_text.reasons(level, findings_of_night),
    )
    return verdict, stands


def nothing_measured(tonight: Night) -> NightVerdict:
    """Return the verdict on a night that left no data."""
    nothing = verdict_text.NOTHING_MEASURED
    return NightVerdict(tonight.stamp, Level.NO_DATA, nothing, title=nothing)


def _ids(incidents: Sequence[Incident]) -> tuple[str, ...]:
    return tuple(incident.id for incident in incidents)


def _level(findings: Findings) -> Level:
    """Return the gravest level that holds."""
    rows = (
        (Level.NO_DATA, not findings.seen),
        (Level.REGRESSION, bool(findings.new or findings.still)),
        (Level.SUSPECT, any(suspect.worse is not False for suspect in findings.suspects)),
        (Level.CHANGED, bool(findings.changed) or findings.is_new_beside),
        (Level.INCOMPLETE, bool(findings.missing)),
        (Level.BLIND, findings.is_blind),
        (Level.IMPROVED, findings.has_improved),
    )
    return next((level for level, holds in rows if holds), Level.STEADY)


_DIGITS = 6
_WITHOUT_VALUE = (Standing.MISSING, Standing.GONE)


def judged_series(
    table: Table, judged: Judged, ledger: Ledger, stands: Mapping[int, SeriesStanding]
) -> Iterator[JudgedSeries]:
    """Yield every series of `stands`, in the order of the table."""
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
    """Report a number that is as it was or, on a night of which nothing is told, silently another one."""
    effect = (number.value - number.before) / abs(number.before) if number.before else None
    return JudgedSeries(key, stand.kind, Evidence.EXACT, effect=_rounded(effect), visible=_rounded(stand.visible))


def _other(key: str, stand: SeriesStanding, judged: Judged, row: int, decision: Decision) -> JudgedSeries:
    """Report a series about which nothing is told, or only a suspicion."""
    beside = judged.beside.get(row)
    said = beside.bounds if beside is not None else None
    found: tuple[float | None, ...] = (decision.effect, decision.effect_low, decision.effect_high)
    if stand.kind == Standing.SUSPECT:
        found = (stand.effect, stand.low, stand.high)
    elif said is not None:
        found = said
    evidence = Evidence.PAIRED if stand.paired else Evidence.HISTORY
    if decision.reruns or (stand.kind == Standing.SUSPECT and stand.low is not None and not stand.paired):
        evidence = Evidence.MEASURED_AGAIN
    relative = decision.state.unit is None
    effect, low, high = map(_rounded, found)
    visible, reason = _rounded(stand.visible), stand.reason or decision.reason
    return JudgedSeries(key, stand.kind, evidence, reason, effect, low, high, relative, visible)


def _rounded(value: float | None) -> float | None:
    """Round for the file; None of what has no bound."""
    return None if value is None or not math.isfinite(value) else round(value, _DIGITS)


def exact_on_both(home: Home, table: Table, night: int) -> dict[int, float]:
    """Read by row the reference's value of each exact number of which tonight's processes agree."""
    rows = {(naming.id_of(row.key), row.unit): at for at, row in enumerate(table.rows)}
    beside = [name for name in {row.experiment for row in table.rows} if table.build(name, night).reference]
    points = (point for name in sorted(beside) for point in _points(home, name, table.stamps[night]))
    found = {rows.get((point.key.id, point.unit)): point.reference for point in points if point.alike}
    return {row: value for row, value in found.items() if row is not None and value is not None}


def compare(table: Table, judged: Judged, exact: Mapping[int, float]) -> BesideReference | None:
    """Compare tonight's TVM with the reference, in all experiments; None where nothing was measured beside one.

    exact: what the reference gave of exact numbers, by row.
    """
    known = {row: said.reference for row, said in judged.beside.items() if said.reference is not None}
    if not known and not exact:
        return None
    differences = []
    for row, stand in known.items():
        if stand.differs:
            series = table.rows[row]
            worse = is_worse(stand.effect, series.direction)
            differences.append(Difference(series.key, series.name, stand.effect, stand.low, stand.high, worse))
    differences.sort(key=lambda difference: (not difference.worse, -abs(difference.effect)))
    experiments = sorted({table.rows[row].experiment for row in (*known, *exact)})
    names = {table.build(experiment, judged.night).reference_version or "" for experiment in experiments}
    first = not any(_was_beside(table, experiment, judged.night) for experiment in experiments)
    itself = all(_is_itself(table, experiment, judged.night) for experiment in experiments)
    others = [] if itself else list(_exact_numbers(table, judged.night, exact))
    others.sort(key=lambda difference: (not difference.worse, -abs(difference.value - difference.reference)))
    return BesideReference(
        format_list(sorted(names), 2), len(known), tuple(differences), first, tuple(others), itself, len(exact)
    )


def _is_itself(table: Table, experiment: str, night: int) -> bool:
    """Tell one artifact on both sides from two that ran the same code."""
    build = table.build(experiment, night)
    return build.artifact is not None and build.artifact == build.reference


def _was_beside(table: Table, experiment: str, night: int) -> bool:
    """Tell whether the experiment was measured beside tonight's reference before.

    Or tonight's reference is what it measured last: the step since that night says the same.
    """
    reference = table.build(experiment, night).reference
    builds = [table.build(experiment, earlier) for earlier in range(table.offset, night)]
    measured = [build for build in builds if build.artifact is not None]
    last = [build.artifact for build in measured[-1:]]
    return last == [reference] or any(build.reference == reference for build in measured)


def _exact_numbers(table: Table, night: int, on_reference: Mapping[int, float]) -> Iterator[ExactDifference]:
    """Yield the numbers that differ on the reference."""
    for row, reference in on_reference.items():
        series, value = table.rows[row], float(table.values[row, night - table.offset])
        if value != reference:
            worse = judge_exact_change(series, reference, value)
            yield ExactDifference(series.key, series.name, series.unit, reference, value, worse)


def _points(home: Home, experiment: str, stamp: str) -> Iterator[PointValue]:
    with contextlib.suppress(DashboardError):  # told where it was read for the index
        yield from records.read_data(home.data_file(experiment, stamp), experiment).values()
