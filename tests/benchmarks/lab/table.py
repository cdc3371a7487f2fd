"""The figures as text: tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.benchmarks.lab.figures import DELAYS, Figures, add
from tests.benchmarks.lab.scoring import Result

_HEAD = (
    "situation", "held", "metric-nights", "false per 1000", "after a change", "told in time, %",
    *(f"within {nights}" for nights in DELAYS), "green against evidence", "forbidden", "min a night + again",
)  # fmt: skip


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(count: int) -> str:
    return f"|{'---|' * count}"


def format_tables(situations: Mapping[str, Figures]) -> Iterator[str]:
    """A line for each situation, one for all, then the tables by size and of shares."""
    yield _line(_HEAD)
    yield _rule(len(_HEAD))
    for name, figures in situations.items():
        yield _line(_situation(name, figures))
    whole = add(situations.values())
    yield _line(_situation("**all**", whole))
    yield from ("", _line(["size", *(f"within {nights} nights, %" for nights in DELAYS)]), _rule(1 + len(DELAYS)))
    for size, shares in whole.sizes.items():
        yield _line([size, *(shares[nights].format() for nights in DELAYS)])
    yield from ("", _line(["share", "% [95 %] of"]), _rule(2))
    for name, share in whole.shares.items():
        yield _line([name, share.format(digits=2)])
    yield _line(["wrong among told, at one true change in 1,000 metric-nights", f"{100 * whole.wrong_at_one_true:.1f}"])


def _situation(name: str, figures: Figures) -> list[str]:
    shares = figures.shares
    measured, again = figures.minutes
    late = [shares[f"told within {nights}"] for nights in DELAYS]
    return [
        name,
        f"{shares['worlds held'].hits}/{shares['worlds held'].of}",
        str(shares["false per metric-night"].of),
        shares["false per metric-night"].format(1000, 2),
        shares["false after a change"].format(1000, 2),
        shares["told in time"].format(digits=0),
        *(f"{100 * share.value:.0f}" if share.of else "-" for share in late),
        f"{shares['green against the evidence'].hits}/{shares['green against the evidence'].of}",
        str(shares["forbidden levels"].hits),
        f"{measured:.1f} + {again:.1f}",
    ]


def format_faults(name: str, seed: int, result: Result) -> Iterator[str]:
    """What was wrong in one world, a line each."""
    for judgement in result.wrong:
        told = judgement.telling
        what = f"{judgement.outcome}{', recovered' if told.is_back else ''}"
        yield (
            f"  {name} {seed}: night {told.night}: {what}: rows {list(told.rows)[:4]}"
            f" {100 * told.effect:+.1f} % since {told.begin} (after {told.after}), blamed on {told.blame}"
        )
    for hit in result.hits:
        if hit.is_missed:
            change = hit.must.change
            when = "never told" if hit.delay is None else f"told after {hit.delay} nights"
            grave = "" if hit.graded or hit.delay is None else ", the verdict was not grave enough"
            yield f"  {name} {seed}: row {change.row} by {change.size:+.4f} on night {change.night}: {when}{grave}"
    if result.green:
        yield f"  {name} {seed}: {result.green} nights green against the evidence"
    yield from (f"  {name} {seed}: {violation}" for violation in [*result.violations[:3], *result.crashes[:3]])
