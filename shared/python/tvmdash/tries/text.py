"""A try for people: a short table for the terminal, the same as Markdown for a pull request, one line for a list."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tvmdash.contracts.tries import PooledChange, TriedNumber, TriedSeries, TriedTvm, Try, TryState
from tvmdash.records.metrics import RUN_TIME, Way, is_worse, judge_exact_change, way
from tvmdash.text import (
    elide,
    escape_markdown,
    format_duration,
    format_exact,
    format_list,
    format_percent,
    format_percent_range,
)

_NAME_COLUMNS = 70
_MOST_NAMES = 3
KNOWN = 0.5
"""A change whose interval reaches farther is not known: its estimate would be read as one."""
HEAD = ("series", "change", "95 %", "")
_ENDS = {
    TryState.RUNNING: "Not finished. Run the same command again to continue.",
    TryState.OVER: "The time budget ran out before every interval was narrow enough. Run the same command again to "
    "continue.",
    TryState.INTERRUPTED: "Interrupted. Run the same command again to continue.",
    TryState.DONE: "",
}


@dataclass(frozen=True)
class _Known:
    """A series, and its change."""

    name: str
    change: PooledChange


@dataclass(frozen=True)
class Changed:
    """A number that changed, in words: its name, by how much, with which interval, and what that is called."""

    name: str
    size: str
    interval: str
    word: str
    way: Way

    @property
    def cells(self) -> tuple[str, ...]:
        """Those of `HEAD`."""
        return elide(self.name, _NAME_COLUMNS), self.size, self.interval, self.word


def format_table(done: Try, *, every: bool = False) -> str:
    """The try for a terminal: what changed, or with `every` all of it, and what could have been seen of the rest."""
    rows = _list_rows(done, every=every)
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEAD))]
    table = [_format_line(row, widths) for row in rows] if len(rows) > 1 else []
    return "\n".join([*format_facts(done), "", *table, *format_verdict(done)])


def format_markdown(done: Try, *, every: bool = False) -> str:
    """The same as Markdown, in which names and errors of the candidate's are text and nothing else."""
    lines = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in _list_rows(done, every=every)]
    lines.insert(1, "|---|---:|---:|---|")
    table = [*lines, ""] if len(lines) > 2 else []
    facts = (f"- {escape_markdown(line)}" for line in format_facts(done))
    return "\n".join([escape_markdown(" ".join(format_verdict(done))), "", *table, *facts]) + "\n"


def summarize(done: Try) -> str:
    """What came of it, on one line."""
    failed = [f"{name} failed" for name in done.errors]
    parts = (_summarize_numbers(done), format_list(failed, _MOST_NAMES) if failed else "")
    return "; ".join(filter(None, parts))


def _summarize_numbers(done: Try) -> str:
    changes, judged = list_changes(done), [item.change for item in done.series if item.change]
    if changes:
        shown = [f"{elide(item.name, _NAME_COLUMNS)} {item.size} {item.word}" for item in changes]
        return f"{len(changes)} of {len(judged) + len(done.numbers)} changed: {format_list(shown, _MOST_NAMES)}"
    if not judged:
        return "no conclusion"
    within = max(change.within for change in judged)
    return f"none of {len(judged)} series changed, known to within ±{format_least(within)}"


def format_command(done: Try) -> str:
    """What measures the same two TVMs anew."""
    words = [done.candidate.exact_name, "--against", done.base.exact_name, "--until", f"{100 * done.until:g}%"]
    named = ["--experiments", *done.experiments]
    return f"python3 -m dashboard try HOME {shlex.join([*words, *named, '--fresh'])}"


def list_changes(done: Try) -> list[Changed]:
    """The times that changed, the largest change first, and then the sizes that did."""
    real = [item for item in done.series if item.change and item.change.real]
    real.sort(key=lambda item: -abs(item.change.effect) if item.change else 0.0)
    changed = [number for number in done.numbers if number.is_changed]
    return [*map(_describe_series, real), *map(_describe_number, changed)]


def format_facts(done: Try) -> Iterator[str]:
    """What was measured: the TVMs, how often, where, and what is missing."""
    yield f"Candidate: {_format_tvm(done.candidate)}"
    yield f"Base: {_format_tvm(done.base)}"
    yield f"{format_counts(done)}, on {done.machine}, measured in {format_duration(done.measured_s)}."
    yield from format_remarks(done)


def format_remarks(done: Try) -> Iterator[str]:
    """How it ended, and what is missing."""
    if done.candidate.key == done.base.key:
        yield "Both are the same build; any difference is noise."
    if _ENDS[done.state]:
        yield _ENDS[done.state]
    for name, error in done.errors.items():
        yield f"{name} ended after {count_runs(done.runs.get(name, 0))}: {error}"
    if done.left_out:
        reasons = format_list([f"{name} ({why})" for name, why in done.left_out.items()], 5)
        yield f"Omitted because they say nothing of these TVMs: {reasons}."
    if done.alone:
        yield f"Measured on the candidate only: {format_list(done.alone, 5)}."
    if whole := [item.name for item in done.series if item.rounds]:
        yield f"Compared by one number a run, which tells less: {format_list(whole, _MOST_NAMES)}."


def count_runs(count: int) -> str:
    """As in "3 runs"."""
    return f"{count} run{'' if count == 1 else 's'}"


def format_counts(done: Try) -> str:
    """As in "3 runs, 12 to 18 pairs of processes a series"."""
    pairs, rounds = (
        {count for item in done.series if (count := size(item))}
        for size in (lambda item: sum(run.pairs for run in item.runs), lambda item: len(item.rounds))
    )
    parts = [
        f"{_format_range(counts)} {what} a series"
        for counts, what in ((pairs, "pairs of processes"), (rounds, "rounds"))
        if counts
    ]
    return ", ".join([count_runs(sum(done.runs.values())), *parts])


def _format_range(counts: Collection[int]) -> str:
    return f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(*counts)


def _format_tvm(tvm: TriedTvm) -> str:
    commit = f", commit {tvm.commit[:12]}" if tvm.commit else ""
    return f"{tvm.asked}, TVM {tvm.version}{commit}{f' ({tvm.note})' if tvm.note else ''}"


def _list_rows(done: Try, *, every: bool) -> list[tuple[str, ...]]:
    rest = [item for item in done.series if item.change and not item.change.real] if every else []
    return [HEAD, *(item.cells for item in list_changes(done)), *(_describe_calm(item).cells for item in rest)]


def _describe_calm(item: TriedSeries) -> Changed:
    """One of which no change is told: its estimate stands there where it is known to half of itself or better."""
    assert item.change is not None
    is_known = max(-item.change.low, item.change.high) <= KNOWN
    size, interval = format_percent(item.change.effect), format_percent_range(item.change.low, item.change.high)
    word = {"suspected": "possibly worse", "undecided": "undecided"}.get(item.change.standing, "")
    return Changed(
        item.name, size if is_known else "", interval if is_known else "", word if is_known else "not known", "changed"
    )


def _describe_series(item: TriedSeries) -> Changed:
    assert item.change is not None
    interval = format_percent_range(item.change.low, item.change.high)
    worse = is_worse(item.change.effect, item.direction)
    return Changed(item.name, format_percent(item.change.effect), interval, _name_way(item), way(worse))


def _name_way(item: TriedSeries) -> str:
    assert item.change is not None
    is_up = item.change.effect > 0
    if item.metric == RUN_TIME:
        return "slower" if is_up else "faster"
    worse = is_worse(item.change.effect, item.direction)
    return ("higher" if is_up else "lower") + ("" if worse is None else f", {way(worse)}")


def _describe_number(number: TriedNumber) -> Changed:
    values = f"{format_exact(number.base, '')} to {format_exact(number.candidate, number.unit)}"
    word = way(judge_exact_change(number, number.base, number.candidate))
    return Changed(number.name, values, "exact", word, word)


def _format_line(row: Sequence[str], widths: Sequence[int]) -> str:
    name, *middle, word = row
    cells = (text.rjust(width) for text, width in zip(middle, widths[1:-1], strict=True))
    return "  ".join((name.ljust(widths[0]), *cells, word)).rstrip()


def format_verdict(done: Try) -> list[str]:
    """How much changed, and what could have been seen of the rest."""
    judged = [(item, _Known(item.name, item.change)) for item in done.series if item.change]
    if not judged:
        few = ["No conclusion: no series was measured five times."] if done.series or not done.numbers else []
        return [*few, *_format_numbers(done)]
    real = sum(known.change.real for _, known in judged)
    lines = [
        f"{real} of {len(judged)} series changed."
        if real
        else f"None of {len(judged)} series is known to have changed."
    ]
    lines += _format_suspected([item for item, _ in judged])
    calm = [(item, known) for item, known in judged if not known.change.real and known.change.standing != "suspected"]
    lines += _format_calm(
        [known for item, known in calm if item.is_known(done.until)],
        [known for item, known in calm if not item.is_known(done.until)],
    )
    unjudged = sum(not item.change for item in done.series)
    lacking = [f"Not judged: {unjudged}, with fewer than five measurements or values not above 0."] if unjudged else []
    return [*lines, *lacking, *_format_numbers(done)]


def _format_suspected(series: Sequence[TriedSeries]) -> Iterator[str]:
    """What is likely worse, but not sure enough to be told."""
    found = [item for item in series if item.change and item.change.standing == "suspected"]
    if found:
        shown = [
            f"{elide(item.name, _NAME_COLUMNS)} {format_percent(item.change.effect)}" for item in found if item.change
        ]
        yield f"Possibly worse: {format_list(shown, _MOST_NAMES)}."


def _format_calm(narrow: Sequence[_Known], wide: Sequence[_Known]) -> Iterator[str]:
    """What could have been seen of what did not change."""
    if narrow:
        within, least = (max(values) for values in zip(*map(_get_reach, narrow), strict=True))
        known = f"known to within ±{format_least(within)}; a change of {format_least(least)} would have been detected"
        yield f"Without a change: {len(narrow)}, {known}."
    if wide:
        ordered = sorted(wide, key=lambda known: -known.change.visible)
        shown = [f"{elide(known.name, _NAME_COLUMNS)} ({format_least(known.change.visible)})" for known in ordered]
        listed = format_list(shown, _MOST_NAMES)
        yield f"Not precise enough, with the smallest change that would have been detected: {listed}."


def _get_reach(known: _Known) -> tuple[float, float]:
    return known.change.within, known.change.visible


def _format_numbers(done: Try) -> Iterator[str]:
    changed = sum(number.is_changed for number in done.numbers)
    if changed:
        yield f"Sizes and counts: {changed} of {len(done.numbers)} changed."
    equal = sum(not number.is_changed and not number.varies for number in done.numbers)
    varying = sum(number.varies for number in done.numbers)
    if equal and not changed:
        yield f"Sizes and counts: {equal} of {len(done.numbers)} are the same on both."
    if varying:
        yield f"Sizes and counts that differ from run to run: {varying}."


def format_least(fraction: float) -> str:
    """How small a change could be seen, as in "1.2 %"."""
    percent = max(0.01, 100 * fraction)
    return f"{percent:.{2 if percent < 0.995 else 1 if percent < 9.95 else 0}f} %"
