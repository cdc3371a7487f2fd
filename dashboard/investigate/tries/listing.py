"""The tries of a home in a list: what waits, what is being measured, and what came of the others."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tvmdash.contracts.tries import Try, TryRequest, TryState
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.text import elide
from tvmdash.tries import files
from tvmdash.tries.files import Measured
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
    measured: Measured | None = None
    fault: str = ""

    @property
    def result(self) -> Try | None:
        """What was measured of it."""
        return self.measured.result if self.measured else None

    @property
    def has_ended(self) -> bool:
        """Whether it neither waits nor runs."""
        return self.measured is not None and self.request is None


def list_tries(home: Home) -> list[Row]:
    """Every try of the home, the oldest first: each that waits or runs with what it goes on with, and all others."""
    measured = list(files.read_all(home))
    answers = {name: item for item in measured if item.result for name in (item.result.stamp, *item.result.requests)}
    rows = list(_list_asked(home, answers))
    shown = {row.measured.path for row in rows if row.measured}
    rows += [_describe_end(item) for item in measured if item.path not in shown]
    return sorted(rows, key=lambda row: row.id)


def _list_asked(home: Home, answers: dict[str, Measured]) -> Iterator[Row]:
    running, queued = files.find_running(home), files.list_requests(home)
    alone = [running] if running and running.id not in {item.id for item in queued} else []
    for item in (*queued, *alone):
        request = item.request
        if request is None:
            yield Row(item.id, Standing.BROKEN, fault=item.fault)
            continue
        before = answers.get(item.id) or answers.get(request.goes_on)
        is_running = running is not None and running.id == item.id
        standing = Standing.RUNNING if is_running else Standing.FAILED if request.failed else Standing.QUEUED
        yield Row(item.id, standing, request, before, request.failed)


def _describe_end(item: Measured) -> Row:
    if item.result is None:
        return Row(item.path.stem, Standing.BROKEN, measured=item, fault=item.fault)
    standing = _ENDS[item.result.state]
    is_failed = standing is Standing.DONE and bool(item.result.errors)
    return Row(item.path.stem, Standing.FAILED if is_failed else standing, measured=item)


def find(home: Home, name: str) -> Row:
    """The try of that ID, or whose ID begins so; DashboardError where there is none, or more than one."""
    rows = list_tries(home)
    found = [row for row in rows if name in _list_names(row)] or [row for row in rows if row.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise DashboardError(f"{name}: is the beginning of {', '.join(row.id for row in found)}. Write more of it.")
    raise DashboardError(f"{name}: {home.root} has no try of that ID. See: python3 -m dashboard tries {home.root}")


def _list_names(row: Row) -> Sequence[str]:
    return (row.id, *(row.result.requests if row.result else ()))


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


def describe(row: Row) -> str:
    """What came of it, on one line."""
    if row.fault:
        return elide(row.fault, 400)
    if row.result is None:
        return ""
    runs = sum(row.result.runs.values())
    far = f" ({runs} run{'' if runs == 1 else 's'} so far)" if row.request else ""
    return f"{summarize(row.result)}{far}"
