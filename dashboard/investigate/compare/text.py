"""A comparison for people: a table for the terminal, and Markdown for a pull request."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from dashboard.investigate.compare.result import Compared, Comparison, Side
from tvmdash.records.metrics import is_worse, way
from tvmdash.stats.comparison import NAMED_ROUNDS, ComparedDifference
from tvmdash.text import elide, format_duration, format_list, format_percent, format_quantity

_NAME_COLUMNS = 70
_LEAST = 1e-9
_FEW_ROUNDS = (
    f"Of fewer than {NAMED_ROUNDS} rounds only what differs by the same in each is named, as sizes do, and the interval"
    " is Student's t of the mean: no interval of the median has 95 % there."
)
_HEAD = ("series", "A", "B", "B against A", "95 %", "")


def format_table(done: Comparison, *, every: bool = False) -> str:
    """The comparison for a terminal: the series that differ, or with `every` all of them."""
    rows = [_HEAD, *map(_format_row, _choose_shown(done, every=every))]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    table = [_format_line(row, widths) for row in rows]
    return "\n".join(
        [*_format_sides(done), *_format_method(done), "", *(table if len(rows) > 1 else ()), _format_verdict(done)]
    )


def format_markdown(done: Comparison, *, every: bool = False) -> str:
    """The same as Markdown."""
    rows = [_HEAD, *map(_format_row, _choose_shown(done, every=every))]
    lines = ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in rows]
    lines.insert(1, "|---|---:|---:|---:|---:|---|")
    table = [*lines, ""] if len(rows) > 1 else []
    return (
        "\n".join(
            [
                *(f"- {line}" for line in (*_format_sides(done), *_format_method(done))),
                "",
                *table,
                _format_verdict(done),
            ]
        )
        + "\n"
    )


def _choose_shown(done: Comparison, *, every: bool) -> list[Compared]:
    chosen = [
        compared for compared in done.series.values() if compared.difference and (every or compared.difference.real)
    ]
    return sorted(chosen, key=lambda compared: -abs(compared.difference.effect) if compared.difference else 0.0)


def _format_sides(done: Comparison) -> Iterator[str]:
    for letter, side in (("A", done.a), ("B", done.b)):
        yield f"{letter}: {side.asked}, {_format_artifact(side)}{f'. {side.note}' if side.note else ''}"
    if done.a.artifact["key"] == done.b.artifact["key"]:
        yield "Both are the same build; any difference is noise."


def _format_artifact(side: Side) -> str:
    commit = side.artifact["commit"]
    return f"TVM {side.artifact['version']}" + (f", commit {commit[:12]}" if commit else "")


def _format_method(done: Comparison) -> Iterator[str]:
    counts = sorted(set(done.rounds.values()))
    rounds = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0] if counts else 0}"
    machine = f"{done.machine['host']} ({done.machine['hw_model']})"
    yield f"{rounds} rounds, A and B in turn, on {machine}, in {format_duration(done.elapsed_s)}."
    if any(compared.difference and compared.difference.rounds >= NAMED_ROUNDS for compared in done.series.values()):
        yield "B against A is the median of the rounds' ratios, with that median's 95 % interval."
    if any(compared.difference and compared.difference.rounds < NAMED_ROUNDS for compared in done.series.values()):
        yield _FEW_ROUNDS
    if done.over:
        yield f"The time budget ran out before all rounds were done: {format_list(done.over, 5)}."
    for name, error in done.errors.items():
        yield f"{name} ended after {done.rounds.get(name, 0)} rounds: {error}"


def _format_row(compared: Compared) -> tuple[str, ...]:
    difference = compared.difference
    if difference is None:
        return (elide(compared.series.name, _NAME_COLUMNS), "", "", "", "", "")
    a, b = (statistics.median(pair[side] for pair in compared.rounds) for side in (0, 1))
    interval = f"{format_percent(difference.low)} to {format_percent(difference.high)}"
    levels = format_quantity(a, compared.series.unit), format_quantity(b, compared.series.unit)
    return (
        elide(compared.series.name, _NAME_COLUMNS),
        *levels,
        format_percent(difference.effect),
        interval,
        _format_word(compared),
    )


def _format_word(compared: Compared) -> str:
    if compared.difference is None or not compared.difference.real:
        return ""
    up = compared.difference.effect > 0
    if compared.series.is_size:
        return "larger" if up else "smaller"
    if compared.series.is_time:
        return "slower" if up else "faster"
    judged = is_worse(compared.difference.effect, compared.series.direction)
    return ("higher" if up else "lower") + ("" if judged is None else f", {way(judged)}")


def _format_line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = zip(row, widths, strict=True)
    return "  ".join(_format_cell(text, width, at) for at, (text, width) in enumerate(cells)).rstrip()


def _format_cell(text: str, width: int, at: int) -> str:
    return text.ljust(width) if at in (0, len(_HEAD) - 1) else text.rjust(width)


def _format_verdict(done: Comparison) -> str:
    judged = [compared for compared in done.series.values() if compared.difference]
    if not judged:
        return "No conclusion: no series was measured at least three times on both."
    real = sum(compared.difference is not None and compared.difference.real for compared in judged)
    sentence = f"{real} of {len(judged)} series differ." if real else f"None of {len(judged)} series differs."
    unjudged = len(done.series) - len(judged)
    lacking = f"{unjudged} could not be judged (too few rounds, or values not above 0)." if unjudged else ""
    return " ".join(filter(None, (sentence, *_format_known(judged), lacking)))


def _format_known(judged: Sequence[Compared]) -> Iterator[str]:
    """How well those without a real difference are known: times, sizes and other numbers apart."""
    kinds: dict[str, list[tuple[float, str]]] = {}
    for compared in judged:
        if compared.difference and not compared.difference.real:
            kinds.setdefault(_name_kind(compared), []).append((_find_factor(compared.difference), compared.series.name))
    for kind, widths in kinds.items():
        widths.sort()
        (half, _), (most, widest) = widths[len(widths) // 2], widths[-1]
        prefix = f"{kind} without a difference: {len(widths)}, "
        if most == 1.0:
            yield f"{prefix}the same in every round."
        elif len(widths) == 1:
            yield f"{prefix}known to {_format_within(most)}."
        else:
            which = elide(widest, _NAME_COLUMNS)
            yield f"{prefix}half known to {_format_within(half)}, all to {_format_within(most)} (the widest: {which})."


def _name_kind(compared: Compared) -> str:
    return "Times" if compared.series.is_time else "Sizes" if compared.series.is_size else "Numbers"


def _find_factor(difference: ComparedDifference) -> float:
    """By what factor, up or down, the ratio of B to A may be another than its estimate; 1: it is known exactly."""
    return math.sqrt((1 + difference.high) / max(1 + difference.low, _LEAST))


def _format_within(factor: float) -> str:
    """As in "within ±0.58 %", "within ±12 %"; from a doubling on, "within a factor of 2.8"."""
    percent = max(0.01, 100 * (factor - 1))
    if percent >= 99.5:
        return f"within a factor of {factor:.{1 if factor < 9.95 else 0}f}"
    return f"within ±{percent:.{2 if percent < 0.995 else 1 if percent < 9.95 else 0}f} %"
