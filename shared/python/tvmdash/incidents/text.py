"""Incidents in words: what moved, from, to, by how much, since when, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tvmdash.common import format_day, parse_stamp
from tvmdash.incidents.cause_text import describe_cause
from tvmdash.incidents.events import BisectionAnswer, Moved, MovedFunction
from tvmdash.incidents.headline import format_headline, format_size, shorten
from tvmdash.incidents.ledger import CREEP, MACHINE, Incident
from tvmdash.text import elide, format_exact, format_list, format_percent, format_quantity

_TOLD_SERIES = 4
_TOLD_FUNCTIONS = 3
_NAME_COLUMNS = 100
_LEAST_SHOWN = 0.0005
_MOST_ERRORS = 10
"""Less than this share of an exact number is told in its unit alone."""


def format_nights(count: int) -> str:
    return f"{count} night{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class IncidentText:
    """An incident in words: a line for each series and for what else is known, then since when and how sure."""

    id: str
    lines: tuple[str, ...]
    since: str

    def __str__(self) -> str:
        return "\n".join([*self.lines, f"{self.since} Incident {self.id}.".lstrip()])


def describe(incident: Incident) -> str:
    """A few lines for people: each series, then since when and which TVM, then how sure."""
    return str(format_incident(incident))


def format_incident(incident: Incident) -> IncidentText:
    """Describe it as `describe` does, in parts."""
    since = " ".join(filter(None, (_format_since(incident), _format_certainty(incident)))).replace("  ", " ")
    return IncidentText(incident.id, tuple(_format_lines(incident)), since)


def _format_lines(incident: Incident) -> Iterator[str]:
    shown = incident.worst_first
    for moved in shown[:_TOLD_SERIES]:
        yield f"{elide(moved.name, _NAME_COLUMNS)} is {_format_verdict(moved)}: {_format_from_to(moved)}."
        if moved.functions:
            yield f"In {_format_functions(moved)}."
    if len(shown) > _TOLD_SERIES:
        more = [series.name for series in shown[_TOLD_SERIES:]]
        yield f"And {len(more)} more: {format_list(more, 4)}."
    if incident.size is not None:
        yield f"{format_headline(incident)} ({incident.fleet_name or incident.fleet})."
    if incident.bisected:
        yield format_bisection(incident.bisected)


def _format_functions(moved: Moved) -> str:
    """Name the functions that moved, as in `function softmax_kernel: 40 → 41 registers`."""
    told = [_format_function(function, moved.unit) for function in moved.functions[:_TOLD_FUNCTIONS]]
    others = len(moved.functions) + moved.more_functions - len(told)
    word = "function" if len(told) + others == 1 else "functions"
    more = f"; and {others} more" if others else ""
    return f"{word} {'; '.join(told)}{more}"


def _format_function(function: MovedFunction, unit: str) -> str:
    if function.before is None:
        return f"{function.name}: new, {format_exact(function.after or 0.0, unit)}"
    if function.after is None:
        return f"{function.name}: gone, {format_exact(function.before, unit)}"
    if function.before == function.after:
        return f"{function.name}: other code, {format_exact(function.after, unit)} as before"
    return f"{function.name}: {format_exact(function.before, '')} → {format_exact(function.after, unit)}"


def format_bisection(result: BisectionAnswer) -> str:
    """Describe the result in one sentence or two."""
    effect, low, high = map(format_percent, (result.effect, result.low, result.high))
    size = f"{effect} (95 %: {low} to {high})"
    how = f"{100 * min(result.probability, 0.999):.3g} % sure, {result.builds} builds"
    named = [replace(suspect, title=elide(suspect.title, 80)).text for suspect in result.suspects]
    if result.count == 1:
        return f"Bisected: it came with {named[0]}, {size}; {how}."
    several = format_list(named, 3)
    return (
        f"Bisected: it came with one of {result.count} builds that could not be distinguished: {several}; {size}; "
        f"{how}."
    )


def _format_verdict(moved: Moved) -> str:
    up = moved.after > moved.before
    if moved.after == moved.before:
        return "another sum of the same size"
    if moved.is_time:
        return "slower" if up else "faster"
    if moved.unit in ("bytes", "B"):
        return "larger" if up else "smaller"
    return ("higher" if up else "lower") + ("" if moved.worse is None else f" ({moved.way})")


def format_level(value: float, moved: Moved) -> str:
    """A value of the series: all digits of an exact number, three of any other."""
    return (format_exact if moved.is_exact else format_quantity)(value, moved.unit)


def _format_from_to(moved: Moved) -> str:
    levels = f"{format_level(moved.before, moved)} → {format_level(moved.after, moved)}"
    if moved.is_exact:
        percent = f" ({format_percent(moved.effect)})" if moved.relative and abs(moved.effect) >= _LEAST_SHOWN else ""
        return f"{levels}, {format_size(moved)}{percent}"
    interval = ""
    if moved.relative and moved.low is not None and moved.high is not None:
        interval = f" (95 %: {format_percent(moved.low)} to {format_percent(moved.high)})"
    return f"{levels}, {format_size(moved)}{interval}"


def _format_since(incident: Incident) -> str:
    if incident.kind == CREEP:
        return f"Gradual change since the nights around {format_day(incident.begin)}."
    before, after = incident.versions
    if incident.kind == MACHINE and incident.blame == "machine":
        version = ""
    elif incident.is_rebuilt:
        version = f", with another build of TVM {shorten(after)} than before"
    elif before and before == after:
        version = f", TVM {shorten(after)} as before"
    else:
        version = f", first with TVM {shorten(after)}, last good {shorten(before) or 'unknown'}" if after else ""
    gap = (parse_stamp(incident.begin) - parse_stamp(incident.after)).total_seconds() / 86400
    last = f" (nothing was measured since {format_day(incident.after)})" if gap > 1.5 else ""
    return f"Since the night {format_day(incident.begin)}{last}{version}."


def format_measured_again(moved: Moved) -> str:
    """Say how often the series was measured again, and with what result, as a part of a sentence."""
    times = f"{moved.again_new} times each"
    if moved.again_new != moved.again_old:
        times = f"{moved.again_new} times, older artifacts {moved.again_old} times"
    if not moved.relative or moved.low is None or moved.high is None:
        return f"remeasured the same night, {times}: {format_size(moved)}"
    half = 50 * (moved.high - moved.low)
    return f"remeasured the same night, {times}: {format_size(moved)} ± {half:.{1 if half >= 0.095 else 2}f} %"


def _format_exact(incident: Incident) -> str:
    """Say why there is no doubt, and whose doing it is where that is not plainly TVM's."""
    if incident.blame == "machine" and not incident.notes:
        return "How sure: not exact: two values of one TVM by the same experiment. Neither is reported again."
    agreed = min(moved.processes or 0 for moved in incident.moved)
    sure = f"{agreed} processes agree" if agreed > 1 else "it has no noise"
    also = f" ({'; '.join(incident.notes)})" if incident.notes else ""
    blamed = _BLAMED[incident.blame].format(also=also) if incident.blame in _BLAMED else _format_notes(incident)
    return f"How sure: exact, {sure}. {blamed}".strip()


_BLAMED = {
    "experiment": "The artifact is the same on both nights; the experiment's own code or config changed{also}.",
    "machine": "Artifact and experiment are the same on both nights: something else on the machine changed{also}.",
    "unknown": "TVM and the experiment itself both changed{also}; either may be the cause.",
}


def _format_certainty(incident: Incident) -> str:
    if incident.is_exact:
        return _format_exact(incident)
    if incident.kind == MACHINE and incident.cause is not None:
        notes = "".join(f" {note[:1].upper()}{note[1:]}." for note in incident.notes)
        return f"{describe_cause(incident.cause)}{notes}"
    if incident.kind == MACHINE:
        whose = "This is the machine, not TVM" if incident.blame == "machine" else "The machine, or all of TVM"
        return f"{whose}: {'; '.join(incident.notes)}."
    cause = f"{describe_cause(incident.cause)} " if incident.cause is not None else ""
    return f"{cause}{_format_statistics(incident)}"


def _format_notes(incident: Incident) -> str:
    """Name what else changed that night."""
    # A newer LLVM in TVM's wheel is as much a suspect as its commits.
    return f"At that night also: {'; '.join(incident.notes)}." if incident.notes else ""


def format_errors(z: float) -> str:
    """Give the distance from no change; beyond ten, a number would only tell how well the noise is known."""
    return f"{abs(z):.1f} standard errors" if abs(z) < _MOST_ERRORS else f"more than {_MOST_ERRORS} standard errors"


def _format_statistics(incident: Incident) -> str:
    """Weigh the shift against the noise, or against remeasurements; name what else changed that night."""
    also = f" {_format_notes(incident)}".rstrip()
    again = max(
        (series for series in incident.moved if series.again_new), key=lambda series: abs(series.effect), default=None
    )
    if again is not None:
        return f"How sure: {format_measured_again(again)}.{also}"
    best = max(incident.moved, key=lambda series: abs(series.z or 0), default=None)
    if best is None or best.z is None:
        return also.strip()
    over = f" over {format_nights(best.nights)}" if best.nights else ""
    return f"How sure: {format_errors(best.z)}{over}.{also}"
