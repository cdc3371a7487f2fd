"""Decisions on a night that cannot be made again: results/ledger/YYYY-MM.jsonl, one value a line, only appended.

A month a file, so that an archive stores little again each night. Of several lines of one kind about one night the
last one counts. Incidents, annotations and waivers have ledgers of their own, which older dashboards read as well.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.files import lines
from tvmdash.common.structured import Stamp
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

VERDICT, PAGE, MESSAGES = "verdict", "page", "messages"
"""Kinds of lines: the standing of each series, the night on the site, and the messages settled when it closed."""
_log = logging.getLogger("ledger")


@dataclass(frozen=True)
class LedgerLine:
    """One decision. at: when it was written, ISO 8601 UTC."""

    at: str
    night: Stamp
    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


def folder_of(home: Home) -> Path:
    return home.root / "results" / "ledger"


def list_files(home: Home) -> list[Path]:
    """List the files, the oldest month first."""
    return sorted(folder_of(home).glob("[0-9][0-9][0-9][0-9]-[0-9][0-9].jsonl"))


def append(home: Home, night: str, kind: str, data: Mapping[str, Any]) -> None:
    """Write a decision down, for good; nothing where it is the night's last word already."""
    if kind in (known := read_night(home, night)) and known[kind] == data:
        return
    path = _file_of(home, night)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines.append(path, [structured.to_json(LedgerLine(f"{common.utc_now():%Y-%m-%dT%H:%M:%SZ}", night, kind, data))])


def read_night(home: Home, night: str) -> dict[str, Mapping[str, Any]]:
    """Read the last word of each kind about the night `night`."""
    return {line.kind: line.data for line in read_file(_file_of(home, night)) if line.night == night}


def read_file(path: Path, kind: str = "") -> Iterator[LedgerLine]:
    """The lines of a month in their order, or those of a kind; one that is torn or no such line is logged and left."""
    try:
        raw = path.read_bytes().split(b"\n") if path.is_file() else []
    except OSError as error:
        raise DashboardError(f"could not be read: {error.strerror}.", place=path) from error
    for number, line in enumerate(raw, start=1):
        if not line.strip() or kind.encode() not in line:  # to parse a verdict takes a hundred times as long
            continue
        where = f"{path}:{number}"
        try:
            read = structured.from_json(LedgerLine, common.parse_json(line, where), where)
            if kind in {"", read.kind}:
                yield read
        except DashboardError as error:
            _log.warning("This line of the ledger is passed over: %s", error)


def _file_of(home: Home, night: str) -> Path:
    return folder_of(home) / f"{night[:4]}-{night[4:6]}.jsonl"
