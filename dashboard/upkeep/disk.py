"""The time until a disk is full, by what nights wrote."""

from __future__ import annotations

import json
import os
import shutil
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.upkeep.finding import HomeFinding, make_fault, make_good, make_warning
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.text import format_bytes

_FILE = "disk.jsonl"
_NIGHTS, _LEAST = 30, 3
"""Nights from which is told how much one writes; with fewer nothing is."""
_MOST_LINES = 400
_SOON, _LATER = 7, 60


@dataclass(frozen=True)
class Growth:
    """The bytes free after each of the last nights, on the disk of one folder, oldest first."""

    folder: Path
    free_bytes: tuple[int, ...]

    @property
    def per_night_bytes(self) -> float | None:
        """Median bytes used up by a night, so that one unusual day counts little. None: too few nights."""
        steps = [before - after for before, after in zip(self.free_bytes, self.free_bytes[1:], strict=False)]
        return statistics.median(steps) if len(steps) >= _LEAST else None

    def count_nights_left(self, free_bytes: int, least_bytes: int) -> int | None:
        """Estimate for how many more nights there is room; None where free space does not shrink."""
        per_night = self.per_night_bytes
        if per_night is None or per_night <= 0:
            return None
        return max(0, int((free_bytes - least_bytes) / per_night))


def note_free(home: Home, folders: Sequence[Path], stamp: str) -> None:
    """Remember how much is free on each disk after the night."""
    free = {str(folder): shutil.disk_usage(folder).free for folder in _list_disks(home, folders)}
    lines = [*_read_lines(home), {"night": stamp, "free_bytes": free}][-_MOST_LINES:]
    common.write_text(home.root / "results" / _FILE, "".join(f"{json.dumps(line)}\n" for line in lines))


def find_growth(home: Home, folders: Sequence[Path]) -> list[Growth]:
    """Collect for each disk its free space over the last nights."""
    lines = _read_lines(home)[-_NIGHTS:]
    growths = []
    for folder in _list_disks(home, folders):
        known = [line["free_bytes"].get(str(folder)) for line in lines]
        growths.append(Growth(folder, tuple(free for free in known if isinstance(free, int))))
    return growths


def examine(home: Home, folders: Sequence[Path], least_bytes: int) -> Iterator[HomeFinding]:
    for growth in find_growth(home, folders):
        free = shutil.disk_usage(growth.folder).free
        left = growth.count_nights_left(free, least_bytes)
        text = f"{growth.folder}: {format_bytes(free)} free"
        if left is None:
            what = (
                ("too few nights yet to estimate when it will be full")
                if growth.per_night_bytes is None
                else "usage is not growing"
            )
            yield make_good("disk", f"{text}; {what}.")
            continue
        text = f"{text}, {format_bytes(growth.per_night_bytes or 0)} a night: full in {left} nights."
        remedy = "Free some space there, or lower keep_archives, max_raw_gb or max_artifacts_gb in the config."
        if left <= _SOON:
            yield make_fault("disk", text, remedy)
        elif left <= _LATER:
            yield make_warning("disk", text, remedy)
        else:
            yield make_good("disk", text)


def _list_disks(home: Home, folders: Sequence[Path]) -> list[Path]:
    """List the home and those of the folders that lie on other disks."""
    disks: dict[int, Path] = {}
    for folder in (home.root, *folders):
        if folder.is_dir():
            disks.setdefault(os.stat(folder).st_dev, folder)
    return list(disks.values())


def _read_lines(home: Home) -> list[dict[str, Any]]:
    """Return the lines that nights wrote, less the damaged ones."""
    path = home.root / "results" / _FILE
    lines = []
    for number, raw in enumerate(path.read_bytes().splitlines() if path.is_file() else [], start=1):
        try:
            value = common.parse_json(raw, f"{path}:{number}")
        except DashboardError:
            continue
        if isinstance(value, dict) and isinstance(value.get("free_bytes"), dict):
            lines.append(value)
    return lines
