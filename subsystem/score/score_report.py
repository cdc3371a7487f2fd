"""Scores in words, as pictures, and as the page's data."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from definitions import GEOMEAN, SHARE, SPEEDUP, Definition
from history import Scored
from scoring import ScorePoint

from tvmdash.pages import Before, Graph, LeftOut, Missing, ScorePage, ScoreTonight
from tvmdash.plot_util import Bar, BarValue, Line, Longitudinal, Mark, Plot, alt_text
from tvmdash.subsys_templates import Report
from tvmdash.text import elide, format_list, format_quantity, three_digits

_SAFE = re.compile(r"[^A-Za-z0-9_-]+")
_TOLD_MISSING = 3


def report(scored: Sequence[Scored], left_out: Sequence[LeftOut], faults: Sequence[str]) -> Report:
    """A line for each score, then what is left out, then what is wrong with the config."""
    complete = sum(item.tonight.complete for item in scored)
    title = (
        f"Scores: all {complete} complete"
        if complete == len(scored)
        else f"Scores: {complete} of {len(scored)} complete"
    )
    if not scored:
        title = "Scores: none tonight" if left_out else "Scores: none defined"
    if left_out:
        title += f", {len(left_out)} left out"
    if faults:
        title += f", {len(faults)} not usable"
    lines = [f"{elide(item.definition.title, 120)}: {describe(item)}" for item in scored]
    lines += [_format_left_out(left_out)] if left_out else []
    return Report(title, "\n".join([*lines, *(f"Not used: {fault}" for fault in faults)])[:4000])


def _format_left_out(left_out: Sequence[LeftOut]) -> str:
    names = list(dict.fromkeys(name for item in left_out for name in item.experiments))
    scores = f"{len(left_out)} score{'' if len(left_out) == 1 else 's'}"
    return f"Left out: {scores} of {format_list(names, 6)}, not active in this home."


@dataclass(frozen=True)
class ToldScore:
    """A score in words: the value in a few, then what belongs to it in brackets, as a clause, and as sentences."""

    value: str
    bracket: str = ""
    clause: str = ""
    sentences: str = ""

    @property
    def words(self) -> str:
        """All of it."""
        bracket, clause = f" ({self.bracket})" if self.bracket else "", f"{self.clause}" if self.clause else ""
        return f"{self.value}{bracket}{clause}. {self.sentences}".rstrip()

    @property
    def details(self) -> str:
        """All of it but the value, to stand below that."""
        clause = self.clause.lstrip(",; ")
        if not self.bracket:
            clause = clause[:1].upper() + clause[1:]
        bracket = f"({self.bracket}){self.clause}" if self.bracket else clause
        return " ".join(filter(None, (f"{bracket}." if bracket else "", self.sentences)))


def describe(scored: Scored) -> str:
    """Tonight's value, what is missing, and how it was before where that may be compared."""
    return tell(scored).words


def tell(scored: Scored) -> ToldScore:
    """The same in parts."""
    tonight = scored.tonight
    if not tonight.expected and not tonight.missing:
        remedy = "Check its baseline, contender and workloads."
        return ToldScore("no value: no record or failure matches it", sentences=remedy)
    missing = f"Missing: {_format_missing(tonight.lacks)}" if not tonight.complete else ""
    if missing and tonight.value is None:
        return ToldScore("no value tonight", sentences=missing)
    text = _format_value(scored.definition, tonight)
    if missing:
        clause = f"{text.clause}, incomplete and not comparable with other nights"
        return replace(text, clause=clause, sentences=missing)
    return replace(text, sentences=_format_change(scored, tonight))


def _format_value(definition: Definition, point: ScorePoint) -> ToldScore:
    kind = definition.kind
    value, count = point.value or 0.0, len(point.workloads)
    over = f"{count} workload{'' if count == 1 else 's'}"
    span = (
        "" if point.low is None or point.high is None else f"{three_digits(point.low)} to {three_digits(point.high)}, "
    )
    if kind == SPEEDUP:
        doubt = ", possibly no difference" if point.low is not None and point.low <= 1 <= (point.high or 1) else ""
        return ToldScore(f"{three_digits(value)} {_times(definition)}", f"{span}{over}{doubt}")
    if kind == GEOMEAN:
        return ToldScore(format_quantity(value, definition.unit), f"{span}geometric mean of {over}")
    if kind == SHARE:
        limit = definition.threshold
        below = [item for item in point.workloads if item.value < limit]
        close = [item.workload for item in point.workloads if (item.low or limit) < limit <= (item.high or limit)]
        value_text = (
            f"{count - len(below)} of {over} {'is' if count == 1 else 'are'} {limit:g} {_times(definition)} or better"
        )
        slower = format_list([f"{item.workload} ({three_digits(item.value)})" for item in below], 4)
        clause = f", not {slower}" if below else ""
        return ToldScore(
            value_text, clause=clause + (f"; within noise of it: {format_list(close, 4)}" if close else "")
        )
    total, unchecked = sum(item.total or 0 for item in point.workloads), sum(item.unchecked for item in point.workloads)
    wrong = [item.workload for item in point.workloads if item.value < (item.total or 0)]
    value_text = f"{value:.0f} of {total} {'checked points' if unchecked else 'points'} correct"
    clause = f", {unchecked} more never checked" if unchecked else ""
    return ToldScore(value_text, clause=clause + (f"; failures in {format_list(wrong, 4)}" if wrong else ""))


def _times(definition: Definition) -> str:
    """What a ratio of baseline to contender says of the contender."""
    return "times as fast" if definition.metric.kind == "time" else "times as small"


def _format_missing(missing: Sequence[Missing]) -> str:
    groups: dict[tuple[str, ...], list[Missing]] = {}
    for item in missing:
        groups.setdefault(item.cause, []).append(item)
    parts = [
        f"{format_list([item.workload for item in group], 6)} ({group[0].reason.rstrip('.')})"
        for group in groups.values()
    ]
    rest = f"; and {len(parts) - _TOLD_MISSING} more reasons" if len(parts) > _TOLD_MISSING else ""
    return "; ".join(parts[:_TOLD_MISSING]) + rest + "."


def _format_change(scored: Scored, tonight: ScorePoint) -> str:
    before = scored.before
    earlier = [point for point in scored.points if point.stamp < tonight.stamp]
    if before is None or before.value is None or tonight.value is None:
        if not earlier:
            return ""
        count = len(tonight.expected)
        return f"No earlier night is complete for the same {'workload' if count == 1 else f'{count} workloads'}."
    since = "the night before" if before is earlier[-1] else f"night {before.stamp}, the last comparable one"
    return f"{_format_before(scored.definition, before.value, len(before.expected))} on {since}."


def _format_before(definition: Definition, value: float, workloads: int) -> str:
    """A value of which no more is kept than over how many workloads it is."""
    if definition.kind == SPEEDUP:
        return f"{three_digits(value)} {_times(definition)}"
    if definition.kind == SHARE:
        return f"{value * workloads / 100:.0f} of {workloads}"
    return format_quantity(value, definition.unit) if definition.kind == GEOMEAN else f"{value:.0f} correct"


def name_of(scored: Scored) -> str:
    """The begin of its pictures' file names."""
    return f"{_SAFE.sub('_', scored.definition.title)[:60].strip('_')}_{scored.definition.id[:6]}"


def plots(scored: Sequence[Scored]) -> dict[str, Plot]:
    """Two pictures for each score: tonight by workload, and the complete nights."""
    pictures: dict[str, Plot] = {}
    for item in scored:
        pictures[f"{name_of(item)}_tonight"] = _bars(item)
        pictures[f"{name_of(item)}_nights"] = _line(item)
    return pictures


def _bars(scored: Scored) -> Bar:
    definition, tonight = scored.definition, scored.tonight
    bars = [BarValue(item.workload, item.value, item.low, item.high) for item in tonight.workloads]
    bars += [BarValue(item.workload, None) for item in tonight.lacks]
    if definition.kind in (SPEEDUP, GEOMEAN):
        label = "geometric mean" if tonight.complete else "geometric mean (incomplete)"
        bars.append(BarValue(label, tonight.value, tonight.low, tonight.high))
    unit = f"times, {definition.threshold:g} wanted" if definition.kind == SHARE else definition.unit
    title = f"{definition.title}, night {tonight.stamp}"
    return Bar(title, unit, tuple(bars), lower_is_better=definition.lower_is_better)


def _line(scored: Scored) -> Longitudinal:
    """Only complete nights are points; an incomplete one is a gap."""
    definition, points = scored.definition, scored.points

    def column(name: str) -> tuple[float | None, ...]:
        return tuple(getattr(point, name) if point.complete else None for point in points)

    line = Line(
        definition.title, tuple(point.stamp for point in points), column("value"), column("low"), column("high")
    )
    complete = [point for point in points if point.complete]
    pairs = itertools.pairwise(complete)
    marks = tuple(Mark(now.stamp, "other workloads") for was, now in pairs if set(was.expected) != set(now.expected))
    return Longitudinal(
        definition.title, definition.unit, (line,), marks=marks, lower_is_better=definition.lower_is_better
    )


def page(stamp: str, scored: Sequence[Scored], left_out: Sequence[LeftOut], faults: Sequence[str]) -> ScorePage:
    """What the website shows; paths are relative to the output folder."""
    pictures = plots(scored)
    scores = tuple(_on_page(item, pictures) for item in scored)
    return ScorePage(stamp, scores, tuple(faults), tuple(left_out))


def _on_page(scored: Scored, pictures: dict[str, Plot]) -> ScoreTonight:
    definition, tonight = scored.definition, scored.tonight
    before, text = scored.before, tell(scored)
    names = (f"{name_of(scored)}_tonight", f"{name_of(scored)}_nights")
    return ScoreTonight(
        id=definition.id,
        title=definition.title,
        kind=definition.kind,
        unit=definition.unit,
        lower_is_better=definition.lower_is_better,
        value=tonight.value,
        low=tonight.low,
        high=tonight.high,
        complete=tonight.complete,
        words=text.words,
        before=None if before is None else Before(before.stamp, before.value),
        workloads=tonight.workloads,
        missing=tonight.lacks,
        graphs=tuple(Graph(f"graphs/{name}.svg", alt_text(pictures[name])) for name in names),
        headline=text.value,
        details=text.details,
    )
