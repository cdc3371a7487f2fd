"""A reproduction for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dashboard.trials.reproduce.result import Reproduction
from dashboard.trials.reproduce.verdict import Line
from tvmdash.judge.repeated import CANNOT_TELL, DOES_NOT_HOLD, HOLDS
from tvmdash.text import elide, format_duration, format_percent, format_quantity


def summarize(done: Reproduction) -> str:
    """What was measured again, on what, whether it holds, and what is not as it was."""
    return "\n".join(_format_lines(done))


def _format_lines(done: Reproduction) -> Iterator[str]:
    if done.drawn is not None:
        yield f"Drawn at random (seed {done.drawn.seed}) from {done.drawn.candidates} receipts of earlier nights."
    rounds = f"{done.rounds} times in {format_duration(done.elapsed_s)}"
    yield f"{done.experiment} of the night {done.night}, TVM {done.artifact['version']}, remeasured {rounds}."
    yield {
        True: "Same machine as in the original measurement.",
        False: "NOT the same machine as in the original measurement.",
        None: "Unknown whether this is the same machine; the receipt does not name the machine.",
    }[done.is_same_machine]
    yield f"{done.code[:1].upper()}{done.code[1:]}."
    for name, then, now in done.differs:
        yield f"  {name}: {elide(then, 80)} then, {elide(now, 80)} now"
    if not done.differs:
        yield "No known difference in machine, TVM or code."
    yield ""
    for line in done.lines:
        yield f"{elide(line.series.name, 80)}: {_format_verdict(line)}"
    if done.ended:
        yield f"Stopped early: {done.ended}"
    yield _format_counts(done)


def _format_counts(done: Reproduction) -> str:
    """As in "3 of 5 hold, 1 does not hold, 1 inconclusive."."""
    count = Counter(line.verdict for line in done.lines)
    sentences = [f"{count[HOLDS]} of {len(done.lines)} hold"]
    if count[DOES_NOT_HOLD]:
        sentences.append(f"{count[DOES_NOT_HOLD]} {'does' if count[DOES_NOT_HOLD] == 1 else 'do'} not hold")
    if count[CANNOT_TELL]:
        sentences.append(f"{count[CANNOT_TELL]} inconclusive")
    return ", ".join(sentences) + "."


def _format_verdict(line: Line) -> str:
    old = format_quantity(line.old, line.series.unit)
    if line.found is None:
        return f"{old} then; CANNOT TELL: {line.why}"
    repeated, unit = line.found, line.series.unit
    bounds = f"{format_quantity(repeated.low, unit)} to {format_quantity(repeated.high, unit)}"
    inside = "inside" if repeated.holds else "outside"
    word = {HOLDS: "holds", DOES_NOT_HOLD: "DOES NOT HOLD", CANNOT_TELL: f"CANNOT TELL: {line.why}"}[line.verdict]
    now = f"{format_quantity(repeated.new, unit)} now ({format_percent(repeated.effect)})"
    return f"{old} then, {now}, {inside} the noise ({bounds}); {word}"
