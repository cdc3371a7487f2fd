"""A reproduction for people."""

from __future__ import annotations

from collections.abc import Iterator

from dashboard.reproduce import Line, Reproduction
from tvmdash.words import duration_in_words, elide, quantity_in_words


def in_words(done: Reproduction) -> str:
    """What was measured again, on what, whether it holds, and what is not as it was."""
    return "\n".join(_lines(done))


def _lines(done: Reproduction) -> Iterator[str]:
    rounds = f"{done.rounds} times in {duration_in_words(done.elapsed_s)}"
    yield f"{done.experiment} of the night {done.night}, TVM {done.artifact['version']}, measured again {rounds}."
    yield {
        True: "The same machine as then.",
        False: "NOT the same machine as then.",
        None: "Whether it is the same machine is not known: the receipt does not say which it was.",
    }[done.is_same_machine]
    yield f"{done.code[:1].upper()}{done.code[1:]}."
    for name, then, now in done.differs:
        yield f"  {name}: {elide(then, 80)} then, {elide(now, 80)} now"
    if not done.differs:
        yield "Nothing that is known of machine, TVM and code differs."
    yield ""
    for line in done.lines:
        yield f"{elide(line.name, 80)}: {_verdict(line)}"
    if done.ended:
        yield f"It ended early: {done.ended}"
    held = sum(line.found is not None and line.found.holds for line in done.lines)
    yield f"{held} of {len(done.lines)} hold."


def _verdict(line: Line) -> str:
    old = quantity_in_words(line.old, line.unit)
    if line.found is None:
        return f"{old} then; measured {len(line.new)} times now, which is not enough to say, or not above 0"
    found = line.found
    bounds = f"{quantity_in_words(found.low, line.unit)} to {quantity_in_words(found.high, line.unit)}"
    inside = "inside the noise" if found.holds else "OUTSIDE the noise"
    return (
        f"{old} then, {quantity_in_words(found.new, line.unit)} now ({100 * found.effect:+.2g} %); {inside} ({bounds})"
    )
