"""The tries of a home in a list: what waits, what is being measured, and what came of the others."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tvmdash.common import parse_stamp
from tvmdash.contracts.tries import Try, TryRequest, TryState
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.text import elide, format_duration, format_list
from tvmdash.tries import files
from tvmdash.tries.files import MeasuredTry
from tvmdash.tries.text import summarize

_NAME_COLUMNS = 40
_HEAD = ("id", "state", "candidate", "base", "asked by", "result")


class Standing(enum.StrEnum):
    """Where a try stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    OVER = "out of time"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    BROKEN = "broken"


_ENDS = {
    TryState.RUNNING: Standing.INTERRUPTED,  # nobody is at it any more
    TryState.DONE: Standing.DONE,
    TryState.OVER: Standing.OVER,
    TryState.INTERRUPTED: Standing.INTERRUPTED,
}


@dataclass(frozen=True)
class Row:
    """A try. request: of one that has not ended. result: what was measured so far, None where nothing was."""

    id: str
    standing: Standing
    request: TryRequest | None = None
    measured: MeasuredTry | None = None
    fault: str = ""

    @property
    def result(self) -> Try | None:
        """What was measured of it."""
        return self.measured.result if self.measured else None

    @property
    def has_ended(self) -> bool:
        """Whether it neither waits nor runs."""
        return self.measured is not None and self.request is None


@dataclass(frozen=True)
class Listing:
    """Tries, the oldest first, and how many older ones are left out."""

    rows: Sequence[Row]
    older: int = 0


def list_tries(home: Home, most: int | None = None) -> Listing:
    """Each that waits or runs, with what it goes on with, and of those that have ended the last `most`, or all."""
    asked = list(_list_asked(home))
    shown = {row.measured.path for row in asked if row.measured}
    ended = [path for path in files.list_files(home) if path not in shown]
    kept = ended if most is None else ended[-most:]
    rows = [*asked, *(_describe_end(files.read(path)) for path in kept)]
    return Listing(sorted(rows, key=lambda row: row.id), len(ended) - len(kept))


def _list_asked(home: Home) -> Iterator[Row]:
    running, queued = files.find_running(home), files.list_requests(home)
    alone = [running] if running and running.id not in {item.id for item in queued} else []
    for item in (*queued, *alone):
        request = item.request
        if request is None:
            yield Row(item.id, Standing.BROKEN, fault=item.fault)
            continue
        is_running = running is not None and running.id == item.id
        standing = Standing.RUNNING if is_running else Standing.FAILED if request.failed else Standing.QUEUED
        path = files.find_file(home, request.goes_on or item.id)
        yield Row(item.id, standing, request, files.read(path) if path else None, request.failed)


def _describe_end(item: MeasuredTry) -> Row:
    if item.result is None:
        return Row(item.path.stem, Standing.BROKEN, measured=item, fault=item.fault)
    standing = _ENDS[item.result.state]
    is_failed = standing is Standing.DONE and bool(item.result.errors)
    return Row(item.path.stem, Standing.FAILED if is_failed else standing, measured=item)


def find(home: Home, name: str) -> Row:
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


def _find_answer(home: Home, name: str) -> Row:
    """The try that a request of that ID was measured in."""
    for item in files.read_all(home):
        if item.result is not None and name in item.result.requests:
            return _describe_end(item)
    raise DashboardError(
        f"{name}: {home.root} has no try with that ID. List them with python3 -m dashboard tries {home.root}"
    )


def format_rows(rows: Sequence[Row]) -> str:
    """The rows as a table."""
    cells = [_HEAD, *map(_format_cells, rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(_HEAD))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)


def _format_cells(row: Row) -> tuple[str, ...]:
    candidate, base, who = _name_sides(row)
    return elide(row.id, _NAME_COLUMNS), row.standing, candidate, base, who, describe(row)


def _name_sides(row: Row) -> tuple[str, str, str]:
    """What is tried against what, and who asked for it."""
    result, request = row.result, row.request
    candidate = base = who = ""
    if request is not None:
        candidate, base, who = request.candidate, request.base or "", request.asked_by
    if result is not None:
        candidate, base = result.candidate.asked, result.base.asked
        who = who or ", ".join(dict.fromkeys(asked.by for asked in result.requests.values()))
    return elide(candidate, _NAME_COLUMNS), elide(base, _NAME_COLUMNS), elide(who, _NAME_COLUMNS)


def format_request(request: TryRequest) -> str:
    """What was asked for, for people."""
    experiments = format_list(request.experiments, 5) if request.experiments else "all"
    asked = f"Requested by {elide(request.asked_by, _NAME_COLUMNS)}, {parse_stamp(request.asked_at):%Y-%m-%d %H:%M} UTC"
    budget = format_duration(request.budget_s)
    return f"{asked}: experiments: {experiments}; target ±{100 * request.until:g} %; at most {budget} of measuring."


def describe(row: Row) -> str:
    """What came of it, on one line."""
    if row.fault:
        return elide(row.fault, 400)
    if row.result is None:
        return ""
    runs = sum(row.result.runs.values())
    far = f" ({runs} run{'' if runs == 1 else 's'} so far)" if row.request else ""
    return f"{summarize(row.result)}{far}"
