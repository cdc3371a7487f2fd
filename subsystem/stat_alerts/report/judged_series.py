"""How each series stands tonight and what says so, as verdict.json holds it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from judging.exact import Exact
from judging.judge import Judged
from judging.table import Table

from report.standings import MovedPart, SeriesStanding, moved_parts
from tvmdash.detect.series import Decision
from tvmdash.incidents.ledger import Ledger
from tvmdash.verdict import Evidence, JudgedSeries, Standing

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
