"""What came of a bisection, as a file and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dashboard.investigate.bisect.range import Candidate
from tvmdash.records.metrics import Direction
from tvmdash.text import duration_in_words, elide

SCHEMA_VERSION = 1
FOUND, RANGE, NO_STEP, OVER = "found", "range", "no step", "budget"
"""How it ended: one culprit; a range that cannot be made shorter; the ends do not differ; the budget was over."""
_SHOWN = 10


@dataclass(frozen=True)
class Result:
    """The answer. suspects: one of them is the culprit with this probability. effect, low, high: fractions, 95 %.

    measurements: runs of the experiment, two a pair; `least` of them by information theory. builds: made for this
    search. failed: why, by commit. noise: deviation of one pair. elapsed_s: of all calls that went into it.
    """

    state: str
    experiment: str
    series: str
    name: str
    direction: Direction
    good: Candidate
    bad: Candidate
    candidates: int
    ends: int
    builds: int
    failed: Mapping[str, str]
    measurements: int
    elapsed_s: float
    error: float
    journal: str
    suspects: tuple[Candidate, ...] = field(default=())
    probability: float = 0.0
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    noise: float | None = None
    least: float | None = None

    @property
    def is_answered(self) -> bool:
        """Whether no more can be had, and the step is there."""
        return self.state in (FOUND, RANGE)

    def to_json(self) -> dict[str, Any]:
        """As the file holds it."""
        builds = {"good": self.good.to_json(), "bad": self.bad.to_json()}
        suspects = [one.to_json() for one in self.suspects]
        return {"schema_version": SCHEMA_VERSION, **asdict(self), **builds, "suspects": suspects}


def in_words(result: Result) -> str:
    """A few lines for people."""
    return "\n".join(_lines(result))


def _lines(result: Result) -> Iterator[str]:
    ends = f"{result.good.id[:12]} and {result.bad.id[:12]}"
    if result.state == NO_STEP:
        yield f"There is no step: {result.name} is the same at {ends}, as far as {result.ends} pairs can tell."
    elif not result.suspects:
        yield f"Whether {result.name} differs between {ends} is not clear yet, after {result.ends} pairs of the two."
    elif result.state == FOUND:
        yield f"{elide(result.name, 90)} {_became(result)} with {result.suspects[0].words}."
    else:
        yield f"{elide(result.name, 90)} {_became(result)} with one of {len(result.suspects)}:"
        yield from (f"  {one.words}{_why(result, one)}" for one in result.suspects[-_SHOWN:])
        if len(result.suspects) > _SHOWN:
            yield f"  and {len(result.suspects) - _SHOWN} before them"
    if result.state == OVER:
        yield "The time was over. The same command goes on from here."
    if result.effect is not None and result.noise is not None and result.least is not None:
        yield (
            f"Confidence {100 * min(result.probability, 0.999):.3g} %, among {result.candidates} builds after "
            f"{result.good.id[:12]}. One pair scatters by {100 * result.noise:.2g} %; information theory asks for "
            f"{result.least:.0f} measurements after the ends."
        )
    yield _cost(result)


def _became(result: Result) -> str:
    assert result.effect is not None
    assert result.low is not None
    assert result.high is not None
    word = "higher" if result.effect > 0 else "lower"
    size = f"{100 * result.effect:+.2g} % (95 %: {100 * result.low:+.2g} to {100 * result.high:+.2g} %)"
    return f"became {word}, {size},"


def _why(result: Result, one: Candidate) -> str:
    why = result.failed.get(one.id)
    return f" (not measured: {elide(why, 100)})" if why else ""


def _cost(result: Result) -> str:
    failed = f", {len(result.failed)} could not be measured" if result.failed else ""
    runs = f"{result.measurements} measurements, {2 * result.ends} of them of the ends"
    return f"{result.builds} builds besides the ends{failed}; {runs}; {duration_in_words(result.elapsed_s)} altogether."
