"""The headline of a verdict: what the night comes to, then whatever else must not go untold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from report.findings import Findings
from tvmdash.incidents.ledger import COMPILER, Incident
from tvmdash.incidents.text import headline as incident_headline
from tvmdash.text import elide, format_list, format_percent
from tvmdash.verdict import MATTERS, Absence, Level, Missing, Standing, Suspect

NOTHING_MEASURED = "Nothing was measured tonight"
_NAMED, _NAME = 3, 70
_ABSENCES = {
    Absence.FAILED: "{} failed",
    Absence.BLOCKED: "{} was blocked",
    Absence.NOT_RUN: "{} did not run",
    Absence.NO_VALUE: "{} ran without measuring them",
}


def headline(level: Level, found: Findings) -> str:
    """The verdict in one line, without a full stop."""
    return "; ".join([_MAIN[level](found), *_besides(level, found)])


def _besides(level: Level, found: Findings) -> list[str]:
    if level == Level.NO_DATA:
        return []
    shown = level in (Level.STEADY, Level.INCOMPLETE)  # these begin with it
    words = [incident_headline(incident) for incident in found.machine[:1]] if not shown else []
    if found.missing and level != Level.INCOMPLETE:
        words.append(_absences(found))
    if found.blind and level != Level.BLIND:
        words.append(f"{found.blind} series could not have shown a change of {_MATTERS}")
    return words


def _regression(found: Findings) -> str:
    if found.new:
        ours = max(found.new, key=_size).blame == COMPILER
        direction = _direction(found.new)
        return f"{f'TVM got {direction}' if ours else f'{direction.capitalize()}, cause unknown'}: {_worst(found.new)}"
    are = "1 regression is" if len(found.still) == 1 else f"{len(found.still)} regressions are"
    return f"Nothing new; {are} open: {_worst(found.still)}"


def _direction(incidents: Sequence[Incident]) -> str:
    are_times = all(moved.is_time for incident in incidents for moved in incident.moved if moved.worse)
    return "slower" if are_times else "worse"


def _worst(incidents: Sequence[Incident]) -> str:
    """The worst of them, and how many others there are."""
    first = max(incidents, key=_size)
    return incident_headline(first) + (f", and {len(incidents) - 1} more" if len(incidents) > 1 else "")


def _size(incident: Incident) -> float:
    """How far its worst series moved, or the machine, as a fraction."""
    moved = [abs(series.effect) for series in incident.moved if series.worse or not incident.is_worse]
    return max(moved, default=abs(incident.size or 0.0))


def _suspicion(found: Findings) -> str:
    told = [suspect for suspect in found.suspects if suspect.worse is not False]
    return f"Perhaps {'worse' if told[0].worse else 'changed'}, not confirmed yet: {_several_suspects(told)}"


def _several_suspects(suspects: Sequence[Suspect]) -> str:
    """The first of them, and how many others there are."""
    more = f", and {len(suspects) - 1} more" if len(suspects) > 1 else ""
    return f"{suspect_text(suspects[0])}{more}"


def suspect_text(suspect: Suspect) -> str:
    """The series and how far it is from its level, with the interval where it was measured again."""
    size = format_percent(suspect.effect)
    if suspect.low is not None and suspect.high is not None:
        low, high = format_percent(suspect.low), format_percent(suspect.high)
        size += f" when measured again (95 %: {low} to {high})"
    return f"{elide(suspect.name, _NAME)} {size}"


def _incomplete(found: Findings) -> str:
    if found.better:
        moved = _improvement(found)
    elif found.machine:
        moved = incident_headline(found.machine[0])
    elif found.suspects:
        moved = f"Perhaps better, not confirmed yet: {_several_suspects(found.suspects)}"
    else:
        moved = "Nothing moved"
    return f"{moved}, but {_absences(found)}"


def _improvement(found: Findings) -> str:
    return f"TVM got better: {_worst(found.better)}"


def _absences(found: Findings) -> str:
    count = sum(absence.series for absence in found.missing)
    verb = "has" if count == 1 else "have"
    why = [_absence(absence) for absence in found.missing]
    return f"{count} of {found.expected} series {verb} no value: {format_list(why, _NAMED)}"


def _absence(missing: Missing) -> str:
    return _ABSENCES[missing.why].format(elide(missing.title, _NAME))


def _steady(found: Findings) -> str:
    first = incident_headline(found.machine[0]) if found.machine else "TVM did not get slower"
    if found.suspects:
        return f"{first}; perhaps better, not confirmed yet: {_several_suspects(found.suspects)}"
    if found.machine:
        return f"{first}; nothing else moved beyond its noise"
    return f"{first}: nothing moved beyond its noise"


def _blind(found: Findings) -> str:
    young, noisy = found.counts[Standing.YOUNG], found.counts[Standing.BLIND]
    if young >= noisy:
        return f"Too early to tell: {young} of {found.seen} series have too few nights to be judged"
    return f"Too noisy to tell: {noisy} of {found.seen} series could not have shown a change of {_MATTERS}"


_MATTERS = f"{100 * MATTERS:.0f} %"
_MAIN: Mapping[Level, Callable[[Findings], str]] = {
    Level.REGRESSION: _regression,
    Level.SUSPECT: _suspicion,
    Level.CHANGED: lambda found: f"Changed: {_worst(found.changed)}",
    Level.INCOMPLETE: _incomplete,
    Level.BLIND: _blind,
    Level.IMPROVED: _improvement,
    Level.STEADY: _steady,
    Level.NO_DATA: lambda _: NOTHING_MEASURED,
}
