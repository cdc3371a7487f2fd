"""The file of the ledger: one event a line, only ever appended."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.files import lines
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents.ledger import CHANGE, LEDGER_FILE, SUBSYSTEM, Event, Ledger, check, fold

_log = logging.getLogger("incidents")


def file_of(home: Home) -> Path:
    return home.output(SUBSYSTEM) / LEDGER_FILE


def read_ledger(home: Home) -> Ledger:
    return fold(read(file_of(home)))


def read(path: Path) -> list[Event]:
    """The events in `path`, in the order of their moments; a torn or foreign line is logged and left alone."""
    if not path.is_file():
        return []
    events = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if line.strip():
            with contextlib.suppress(_BadLineError):
                events.append(_parse(line, f"{path}:{number}"))
    return sorted(events, key=lambda event: event.at)


class _BadLineError(Exception):
    """Logged already."""


def _parse(line: bytes, where: str) -> Event:
    try:
        event = structured.from_json(Event, common.parse_json(line, where), where)
        check(event)
    except DashboardError as error:
        _log.warning("%s: invalid ledger event: %s. Skipped; the line stays in the file.", where, error)
        raise _BadLineError from error
    return event


def append(path: Path, events: Sequence[Event]) -> None:
    """Write `events` behind what is there, in one write, under a lock; they survive a power cut."""
    if not events:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    lines.append(path, map(asdict, events))


def find_open_regression(home: Home) -> str:
    """The first night of the oldest regression of times that is open in the home; empty where none is."""
    opened = read_ledger(home).open()
    return min((each.begin for each in opened if each.kind == CHANGE and not each.is_exact), default="")
