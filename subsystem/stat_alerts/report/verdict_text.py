"""The headline of a verdict: the night's outcome, then whatever else must not go untold."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from report.findings import Findings
from tvmdash.incidents.headline import fit_headline, format_effect, format_range
from tvmdash.incidents.headline import format_headline as incident_headline
from tvmdash.incidents.ledger import COMPILER, Incident
from tvmdash.text import elide, elide_begin, format_exact, format_list, format_percent
from tvmdash.verdict import (
    MATTERS,
    MOST_TITLE,
    Absence,
    BesideReference,
    Difference,
    ExactDifference,
    Level,
    Missing,
    OverMachines,
    Suspect,
)

NOTHING_MEASURED = "Nothing was measured tonight"
_NAMED, _NAME = 3, 70
_ABSENCES = {
    Absence.FAILED: "{} failed",
    Absence.BLOCKED: "{} was blocked",
    Absence.NOT_RUN: "{} did not run",
    Absence.NO_VALUE: "{} ran without measuring them",
}


def headline(level: Level, findings: Findings) -> str:
    """Write the verdict in one line, without a full stop."""
    return "; ".join([lead(level, findings), *map(_lower, _besides(level, findings))])


def title(level: Level, findings: Findings) -> str:
    """Write the verdict in at most 60 characters: what comes first where it is as short, else its essence."""
    whole = lead(level, findings)
    return whole if len(whole) <= MOST_TITLE else _shorten(level, findings).title


def reasons(level: Level, findings: Findings) -> tuple[str, ...]:
    """List what the title leaves out."""
    is_whole = len(lead(level, findings)) <= MOST_TITLE
    left_out = "" if is_whole else _shorten(level, findings).left_out
    return (*filter(None, [left_out]), *_besides(level, findings))


@dataclass(frozen=True)
class _Short:
    """A title in parts: `brief` gives its middle in so many columns, `full` the same without limit.

    rest: clauses that the title has no room for.
    """

    begin: str
    full: str
    brief: Callable[[int], str]
    end: str = ""
    rest: tuple[str, ...] = ()

    @property
    def _shown(self) -> str:
        return self.brief(MOST_TITLE - len(self.begin) - len(self.end))

    @property
    def title(self) -> str:
        return f"{self.begin}{self._shown}{self.end}"

    @property
    def left_out(self) -> str:
        """The clauses, and what the title shows less of its middle; "" where it says all."""
        rest = "; ".join(filter(None, self.rest))
        if not self.full.startswith(self._shown):
            return "; ".join(filter(None, (self.full, rest)))
        more = re.sub(r"^[,; ]+|^\((.*)\)$", r"\1", self.full.removeprefix(self._shown).removeprefix(" slower").strip())
        return "; ".join(filter(None, (rest[:1].upper() + rest[1:], more)))


def _shorten(level: Level, findings: Findings) -> _Short:
    if _begins_beside(level, findings) and level not in (Level.INCOMPLETE, Level.BLIND):
        return _shorten_beside(level, findings)
    short = _SHORT[level](findings)
    if findings.beside is None or not _begins_beside(level, findings):
        return short
    return replace(short, rest=(*short.rest, _lower(describe_beside(findings.beside))))


def lead(level: Level, findings: Findings) -> str:
    """Write what comes first: on the first night beside a reference the comparison, where nothing graver holds."""
    beside = findings.beside
    if beside is None or not _begins_beside(level, findings):
        return _MAIN[level](findings)
    if level in (Level.INCOMPLETE, Level.BLIND):
        return f"{describe_beside(beside)}; {_lower(_MAIN[level](findings))}"
    return (
        f"{describe_beside(beside)}; {_lower(_improvement(findings))}"
        if level == Level.IMPROVED
        else describe_beside(beside)
    )


def _begins_beside(level: Level, findings: Findings) -> bool:
    """Tell whether the headline begins with a reference that TVM was never measured beside before."""
    graver = (Level.NO_DATA, Level.REGRESSION, Level.SUSPECT)
    first = findings.beside is not None and findings.beside.is_first
    return first and level not in graver and not findings.changed


def _lower(text: str) -> str:
    """Lower the first letter of a text after others in a sentence; it may begin with a name."""
    return text[:1].lower() + text[1:] if text.startswith(_WORDS) else text


_WORDS = ("Fixed: ", "Changed: ", "Withdrawn: ", "Nothing ", "Too ", "Possibly ", "No ", "Beside ")


def describe_beside(beside: BesideReference) -> str:
    """Compare tonight's TVM with the reference, as the beginning of a sentence."""
    if beside.is_itself:
        return f"TVM {beside.reference} was measured against itself in {_count(beside)} (an A/A test)"
    if not beside.series:
        return _describe_numbers(beside)
    return "; ".join([_describe_times(beside), *([_describe_exact(beside.exact)] if beside.exact else [])])


def _describe_numbers(beside: BesideReference) -> str:
    """Compare where nothing was measured in turn."""
    if not beside.exact:
        return f"No difference from TVM {beside.reference} in {_count_numbers(beside)}"
    return f"Beside TVM {beside.reference}, of {_count_numbers(beside)} {_describe_exact(beside.exact, short=True)}"


def _count(beside: BesideReference) -> str:
    return f"{beside.series} series" if beside.series else _count_numbers(beside)


def _count_numbers(beside: BesideReference) -> str:
    return f"{beside.numbers} exact number{'' if beside.numbers == 1 else 's'}"


def _describe_exact(differences: Sequence[ExactDifference], *, short: bool = False) -> str:
    noun = "" if short else " exact number" if len(differences) == 1 else " exact numbers"
    verb = "differs" if len(differences) == 1 else "differ"
    return f"{len(differences)}{noun} {verb}: {_list_exact(differences)}"


def _list_exact(differences: Sequence[ExactDifference]) -> str:
    return format_list([exact_text(each) for each in differences], 1)


def exact_text(difference: ExactDifference) -> str:
    """Write the number and how far it is from the reference's, in its unit."""
    size = format_exact(difference.value - difference.reference, difference.unit, sign=True)
    return f"{elide(difference.name, _NAME)} {size}{' (worse)' * bool(difference.worse)}"


def _describe_times(beside: BesideReference) -> str:
    if not beside.differences:
        return f"No difference from TVM {beside.reference} beyond noise in {beside.series} series"
    return f"Beside TVM {beside.reference}, of {beside.series} series {_list_times(beside)}"


def _list_times(beside: BesideReference) -> str:
    worse = [difference for difference in beside.differences if difference.worse]
    better = [difference for difference in beside.differences if difference.worse is False]
    parts = [f"{len(worse)} slower ({_first(worse)})"] if worse else []
    parts += [f"{len(better)} faster ({_first(better)})"] if better else []
    return " and ".join(parts)


def _first(differences: Sequence[Difference]) -> str:
    """Name the largest, with its interval."""
    first = max(differences, key=lambda difference: abs(difference.effect))
    low, high = format_percent(first.low), format_percent(first.high)
    most = "" if len(differences) == 1 else "most "
    return f"{most}{elide(first.name, _NAME)} {format_percent(first.effect)}, 95 %: {low} to {high}"


def _besides(level: Level, findings: Findings) -> list[str]:
    if level == Level.NO_DATA:
        return []
    shown = level in (Level.STEADY, Level.INCOMPLETE)  # these begin with it
    clauses = [_absences(findings)] if findings.missing and level != Level.INCOMPLETE else []
    clauses += [incident_headline(incident) for incident in findings.machine[:1]] if not shown else []
    if findings.has_improved and level in (Level.CHANGED, Level.BLIND):
        clauses.append(_improvement(findings))
    if findings.withdrawn:
        clauses.append(f"Withdrawn: {_worst(findings.withdrawn, findings)}")
    if findings.blind and level != Level.BLIND:
        clauses.append(f"{findings.blind} series could not have shown a change of {_MATTERS}{_name_blind(findings)}")
    return clauses


def _name_blind(findings: Findings) -> str:
    """Name the metrics and experiments of blind series."""
    groups = [f"{metric.replace('_', ' ')} of {elide(experiment, _NAME)}" for metric, experiment in findings.blind_of]
    return f" ({format_list(groups, 2)})" if groups else ""


def _regression(findings: Findings) -> str:
    if findings.new:
        ours = max(findings.new, key=attrgetter("magnitude")).blame == COMPILER
        direction = _direction(findings.new)
        what = f"TVM got {direction}" if ours else f"{direction.capitalize()}, cause unknown"
        return f"{what}: {_worst(findings.new, findings, since=True)}"
    are = "1 regression is" if len(findings.still) == 1 else f"{len(findings.still)} regressions are"
    return f"Nothing new; {are} open: {_worst(findings.still, findings)}"


def _direction(incidents: Sequence[Incident]) -> str:
    are_times = all(moved.is_time for incident in incidents for moved in incident.moved if moved.worse)
    return "slower" if are_times else "worse"


def _worst(incidents: Sequence[Incident], findings: Findings, *, since: bool = False) -> str:
    """Name the worst of them, where asked between which TVMs it came, and how many others there are."""
    first = max(incidents, key=attrgetter("magnitude"))
    others = len(incidents) - 1
    more = "" if not others else ", and 1 more incident" if others == 1 else f", and {others} more incidents"
    between = format_range(first.versions) if since else ""
    return _where(first, findings.machines.get(first.id)) + (f" since {between}" if between else "") + more


def _where(incident: Incident, over: OverMachines | None) -> str:
    """Name the incident in a few words, and the machines it is on."""
    if over is None:
        return incident_headline(incident)
    what, every = incident_headline(incident), [*over.moved, *over.calm, *over.unknown]
    is_in_percent = not incident.is_exact and all(moved.relative for moved in incident.moved)
    if over.name and len(over.moved) > 1 and is_in_percent:
        what = f"{elide(over.name, _NAME)} {_size_over(incident, over)}"
    if len(over.moved) == len(every):
        return f"{what} on all {len(every)} machines"
    alone = " alone" if len(over.moved) == 1 else ""
    unknown = f" (unknown for {format_list(over.unknown, _NAMED)})" if over.unknown else ""
    return f"{what} on {format_list(over.moved, _NAMED)}{alone} of {len(every)} machines{unknown}"


def _size_over(incident: Incident, over: OverMachines) -> str:
    """Write the change over all machines, or from the least to the largest of them."""
    if over.effect is not None and over.low is not None and over.high is not None:
        low, high = format_percent(over.low), format_percent(over.high)
        return f"{format_percent(over.effect)} (95 %: {low} to {high})"
    effects = sorted(moved.effect for moved in incident.moved)
    return " to ".join(dict.fromkeys(format_percent(effect) for effect in (effects[0], effects[-1])))


def _changes(findings: Findings) -> str:
    """Name the largest; several series' headline says itself that they changed, and a name keeps its first letter."""
    text, moved = _worst(findings.changed, findings), max(findings.changed, key=attrgetter("magnitude")).moved
    is_name = any(series.workload and text.startswith(series.workload[:8]) for series in moved)
    return f"Changed: {text}" if len(moved) == 1 else text if is_name else text[:1].upper() + text[1:]


def _suspicion(findings: Findings) -> str:
    suspects = [suspect for suspect in findings.suspects if suspect.worse is not False]
    return f"Possibly {'worse' if suspects[0].worse else 'changed'}, not yet confirmed: {_several_suspects(suspects)}"


def _several_suspects(suspects: Sequence[Suspect]) -> str:
    """Name the first of them, and how many others there are."""
    more = f", and {len(suspects) - 1} more" if len(suspects) > 1 else ""
    return f"{suspect_text(suspects[0])}{more}"


def suspect_text(suspect: Suspect) -> str:
    """Write the series and how far it is from its level, with its interval where that is known."""

    def form(effect: float) -> str:
        return format_effect(effect, relative=suspect.relative)

    size = form(suspect.effect)
    if suspect.low is not None and suspect.high is not None:
        low, high = form(suspect.low), form(suspect.high)
        size += f"{'' if suspect.paired else ' when measured again'} (95 %: {low} to {high})"
    return f"{elide(suspect.name, _NAME)} {size}"


def _incomplete(findings: Findings) -> str:
    return f"{_moved_beside_absences(findings)}, but {_absences(findings)}"


def _moved_beside_absences(findings: Findings) -> str:
    if findings.has_improved:
        return _improvement(findings)
    if findings.machine:
        return incident_headline(findings.machine[0])
    if findings.suspects:
        return f"Possibly better, not yet confirmed: {_several_suspects(findings.suspects)}"
    return "Nothing moved"


def _improvement(findings: Findings) -> str:
    """Name what got better; where nothing did, what went back to where it was."""
    if findings.better:
        return f"TVM got better: {_worst(findings.better, findings)}"
    return f"Fixed: {_worst(findings.fixed, findings)}"


def _absences(findings: Findings) -> str:
    count = sum(absence.series for absence in findings.missing)
    verb = "has" if count == 1 else "have"
    why = [_absence(absence) for absence in findings.missing]
    return f"{count} of {findings.expected} series {verb} no value: {format_list(why, _NAMED)}"


def _absence(missing: Missing) -> str:
    return _ABSENCES[missing.why].format(elide(missing.experiment, _NAME))


def _steady(findings: Findings) -> str:
    first = incident_headline(findings.machine[0]) if findings.machine else "TVM did not get slower"
    if findings.suspects:
        return f"{first}; possibly better, not yet confirmed: {_several_suspects(findings.suspects)}"
    if findings.machine:
        return f"{first}; nothing else moved beyond its noise"
    return f"{first}: nothing moved beyond its noise"


def _blind(findings: Findings) -> str:
    young, noisy, seen = findings.decisive
    if young >= noisy:
        return f"Too early to tell: {young} of {seen} series have too few nights to be judged"
    return f"Too noisy to tell: {noisy} of {seen} series could not have shown a change of {_MATTERS}"


def _shorten_beside(level: Level, findings: Findings) -> _Short:
    beside = findings.beside
    assert beside is not None
    other, differ = f"TVM {beside.reference}", len(beside.differences) or len(beside.exact)
    verb, end = "differs" if differ == 1 else "differ", ""
    if beside.is_itself:
        begin, end, rest = "", " was measured against itself", f"an A/A test in {_count(beside)}"
    elif not differ:
        begin, rest = "No difference from ", f"none{' beyond noise' * bool(beside.series)} in {_count(beside)}"
    elif beside.differences:
        begin = f"{differ} of {beside.series} series {verb} from "
        rest = "; ".join([_list_times(beside), *([_describe_exact(beside.exact)] if beside.exact else [])])
    else:
        begin = f"{differ} of {_count_numbers(beside)} {verb} from "
        calm = f"none of {beside.series} series differs beyond noise; " if beside.series else ""
        rest = f"{calm}{'it is' if differ == 1 else 'they are'} {_list_exact(beside.exact)}"
    also = _lower(_improvement(findings)) if level == Level.IMPROVED else ""
    return _Short(begin, other, functools.partial(elide, other), end, (rest, also))


def _shorten_incidents(begin: str, incidents: Sequence[Incident], findings: Findings, *rest: str) -> _Short:
    others, first = len(incidents) - 1, max(incidents, key=attrgetter("magnitude"))
    end = f", {others} more" if others else ""
    full = _where(first, findings.machines.get(first.id))
    return _Short(f"{begin}: ", full, functools.partial(fit_headline, first), end, rest)


def _shorten_regression(findings: Findings) -> _Short:
    if not findings.new:
        count = len(findings.still)
        begin = f"{count} open regression{'' if count == 1 else 's'}"
        return _shorten_incidents(begin, findings.still, findings, "nothing is new")
    first = max(findings.new, key=attrgetter("magnitude"))
    direction, between = _direction(findings.new), format_range(first.versions)
    since = f"{'the largest ' * (len(findings.new) > 1)}since {between}" if between else ""
    rest = "" if first.blame == COMPILER else "cause unknown", since
    begin = f"TVM got {direction}" if first.blame == COMPILER else direction.capitalize()
    return _shorten_incidents(begin, findings.new, findings, *rest)


def _shorten_changes(findings: Findings) -> _Short:
    short = _shorten_incidents("Changed", findings.changed, findings)
    return short if _changes(findings).startswith(short.begin) else replace(short, begin="")


def _shorten_suspects(findings: Findings) -> _Short:
    suspects = [suspect for suspect in findings.suspects if suspect.worse is not False]
    first = suspects[0]
    brief = f"{first.name} {format_effect(first.effect, relative=first.relative)}"
    end = f", {len(suspects) - 1} more" if len(suspects) > 1 else ""
    begin = f"Possibly {'worse' if first.worse else 'changed'}: "
    return _Short(begin, suspect_text(first), functools.partial(elide_begin, brief), end, ("not yet confirmed",))


def _shorten_absences(findings: Findings) -> _Short:
    count, first = sum(absence.series for absence in findings.missing), findings.missing[0]
    begin, end = f"{count} of {findings.expected} series missing: ", _ABSENCES[first.why].format("")
    others = [_absence(absence) for absence in findings.missing[1:]]
    rest = (f"also {format_list(others, _NAMED)}" if others else "", _lower(_moved_beside_absences(findings)))
    return _Short(begin, first.experiment, functools.partial(elide, first.experiment), end, rest)


def _shorten_improvement(findings: Findings) -> _Short:
    if findings.better:
        return _shorten_incidents("TVM got better", findings.better, findings)
    return _shorten_incidents("Fixed", findings.fixed, findings)


def _shorten_to(begin: str, whole: str) -> _Short:
    """Shorten a sentence to its beginning; the rest is told below."""
    return _Short(begin, "", lambda _: "", "", (whole.removeprefix(begin).lstrip(":; "),))


_MATTERS = f"{100 * MATTERS:.0f} %"
_MAIN: Mapping[Level, Callable[[Findings], str]] = {
    Level.REGRESSION: _regression,
    Level.SUSPECT: _suspicion,
    Level.CHANGED: _changes,
    Level.INCOMPLETE: _incomplete,
    Level.BLIND: _blind,
    Level.IMPROVED: _improvement,
    Level.STEADY: _steady,
    Level.NO_DATA: lambda _: NOTHING_MEASURED,
}
_SHORT: Mapping[Level, Callable[[Findings], _Short]] = {
    Level.REGRESSION: _shorten_regression,
    Level.SUSPECT: _shorten_suspects,
    Level.CHANGED: _shorten_changes,
    Level.INCOMPLETE: _shorten_absences,
    Level.BLIND: lambda findings: _shorten_to(_blind(findings).partition(": ")[0], _blind(findings)),
    Level.IMPROVED: _shorten_improvement,
    Level.STEADY: lambda findings: _shorten_to("TVM did not get slower", _steady(findings)),
    Level.NO_DATA: lambda _: _shorten_to(NOTHING_MEASURED, NOTHING_MEASURED),
}
"""The titles of verdicts that take more words."""
