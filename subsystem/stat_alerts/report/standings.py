"""The standing of each series tonight, beyond the detector's decision: missing, too young, blind, or suspect."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from judging.judge import FleetNight, Judged
from judging.paired import PairsTonight
from judging.table import Table, finite

from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import Incident, Ledger
from tvmdash.judge.history.cause import UNKNOWN, Reason, ReasonKind
from tvmdash.judge.history.grade import smallest_visible_change
from tvmdash.judge.history.noise import CLIP, MAD_TO_SD, WIDTH, FloatArray
from tvmdash.judge.history.series import Decision, Settings
from tvmdash.judge.history.strong import STAYS
from tvmdash.verdict import MATTERS, TELL, Standing
from tvmdash.verdict.remeasured import Outcome, OutcomeKind

EXPECTED_NIGHTS = 7
"""Nights of its experiment without the series after which it is not expected any more."""
FAR_SCALES = 6.0
"""Distance from the level, in scales, from which one night is suspect by itself."""
YOUNG_EFFECT = 0.05
"""Share of the value that it must be, too, in a series without a verdict."""
USUAL, _USUAL_DISTANCE, _LEAST_OF_WAY = 0.02, 0.75, 0.25
"""A night is not far out where this share of the others went so much of its way.

What is beyond CLIP scales counts as CLIP, as outliers are of any size; but as a fourth of the way at least, since a few
nights' scale can be several times too small, and nights of three scales do not explain one of hundreds.
"""
LEAST_SCALE = 0.005
UNKNOWN_SCALE = 0.03
"""One night's scatter of a series of which nothing is known."""
_POOLED_NIGHTS = 8


@dataclass(frozen=True)
class SeriesStanding:
    """One series tonight. effect: for a suspect, how far it is from its level; low, high: its interval, where known.

    relative: the effect is a fraction, else in units of the series' scatter. visible: the smallest change that would
    have been seen; None where nothing could be, or it has no value. paired: it is judged by its ratio to the reference.
    exact: it has no noise, and the reference's own number says how it stands. reason: of a suspect that has to last.
    """

    kind: Standing
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    visible: float | None = None
    relative: bool = True
    paired: bool = False
    exact: bool = False
    reason: Reason | None = None


def standings(
    table: Table, judged: Judged, ledger: Ledger, expected: Iterable[int], settings: Settings
) -> dict[int, SeriesStanding]:
    """Return by row how each series with a value lately stands; `expected`: rows that should have one tonight."""
    should = set(expected)
    parts = moved_parts(ledger, table.stamps[judged.night])
    outcomes = {outcome.series: outcome for outcome in judged.confirmation.outcomes} if judged.confirmation else {}
    scatter = {fleet.name: _scatter(table, list(fleet.rows.values()), judged.night) for fleet in judged.fleets}
    standing_of: dict[int, SeriesStanding] = {}
    for row, decision, fleet in judged.decisions():
        key = table.rows[row].key
        if not math.isfinite(table.values[row, judged.night - table.offset]):
            standing_of[row] = SeriesStanding(Standing.MISSING if row in should else Standing.GONE)
            continue
        if row in judged.beside:
            stand = _stand_beside(judged.beside[row], unchanged=table.is_unchanged(row, judged.night))
        else:
            stand = _stand(table, row, decision, fleet, outcomes.get(key), scatter[fleet.name], settings)
        is_news = key in parts and parts[key].is_tonights
        has_moved = key in parts and (is_news or stand.kind != Standing.SUSPECT)
        standing_of[row] = replace(stand, kind=Standing.MOVED) if has_moved else stand
    for row, number in judged.exact.items():
        moved = number.is_changed or table.rows[row].key in parts
        standing_of[row] = SeriesStanding(Standing.MOVED if moved else Standing.STEADY, visible=0.0)
    return standing_of


def see_exact(stands: Mapping[int, SeriesStanding], on_reference: Iterable[int]) -> dict[int, SeriesStanding]:
    """Return the young ones of these rows as steady: their number on the reference shows any difference."""
    young = (row for row in on_reference if row in stands and stands[row].kind == Standing.YOUNG)
    return {row: SeriesStanding(Standing.STEADY, visible=0.0, exact=True) for row in young}


@dataclass(frozen=True)
class MovedPart:
    """A series in the newest incident that tells of it; is_tonights: it moved tonight, or was found to have."""

    incident: Incident
    moved: Moved
    is_tonights: bool


def moved_parts(ledger: Ledger, night: str) -> dict[str, MovedPart]:
    """Return by series what was told of it tonight, or is still open and not back."""
    parts = {}
    for incident in ledger.incidents.values():
        tonights = incident.moved_on(night)
        fresh = {moved.series for moved in tonights.moved} if tonights is not None else set[str]()
        for moved in incident.moved:
            stands = incident.is_open and moved.worse and not moved.recovered
            if moved.series in fresh or stands:
                parts[moved.series] = MovedPart(incident, moved, moved.series in fresh)
    return parts


def _stand(
    table: Table,
    row: int,
    decision: Decision,
    fleet: FleetNight,
    outcome: Outcome | None,
    scatter: float | None,
    settings: Settings,
) -> SeriesStanding:
    """Find the standing of a series that has a value and is in no open incident."""
    history = fleet.histories[table.rows[row].key]
    visible = smallest_visible_change(history, decision.state, settings=settings)
    if table.rows[row].key not in fleet.controls and _is_undecided(decision, outcome):
        suspicion = _suspicion(table, row, decision, fleet, outcome, scatter, settings)
        if suspicion is not None:
            return replace(suspicion, visible=visible)
    if decision.z is None and decision.kind == "quiet":
        return SeriesStanding(Standing.YOUNG, visible=visible)
    return SeriesStanding(Standing.BLIND if visible is None or visible > MATTERS else Standing.STEADY, visible=visible)


def _is_undecided(decision: Decision, outcome: Outcome | None) -> bool:
    """Return True where nothing has said yet what a night beyond the noise was, if this was one.

    Measuring again settles it only where it ends with an answer: without one the nights before speak as ever.
    """
    match decision.kind, None if outcome is None else outcome.outcome:
        case "alert" | "environment", _:
            return False
        case "quiet", OutcomeKind.OUTLIER | OutcomeKind.MACHINE | OutcomeKind.MODES:
            return False
        case "quiet", None | OutcomeKind.UNMEASURED | OutcomeKind.UNCLEAR | OutcomeKind.YOUNG | OutcomeKind.REPRODUCED:
            return True


def _stand_beside(beside: PairsTonight, *, unchanged: bool) -> SeriesStanding:
    """Find the standing of a series measured in turn: against the builds before, or without any the reference."""
    if beside.is_suspect and beside.found is not None:
        effect, low, high = beside.bounds or (beside.found.effect, None, None)
        return SeriesStanding(Standing.SUSPECT, effect, low, high, beside.visible, paired=True)
    if beside.is_apart:
        return SeriesStanding(Standing.BLIND, paired=True)
    if unchanged or (beside.is_known and beside.visible is None and not beside.is_young):
        return SeriesStanding(Standing.UNCHANGED, visible=beside.visible, paired=True)
    if beside.is_young and (beside.reference is None or beside.reference.is_itself):
        return SeriesStanding(Standing.YOUNG, paired=True)
    visible = beside.visible
    if beside.is_young and beside.reference is not None:
        visible = beside.reference.high - beside.reference.low
    kind = Standing.BLIND if visible is None or visible > MATTERS else Standing.STEADY
    return SeriesStanding(kind, visible=visible, paired=True)


def _suspicion(
    table: Table,
    row: int,
    decision: Decision,
    fleet: FleetNight,
    outcome: Outcome | None,
    scatter: float | None,
    settings: Settings,
) -> SeriesStanding | None:
    """Find a suspicion by what was measured again; where that says nothing, by the nights before."""
    relative = decision.state.unit is None
    if outcome is not None and outcome.effect is not None and (outcome.low or 0.0) * (outcome.high or 0.0) > 0:
        told = SeriesStanding(Standing.SUSPECT, outcome.effect, outcome.low, outcome.high, relative=relative)
        return told if abs(outcome.effect) >= TELL else None
    known = _known(table, row, max(0, decision.state.start - table.offset), decision, fleet)
    run = _last_run(known)
    if decision.z is None and table.paired and table.rows[row].kind in {"time", "rate"}:
        return None  # where pairs say what TVM does, few nights of a time say what the machine does
    if decision.z is None:
        effect, nights = _beyond_its_few_nights(known, run, scatter), run
    else:
        effect, nights = _beyond_its_noise(known, run, decision, settings)
    if effect is None or _is_same_tvm(table, row, decision, nights):
        return None
    waits = decision.z is not None and nights < settings.least_nights
    reason = Reason(ReasonKind.TOO_SHORT, nights=nights, needed=settings.least_nights) if waits else None
    return SeriesStanding(Standing.SUSPECT, effect, relative=relative, reason=reason)


def _last_run(known: FloatArray) -> int:
    """Count the nights up to tonight on tonight's side of the middle between it and the level before.

    They are suspect for one and the same reason, which is still to be decided; so none of them is a part of the level.
    """
    if len(known) < 2:
        return 1
    middle = (float(np.median(known[:-1])) + known[-1]) / 2
    others = ((known > middle) != (known[-1] > middle)).nonzero()[0]
    return len(known) - 1 - int(others[-1]) if len(others) else 1


def _beyond_its_noise(known: FloatArray, run: int, decision: Decision, settings: Settings) -> tuple[float | None, int]:
    """Find a shift as strong as one that is told but too short to be, or a night far out by itself.

    Return how far it goes, None where there is none; and the nights since which.
    """
    strong = decision.z is not None and abs(decision.z) >= settings.threshold
    nights = decision.nights if strong and decision.nights and decision.nights < settings.least_nights else 1
    if not strong and not _is_far_out(known, decision.scale or 0.0, decision.state.unit):
        return None, run
    effect = _shift(known[:-nights][-WIDTH:], float(np.median(known[-nights:])), decision.state.unit)
    return effect if effect is not None and abs(effect) >= TELL else None, max(nights, run)


def _is_same_tvm(table: Table, row: int, decision: Decision, nights: int) -> bool:
    """Tell whether tonight's TVM is that of the night before the last `nights`: what moved is then not TVM."""
    known = np.isfinite(table.values[row, : decision.night - table.offset + 1]).nonzero()[0] + table.offset
    around = [int(known[-nights - 1]), int(known[-1])] if len(known) > nights else []
    return bool(around) and table.same(table.rows[row].experiment, around) is not None


def _is_far_out(known: FloatArray, scale: float, unit: float | None) -> bool:
    """Tell whether the last night is further from those before than a series goes that has outliers or modes."""
    if len(known) <= EXPECTED_NIGHTS or not scale or (unit is None and not (known > 0).all()):
        return False
    scaled = np.log(known) if unit is None else known / unit
    away = (scaled[-1] - scaled[:-1][-WIDTH:]) / scale
    alone = float(np.median(away))
    way = min(abs(alone), max(CLIP, _LEAST_OF_WAY * abs(alone)))
    usual = (np.median(away) - away) * np.sign(alone) >= _USUAL_DISTANCE * way
    return abs(alone) >= FAR_SCALES and _find_odds(usual) <= USUAL


def _find_odds(usual: npt.NDArray[np.bool_]) -> float:
    """Return the share of nights that went the same way; each just before tonight, of its kind, counts as once more."""
    others = (~usual).nonzero()[0]
    before = usual[: others[-1] + 1] if len(others) else usual
    again = (float(np.sum(before[1:] & before[:-1])) + STAYS) / (float(before[:-1].sum()) + 1)
    return float(np.mean(before)) * again ** (len(usual) - len(before))


def _beyond_its_few_nights(known: FloatArray, run: int, scatter: float | None) -> float | None:
    """Return the distance of tonight from the level before it, where it is large; None else."""
    before = known[:-run]
    effect = _shift(before, float(known[-1])) if len(known) else None
    if effect is None or effect <= -1:
        return effect
    own = float(np.std(np.log(before), ddof=1)) if len(before) > 3 else 0.0
    scale = max(own, scatter or UNKNOWN_SCALE, LEAST_SCALE) * math.sqrt(1 + 1 / len(before))
    return effect if abs(math.log1p(effect)) >= FAR_SCALES * scale and abs(effect) >= YOUNG_EFFECT else None


def _known(table: Table, row: int, first: int, decision: Decision, fleet: FleetNight) -> FloatArray:
    """Return the row's values from a column to tonight, tonight's freed of what is known to be the machine's."""
    values = finite(table.values[row, first : decision.night - table.offset + 1])
    freed = decision.state.fixed.get(decision.night)
    together = fleet.decided.common
    # a common shift of unknown cause may be TVM's: it is not taken out
    if together is not None and together.cause.whose == UNKNOWN:
        return values
    if freed is not None and decision.state.unit is None and len(values):
        values[-1] = math.exp(freed)
    return values


def _shift(before: FloatArray, now: float, unit: float | None = None) -> float | None:
    """Return the distance of `now` from the median before, as a fraction of it or in `unit`; None where unknown."""
    if not len(before) or (unit is None and not (before > 0).all()):
        return None
    middle = float(np.median(before))
    return (now - middle) / (unit or middle)


def _scatter(table: Table, rows: Sequence[int], night: int) -> float | None:
    """Return the median scatter (logarithm) of the fleet's series from night to night; None where too few.

    With tonight, so that a loaded night, which moves most of them, makes few suspicious.
    """
    stop = night + 1 - table.offset
    values = table.values[rows, max(0, stop - _POOLED_NIGHTS) : stop]
    with np.errstate(invalid="ignore", divide="ignore"):
        steps = np.diff(np.log(np.where(values > 0, values, np.nan)), axis=1)
    known = np.abs(steps[np.isfinite(steps)])
    return MAD_TO_SD * float(np.median(known)) / math.sqrt(2) if len(known) >= 2 * EXPECTED_NIGHTS else None
