"""Scores in words, as pictures, and as the page's data."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from definitions import GEOMEAN, SHARE, SPEEDUP, Definition
from history import Scored
from scoring import ScorePoint

from tvmdash.dashboard_info.pages import Before, Graph, LeftOut, Missing, ScorePage, ScoreTonight
from tvmdash.plot_util import Bar, BarValue, Line, Longitudinal, Mark, Plot, alt_text
from tvmdash.subsys_templates import Report
from tvmdash.text import elide, format_list, format_quantity, three_digits

_SAFE = re.compile(r"[^A-Za-z0-9_-]+")
_TOLD_MISSING = 3


def report(scored: Sequence[Scored], left_out: Sequence[LeftOut], faults: Sequence[str]) -> Report:
    """Write a line for each score, then what is left out, then what is wrong with the config."""
    complete = sum(item.tonight.complete for item in scored)
    count = f"all {complete}" if complete == len(scored) else f"{complete} of {len(scored)}"
    title = f"Scores: {count} complete" if scored else f"Scores: none {'tonight' if left_out else 'defined'}"
    title += f", {len(left_out)} left out" if left_out else ""
    title += f", {len(faults)} not usable" if faults else ""
    lines = [f"{elide(item.definition.title, 120)}: {_join(*tell(item))}" for item in scored]
    if left_out:
        names = list(dict.fromkeys(name for item in left_out for name in item.experiments))
        lines.append(f"Left out: {_count(left_out, 'score')} of {format_list(names, 6)}, not active in this home.")
    return Report(title, "\n".join([*lines, *(f"Not used: {fault}" for fault in faults)])[:4000])


def tell(scored: Scored) -> tuple[str, str]:
    """Format tonight's value; say on what it rests, what is missing, or how it was before where one may compare."""
    tonight = scored.tonight
    if not tonight.expected and not tonight.missing:
        return "no value", "No record or failure matches it. Check its baseline, contender and workloads."
    if tonight.value is None:
        return "no value tonight", f"Missing: {_format_missing(tonight.lacks)}"
    value, rests_on = _format_value(scored.definition, tonight, tonight.value)
    if tonight.complete:
        return value, f"{rests_on} {_format_change(scored, tonight)}".strip()
    missing = f"Incomplete and not comparable with other nights. Missing: {_format_missing(tonight.lacks)}"
    return value, f"{rests_on} {missing}".strip()


def _join(value: str, details: str) -> str:
    return f"{value}. {details}".strip()


def _count(items: Sequence[object], name: str) -> str:
    return f"{len(items)} {name}{'' if len(items) == 1 else 's'}"


def _format_value(definition: Definition, point: ScorePoint, value: float) -> tuple[str, str]:
    kind, parts, limit = definition.kind, point.workloads, definition.threshold
    told, over = _format_bare(definition, value, len(parts)), _count(parts, "workload")
    has_span = point.low is not None and point.high is not None
    span = f"{three_digits(point.low or 0)} to {three_digits(point.high or 0)}, " if has_span else ""
    if kind == SPEEDUP:
        doubt = ", possibly no difference" if has_span and (point.low or 0) <= 1 <= (point.high or 0) else ""
        return told, f"{span}{'over' if span else 'Over'} {over}{doubt}."
    if kind == GEOMEAN:
        return told, f"{span}{'geometric' if span else 'Geometric'} mean of {over}."
    if kind == SHARE:
        below = [f"{item.workload} ({three_digits(item.value)})" for item in parts if item.value < limit]
        close = [item.workload for item in parts if (item.low or limit) < limit <= (item.high or limit)]
        told = (
            f"{len(parts) - len(below)} of {over} {'is' if len(parts) == 1 else 'are'} {limit:g} {_times(definition)}"
        )
        rest = (("Not", below), ("Within noise of it:", close))
        return f"{told} or better", " ".join(f"{words} {format_list(names, 4)}." for words, names in rest if names)
    total, unchecked = sum(item.total or 0 for item in parts), sum(item.unchecked for item in parts)
    wrong = [item.workload for item in parts if item.value < (item.total or 0)]
    details = [f"{unchecked} more never checked."] if unchecked else []
    details += [f"Failures in {format_list(wrong, 4)}."] if wrong else []
    return f"{value:.0f} of {total} {'checked points' if unchecked else 'points'} correct", " ".join(details)


def _times(definition: Definition) -> str:
    """Name what a ratio of baseline to contender says of the contender."""
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
    if before is None or before.value is None:
        return f"No earlier night is complete for the same {_count(tonight.expected, 'workload')}." if earlier else ""
    since = "the night before" if before is earlier[-1] else f"night {before.stamp}, the last comparable one"
    return f"{_format_bare(scored.definition, before.value, len(before.expected))} on {since}."


def _format_bare(definition: Definition, value: float, workloads: int) -> str:
    """Format a value of which no more is kept than the number of its workloads."""
    if definition.kind == SPEEDUP:
        return f"{three_digits(value)} {_times(definition)}"
    if definition.kind == SHARE:
        return f"{value * workloads / 100:.0f} of {workloads}"
    return format_quantity(value, definition.unit) if definition.kind == GEOMEAN else f"{value:.0f} correct"


def plots(scored: Sequence[Scored]) -> dict[str, Plot]:
    """Make two pictures for each score: tonight by workload, and the complete nights."""
    pictures: dict[str, Plot] = {}
    for item in scored:
        tonight, nights = _name_pictures(item)
        pictures |= {tonight: _bars(item), nights: _line(item)}
    return pictures


def _name_pictures(scored: Scored) -> tuple[str, str]:
    begin = f"{_SAFE.sub('_', scored.definition.title)[:60].strip('_')}_{scored.definition.id[:6]}"
    return f"{begin}_tonight", f"{begin}_nights"


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
    """Draw complete nights as points; an incomplete one is a gap."""
    definition, points = scored.definition, scored.points
    drawn = [(point.value, point.low, point.high) if point.complete else (None, None, None) for point in points]
    line = Line(definition.title, tuple(point.stamp for point in points), *zip(*drawn, strict=True))
    pairs = itertools.pairwise(point for point in points if point.complete)
    marks = tuple(Mark(now.stamp, "other workloads") for was, now in pairs if set(was.expected) != set(now.expected))
    return Longitudinal(
        definition.title, definition.unit, (line,), marks=marks, lower_is_better=definition.lower_is_better
    )


def page(stamp: str, scored: Sequence[Scored], left_out: Sequence[LeftOut], faults: Sequence[str]) -> ScorePage:
    """Collect what the website shows; paths are relative to the output folder."""
    return ScorePage(stamp, tuple(map(_on_page, scored)), tuple(faults), tuple(left_out))


def _on_page(scored: Scored) -> ScoreTonight:
    definition, tonight, before = scored.definition, scored.tonight, scored.before
    value, details = tell(scored)
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
        words=_join(value, details),
        before=None if before is None else Before(before.stamp, before.value),
        workloads=tonight.workloads,
        missing=tonight.lacks,
        graphs=tuple(Graph(f"graphs/{name}.svg", alt_text(plot)) for name, plot in plots([scored]).items()),
        headline=value,
        details=details,
    )
