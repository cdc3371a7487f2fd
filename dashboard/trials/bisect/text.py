"""A bisection for people."""

from __future__ import annotations

from collections.abc import Iterator

from tvmdash.contracts.bisection import Bisection, BisectionState, Suspect
from tvmdash.text import elide, format_duration, format_percent, format_percent_range

_SHOWN = 10


def summarize(result: Bisection) -> str:
    """A few lines for people."""
    return "\n".join(_format_lines(result))


def _format_lines(result: Bisection) -> Iterator[str]:
    ends = f"{result.good.id[:12]} and {result.bad.id[:12]}"
    if result.state == BisectionState.NO_STEP:
        yield f"No step found: {result.name} is the same at {ends}, as far as {result.ends} pairs can tell."
    elif not result.suspects:
        yield f"After {result.ends} pairs it is still unclear whether {result.name} differs between {ends}."
    elif result.state == BisectionState.FOUND:
        yield f"{elide(result.name, 90)} {_format_change(result)} with {result.suspects[0].text}."
    else:
        yield f"{elide(result.name, 90)} {_format_change(result)} with one of {len(result.suspects)}:"
        yield from (f"  {suspect.text}{_format_reason(result, suspect)}" for suspect in result.suspects[-_SHOWN:])
        if len(result.suspects) > _SHOWN:
            yield f"  and {len(result.suspects) - _SHOWN} before them"
    if result.state == BisectionState.OVER:
        yield "The time budget ran out. Run the same command again to continue."
    if result.effect is not None and result.noise is not None and result.least is not None:
        yield (
            f"Confidence {100 * min(result.probability, 0.999):.3g} %, among {result.candidates} builds after "
            f"{result.good.id[:12]}. One pair scatters by {100 * result.noise:.2g} %; information theory asks for "
            f"{result.least:.0f} measurements after the ends."
        )
    yield _format_cost(result)


def _format_change(result: Bisection) -> str:
    assert result.effect is not None
    assert result.low is not None
    assert result.high is not None
    word = "higher" if result.effect > 0 else "lower"
    size = f"{format_percent(result.effect)} (95 %: {format_percent_range(result.low, result.high)})"
    return f"became {word}, {size},"


def _format_reason(result: Bisection, suspect: Suspect) -> str:
    why = result.failed.get(suspect.id)
    return f" (not measured: {elide(why, 100)})" if why else ""


def _format_cost(result: Bisection) -> str:
    failed = f", {len(result.failed)} could not be measured" if result.failed else ""
    runs = f"{result.measurements} measurements, {2 * result.ends} of them of the ends"
    return f"{result.builds} builds besides the ends{failed}; {runs}; {format_duration(result.elapsed_s)} altogether."
