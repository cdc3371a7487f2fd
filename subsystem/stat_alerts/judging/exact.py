"""Exact numbers: sizes, counts, accuracies that are alike in every process. Any change of one is told.

A number proves itself: on some night all the processes that made it anew agreed, and since then no processes of one
night differed. One that changes most nights all the same is judged like a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judging.memory import ALERT, Memory, Step
from judging.table import REACH, Table
from tvmdash.detect.change_points import rebase
from tvmdash.detect.fleet.fleet import FleetState
from tvmdash.detect.series import SeriesState, scale_series

RECENT, MOST_CHANGES = 15, 5
"""A number that changed more often than that in its last nights is no exact one: each of its changes says nothing."""


@dataclass(frozen=True)
class Exact:
    """An exact number tonight. before: its value on the night `after`, the last one that has any.

    since: the night from which on it has tonight's value. processes: how many agreed tonight; 1 where it is declared
    exact, 0 where one process alone measured it. has_other_functions: it is a sum over functions of generated code, of
    which one has another number, or other code, than before.
    """

    row: int
    night: int
    after: int
    since: int
    before: float
    value: float
    processes: int
    has_other_functions: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether it, or what it is the sum of, is another than before."""
        return self.value != self.before or self.has_other_functions

    @property
    def reason(self) -> str:
        """What is said of it tonight, in words."""
        agree = f"{self.processes} processes agree" if self.processes > 1 else "it has no noise"
        return f"exact, {agree}: {'another value than before' if self.is_changed else 'as it was'}"


def exact_numbers(table: Table, night: int) -> dict[int, Exact]:
    """By row, tonight's exact numbers that can be compared with an earlier night's."""
    stop = night + 1 - table.offset
    start = max(0, stop - REACH)
    alike, values, code = table.alike[:, start:stop], table.values[:, start:stop], table.code[:, start:stop]
    proven = (alike > 0).any(axis=1) & (alike != 0).all(axis=1) & np.isfinite(values[:, -1])
    numbers = (_exact(table, row, night, values[row], alike[row], code[row]) for row in proven.nonzero()[0].tolist())
    return {number.row: number for number in numbers if number is not None}


def _exact(
    table: Table, row: int, night: int, values: Sequence[float], alike: Sequence[int], code: Sequence[int]
) -> Exact | None:
    first = int(np.flatnonzero(np.asarray(alike) > 0)[0])
    nights = first + np.flatnonzero(np.isfinite(values[first:]))
    known, functions = np.asarray(values)[nights], np.asarray(code)[nights]
    others = (functions[1:] != functions[:-1]) & (functions[1:] != 0) & (functions[:-1] != 0)
    changed = (np.diff(known) != 0) | others
    if len(known) < 2 or int(changed[1 - RECENT :].sum()) > MOST_CHANGES:
        return None
    steps = np.flatnonzero(changed)
    since = nights[int(steps[-1]) + 1 if len(steps) else 0]
    after, since = (night - (len(values) - 1 - int(at)) for at in (nights[-2], since))
    numbers = float(known[-2]), float(known[-1])
    return Exact(row, night, after, since, *numbers, max(0, int(alike[-1])), bool(others[-1]))


def remembered(table: Table, memory: Memory, numbers: Mapping[int, Exact]) -> Memory:
    """The memory in which each exact number that changed begins a level tonight.

    Should it turn out not to be exact, the detector does not tell the same change again.
    """
    fleets, steps = dict(memory.fleets), {}
    for row, number in numbers.items():
        if not number.is_changed:
            continue
        series = table.rows[row]
        fleet = fleets.get(series.fleet, FleetState())
        state = fleet.series.get(series.key, SeriesState())
        history = table.history(row, number.night)
        anew = rebase(scale_series(history, state), state, number.night)
        fleets[series.fleet] = replace(fleet, series={**fleet.series, series.key: anew})
        steps[series.key] = Step(table.stamps[number.night], _size(number), ALERT)
    return replace(memory, fleets=fleets).with_steps(steps)


def _size(number: Exact) -> float:
    return math.log(number.value / number.before) if min(number.value, number.before) > 0 else 0.0


def by_experiment(table: Table, numbers: Mapping[int, Exact]) -> Iterator[tuple[str, list[Exact]]]:
    """The numbers that changed tonight, those of one experiment together: it had one artifact."""
    together: dict[str, list[Exact]] = {}
    for row, number in numbers.items():
        if number.is_changed:
            together.setdefault(table.rows[row].experiment, []).append(number)
    yield from together.items()
