"""What is bisected when nothing else is to be measured: a try's clearest regression between two builds of source."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dashboard.artifacts.artifact import Artifact
from dashboard.artifacts.spec import GIT
from dashboard.investigate.bisect.bisect import search_series
from dashboard.investigate.request import MeasuringRequest
from dashboard.investigate.series_selection import WantedSeries
from dashboard.investigate.tries import result as results
from dashboard.investigate.tries import turn
from dashboard.investigate.tries.base import name_again
from dashboard.night.lock import HeldError, take_turn
from dashboard.plan.home_config import read_home_config
from dashboard.plan.job import CodeFolders
from tvmdash.contracts.bisection import Bisection, BisectionState
from tvmdash.contracts.tries import CommitSearch, SearchState, TriedSeries, Try, TryState
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.files import lock
from tvmdash.records.metrics import is_worse
from tvmdash.tries import files
from tvmdash.tries.files import Measured

_POLL_S = 2.0
_OF_BUILD = ("remote", "options")
_log = logging.getLogger("tries")


def plan_search(done: Try, candidate: Artifact, base: Artifact) -> CommitSearch | None:
    """For the commit behind its clearest regression; None where it has none, or no commits lie between the two."""
    has_ended = done.state in (TryState.DONE, TryState.OVER)
    alike = all(candidate.facts.get(fact) == base.facts.get(fact) for fact in _OF_BUILD)
    if not has_ended or not alike or {candidate.provider, base.provider} != {GIT}:
        return None
    worse = [item for item in done.series if item.change and item.change.real and _is_worse(item)]
    clearest = max(worse, key=_rate_clearness, default=None)
    return CommitSearch(clearest.experiment, clearest.id) if clearest else None


def _is_worse(item: TriedSeries) -> bool:
    return item.change is not None and is_worse(item.change.effect, item.direction) is True


def _rate_clearness(item: TriedSeries) -> float:
    """How large the change is beside what one pair scatters."""
    assert item.change is not None
    return abs(item.change.effect) / max(item.change.within * math.sqrt(item.change.pairs), 1e-9)


def search_next(home: Home, *, code: CodeFolders, gives_way: Callable[[], bool]) -> bool:
    """Search for the commit behind the oldest try that waits for it; whether there was one and the config wants it.

    It ends without an answer where a night or another try waits, or where it `gives_way`, which is asked before each
    measurement; the next call goes on from there.
    """
    if not read_home_config(home).bisect_when_idle:
        return False
    path = next((item.path for item in files.read_all(home) if _find_waiting(item)), None)
    if path is None:
        return False

    def ends() -> bool:
        return gives_way() or _is_wanted(home) or not _find_waiting(files.read(path))

    done = _find_waiting(files.read(path))
    try:
        if done is None or ends():
            raise HeldError("Something else comes first.")
        _keep(home, path, _search(home, *done, code, ends))
    except HeldError:
        time.sleep(_POLL_S)
    return True


def forget_search(home: Home, path: Path) -> bool:
    """Let the commit behind this try be; whether it was waited for."""
    is_waiting = _find_waiting(files.read(path)) is not None
    if is_waiting:
        _keep(home, path, None)
    return is_waiting


def _find_waiting(item: Measured) -> tuple[Try, CommitSearch] | None:
    done = item.result
    waits = done is not None and done.search is not None and done.search.state is SearchState.WAITING
    return (done, done.search) if waits and done and done.search else None


def _is_wanted(home: Home) -> bool:
    """Whether a night waits for the home, or a try does."""
    return any(map(lock.is_held, (home.waiting_file, files.lock_of(home))))


def _search(
    home: Home, done: Try, search: CommitSearch, code: CodeFolders, gives_way: Callable[[], bool]
) -> CommitSearch:
    """What is known of the commit by now; HeldError where a night holds the home."""
    store = read_home_config(home).artifacts
    names = (name_again(done.base, store), name_again(done.candidate, store))
    request = MeasuringRequest(tvms=names, isolates=True)
    try:
        series = _find_series(done, search)
        _log.info("%s: bisecting %s", done.stamp, series.name)
        with take_turn(home):
            answer, path = search_series(home, series, request, code=code, gives_way=gives_way)
    except HeldError:
        raise
    except DashboardError as error:
        _log.info("%s: %s", done.stamp, error)
        return replace(search, state=SearchState.FAILED, error=str(error))
    return _conclude(search, answer, str(path.relative_to(home.root)))


def _find_series(done: Try, search: CommitSearch) -> WantedSeries:
    for item in done.series:
        if item.id == search.series:
            return WantedSeries(
                item.id, item.experiment, item.metric, item.unit, item.labels, item.direction,
                title=item.title, name=item.name,
            )  # fmt: skip
    raise DashboardError(f"{search.series}: not a series of the try {done.stamp}.")


def _conclude(search: CommitSearch, answer: Bisection, file: str) -> CommitSearch:
    if answer.state is BisectionState.OVER:
        return search
    state = SearchState.ANSWERED if answer.is_answered else SearchState.NO_STEP
    return replace(search, state=state, suspects=answer.suspects, probability=answer.probability, file=file)


def _keep(home: Home, path: Path, search: CommitSearch | None) -> None:
    """Write it to the try, which may have been measured further meanwhile; not where nobody waits for it any more."""
    with turn.take_turn(home, lets_others_pass=True):
        found = _find_waiting(files.read(path))
        if found is not None:
            results.write(path, replace(found[0], search=search))
