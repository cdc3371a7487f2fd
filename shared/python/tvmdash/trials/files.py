"""The trials of a home as files: what was measured, what waits for its turn, what is being measured now."""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.files import lock
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.trials import old
from tvmdash.trials.trial import REQUEST_VERSION, Trial, TrialRequest

FOLDERS = (*old.FOLDERS, "tries")
"""In `results`: of dashboards before, and of this one."""
_MEND = "Fix the file, or remove the request with `tries HOME cancel`."


@dataclass(frozen=True)
class TrialFile:
    """The file of a trial: what it holds, or why it cannot be read."""

    path: Path
    result: Trial | None
    fault: str = ""


@dataclass(frozen=True)
class Waiting:
    """The file of a request: what it holds, or why it cannot be read."""

    id: str
    request: TrialRequest | None
    fault: str = ""


def queue_of(home: Home) -> Path:
    """The folder of one <id>.json for each request that is not finished."""
    return home.tries / "queue"


def running_of(home: Home) -> Path:
    """The folder of the one <id>.json that is being measured, if the lock beside it is held."""
    return home.tries / "running"


def lock_of(home: Home) -> Path:
    """Return the lock that is held by whatever tries something in the home."""
    return home.tries / ".lock"


def list_files(home: Home) -> list[Path]:
    """List the home's trials, oldest first."""
    return sorted(home.tries.glob("*.json"))


def list_old_files(home: Home) -> list[Path]:
    """List the files in formats of older dashboards, folder by folder."""
    return [path for name in old.FOLDERS for path in sorted((home.root / "results" / name).glob("*.json"))]


def read_all(home: Home) -> Iterator[TrialFile]:
    """The trials of the home, those of dashboards before first."""
    return map(read, [*list_old_files(home), *list_files(home)])


def read(path: Path) -> TrialFile:
    try:
        return TrialFile(path, load(path))
    except DashboardError as error:
        return TrialFile(path, None, str(error))


def load(path: Path) -> Trial:
    """The trial in that file, which may be one of a dashboard before; DashboardError where it is damaged."""
    value = common.read_json(path)
    return old.read(value, path) if old.find_folder(value, path) else structured.from_json(Trial, value, path)


def save(path: Path, trial: Trial) -> None:
    """Keep it; whoever is killed later loses none of it."""
    common.write_json(path, trial.to_json())


def find(home: Home, stamp: str) -> Trial | None:
    """The trial of that stamp; None where there is none, or it cannot be read."""
    path = find_file(home, stamp)
    return read(path).result if path else None


def find_earlier(home: Home, wanted: Callable[[Trial], bool]) -> tuple[Trial, Path] | None:
    """The newest trial in the home that is `wanted`, and its file. What cannot be read is passed over."""
    found = map(read, reversed(list_files(home)))
    return next(((item.result, item.path) for item in found if item.result and wanted(item.result)), None)


def find_file(home: Home, stamp: str) -> Path | None:
    """The file of the trial of that stamp; None where there is none."""
    path = home.tries / f"{stamp}.json"
    return path if common.is_stamp(stamp) and path.exists() else None


def list_requests(home: Home) -> list[Waiting]:
    """List the home's requests, oldest first."""
    paths = sorted(queue_of(home).glob("*.json"))
    return [found for path in paths if (found := _read_waiting(path)) is not None]


def read_request(home: Home, name: str) -> TrialRequest | None:
    """The request of that ID; None where there is none any more. DashboardError where it cannot be read."""
    found = _read_waiting(queue_of(home) / f"{name}.json")
    if found is not None and found.request is None:
        raise DashboardError(found.fault)
    return found.request if found else None


def find_running(home: Home) -> Waiting | None:
    """Find the request that is being measured; None where none is."""
    if not lock.is_held(lock_of(home)):
        return None
    paths = sorted(running_of(home).glob("*.json"))
    return next((found for path in paths if (found := _read_waiting(path)) is not None), None)


def _read_waiting(path: Path) -> Waiting | None:
    try:
        return Waiting(path.stem, _parse(path))
    except DashboardError as error:
        return Waiting(path.stem, None, str(error)) if os.path.lexists(path) else None  # cancelled, or done


def _parse(path: Path) -> TrialRequest:
    value = common.read_json(path)
    structured.check_version(value, REQUEST_VERSION, path, remedy=_MEND)
    request = structured.from_json(TrialRequest, value, path, remedy=_MEND)
    for name, number in (("until", request.until), ("budget_s", request.budget_s)):
        if number <= 0:
            raise DashboardError(f"{path}: $.{name}: {number:g} is not above 0. {_MEND}")
    return request


def add(home: Home, request: TrialRequest, name: str = "") -> str:
    """Put a request into the queue, under the ID that it has or a new one; the ID."""
    with _hold_queue(home):
        name = name or _make_id(home)
        write(queue_of(home) / f"{name}.json", request)
    return name


def begin(home: Home, name: str = "", request: TrialRequest | None = None) -> tuple[str, TrialRequest | None]:
    """Say that a request is measured now: that one, which never waited, or what waits under that ID.

    The ID, and the request, None where it was cancelled. From now on whoever takes it away ends it. DashboardError
    where it is broken.
    """
    with _hold_queue(home):
        name, request = name or _make_id(home), request or read_request(home, name)
        if request is not None:
            running_of(home).mkdir(parents=True, exist_ok=True)
            write(running_of(home) / f"{name}.json", replace(request, failed=""))
    return name, request


def make_id(home: Home) -> str:
    """An ID that no try and no request has or had: the present moment, or the next second that is free."""
    with _hold_queue(home):
        return _make_id(home)


def _make_id(home: Home) -> str:
    last, moment = queue_of(home) / ".last", common.utc_now()
    with contextlib.suppress(OSError, DashboardError):  # of the first there is no last
        text = last.read_text(encoding="ascii", errors="replace") if last.is_file() else ""
        moment = max(moment, common.parse_stamp(text) + datetime.timedelta(seconds=1))
    while any((folder / f"{common.stamp_of(moment)}.json").exists() for folder in (home.tries, queue_of(home))):
        moment += datetime.timedelta(seconds=1)
    common.write_text(last, common.stamp_of(moment), durable=False)
    return common.stamp_of(moment)


def write(path: Path, request: TrialRequest) -> None:
    """Write a request; who is killed meanwhile leaves what was there."""
    common.write_json(path, {"schema_version": REQUEST_VERSION, **structured.to_json(request)})


def note(home: Home, name: str, **said: str) -> None:
    """Note at a request what `goes_on` or `failed` is now, if nobody cancelled it meanwhile."""
    with _hold_queue(home):
        for folder in (queue_of(home), running_of(home)):
            found = _read_waiting(folder / f"{name}.json")
            if found is not None and found.request is not None:
                write(folder / f"{name}.json", replace(found.request, **said))  # type: ignore[arg-type]


@contextlib.contextmanager
def _hold_queue(home: Home) -> Iterator[None]:
    """Change the queue alone, rid of what a process left that was killed at it."""
    queue_of(home).mkdir(parents=True, exist_ok=True)
    with lock.wait_for(queue_of(home) / ".lock"):
        common.remove_unfinished(queue_of(home))
        yield


def take_away(home: Home, name: str) -> bool:
    """Remove a request from the queue, and end it where it is being measured; whether it was there."""
    with _hold_queue(home):
        there = [path for path in (queue_of(home) / f"{name}.json", running_of(home) / f"{name}.json") if path.exists()]
        for path in there:
            path.unlink(missing_ok=True)
    return bool(there)
