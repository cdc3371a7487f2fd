"""A trial for people: a short table for the terminal, the same as Markdown for a pull request, one line for a list."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tvmdash.records.metrics import RUN_TIME, Way, is_worse, judge_exact_change, way
from tvmdash.text import (
    align,
    elide,
    escape_markdown,
    format_duration,
    format_exact,
    format_list,
    format_percent,
    format_percent_range,
    format_quantity,
)
from tvmdash.trials.suspect import Suspect
from tvmdash.trials.trial import (
    Backfill,
    BackfillStep,
    Bisection,
    BisectionState,
    BisectionStep,
    Reproduced,
    ReproducedSeries,
    Reproduction,
    Trial,
    TrialChange,
    TrialKind,
    TrialNumber,
    TrialSeries,
    TrialState,
    TrialTvm,
)

_NAME_COLUMNS = 70
_MOST_NAMES = 3
KNOWN = 0.5
"""A change whose interval reaches farther is not known: its estimate would be read as one."""
HEAD = ("series", "change", "95 %", "")
_OF_TWO_TVMS = frozenset((TrialKind.TRY, TrialKind.COMPARE))
_ASK_WHAT_CHANGED = _OF_TWO_TVMS | {TrialKind.BACKFILL}
_ENDS = {
    TrialState.RUNNING: "Not finished. Run the same command again to continue.",
    TrialState.OVER: "The time budget ran out. Run the same command again to continue.",
    TrialState.INTERRUPTED: "Interrupted. Run the same command again to continue.",
    TrialState.DONE: "",
}


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


def format_table(done: Trial, *, every: bool = False) -> str:
    """The trial for a terminal: what changed, or with `every` all of it, and what could have been seen of the rest."""
    if done.kind not in _ASK_WHAT_CHANGED:
        return "\n".join(format_verdict(done))
    rows = _list_rows(done, every=every)
    table = align(rows, right=(1, 2)) if len(rows) > 1 else []
    return "\n".join([*format_facts(done), "", *table, *format_verdict(done)])


def format_markdown(done: Trial, *, every: bool = False) -> str:
    """Format the trial as Markdown, in which names and errors of the candidate's are text and nothing else."""
    verdict = "".join(f"- {escape_markdown(line)}\n" for line in format_verdict(done) if line)
    if done.kind not in _ASK_WHAT_CHANGED:
        return verdict
    if done.kind in _OF_TWO_TVMS:
        verdict = escape_markdown(" ".join(format_verdict(done))) + "\n"
    rows = _list_rows(done, every=every)
    table = [*format_markdown_table(rows, right=(1, 2)), ""] if len(rows) > 1 else []
    facts = (f"- {escape_markdown(line)}" for line in format_facts(done))
    return "\n".join([verdict, *table, *facts]) + "\n"


def format_markdown_table(rows: Sequence[Sequence[str]], right: Collection[int]) -> list[str]:
    """The lines of a table of plain texts; the columns `right` are numbers."""
    marks = ["---:" if at in right else "---" for at in range(len(rows[0]))]
    head, *lines = (f"| {' | '.join(map(escape_markdown, row))} |" for row in rows)
    return [head, f"|{'|'.join(marks)}|", *lines]


def summarize(done: Trial) -> str:
    """Sum up the outcome on one line."""
    if done.backfill:
        return _count_nights(done.backfill, done)
    if done.kind not in _ASK_WHAT_CHANGED:
        return format_verdict(done)[0 if done.bisection else -1]
    failed = [f"{name} failed" for name in done.errors]
    parts = (_summarize_numbers(done), format_list(failed, _MOST_NAMES) if failed else "")
    return "; ".join(filter(None, parts))


def _summarize_numbers(done: Trial) -> str:
    changes, judged = list_changes(done), [item.change for item in done.series if item.change]
    if changes:
        shown = [f"{elide(item.name, _NAME_COLUMNS)} {item.size} {item.word}" for item in changes]
        return f"{len(changes)} of {len(judged) + len(done.numbers)} changed: {format_list(shown, _MOST_NAMES)}"
    if not judged:
        return "no conclusion"
    within = max(change.within for change in judged)
    return f"none of {len(judged)} series changed, known to within ±{format_least(within)}"


def format_command(done: Trial) -> str:
    """Format the command that measures the same anew."""
    if done.kind not in _OF_TWO_TVMS:
        return f"python3 -m dashboard {done.kind} HOME {shlex.join(_list_words(done))}"
    words = [done.candidate.exact_name, "--against", done.base.exact_name, "--until", f"{100 * done.until:g}%"]
    named = ["--experiments", *done.experiments]
    return f"python3 -m dashboard try HOME {shlex.join([*words, *named, '--fresh'])}"


def list_changes(done: Trial | BackfillStep) -> list[Changed]:
    """The times that changed, the largest change first, and then the sizes that did; of a backfill, step by step."""
    if isinstance(done, Trial) and done.backfill:
        return [
            replace(item, name=f"{step.before} to {step.after}: {item.name}")
            for step in done.backfill.steps
            for item in list_changes(step)
        ]
    real = [item for item in done.series if item.change and item.change.real]
    real.sort(key=lambda item: -abs(item.change.effect) if item.change else 0.0)
    changed = [number for number in done.numbers if number.is_changed]
    return [*map(_describe_series, real), *map(_describe_number, changed)]


def format_facts(done: Trial) -> Iterator[str]:
    """Describe the measuring: the TVMs, how often, where, and what is missing."""
    yield f"Candidate: {_format_tvm(done.candidate)}"
    yield f"Base: {_format_tvm(done.base)}"
    yield f"{format_counts(done)}, on {done.machine}, measured in {format_duration(done.measured_s)}."
    yield from format_remarks(done)


def format_remarks(done: Trial) -> Iterator[str]:
    """Say how it ended, and what is missing."""
    if done.kind not in _ASK_WHAT_CHANGED:
        return
    if done.candidate.key and done.candidate.key == done.base.key:
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
    return _count(count, "run")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def format_counts(done: Trial) -> str:
    """Format them as in "3 runs, 12 to 18 pairs of processes a series"."""
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


def _format_tvm(tvm: TrialTvm) -> str:
    commit = f", commit {tvm.commit[:12]}" if tvm.commit else ""
    return f"{tvm.asked}, TVM {tvm.version}{commit}{f' ({tvm.note})' if tvm.note else ''}"


def _list_rows(done: Trial, *, every: bool) -> list[tuple[str, ...]]:
    rest = [item for item in done.series if item.change and not item.change.real] if every else []
    return [HEAD, *(item.cells for item in list_changes(done)), *(describe_calm(item).cells for item in rest)]


def describe_calm(item: TrialSeries) -> Changed:
    """Describe one of which no change is told, with its estimate where that is known to half of itself or better."""
    assert item.change is not None
    is_known = max(-item.change.low, item.change.high) <= KNOWN
    size, interval = format_percent(item.change.effect), format_percent_range(item.change.low, item.change.high)
    word = {"suspected": "possibly worse", "undecided": "undecided"}.get(item.change.standing, "")
    return Changed(
        item.name, size if is_known else "", interval if is_known else "", word if is_known else "not known", "changed"
    )


def _describe_series(item: TrialSeries) -> Changed:
    assert item.change is not None
    interval = format_percent_range(item.change.low, item.change.high)
    worse = is_worse(item.change.effect, item.direction)
    return Changed(item.name, format_percent(item.change.effect), interval, _name_way(item), way(worse))


def _name_way(item: TrialSeries) -> str:
    assert item.change is not None
    is_up = item.change.effect > 0
    if item.metric == RUN_TIME:
        return "slower" if is_up else "faster"
    worse = is_worse(item.change.effect, item.direction)
    return ("higher" if is_up else "lower") + ("" if worse is None else f", {way(worse)}")


def _describe_number(number: TrialNumber) -> Changed:
    values = f"{format_exact(number.base, '')} to {format_exact(number.candidate, number.unit)}"
    word = way(judge_exact_change(number, number.base, number.candidate))
    return Changed(number.name, values, "exact", word, word)


def format_verdict(done: Trial) -> list[str]:
    """Describe the outcome: of two TVMs, how much changed, and what could have been seen of the rest."""
    if done.bisection:
        return list(_format_bisection(done, done.bisection))
    if done.reproduction:
        return list(_format_reproduction(done, done.reproduction))
    if done.backfill:
        return list(_format_backfill(done, done.backfill))
    judged = [(item, item.change) for item in done.series if item.change]
    if not judged:
        few = ["No conclusion: no series was measured five times."] if done.series or not done.numbers else []
        return [*few, *_format_numbers(done)]
    real = sum(change.real for _, change in judged)
    lines = [
        f"{real} of {len(judged)} series changed."
        if real
        else f"None of {len(judged)} series is known to have changed."
    ]
    lines += _format_suspected([item for item, _ in judged])
    calm = [(item, change) for item, change in judged if not change.real and change.standing != "suspected"]
    lines += _format_calm(
        [change for item, change in calm if item.is_known(done.until)],
        [(item.name, change.visible) for item, change in calm if not item.is_known(done.until)],
    )
    unjudged = sum(not item.change for item in done.series)
    lacking = [f"Not judged: {unjudged}, with fewer than five measurements or values not above 0."] if unjudged else []
    return [*lines, *lacking, *_format_numbers(done)]


def _format_suspected(series: Sequence[TrialSeries]) -> Iterator[str]:
    """Name the series that are likely worse, but not surely enough to be told."""
    found = [item for item in series if item.change and item.change.standing == "suspected"]
    if found:
        shown = [
            f"{elide(item.name, _NAME_COLUMNS)} {format_percent(item.change.effect)}" for item in found if item.change
        ]
        yield f"Possibly worse: {format_list(shown, _MOST_NAMES)}."


def _format_calm(narrow: Sequence[TrialChange], wide: Sequence[tuple[str, float]]) -> Iterator[str]:
    """Bound the changes that could have gone unseen; wide: the least visible ones of what is not known, by name."""
    if narrow:
        within, least = max(change.within for change in narrow), max(change.visible for change in narrow)
        known = f"known to within ±{format_least(within)}; a change of {format_least(least)} would have been detected"
        yield f"Without a change: {len(narrow)}, {known}."
    if wide:
        ordered = sorted(wide, key=lambda item: -item[1])
        shown = [f"{elide(name, _NAME_COLUMNS)} ({format_least(visible)})" for name, visible in ordered]
        listed = format_list(shown, _MOST_NAMES)
        yield f"Not precise enough, with the smallest change that would have been detected: {listed}."


def _format_numbers(done: Trial) -> Iterator[str]:
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
    """Format the least visible change, as in "1.2 %"."""
    percent = max(0.01, 100 * fraction)
    return f"{percent:.{2 if percent < 0.995 else 1 if percent < 9.95 else 0}f} %"


def _list_words(done: Trial) -> list[str]:
    """The arguments of the command that asks for the same."""
    if done.backfill:
        rounds = max((item.pairs for item in done.series), default=1)
        named = ["--experiments", *done.experiments] if done.experiments else []
        return ["--artifacts", done.backfill.artifacts, *named, "--rounds", str(rounds)]
    if done.reproduction:
        return [done.reproduction.source]
    series = [[item.experiment, item.id] for item in done.series]
    return [*series[0], "--good", done.base.exact_name, "--bad", done.candidate.exact_name, "--fresh"]


_SHOWN = 10


def _format_bisection(done: Trial, found: Bisection) -> Iterator[str]:
    (series,), change = done.series, done.series[0].change
    ends, name = f"{found.good.id[:12]} and {found.bad.id[:12]}", elide(series.name, 90)
    if found.answer is BisectionState.NO_STEP:
        yield f"No step found: {series.name} is the same at {ends}, as far as {series.pairs} pairs can tell."
    elif not found.suspects or change is None:
        yield f"After {series.pairs} pairs it is still unclear whether {series.name} differs between {ends}."
    elif found.answer is BisectionState.FOUND:
        yield f"{name} {_format_step(change)} with {found.suspects[0].text}."
    else:
        yield f"{name} {_format_step(change)} with one of {len(found.suspects)}:"
        yield from (f"  {suspect.text}{_format_failure(found, suspect)}" for suspect in found.suspects[-_SHOWN:])
        if len(found.suspects) > _SHOWN:
            yield f"  and {len(found.suspects) - _SHOWN} before them"
    yield from filter(None, [_ENDS[done.state]])
    if found.suspects and found.noise is not None and found.least is not None:
        yield (
            f"Confidence {100 * min(found.probability, 0.999):.3g} %, among {found.candidates} builds after "
            f"{found.good.id[:12]}. One pair scatters by {100 * found.noise:.2g} %; information theory asks for "
            f"{found.least:.0f} measurements after the ends."
        )
    failed = sum(bool(step.failed) for step in found.steps.values())
    runs = f"{found.measurements} measurements, {2 * series.pairs} of them of the ends"
    builds = f"{found.builds} build{'' if found.builds == 1 else 's'} besides the ends"
    yield (
        f"{builds}{f', {failed} could not be measured' if failed else ''}; {runs}; "
        f"{format_duration(done.measured_s)} altogether."
    )


def _format_step(change: TrialChange) -> str:
    word = "higher" if change.effect > 0 else "lower"
    size = f"{format_percent(change.effect)} (95 %: {format_percent_range(change.low, change.high)})"
    return f"became {word}, {size},"


def _format_failure(found: Bisection, suspect: Suspect) -> str:
    why = found.steps.get(suspect.id, BisectionStep()).failed
    return f" (not measured: {elide(why, 100)})" if why else ""


def _format_reproduction(done: Trial, found: Reproduction) -> Iterator[str]:
    """Describe the remeasurement and what differs from then, and say whether each number holds."""
    if found.why:
        yield found.why
        return
    rounds = f"{sum(done.runs.values())} times in {format_duration(done.measured_s)}"
    yield f"{found.experiment} of the night {found.night}, TVM {done.candidate.version}, remeasured {rounds}."
    yield {
        True: "Same machine as in the original measurement.",
        False: "NOT the same machine as in the original measurement.",
        None: "Unknown whether this is the same machine; the receipt does not name the machine.",
    }[found.is_same_machine]
    yield f"{found.code[:1].upper()}{found.code[1:]}."
    if found.reference:
        yield f"Measured in turn with {found.reference}, as then."
    for name, then, now in found.differs:
        yield f"  {name}: {elide(then, 80)} then, {elide(now, 80)} now"
    if not found.differs:
        yield "No known difference in machine, TVM or code."
    yield ""
    series: dict[str, TrialSeries | TrialNumber] = {one.id: one for one in done.series}
    series |= {one.id: one for one in done.numbers}
    for name, line in found.lines.items():
        one = series.get(name)
        yield f"{elide(one.name if one else name, 80)}: {_format_line_of(line, one)}"
    if done.ended or done.state is TrialState.INTERRUPTED:
        yield f"Stopped early: {done.ended or 'interrupted'}"
    yield _count_lines(found)


def _format_line_of(line: ReproducedSeries, one: TrialSeries | TrialNumber | None) -> str:
    """Format it as in "1.00 ms then, 1.30 ms now (+30.0 %, 95 %: +28.0 to +32.1 %); DOES NOT HOLD"."""
    unit = " times the reference" if line.pairs else one.unit if one else ""
    then, now = (f"{value:.4g}{unit}" if line.pairs else format_quantity(value, unit) for value in (
        line.value, line.value if line.now is None else line.now))  # fmt: skip
    word = {Reproduced.HOLDS: "holds", Reproduced.DOES_NOT_HOLD: "DOES NOT HOLD"}.get(
        line.verdict, f"CANNOT TELL: {line.why}"
    )
    if line.now is None:
        return f"{then} then; {word}"
    change = one.change if isinstance(one, TrialSeries) else None
    size = f"{format_percent(line.now / line.value - 1)}" if line.value else ""
    is_known = change is not None and max(-change.low, change.high) <= KNOWN
    interval = f", 95 %: {format_percent_range(change.low, change.high)}" if change and is_known else ""
    return f"{then} then, {now} now ({size}{interval}); {word}"


def _count_lines(found: Reproduction) -> str:
    """Count them as in "3 of 5 hold, 1 does not hold, 1 inconclusive."."""
    count = Counter(line.verdict for line in found.lines.values())
    sentences = [f"{count[Reproduced.HOLDS]} of {len(found.lines)} hold"]
    if many := count[Reproduced.DOES_NOT_HOLD]:
        sentences.append(f"{many} {'does' if many == 1 else 'do'} not hold")
    if count[Reproduced.CANNOT_TELL]:
        sentences.append(f"{count[Reproduced.CANNOT_TELL]} inconclusive")
    return ", ".join(sentences) + "."


def _format_backfill(done: Trial, filled: Backfill) -> Iterator[str]:
    yield _count_nights(filled, done)
    away = {**filled.unbuilt, **filled.failed}
    yield from (f"  {name}: {elide(why, 200)}" for name, why in list(away.items())[:_SHOWN])
    if filled.unbuilt:
        yield f"Use --retry to try again to build: {format_list(list(filled.unbuilt), 5)}."
    judged = [item.change for step in filled.steps for item in step.series if item.change]
    if judged:
        yield f"{sum(change.real for change in judged)} of {len(judged)} steps from one TVM to the next are real."
    elif any(step.series for step in filled.steps):
        yield "No conclusion: no step from one TVM to the next was measured five times."
    changed = {item.id for step in filled.steps for item in step.series if item.change and item.change.real}
    for item in (item for item in done.series if item.id in changed):
        levels = [f"{tvm} {format_quantity(value, item.unit)}" for tvm, value in filled.levels_of(item.id).items()]
        yield f"  {item.name}: {', '.join(levels)}"


def _count_nights(filled: Backfill, done: Trial) -> str:
    now = f"{_count(len(filled.done), 'night')} measured now in {format_duration(done.measured_s)}"
    rest = f"{_count(len(filled.unbuilt), 'TVM')} could not be built, {_count(filled.left, 'night')} to do"
    return f"{filled.wanted} TVMs in {filled.artifacts}: {filled.there} already measured, {now}, {rest}."
