"""A signoff for people: one short table, the worst first, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tvmdash.incidents.headline import format_range, shorten
from tvmdash.incidents.ledger import ACKNOWLEDGED, EXPECTED
from tvmdash.records.metrics import is_worse
from tvmdash.text import align, elide, escape_markdown, format_exact, format_list, format_percent, format_percent_range
from tvmdash.trials.signoff import (
    Signoff,
    SignoffDoubt,
    SignoffEvidence,
    SignoffIncident,
    SignoffSeries,
    SignoffState,
    SignoffTvm,
    SignoffVerdict,
)
from tvmdash.trials.text import format_markdown_table

HEAD = ("", "series", "change", "95 %", "since", "")
_NAME, _REASON, _ERROR, _ASKED = 60, 80, 100, 40
_DIGITS = 12
_WORDS = {
    SignoffState.WORSE: "worse",
    SignoffState.LOST: "only with A",
    SignoffState.UNCLEAR: "cannot be said",
    SignoffState.CHANGED: "changed",
    SignoffState.BETTER: "better",
    SignoffState.NEW: "only with B",
    SignoffState.SAME: "",
}
_DOUBTS = {
    SignoffDoubt.NOT_JOINED: "no chain of pairs connects the two TVMs",
    SignoffDoubt.LUCK: "two builds may differ this much by chance; waive it, bisect it, or measure another build",
    SignoffDoubt.WIDE: "a relevant change cannot be ruled out",
    SignoffDoubt.OWN_CODE: "the experiment's own code or config changed between them",
}
_EVIDENCE = {
    SignoffEvidence.SAME_CODE: "{} ran the same code, byte for byte",
    SignoffEvidence.EXACT: "{} exact",
    SignoffEvidence.PAIRED: "{} by pairs of A and B",
    SignoffEvidence.CHAIN: "{} by pairs with other TVMs that connect them",
    SignoffEvidence.COMPARED: "{} by rounds of compare",
    SignoffEvidence.LEDGER: "{} by the incidents of the nights between",
}


def format_headline(done: Signoff) -> str:
    """Sum up in one sentence what stands in the way."""
    open_ones = [item for item in done.series if item.is_open]
    parts = [
        _count([item for item in open_ones if item.state is SignoffState.WORSE], "regression", "not waived"),
        _count([item for item in open_ones if item.state is SignoffState.LOST], "series", "lost"),
        _count([item for item in open_ones if item.state is SignoffState.UNCLEAR], "series", "cannot be said"),
        _count([item for item in done.series if item.waiver is not None], "series", "waived"),
    ]
    said = [part for part in parts if part]
    if done.verdict is SignoffVerdict.UNCLEAR and not open_ones:
        said = ["nothing was measured with both", *said]
    return f"{_name_tvm(done.a)} → {_name_tvm(done.b)}: {', '.join(said) or 'nothing got worse'}."


def _count(items: Sequence[SignoffSeries], noun: str, what: str) -> str:
    plural = noun if noun.endswith("s") or len(items) == 1 else f"{noun}s"
    return f"{len(items)} {plural} {what}" if items else ""


def _name_tvm(tvm: SignoffTvm) -> str:
    return tvm.asked[:_DIGITS] if tvm.asked == tvm.commit else elide(tvm.asked, _ASKED)


def format_facts(done: Signoff) -> Iterator[str]:
    """Yield a line for each of the two TVMs, then the files of the home that could not be read."""
    for letter, tvm in (("A", done.a), ("B", done.b)):
        commit = f"commit {tvm.commit[:_DIGITS]}" if tvm.commit and tvm.commit != tvm.asked else ""
        version = f"TVM {tvm.version}" if tvm.version not in {tvm.commit, tvm.asked} else ""
        yield f"{letter}: {', '.join(filter(None, (_name_tvm(tvm), version, commit, _count_nights(tvm))))}."
    yield from done.faults


def _count_nights(tvm: SignoffTvm) -> str:
    words = [f"measured on {tvm.own} {_nights(tvm.own)}"] if tvm.own else []
    words += [f"beside another on {tvm.beside} {_nights(tvm.beside)}"] if tvm.beside else []
    return " and ".join(words) or "measured outside the nights only"


def _nights(count: int) -> str:
    return "night" if count == 1 else "nights"


def list_rows(done: Signoff) -> list[tuple[str, ...]]:
    """A row for each group of series that is not the same on both, the worst first."""
    return [_format_group(done, group) for group in group_series(done)]


def _format_group(done: Signoff, group: Sequence[SignoffSeries]) -> tuple[str, ...]:
    first, incident = group[0], next((each for each in done.incidents if each.id == group[0].incident), None)
    word = "waived" if first.waiver else _WORDS[first.state]
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    notes = (_format_waiver(first), _format_bisection(done, group, incident), _format_reason(first))
    sizes = (_format_change(first), _format_interval(first), _format_since(first, incident))
    return word, f"{elide(first.name, _NAME)}{more}", *sizes, "; ".join(filter(None, notes))


def _format_change(item: SignoffSeries) -> str:
    if item.before is not None and item.after is not None:
        return f"{format_exact(item.before, '')} to {format_exact(item.after, item.unit)}"
    return "" if item.effect is None else format_percent(item.effect)


def _format_interval(item: SignoffSeries) -> str:
    if item.before is not None:
        return "exact"
    return "" if item.low is None or item.high is None else format_percent_range(item.low, item.high)


def _format_since(item: SignoffSeries, incident: SignoffIncident | None) -> str:
    """The commits between which it came, as far as a night told it; otherwise it is open."""
    if incident is not None:
        before, after = incident.versions
        return f"another build of {shorten(after)}" if before == after else format_range(incident.versions)
    return "open" if item.has_moved else ""


def _format_waiver(item: SignoffSeries) -> str:
    if item.waiver is not None:
        return f"by {item.waiver.who}, {item.waiver.at[:10]}: {elide(item.waiver.reason, _REASON)}"
    if item.outgrown is None:
        return ""
    size = "" if item.outgrown.effect is None else f" at {format_percent(item.outgrown.effect)}"
    return f"waived{size} by {item.outgrown.who}, and worse now"


def _format_bisection(done: Signoff, group: Sequence[SignoffSeries], incident: SignoffIncident | None) -> str:
    names = {item.id for item in group}
    found = next((each for each in done.bisections if each.series in names), None)
    if found is None or not found.suspects:
        asks = group[0].state is SignoffState.WORSE
        return ", ".join(filter(None, (_format_incident(incident), "not bisected" if asks else "")))
    of = "" if found.count == 1 else f"one of {found.count}, at the latest "
    return f"bisected: {of}{elide(found.suspects[-1].text, _REASON)}"


def _format_incident(incident: SignoffIncident | None) -> str:
    """Give its ID, and what somebody said of it, who does not thereby answer for the release."""
    if incident is None:
        return ""
    is_said = incident.state in (ACKNOWLEDGED, EXPECTED)
    said = f" ({incident.state} by {incident.who}: {elide(incident.words, _REASON)})" if is_said else ""
    return f"incident {incident.id}{said}"


def _format_reason(item: SignoffSeries) -> str:
    """Say why it cannot be said, or what is known of a series that is there on one side only."""
    if item.state is SignoffState.LOST:
        return f"fails with B: {elide(item.error, _ERROR)}" if item.error else "no value with B"
    if item.doubt is SignoffDoubt.NOT_MEASURED:
        return f"not measured with {item.lacks}"
    return _DOUBTS[item.doubt] if item.doubt else ""


def format_rest(done: Signoff) -> Iterator[str]:
    """Describe the series that are the same on both."""
    same = [item for item in done.series if item.state is SignoffState.SAME]
    if same:
        counts = {kind: sum(item.evidence is kind for item in same) for kind in SignoffEvidence}
        how = [_EVIDENCE[kind].format(count) for kind, count in counts.items() if count]
        yield f"No real change: {len(same)} of {len(done.series)} series; {format_list(how, len(how))}."
        noisy = [_find_reach(item) for item in same if item.evidence is not SignoffEvidence.EXACT]
        reach = max((each for each in noisy if each is not None), default=0.0)
        if reach:
            yield f"For each of these, a regression of {100 * reach:.2g} % or more is ruled out (95 %)."


def _find_reach(item: SignoffSeries) -> float | None:
    """Return the change for the worse that is not excluded, as a fraction; None where nothing bounds it."""
    if item.visible is not None:
        return item.visible
    ends = [end for end in (item.low, item.high) if end is not None and is_worse(end, item.direction) is not False]
    return max((abs(end) for end in ends), default=None)


def format_table(done: Signoff) -> str:
    rows = list_rows(done)
    lines = align([HEAD, *rows], right=(2, 3)) if rows else []
    commands = [f"    {command}" for command in done.commands]
    last = ["For details:", *commands] if commands else []
    return "\n".join([*format_facts(done), "", *lines, *format_rest(done), *last, format_headline(done)])


def format_markdown(done: Signoff) -> str:
    """Format the signoff for a release's issue, the headline first."""
    rows = list_rows(done)
    facts = [f"- {escape_markdown(line)}" for line in (*format_facts(done), *format_rest(done))]
    commands = ["", "For details:", "", *(f"    {command}" for command in done.commands)] if done.commands else []
    table = ["", *format_markdown_table([HEAD, *rows], right=(2, 3))] if rows else []
    return "\n".join([escape_markdown(format_headline(done)), *table, "", *facts, *commands]) + "\n"


# `SignoffState` has the gravest first.
_ORDER = tuple(SignoffState)


def group_series(done: Signoff) -> list[Sequence[SignoffSeries]]:
    """Group all that is not the same on both, row by row, what is in the way first, and what is waived behind it.

    In a row the series that went the furthest is the first.
    """
    groups: dict[tuple[object, ...], list[SignoffSeries]] = {}
    for item in done.series:
        if item.state is not SignoffState.SAME:
            groups.setdefault(tuple(_find_place(item)), []).append(item)
    return sorted((sorted(members, key=_measure_size) for members in groups.values()), key=_rank)


def _find_place(item: SignoffSeries) -> Iterator[object]:
    """Yield a key that is equal for series of one row."""
    yield item.state
    yield (item.waiver or item.outgrown, item.waiver is None)
    if item.incident:
        yield item.incident
        return
    yield item.experiment
    if item.state in (SignoffState.UNCLEAR, SignoffState.NEW):
        yield (item.doubt, item.lacks, item.is_in_the_way)
    elif item.before is not None:
        yield item.metric
    else:
        yield (str(item.labels.get("workload") or item.labels.get("path") or ""), item.error)


def _measure_size(item: SignoffSeries) -> tuple[float, str]:
    return -abs(item.effect or 0.0), item.name


def _rank(group: Sequence[SignoffSeries]) -> tuple[int, int, tuple[float, str]]:
    first = group[0]
    place = 0 if first.is_open else 1 if first.waiver is not None else 2
    return place, _ORDER.index(first.state), _measure_size(first)
