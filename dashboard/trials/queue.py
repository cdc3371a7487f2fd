"""One trial at a time in a home, and the tries that wait: who has a turn, how one is asked for, listed and cancelled.

Whoever removes the file of a try in results/tries/running ends it.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from dashboard.plan.artifact_names import spec_of
from dashboard.plan.job import CodeFolders
from dashboard.plan.plan import make_plan
from dashboard.trials.workspace import find_calling_night, select_experiments
from tvmdash.common import format_moment, stamp_of, utc_now
from tvmdash.common.files import lock, trees
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents.annotations import name_user
from tvmdash.text import align, elide, format_duration, format_list
from tvmdash.trials import files
from tvmdash.trials.files import TrialFile
from tvmdash.trials.text import summarize
from tvmdash.trials.trial import Asked, Trial, TrialKind, TrialRequest, TrialState

_POLL_S = 0.5
_GLANCE_S = 1.0
"""Seconds between looks whether somebody cancelled it."""
_BRIEFLY_S = 0.2
"""Who asks whether a lock is held holds it for an instant."""
_log = logging.getLogger("try")


@dataclass
class Claim:
    """A request that is being measured. cancelled: somebody wanted it to end."""

    id: str
    request: TrialRequest
    cancelled: bool = False

    def asked(self, measured_s: float) -> Asked:
        """Name who asked, where `measured_s` had been measured before."""
        return Asked(self.request.asked_by, self.request.asked_at, measured_s)


@contextlib.contextmanager
def take_turn(home: Home, *, lets_others_pass: bool = False) -> Iterator[None]:
    """Measure alone in the home, after whatever else has its turn there.

    What `lets_others_pass` comes after everybody who waits: it has much to do, and they one thing.
    """
    # Who is part of a night waits for nobody: what has its turn may be waiting for that night.
    if find_calling_night(home):
        yield
        return
    path, waiting = files.lock_of(home), home.tries / ".waiting"
    path.parent.mkdir(parents=True, exist_ok=True)
    with _wait(path, waiting, lets_others_pass=lets_others_pass):
        trees.remove(files.running_of(home))  # of one that was killed
        yield


def _wait(path: Path, waiting: Path, *, lets_others_pass: bool) -> lock.Lock:
    told = False
    with contextlib.ExitStack() as stack:
        while True:
            gives_way = lets_others_pass and lock.is_held(waiting)
            held = None if gives_way else lock.take(path, f"since {stamp_of(utc_now())}", within_s=_BRIEFLY_S)
            if held is not None:
                return held
            if not told:
                _log.info("waiting for another trial in this home: %s", lock.read_holder(path) or "another process")
                if not lets_others_pass:
                    # Held while somebody waits, for those who let others pass.
                    stack.enter_context(lock.take(waiting, within_s=_BRIEFLY_S) or contextlib.nullcontext())
            told = True
            time.sleep(_POLL_S)


@contextlib.contextmanager
def claim(home: Home, request: TrialRequest, name: str) -> Iterator[Claim]:
    """Hold a request that was begun in one's turn; KeyboardInterrupt in the block where somebody takes it away."""
    path, made = files.running_of(home) / f"{name}.json", Claim(name, request)
    try:
        with _watch(path, made):
            yield made
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _watch(path: Path, made: Claim) -> Iterator[None]:
    """Interrupt this process, as ^C does, when the file is gone."""

    def look(_number: int, _frame: FrameType | None) -> None:
        if not path.exists():
            # Once: a second alarm would interrupt the clean-up.
            signal.setitimer(signal.ITIMER_REAL, 0)
            made.cancelled = True
            _log.info("%s was cancelled.", made.id)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _GLANCE_S, _GLANCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


_NAME_COLUMNS = 40
_HEAD = ("id", "state", "candidate", "base", "asked by", "result")


QUEUED, RUNNING, FAILED, BROKEN = "queued", "running", "failed", "broken"
_ENDS = {TrialState.RUNNING: TrialState.INTERRUPTED.value, TrialState.OVER: "out of time"}
"""Ends of a try that its state names otherwise: one still `running` has nobody at it any more."""


@dataclass(frozen=True)
class QueuedTry:
    """A try. request: of one that has not ended. result: what was measured so far, None where nothing was."""

    id: str
    standing: str
    request: TrialRequest | None = None
    measured: TrialFile | None = None
    fault: str = ""

    @property
    def result(self) -> Trial | None:
        return self.measured.result if self.measured else None

    @property
    def has_ended(self) -> bool:
        """Return True where it neither waits nor runs."""
        return self.measured is not None and self.request is None


def list_tries(home: Home, most: int | None = None) -> tuple[Sequence[QueuedTry], int]:
    """List the tries that wait or run, with what they go on with, and of those that have ended the last `most`, or all.

    The oldest first; and how many older ones are left out.
    """
    asked = list(_list_asked(home))
    shown = {row.measured.path for row in asked if row.measured}
    ended = [path for path in files.list_files(home) if path not in shown]
    kept = ended if most is None else ended[-most:]
    rows = [*asked, *(_describe_end(files.read(path)) for path in kept)]
    return sorted(rows, key=lambda row: row.id), len(ended) - len(kept)


def _list_asked(home: Home) -> Iterator[QueuedTry]:
    running, queued = files.find_running(home), files.list_requests(home)
    alone = [running] if running and running.id not in {item.id for item in queued} else []
    for item in (*queued, *alone):
        request = item.request
        if request is None:
            yield QueuedTry(item.id, BROKEN, fault=item.fault)
            continue
        is_running = running is not None and running.id == item.id
        standing = RUNNING if is_running else FAILED if request.failed else QUEUED
        path = files.find_file(home, request.goes_on or item.id)
        yield QueuedTry(item.id, standing, request, files.read(path) if path else None, request.failed)


def _describe_end(item: TrialFile) -> QueuedTry:
    if item.result is None:
        return QueuedTry(item.path.stem, BROKEN, measured=item, fault=item.fault)
    state = item.result.state
    is_failed = state is TrialState.DONE and bool(item.result.errors)
    return QueuedTry(item.path.stem, FAILED if is_failed else _ENDS.get(state, state.value), measured=item)


def find(home: Home, name: str) -> QueuedTry:
    """The try of that ID, or whose ID begins so; DashboardError where there is none, or more than one."""
    asked = {row.id: row for row in _list_asked(home)}
    asked |= {row.measured.path.stem: row for row in asked.values() if row.measured}
    ended = {path.stem: path for path in files.list_files(home) if path.stem not in asked}
    known = [*asked, *ended]
    found = [name] if name in known else [other for other in known if other.startswith(name)]
    if len(found) > 1:
        raise DashboardError(f"{name}: ambiguous, could be {', '.join(sorted(found))}. Give more characters of the ID.")
    row = next((asked.get(other) or _describe_end(files.read(ended[other])) for other in found), None)
    return row or _find_answer(home, name)


def _find_answer(home: Home, name: str) -> QueuedTry:
    """The try that a request of that ID was measured in."""
    for item in files.read_all(home):
        if item.result is not None and name in item.result.requests:
            return _describe_end(item)
    raise DashboardError(
        f"{name}: {home.root} has no try with that ID. List them with python3 -m dashboard tries {home.root}"
    )


def format_rows(rows: Sequence[QueuedTry]) -> str:
    return "\n".join(align([_HEAD, *map(_format_cells, rows)]))


def _format_cells(row: QueuedTry) -> tuple[str, ...]:
    candidate, base, who = _name_sides(row)
    return elide(row.id, _NAME_COLUMNS), row.standing, candidate, base, who, describe(row)


def _name_sides(row: QueuedTry) -> tuple[str, str, str]:
    """Name the candidate, the base, and who asked for it."""
    result, request = row.result, row.request
    candidate = base = who = ""
    if request is not None:
        candidate, base, who = request.candidate, request.base or "", request.asked_by
    if result is not None:
        candidate, base = result.candidate.asked, result.base.asked
        who = who or ", ".join(dict.fromkeys(asked.by for asked in result.requests.values()))
    return elide(candidate, _NAME_COLUMNS), elide(base, _NAME_COLUMNS), elide(who, _NAME_COLUMNS)


def format_request(request: TrialRequest) -> str:
    experiments = format_list(request.experiments, 5) if request.experiments else "all"
    asked = f"Requested by {elide(request.asked_by, _NAME_COLUMNS)}, {format_moment(request.asked_at)}"
    budget = format_duration(request.budget_s)
    return f"{asked}: experiments: {experiments}; target ±{100 * request.until:g} %; at most {budget} of measuring."


def describe(row: QueuedTry) -> str:
    """Describe the outcome on one line."""
    if row.fault:
        return elide(row.fault, 400)
    if row.result is None:
        return ""
    runs = sum(row.result.runs.values())
    far = f" ({runs} run{'' if runs == 1 else 's'} so far)" if row.request else ""
    return f"{summarize(row.result)}{far}"


def make_request(candidate: str, base: str | None) -> TrialRequest:
    """Make a request of whoever runs this, now."""
    return TrialRequest(candidate, name_user(), stamp_of(utc_now()), base)


def put_into_queue(home: Home, request: TrialRequest, code: CodeFolders) -> str:
    """Let it wait; its ID. DashboardError where it is known already that it cannot be measured."""
    plan = make_plan(home, code)
    select_experiments(plan, request.experiments)
    for name in filter(None, (request.candidate, request.base)):
        spec_of(name, plan.config)
    return files.add(home, request)


def ask_again(home: Home, row: QueuedTry, *, until: float | None = None, budget_s: float | None = None) -> str:
    """Have it in the queue, to go on where it stopped; its ID there. DashboardError where it cannot go on."""
    if row.standing == RUNNING:
        raise DashboardError(f"{row.id} is already being measured.")
    if row.standing == BROKEN:
        raise DashboardError(row.fault)
    if row.result is not None and row.result.kind not in {TrialKind.TRY, TrialKind.COMPARE}:
        raise DashboardError(f"{row.id} is a {row.result.kind}. Run the same command again to continue it.")
    request = row.request or _ask_for_the_same(row.result)
    wanted = replace(request, failed="", until=until or request.until, budget_s=budget_s or request.budget_s)
    return files.add(home, wanted, row.id if row.request else "")


def _ask_for_the_same(done: Trial | None) -> TrialRequest:
    assert done is not None, "a row without a request is that of a try"
    request = make_request(done.candidate.exact_name, done.base.exact_name)
    return replace(request, experiments=tuple(done.experiments), until=done.until, goes_on=done.stamp)
