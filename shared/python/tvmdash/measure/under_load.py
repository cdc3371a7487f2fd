"""A card that repeats a call for some seconds: energy of a call, and throttling meanwhile."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from tvmdash.errors import DashboardError

ENERGY, UNKNOWN, THROTTLED = "energy", "energy_unknown", "throttled"
"""Facts of a trial: millijoules a call; why they are unknown; share of time throttled, by reason."""
LEAST_S, BATCH_S = 2.0, 0.02
FEWEST_STEPS = 8
"""A counter with fewer steps in that time is too coarse; its steps are seen to a batch of calls."""
_is_wanted = ContextVar("is_wanted", default=True)


class WatchedCard(Protocol):
    """The questions to a card; `machine.nvml.Card` answers them."""

    def read_energy_mj(self) -> int | None: ...
    def read_throttles(self) -> Mapping[str, bool] | None: ...
    def is_divided(self) -> bool: ...
    def list_strangers(self) -> list[int]: ...


@dataclass(frozen=True)
class LoadReading:
    """The counter and the throttling after `calls` calls."""

    calls: int
    energy_mj: int | None
    throttles: Mapping[str, bool] | None


def watch_card(card: WatchedCard, call: Callable[[], object], wait: Callable[[], object]) -> dict[str, Any]:
    """Repeat the call and return the facts; `wait` returns when the card has done all calls."""
    if not _is_wanted.get():
        return {}
    readings = _read_under_load(card, call, wait)
    known = [reading.throttles for reading in readings if reading.throttles is not None]
    shares = {name: sum(each[name] for each in known) / len(known) for name in (known[0] if known else ())}
    throttled = {name: round(share, 3) for name, share in shares.items() if share}
    try:
        check_undisturbed(card)
        energy: dict[str, Any] = {ENERGY: find_energy(readings)}
    except DashboardError as error:
        energy = {UNKNOWN: str(error)}
    return {**energy, **({THROTTLED: throttled} if throttled else {})}


@contextlib.contextmanager
def watching(*, is_wanted: bool) -> Iterator[None]:
    """Turn watching on or off in the block: it takes longer than all samples, so one process of a point does it."""
    token = _is_wanted.set(is_wanted)
    try:
        yield
    finally:
        _is_wanted.reset(token)


def was_watched(facts: Mapping[str, Any]) -> bool:
    """Return True where the trial with these facts watched its card."""
    return ENERGY in facts or UNKNOWN in facts


def _read_under_load(card: WatchedCard, call: Callable[[], object], wait: Callable[[], object]) -> list[LoadReading]:
    begun = time.monotonic()
    call()
    wait()
    batch = max(1, round(BATCH_S / (time.monotonic() - begun)))
    calls, readings = 1, list[LoadReading]()
    while time.monotonic() < begun + LEAST_S:
        for _ in range(batch):
            call()
        wait()
        calls += batch
        readings.append(LoadReading(calls, card.read_energy_mj(), card.read_throttles()))
    return readings


def check_undisturbed(card: WatchedCard) -> None:
    """Raise DashboardError where the card's energy is not that of this run alone."""
    if card.is_divided():
        raise DashboardError("the card is divided (MIG), and its counter is of all parts")
    strangers = card.list_strangers()
    if strangers:
        raise DashboardError(f"other programs use the card (process {', '.join(map(str, strangers))})")


def find_energy(readings: Sequence[LoadReading]) -> float:
    """Return millijoules a call between the counter's first step and its last; DashboardError where it is unusable."""
    counted = [(reading.calls, reading.energy_mj) for reading in readings if reading.energy_mj is not None]
    if not counted or len(counted) < len(readings):
        raise DashboardError("the card has no counter of its energy, or did not tell it")
    moved = [(before, after) for before, after in itertools.pairwise(counted) if before[1] != after[1]]
    if any(after[1] < before[1] for before, after in moved):
        raise DashboardError("the card's counter of its energy was set back")
    steps = [after for _, after in moved]
    if len(steps) < FEWEST_STEPS:
        raise DashboardError(f"the card's counter of its energy moved {len(steps)} times in {LEAST_S:g} s: too coarse")
    (first_calls, first_mj), (last_calls, last_mj) = steps[0], steps[-1]
    return (last_mj - first_mj) / (last_calls - first_calls)
