"""The heat strip: experiments down, the last nights across, the newest at the right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tvmdash.account import sort_experiments
from tvmdash.dashboard_info import JobResult, Night
from views.night import ABSENT, FAILED, OK, PARTIAL, job_state
from views.tonight import page_of

NIGHTS = 30
MOST_ROWS = 12
"""So many experiments are shown at once, those with most trouble first; the rest is behind a click."""


@dataclass(frozen=True)
class StripRow:
    """One experiment: its state on each night."""

    name: str
    title: str
    page: str
    states: tuple[str, ...]


@dataclass(frozen=True)
class Strip:
    """`stamps` oldest first. machines: for each night whether the machine is another one than the night before."""

    stamps: tuple[str, ...]
    rows: tuple[StripRow, ...]
    more: tuple[StripRow, ...]
    machines: tuple[bool, ...]

    @property
    def machine_changed(self) -> bool:
        return any(self.machines)


def make_strip(nights: Sequence[Night], machine_changed: AbstractSet[str]) -> Strip:
    """The strip of `nights`, tonight's first; `machine_changed` are the stamps at which another machine measured."""
    ordered = list(reversed(nights[:NIGHTS]))
    rows = sorted(_rows(ordered), key=lambda row: (_calm(row), row.title.lower(), row.name))
    shown = sorted(rows[:MOST_ROWS], key=lambda row: (row.title.lower(), row.name))
    stamps = tuple(night.stamp for night in ordered)
    return Strip(stamps, tuple(shown), tuple(rows[MOST_ROWS:]), tuple(stamp in machine_changed for stamp in stamps))


def _rows(nights: Sequence[Night]) -> Iterable[StripRow]:
    titles: dict[str, str] = {}
    for night in nights:
        titles.update({job.name: job.title for job in sort_experiments(night)})
    states = [{job.name: cell(job) for job in sort_experiments(night)} for night in nights]
    return (
        StripRow(name, title, page_of(name), tuple(night.get(name, ABSENT) for night in states))
        for name, title in titles.items()
    )


def _calm(row: StripRow) -> tuple[bool, bool, int]:
    """Sorts what fails tonight first, then what failed most often."""
    return row.states[-1] in (OK, ABSENT), row.states[-1] == ABSENT, -sum(state == FAILED for state in row.states)


def cell(job: JobResult) -> str:
    """The state of an experiment on a night; partial where its stages are ok and points failed."""
    state = job_state(job)
    return PARTIAL if state == OK and job.failed_points else state


def machine_changes(machines: Mapping[str, Sequence[str]]) -> set[str]:
    """The nights that measured on none of the machines of the night before; `machines` by stamp, oldest first."""
    changed: set[str] = set()
    before: AbstractSet[str] = frozenset()
    for stamp, now in machines.items():
        if before and before.isdisjoint(now):
            changed.add(stamp)
        before = frozenset(now)
    return changed
