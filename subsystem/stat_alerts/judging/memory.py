"""The detector's memory from night to night; it can be deleted, and is computed again from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.structured import Stamp
from tvmdash.errors import DashboardError
from tvmdash.judge.history.fleet.fleet import FleetState

STATE_FILE = "state.json"
VERSION = 1
KEPT_STEPS = 60
ALERT, ENVIRONMENT, WHOLE, BREAK, RECOVERED = "alert", "environment", "whole", "break", "recovered"
"""Whose a step was: TVM's, not TVM's, the whole machine's, one that people knew of, a regression's end."""


@dataclass(frozen=True)
class KnownShift:
    """A known shift of one series: from the night `stamp` on, by `size` (logarithm), and whose it was."""

    stamp: str
    size: float
    kind: str


@dataclass(frozen=True)
class Memory:
    """After the night `night`, the `count`-th of the home: each fleet's state, each series' known shifts."""

    night: str = ""
    count: int = 0
    fleets: Mapping[str, FleetState] = field(default_factory=dict)
    steps: Mapping[str, tuple[KnownShift, ...]] = field(default_factory=dict)

    def with_steps(self, more: Mapping[str, KnownShift]) -> Memory:
        """Add one more shift to some series."""
        steps = dict(self.steps)
        for key, step in more.items():
            steps[key] = (*steps.get(key, ()), step)[-KEPT_STEPS:]
        return replace(self, steps=steps)

    def without_ends(self, nights: Mapping[str, int], stamps: Sequence[str]) -> Memory:
        """Drop the ends that some series had at these nights."""
        steps = dict(self.steps)
        for key, night in nights.items():
            steps[key] = tuple(
                step for step in steps.get(key, ()) if (step.kind, step.stamp) != (RECOVERED, stamps[night])
            )
        return replace(self, steps=steps)

    def in_file(self) -> _SavedMemory:
        steps = {key: tuple((step.stamp, step.size, step.kind) for step in steps) for key, steps in self.steps.items()}
        return _SavedMemory(
            self.night, self.count, {name: fleet.to_json() for name, fleet in self.fleets.items()}, steps
        )

    @classmethod
    def of_file(cls, saved: _SavedMemory) -> Memory:
        fleets = {name: FleetState.from_json(fleet) for name, fleet in saved.fleets.items()}
        steps = {key: tuple(KnownShift(*step) for step in steps) for key, steps in saved.steps.items()}
        return cls(saved.night, saved.count, fleets, steps)


@dataclass(frozen=True)
class _SavedMemory:
    """A memory in the file; a step has its fields in their order."""

    night: str
    count: int
    fleets: Mapping[str, Any]
    steps: Mapping[str, tuple[tuple[Stamp, float, str], ...]]


@dataclass(frozen=True)
class _Saved:
    """The file: the memory before its last night and after it."""

    version: int
    before: _SavedMemory
    after: _SavedMemory


def read(output: Path, tonight: str) -> Memory:
    """Return the memory before the night `tonight`, also on a rerun of that night.

    DashboardError where there is no usable state: missing, damaged, of another version, of a later night.
    """
    path = output / STATE_FILE
    saved = structured.from_json(_Saved, common.read_json(path), path)
    if saved.version != VERSION:
        raise DashboardError(f"{path}: $.version: {saved.version!r} is not {VERSION}.")
    try:
        kept = [Memory.of_file(saved.after), Memory.of_file(saved.before)]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DashboardError(f"{path}: damaged: {error!r}.") from error
    usable = next((memory for memory in kept if memory.night < tonight), None)
    if usable is None:
        raise DashboardError(f"{path}: is of a later night than {tonight}.")
    return usable


def write(output: Path, before: Memory, after: Memory) -> None:
    """Leave both for the next night and for a rerun of this one."""
    common.write_json(output / STATE_FILE, structured.to_json(_Saved(VERSION, before.in_file(), after.in_file())))
