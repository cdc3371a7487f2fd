"""What the night would have told of steps that are known: put into copies of series that are judged by their ratios.

The analogue of false_positive_rate, which tests the detector of times. Each night of a series is counted once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from judging.false_positive_rate import Rate
from judging.judge import FleetNight, Judged
from judging.table import Table
from tvmdash import common, structured
from tvmdash.detect.beside.decisions import RatioDecision
from tvmdash.detect.beside.luck import Elsewhere
from tvmdash.detect.beside.planted import decide_with_steps, is_unchanged, learn_copies
from tvmdash.detect.series import SeriesState
from tvmdash.errors import DashboardError
from tvmdash.structured import Stamp
from tvmdash.verdict import PlantedStep, Sensitivity

SENSITIVITY_FILE = "sensitivity.json"
VERSION = 1
STEPS = (0.03, 0.05)
KEPT_NIGHTS = 90


@dataclass(frozen=True)
class _Night:
    """What one night's copies gave."""

    steps: tuple[PlantedStep, ...]
    unchanged: int
    false: int


@dataclass(frozen=True)
class _Kept:
    """What the file holds, by night."""

    version: int
    nights: Mapping[Stamp, _Night]


@dataclass(frozen=True)
class _Copy:
    """One series' copies: what would be told without a step, and by step.

    is_short: it was measured with one pair as nothing had changed. After a step it would have been in full.
    """

    plain: RatioDecision | None
    stepped: tuple[RatioDecision | None, ...]
    unchanged: bool
    is_short: bool = False


def measured(output: Path, table: Table, judged: Judged) -> Sensitivity | None:
    """What tonight's copies and those of the last nights give; None where no series has two ratios yet."""
    path = output / SENSITIVITY_FILE
    stamp = table.stamps[judged.night]
    nights = {night: kept for night, kept in sorted(_read(path).items()) if night < stamp}
    tonight = _count(list(_copies(table, judged)))
    if any(step.series for step in tonight.steps) or tonight.unchanged:
        nights[stamp] = tonight
    nights = dict(list(nights.items())[-KEPT_NIGHTS:])
    if not nights:
        return None
    common.write_json(path, structured.to_json(_Kept(VERSION, nights)))
    every = list(nights.values())
    false = Rate(sum(night.unchanged for night in every), sum(night.false for night in every))
    lately = tuple(_add([night.steps[at] for night in every]) for at in range(len(STEPS)))
    return Sensitivity(tonight.steps, lately, len(nights), false.nights, false.alerts, false.at_most)


def _read(path: Path) -> Mapping[str, _Night]:
    """The counts of earlier nights; none where there is no usable file."""
    try:
        kept = structured.read(_Kept, path)
    except DashboardError:
        return {}
    return kept.nights if kept is not None and kept.version == VERSION else {}


def _add(steps: Sequence[PlantedStep]) -> PlantedStep:
    return PlantedStep(
        steps[0].step,
        sum(step.series for step in steps),
        sum(step.told for step in steps),
        sum(step.again for step in steps),
    )


def _copies(table: Table, judged: Judged) -> Iterator[_Copy]:
    """Of each series that has a ratio tonight and had one before; each machine's by itself, as it was judged."""
    for fleet in judged.fleets:
        yield from _copies_of(table, judged, fleet)


def _copies_of(table: Table, judged: Judged, fleet: FleetNight) -> Iterator[_Copy]:
    states = fleet.before.series
    members: dict[str, list[int]] = {}
    for row in fleet.rows.values():
        if row in judged.beside:
            members.setdefault(table.rows[row].experiment, []).append(row)
    histories = {
        name: {str(row): table.ratio_history(row, judged.night) for row in rows} for name, rows in members.items()
    }
    learned = {name: learn_copies(own) for name, own in histories.items()}
    for name, rows in members.items():
        starts = {str(row): states.get(table.rows[row].key, SeriesState()).start for row in rows}
        elsewhere = Elsewhere.of(copies for other, copies in learned.items() if other != name)
        decisions = decide_with_steps(learned[name], starts, (0.0, *STEPS), elsewhere)
        for row in rows:
            history, said = histories[name][str(row)], judged.beside[row].decision
            if (said is None or not said.is_told) and np.isfinite(history.logs[:-1]).any():
                plain, *stepped = (decisions[step].get(str(row)) for step in (0.0, *STEPS))
                unchanged = is_unchanged(history)
                yield _Copy(plain, tuple(stepped), unchanged, unchanged and history.pairs[-1] == 1)


def _count(copies: Sequence[_Copy]) -> _Night:
    """The counts. What is told of tonight without a step is a false alarm where TVM is unchanged, else perhaps true."""
    told = [copy.plain for copy in copies if copy.unchanged and copy.plain is not None and copy.plain.is_told]
    others = [copy for copy in copies if not copy.is_short and (copy.plain is None or not copy.plain.is_told)]
    steps = []
    for at, step in enumerate(STEPS):
        decisions = [copy.stepped[at] for copy in others]
        hits = sum(_is_told_slower(decision) for decision in decisions)
        again = sum(not _is_told_slower(said) and said is not None and said.is_worth_measuring for said in decisions)
        steps.append(PlantedStep(step, len(others), hits, again))
    false = sum(said.builds == 1 for said in told)
    return _Night(tuple(steps), sum(copy.unchanged for copy in copies), false)


def _is_told_slower(decision: RatioDecision | None) -> bool:
    return decision is not None and decision.is_told and decision.effect > 0
