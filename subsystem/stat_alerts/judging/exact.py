"""Exact numbers: sizes, counts, accuracies that are alike in every process. Any change of one is told.

A number proves itself: on some night all the processes that made it anew agreed, and in the last nights those of one
night never differed. It is compared with that of the TVM before tonight's in the order of commits, and of a TVM that is
measured again with its own. What has two values on one TVM, or by turns, says nothing with either; what has more, or
changes most nights, is judged like a time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import NamedTuple

import numpy as np

from judging.memory import ALERT, KnownShift, Memory
from judging.table import REACH, Measured, Table
from tvmdash.judge.history.fleet.fleet import FleetState
from tvmdash.judge.history.levels import rebase
from tvmdash.judge.history.series import SeriesState, scale_series

RECENT, MOST_CHANGES = 15, 5
"""A number that changed more often than that in its last nights is no exact one: each of its changes says nothing."""
TURNS = 4
"""Changes between the same two values in its last nights from which on the number is taken to alternate."""


@dataclass(frozen=True)
class Exact:
    """An exact number tonight. before: its value on the night `after`, with the TVM that it is compared with.

    since: the night from which on it has tonight's value. processes: how many agreed tonight; 1 where it is declared
    exact, 0 where one process alone measured it. has_other_functions: it is a sum over functions of generated code, of
    which one has another number, or other code, than before. has_two_values: of one TVM, or by turns.
    """

    row: int
    night: int
    after: int
    since: int
    before: float
    value: float
    processes: int
    has_other_functions: bool = False
    has_two_values: bool = False

    @property
    def is_changed(self) -> bool:
        return self.value != self.before or self.has_other_functions

    @property
    def reason(self) -> str:
        if self.has_two_values:
            return "not exact: two values of one TVM, or by turns, and this is one of them"
        agree = f"{self.processes} processes agree" if self.processes > 1 else "it has no noise"
        return f"exact, {agree}: {'another value than before' if self.is_changed else 'as it was'}"


class _Number(NamedTuple):
    """One night's value with a TVM; functions: a number for those that it is a sum over, 0 where unknown."""

    night: int
    build: str
    value: float
    functions: int

    @property
    def state(self) -> tuple[float, int]:
        return self.value, self.functions

    def is_as(self, other: _Number) -> bool:
        """Compare values, and functions where both are known."""
        known = self.functions and other.functions
        return self.value == other.value and (self.functions == other.functions or not known)


def exact_numbers(table: Table, night: int) -> dict[int, Exact]:
    """Return by row tonight's exact numbers that can be compared with an earlier night's."""
    stop = night + 1 - table.offset
    start = max(0, stop - REACH)
    columns, alike = np.arange(start, stop), table.alike[:, start:stop]
    agreed = np.where(alike > 0, columns, -RECENT).max(axis=1)
    differed = np.where(alike == 0, columns, -RECENT).max(axis=1)
    proven = (agreed > differed) & (columns[-1] - differed >= RECENT) & np.isfinite(table.values[:, stop - 1])
    rows = proven.nonzero()[0].tolist()
    nights = range(table.offset + start, table.offset + stop)
    measured = {
        name: [(table.measured(name, night), table.build(name, night).fingerprint) for night in nights]
        for name in {table.rows[row].experiment for row in rows}
    }
    numbers = (_exact(table, row, start, measured[table.rows[row].experiment]) for row in rows)
    return {number.row: number for number in numbers if number is not None}


def _exact(table: Table, row: int, start: int, measured: Sequence[tuple[Measured | None, str | None]]) -> Exact | None:
    """Compare a row's numbers. measured: by column, which TVM was, and by which code of the experiment."""
    part = (row, slice(start, start + len(measured)))
    alike, values, code = table.alike[part], table.values[part], table.code[part]
    usable = np.isfinite(values) & (alike != 0)
    # nights before the first on which processes agreed prove nothing
    usable[: int((alike > 0).argmax())] = False
    places = usable.nonzero()[0].tolist()
    of_code = [at for at in places if measured[at][1] == measured[-1][1]]
    numbers = [
        _Number(table.offset + start + at, tvm.name if tvm else f"of {at}", float(values[at]), int(code[at]))
        for at in (of_code if len(of_code) > 1 else places[-2:])
        for tvm in (measured[at][0],)
    ]
    return _compare(table, row, numbers, max(0, int(alike[-1]))) if len(numbers) > 1 else None


def _compare(table: Table, row: int, numbers: Sequence[_Number], processes: int) -> Exact | None:
    """Compare tonight's number, the last, with that of the TVM before it; None where it is no exact one."""
    *earlier, tonight = numbers
    if all(number.is_as(tonight) for number in earlier):
        nights = tonight.night, earlier[-1].night, earlier[0].night
        return Exact(row, *nights, tonight.value, tonight.value, processes)
    of: dict[str, list[_Number]] = {}
    for number in earlier:
        of.setdefault(number.build, []).append(number)
    first = {build: own[0].night for build, own in of.items()}
    order = table.order_builds(row, {tonight.build: tonight.night, **first}, tonight.night)
    place = order.index(tonight.build)
    # compared with itself, hence unchanged, unless a TVM to compare it with is found below
    base = tonight._replace(night=earlier[-1].night)
    if tonight.build in of:
        base = of[tonight.build][-1]
    elif place == len(order) - 1:  # a commit between known ones, or before them all, changes nothing of today
        base = of[order[place - 1]][-1]

    of_one_tvm = [{number.state for number in own} for own in of.values()]
    recent = {number.build for number in earlier[1 - RECENT :]}
    lately = [of[build][-1] for build in order if build in recent]
    changes = [frozenset({one.state, other.state}) for one, other in pairwise(lately) if not one.is_as(other)]
    turns = [pair for pair, count in Counter(changes).items() if count >= TURNS]
    twos = [states for states in (*of_one_tvm, *turns) if len(states) == 2]
    has_two = any(tonight.state in two for two in twos)
    if any({tonight.state, base.state} == two for two in twos):
        base = tonight._replace(night=base.night)
    changes += [] if tonight.is_as(base) else [frozenset({base.state, tonight.state})]
    own = {tonight.state, *(number.state for number in of.get(tonight.build, ()))}
    if sum(change not in turns for change in changes) > MOST_CHANGES or max(map(len, (*of_one_tvm, own))) > 2:
        return None
    run = takewhile(lambda build: of[build][0].is_as(tonight), (name for name in order[place::-1] if name in of))
    since = min((of[build][0].night for build in run), default=tonight.night)
    nights = tonight.night, base.night, since
    others = 0 != base.functions != tonight.functions != 0
    return Exact(row, *nights, base.value, tonight.value, processes, others, has_two and tonight.is_as(base))


def remembered(table: Table, memory: Memory, numbers: Mapping[int, Exact]) -> Memory:
    """Begin a level tonight for each exact number that changed.

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
        steps[series.key] = KnownShift(table.stamps[number.night], _size(number), ALERT)
    return replace(memory, fleets=fleets).with_steps(steps)


def _size(number: Exact) -> float:
    return math.log(number.value / number.before) if min(number.value, number.before) > 0 else 0.0
