"""The night in words for a tired person, and as the page's data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from judging.evidence import Confirmation, Evidence
from judging.exact import Exact
from judging.false_positive_rate import TARGET, UNCHANGED, Rate
from judging.judge import Judged, Options
from judging.table import Table, last_values
from rerun.outcomes import lines as measured_again

from report.standings import EXPECTED_NIGHTS, SeriesStanding
from report.verdict_text import describe_beside, exact_text, suspect_text
from tvmdash.common import structured
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.annotations import RETIRED, Annotation
from tvmdash.incidents.headline import format_headline
from tvmdash.incidents.ledger import CHANGE, Event, Incident, Ledger, iso_of
from tvmdash.incidents.reason_text import format_reason
from tvmdash.incidents.text import describe
from tvmdash.judge.history.cause import Reason, ReasonKind
from tvmdash.judge.history.grade import noise_grade
from tvmdash.subsys_templates import Report
from tvmdash.text import elide, elide_begin, format_list, format_percent
from tvmdash.verdict import ByChance, NightVerdict, PlantedStep, Sensitivity, SeriesOf
from tvmdash.verdict import Evidence as SeriesEvidence
from tvmdash.verdict.page import (
    SCHEMA_VERSION,
    AlertsPage,
    AnnotationNote,
    Honesty,
    SeriesBeside,
    SeriesVerdict,
    ToldIncident,
)
from tvmdash.verdict.remeasured import ConfirmationSummary


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


MOST_CHARS = 6000
_SHOWN_NIGHTS = 30
_SHOWN_SUSPECTS, _SHOWN_EXACT = 8, 3
_SHOWN_IDS = 5
_NAME = 60


def report(verdict: NightVerdict, lines: Sequence[ReportLine]) -> Report:
    """Write the verdict and the lines, as many as a report holds."""
    return Report(verdict.headline, _cut("\n".join(line.text for line in lines)))


def report_lines(
    table: Table,
    judged: Judged,
    ledger: Ledger,
    events: Sequence[Event],
    rates: Mapping[str, Rate],
    verdict: NightVerdict,
    retired: AbstractSet[str],
) -> list[ReportLine]:
    """Write what is suspected, new, gone, open, and could not be judged though it is not retired."""
    now = iso_of(table.stamps[judged.night])
    named = [ledger.incidents[event.incident] for event in events if event.incident in ledger.incidents]
    silent = {incident.id for incident in ledger.incidents.values() if ledger.silent(incident, now)}
    new = [
        incident
        for incident in ledger.incidents.values()
        if incident.found == table.stamps[judged.night] and incident.id not in silent
    ]
    lines = [*lines_about(sorted(new, key=_rank))]
    lines += _followed(ledger, events, {incident.id for incident in new} | silent)
    still = [incident for incident in ledger.open() if incident not in new and incident.id not in silent]
    if still:
        still_text = format_list(
            [f"{format_headline(incident)} ({incident.id}, {incident.state})" for incident in still], _SHOWN_IDS
        )
        lines.append(ReportLine(f"Still open: {still_text}.", _ids(still)))
    hushed = [
        incident
        for incident in {incident.id: incident for incident in (*named, *ledger.open())}.values()
        if incident.id in silent
    ]
    if hushed:
        lines.append(
            ReportLine(f"Silenced: {format_list([incident.id for incident in hushed], _SHOWN_IDS)}.", _ids(hushed))
        )
    lines += map(ReportLine, measured_again(judged.confirmation) if judged.confirmation else ())
    reported = {moved.series for incident in ledger.incidents.values() for moved in incident.moved}
    exact = {each.series for each in verdict.series if each.evidence is SeriesEvidence.EXACT}
    lines += map(ReportLine, _not_judged(table, judged, exact, reported, retired))
    lines += map(ReportLine, _came_and_went(verdict))
    lines += map(ReportLine, _put_aside(verdict))
    if not new and not (verdict.beside and verdict.beside.is_first):
        lines.insert(0, ReportLine(_quiet(judged, verdict)))
    return [
        *map(ReportLine, _suspects(verdict)),
        *map(ReportLine, _differences(verdict)),
        *lines,
        *map(ReportLine, _format_sensitivity(verdict.sensitivity)),
        *map(ReportLine, _format_chance(verdict.by_chance)),
        *map(ReportLine, _format_false_positive_rate(rates)),
    ]


def _ids(incidents: Sequence[Incident]) -> frozenset[str]:
    """Return the IDs of as many as a line shows."""
    return frozenset(incident.id for incident in incidents[:_SHOWN_IDS])


def _rank(incident: Incident) -> tuple[bool, bool, float]:
    size = max((abs(moved.effect) for moved in incident.moved), default=abs(incident.size or 0.0))
    return not incident.is_worse, incident.kind != CHANGE, -size


def _suspects(verdict: NightVerdict) -> Iterable[str]:
    if verdict.suspects:
        shown = [suspect_text(suspect) for suspect in verdict.suspects]
        yield f"Outside their noise but not yet confirmed: {format_list(shown, _SHOWN_SUSPECTS)}."
    names, waiting = {suspect.series: suspect.name for suspect in verdict.suspects}, dict[Reason, list[str]]()
    for series in verdict.series:
        if series.reason and series.reason.kind == ReasonKind.TOO_SHORT and series.series in names:
            waiting.setdefault(series.reason, []).append(names[series.series])
    for reason, several in waiting.items():
        listed = format_list([elide_begin(name, _NAME) for name in several], _SHOWN_SUSPECTS)
        night = f"this is night {reason.nights}"
        yield f"Not reported before night {reason.needed:g} unless confirmed sooner ({night}): {listed}."


def _differences(verdict: NightVerdict) -> Iterable[str]:
    """Compare tonight's TVM with the reference, on its first night beside it."""
    if verdict.beside is not None and verdict.beside.is_first:
        yield f"{describe_beside(verdict.beside)}."
        shown = [
            f"{elide(difference.name, _NAME)} {format_percent(difference.effect)}"
            f" (95 %: {format_percent(difference.low)} to {format_percent(difference.high)})"
            for difference in verdict.beside.differences
        ]
        if len(shown) > 1:
            yield f"Differences measured in turn: {format_list(shown, _SHOWN_SUSPECTS)}."
        if len(verdict.beside.exact) > 1:
            exact = [exact_text(difference) for difference in verdict.beside.exact]
            yield f"Exact numbers that differ: {format_list(exact, _SHOWN_EXACT)}."


def _quiet(judged: Judged, verdict: NightVerdict) -> str:
    suspects = {suspect.series for suspect in verdict.suspects}
    count = len(judged.exact) + sum(
        not decision.reason.is_unjudged and key not in suspects
        for fleet in judged.fleets
        for key, decision in fleet.decided.decisions.items()
    )
    common = [fleet.decided.common for fleet in judged.fleets if fleet.decided.common is not None]
    text = f"Nothing {'else ' * bool(suspects)}moved beyond its noise in {count} series."
    text = text if count else "No series could be judged." if not suspects else "No other series could be judged."
    if common:
        shift = format_percent(common[0].shift)
        text += (
            f" Tonight all series moved together by {shift}; this common shift was removed before judging each of them."
        )
    return text


def _followed(ledger: Ledger, events: Sequence[Event], left_out: set[str]) -> Iterable[ReportLine]:
    for event in events:
        incident = ledger.incidents.get(event.incident)
        if incident is None or incident.id in left_out:
            continue
        own = frozenset({incident.id})
        if event.event == ledgers.JOINED:
            names = [str(series["name"]) for series in event.data["moved"]]
            yield ReportLine(f"Also moved at the same night as {incident.id}: {format_list(names, 4)}.", own)
        elif event.event == ledgers.STATE and event.who == ledgers.DETECTOR:
            word = str(event.data["state"]).replace("_", " ").capitalize()
            yield ReportLine(f"{word}: {format_headline(incident)} ({incident.id}): {event.data['words']}.", own)


_UNJUDGED = {
    ReasonKind.TOO_FEW_NIGHTS: "have too few nights ({needed:g} needed)",
    ReasonKind.NO_VALUE: "had no value tonight",
    ReasonKind.NEW_LEVEL: "started a new level a few nights ago",
    ReasonKind.NOT_POSITIVE: "had a value of 0 or less tonight",
}
"""In the order in which they are told."""


def _not_judged(
    table: Table, judged: Judged, exact: AbstractSet[str], reported: AbstractSet[str], retired: AbstractSet[str]
) -> Iterable[str]:
    """Write what could not be judged, so that silence means quiet; not what an incident says already.

    Nor that a retired series has no value: another line counts those. What is exact is judged from its first night on.
    """
    names: dict[ReasonKind, list[str]] = {}
    needed = 0.0
    for row, decision, _ in judged.decisions():
        reason = decision.reason
        told_elsewhere = {
            ReasonKind.TOO_FEW_NIGHTS: exact, ReasonKind.NEW_LEVEL: reported, ReasonKind.NO_VALUE: retired,
        }  # fmt: skip
        is_told = table.rows[row].key in told_elsewhere.get(reason.kind, ())
        if decision.kind == "quiet" and reason.is_unjudged and not is_told:
            names.setdefault(reason.kind, []).append(table.rows[row].name)
            needed = max(needed, reason.needed or 0.0)
    for kind, reason_text in _UNJUDGED.items():
        if kind in names:
            examples = format_list([elide(name, 60) for name in names[kind]], 2)
            yield f"Not judged: {len(names[kind])} series {reason_text.format(needed=needed)}: {examples}."


def _came_and_went(verdict: NightVerdict) -> Iterable[str]:
    for of_experiment in verdict.appeared:
        yield f"New: {_several(of_experiment)}."
    for of_experiment in verdict.vanished:
        yield f"No longer expected, because they had no value for {EXPECTED_NIGHTS} nights: {_several(of_experiment)}."


def _put_aside(verdict: NightVerdict) -> Iterable[str]:
    if verdict.retired:
        yield f"{verdict.retired} series {'is' if verdict.retired == 1 else 'are'} retired: not reported as missing."
    if verdict.muted:
        yield f"{verdict.muted} series {'is' if verdict.muted == 1 else 'are'} muted: judged but not reported."


def _several(series: SeriesOf) -> str:
    shown, more = [elide(name, _NAME) for name in series.names], series.series - len(series.names)
    names = f"{', '.join(shown)} and {more} more" if more else format_list(shown, len(shown))
    return f"{series.series} series of {elide(series.experiment, _NAME)}: {names}"


def _format_false_positive_rate(rates: Mapping[str, Rate]) -> Iterable[str]:
    rate = rates.get(UNCHANGED)
    if rate and rate.alerts and rate.rate is not None and rate.rate > TARGET:
        yield (
            f"Trust: on {rate.nights} series-nights of unchanged code the history alone alerts {rate.rate:.2f} times "
            f"per 1000 (95 %: below {rate.at_most:.2f}); the target is {TARGET}."
        )


def _format_sensitivity(seen: Sensitivity | None) -> Iterable[str]:
    """Write which steps put into copies would have been reported tonight."""
    steps = [step for step in seen.tonight if step.series] if seen else []
    if steps:
        first, *others = steps
        text = (
            f"Of {first.series} series beside the reference, a step of {100 * first.step:g} % would have been reported"
        )
        more = [f"of {100 * step.step:g} % in {_format_told(step)}" for step in others]
        yield ", ".join([f"{text} tonight in {_format_told(first)}", *more]) + "."


def _format_chance(chance: ByChance | None) -> Iterable[str]:
    """Write how often such a night reports something by chance."""
    if chance is not None:
        often = f"on at most {100 * chance.of_any:.2g} % of such nights"
        yield f"By chance something is reported {often}: {chance.source}."
        if chance.sure:
            yield f"How sure the least sure point of tonight is: {chance.sure}."


def _format_told(step: PlantedStep) -> str:
    return f"{step.told}{f' ({step.again} more after remeasuring)' if step.again else ''}"


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARS else text[: MOST_CHARS - 2].rsplit("\n", 1)[0] + "\n…"


def page(
    table: Table,
    judged: Judged,
    ledger: Ledger,
    rates: Mapping[str, Rate],
    options: Options,
    stands: Mapping[int, SeriesStanding],
) -> AlertsPage:
    """Collect what the website shows."""
    decided = [_series(table, row, decision, fleet, stands[row], judged) for row, decision, fleet in judged.decisions()]
    return AlertsPage(
        night=table.stamps[judged.night],
        series=(*decided, *(_exact(table, number, stands[number.row]) for number in judged.exact.values())),
        incidents=tuple(
            _report_incident(incident, ledger, iso_of(table.stamps[judged.night])) for incident in _newest(ledger)
        ),
        honesty=Honesty(TARGET, **{kind: rate.on_page for kind, rate in rates.items()}),
        annotations=tuple(_annotation(table, annotation) for annotation in options.annotations),
        stamps=tuple(table.stamps[-_SHOWN_NIGHTS:]),
        confirmation=_confirmation(judged, options),
    )


def page_to_json(page: AlertsPage, ledger: Ledger) -> dict[str, Any]:
    """Convert to page.json: each incident with all that is known of it."""
    value = structured.to_json(page)
    whole = [
        {**incident.to_json(), **written} for incident, written in zip(_newest(ledger), value["incidents"], strict=True)
    ]
    return {"schema_version": SCHEMA_VERSION, **value, "incidents": whole}


def _newest(ledger: Ledger) -> list[Incident]:
    return list(ledger.incidents.values())[::-1]


def _report_incident(incident: Incident, ledger: Ledger, now: str) -> ToldIncident:
    is_silent = ledger.silent(incident, now) is not None
    return ToldIncident(incident.id, is_silent, format_headline(incident), describe(incident))


def _confirmation(judged: Judged, options: Options) -> ConfirmationSummary:
    if judged.confirmation is None:
        return Confirmation(Evidence(""), off=options.confirm_off or "nothing is stored for this night").summary
    return judged.confirmation.summary


def _annotation(table: Table, annotation: Annotation) -> AnnotationNote:
    versions: dict[str, str] = {}
    for builds in table.versions.values():
        versions.update(builds)
    stamp = annotation.night({stamp: versions.get(stamp, "") for stamp in table.stamps})
    words = f"retired by {annotation.who}: {annotation.words}" if annotation.series == RETIRED else annotation.words
    return AnnotationNote(
        stamp, annotation.kind, words, annotation.scope, is_break=annotation.is_break, id=annotation.id
    )


def _named(table: Table, row: int, stand: SeriesStanding) -> dict[str, Any]:
    series = table.rows[row]
    effect, low, high = (stand.effect, stand.low, stand.high) if stand.relative else (None, None, None)
    return {
        "id": series.key,
        "name": series.name,
        "experiment": series.experiment,
        "metric": series.metric,
        "unit": series.unit,
        "standing": stand.kind,
        "effect": effect,
        "effect_low": low,
        "effect_high": high,
    }


def _exact(table: Table, number: Exact, stand: SeriesStanding) -> SeriesVerdict:
    return SeriesVerdict(
        **_named(table, number.row, stand),
        verdict="alert" if number.is_changed else "quiet",
        reason=number.reason,
        since=table.stamps[number.since],
        noise_grade="exact",
        noise=None,
        smallest_visible_change=None,
        control=False,
        last=tuple(last_values(table, number.row, _SHOWN_NIGHTS)),
    )


def _series(table: Table, row: int, decision: Any, fleet: Any, stand: SeriesStanding, judged: Judged) -> SeriesVerdict:
    series = table.rows[row]
    history = fleet.histories[series.key]
    grade = noise_grade(history, decision.state)
    return SeriesVerdict(
        **_named(table, row, stand),
        verdict=decision.kind,
        reason=format_reason(decision),
        why=decision.reason,
        z=decision.z,
        since=table.stamps[max(decision.state.start, table.offset)],
        noise_grade=grade.grade,
        noise=grade.scale,
        smallest_visible_change=stand.visible,
        control=series.key in fleet.controls,
        last=tuple(last_values(table, row, _SHOWN_NIGHTS)),
        beside=_beside(table, row, judged),
    )


def _beside(table: Table, row: int, judged: Judged) -> SeriesBeside | None:
    """Return None where the series was measured alone."""
    said = judged.beside.get(row)
    if said is None or said.reference is None:
        return None
    stand, build = said.reference, table.build(table.rows[row].experiment, judged.night)
    return SeriesBeside(build.reference_version or "", stand.effect, stand.low, stand.high, stand.differs)
