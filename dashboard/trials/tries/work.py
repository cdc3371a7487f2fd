"""The queue of tries, performed one by one."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from dashboard.night.lock import HeldError
from dashboard.plan.job import CodeFolders
from dashboard.trials.tries import turn
from dashboard.trials.tries.tries import measure
from tvmdash.common import stamp_of, utc_now
from tvmdash.contracts.tries import Try, TryRequest, TryState
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.files import lock
from tvmdash.tries import files

_log = logging.getLogger("tries")


@dataclass
class Worked:
    """What came of the requests, by ID: results, why others could not be measured, and whether it was interrupted."""

    results: dict[str, Try] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


def perform_queue(home: Home, *, code: CodeFolders) -> Worked:
    """Measure what waits in the queue, oldest first, until nothing does; HeldError where another process does so.

    One that cannot be measured stays in the queue and says why; the others go on. One that was stopped, by a signal or
    by a kill, stays as it is, and the next call goes on from there.
    """
    worked = Worked()
    with _be_the_only_one(home):
        while not worked.interrupted and (name := _choose_next(home, worked)) is not None:
            with turn.take_turn(home, lets_others_pass=True):
                perform(home, name, worked, code=code)
    return worked


@contextlib.contextmanager
def _be_the_only_one(home: Home) -> Iterator[None]:
    folder = files.queue_of(home)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".worker"
    held = lock.take(path, f"since {stamp_of(utc_now())}")
    if held is None:
        raise HeldError(
            f"{home.root}: another process is already running its queue of tries: {lock.read_holder(path)}."
        )
    with held:
        yield


def _choose_next(home: Home, worked: Worked) -> str | None:
    """The oldest request that was not come to yet; what cannot be read is told."""
    for waiting in files.list_requests(home):
        if waiting.id in worked.results or waiting.id in worked.faults:
            continue
        if waiting.request is None:
            worked.faults[waiting.id] = waiting.fault
            _log.info("%s", waiting.fault)
        elif not waiting.request.failed:
            return waiting.id
    return None


def perform(home: Home, name: str, worked: Worked, *, code: CodeFolders) -> None:
    """Measure one request of the queue, if it is still there. Only in one's turn."""
    try:
        request = files.begin(home, name)
        if request is not None:  # it was cancelled otherwise, or measured by another process
            _perform(home, name, request, worked, code)
    except (DashboardError, OSError) as error:
        worked.faults[name] = str(error)
        _log.info("%s: %s", name, error)
        if isinstance(error, DashboardError):
            files.keep_failure(home, name, str(error))


def _perform(home: Home, name: str, request: TryRequest, worked: Worked, code: CodeFolders) -> None:
    _log.info("%s: %s, requested by %s", name, request.candidate, request.asked_by)
    with turn.claim(home, request, name) as claim:
        try:
            done, _ = measure(home, claim, code=code)
        except KeyboardInterrupt:
            worked.interrupted = not claim.cancelled
            return
    worked.results[name] = done
    worked.interrupted = done.state is TryState.INTERRUPTED and not claim.cancelled
    if not worked.interrupted:
        files.take_away(home, name)
