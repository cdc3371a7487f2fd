"""The figures as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tests.benchmarks.worlds.parts import Result
from tests.benchmarks.worlds.scoring import Figures
from tests.benchmarks.worlds.world import Plan

NAMES: dict[str, Callable[[Plan], str]] = {
    "by luck, share redrawn": lambda plan: f"{100 * plan.luck:.1f} %, {plan.redrawn:g}",
    "by home": lambda plan: "wheel" if plan.wheel else "source",
    "by reference": lambda plan: plan.reference,
    "by series": lambda plan: str(plan.series),
    "all": lambda plan: "all",
}


def _share(hits: float, of: float, scale: float = 100.0, digits: int = 1) -> str:
    return f"{scale * hits / of:.{digits}f}" if of else "-"


COLUMNS: dict[str, Callable[[Figures], str]] = {
    "series-nights": lambda at: str(at.series_nights),
    "told": lambda at: str(at.told),
    "false / 1,000": lambda at: _share(at.false, at.series_nights, 1000, 2),
    "by chance: expected, happened": lambda at: f"{at.expected:.1f}, {at.happened}",
    "wrong among told %": lambda at: _share(at.false, at.told),
    "twice": lambda at: str(at.twice),
    "amber % of quiet nights": lambda at: _share(at.ambers, at.quiet),
    "wrongly red % of nights": lambda at: _share(at.wrong_red, at.nights),
    "strangers": lambda at: str(at.strangers),
    "undecided % of quiet": lambda at: _share(at.undecided, at.quiet),
}
STEP_COLUMNS: dict[str, Callable[[Figures], str]] = {
    "closed while it stands % of nights": lambda at: _share(at.closed, at.standing),
    "green over a step, nights": lambda at: str(at.green),
    "same night %": lambda at: _share(at.same, at.steps, digits=0),
    "two": lambda at: _share(at.two, at.steps, digits=0),
    "ever": lambda at: _share(at.ever, at.steps, digits=0),
    "effect's error, points": lambda at: _share(sum(abs(e[1]) for e in at.effects), len(at.effects), digits=2),
    "held by interval %": lambda at: _share(sum(e[2] for e in at.effects), len(at.effects), digits=0),
    "recoveries the same night %": lambda at: _share(at.recovered, at.recoveries, digits=0),
    "fixed wrongly": lambda at: str(at.not_fixed),
}


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head(cells: Sequence[str]) -> Iterator[str]:
    yield from ("", _line(cells), f"|{'---|' * len(cells)}")


def _add(results: Sequence[Result]) -> Figures:
    return sum((result.figures for result in results), Figures())


def format_homes(results: Sequence[Result], *, steps: bool) -> Iterator[str]:
    """A table for each way to divide the homes, and one of the sizes planted."""
    columns = COLUMNS | (STEP_COLUMNS if steps else {})
    for title, name in NAMES.items():
        groups: dict[str, list[Result]] = {}
        for result in results:
            groups.setdefault(name(result.job.plan), []).append(result)
        if len(groups) > 1 or title == "all":
            yield from _head([title, *columns])
            for key, group in groups.items():
                figures = _add(group)
                yield _line([key, *(column(figures) for column in columns.values())])
    if steps:
        yield from _format_sizes(_add(results))


def _format_sizes(figures: Figures) -> Iterator[str]:
    yield from _head(["step", "planted", "same night %", "two", "ever", "effect's error, points", "held %"])
    for size in sorted({size for size, _ in figures.delays}):
        delays = [delay for known, delay in figures.delays if known == size]
        told = [effect for effect in figures.effects if round(effect[0], 4) == size]
        yield _line(
            [
                f"{100 * size:g} %", str(len(delays)), _share(delays.count(0), len(delays), digits=0),
                _share(delays.count(0) + delays.count(1), len(delays), digits=0),
                _share(len(delays) - delays.count(None), len(delays), digits=0),
                _share(sum(abs(effect[1]) for effect in told), len(told), digits=2),
                _share(sum(effect[2] for effect in told), len(told), digits=0),
            ]
        )  # fmt: skip


def format_situations(results: Sequence[Result], *, verbose: bool) -> Iterator[str]:
    """A line for each situation: in how many seeds all held, then what failed."""
    names = list(dict.fromkeys(result.job.situation for result in results))
    yield from _head(["situation", "right", "claims kept", "false", "twice", "wrongly red nights", "first fault"])
    whole = 0
    for name in names:
        group = [result for result in results if result.job.situation == name]
        figures, right = _add(group), sum(not result.faults and not result.wrong for result in group)
        kept = sum(not result.faults for result in group)
        whole += right
        first = next((fault for result in group for fault in result.faults + result.wrong), "")
        counts = [str(figures.false), str(figures.twice), str(figures.wrong_red)]
        yield _line([name, f"{right}/{len(group)}", f"{kept}/{len(group)}", *counts, first])
    yield _line(["**all**", f"{whole}/{len(results)}", "", "", "", "", ""])
    figures = _add(results)
    yield f"\nrecoveries said the same night: {figures.recovered} of {figures.recoveries} that were told before"
    if verbose:
        yield from faults_of(results)


def faults_of(results: Sequence[Result]) -> Iterator[str]:
    """Each fault, with the seed that gives it again."""
    for result in results:
        for fault in result.faults + result.wrong:
            yield f"  {result.job.situation or result.job.plan} seed {result.job.plan.seed}: {fault}"
