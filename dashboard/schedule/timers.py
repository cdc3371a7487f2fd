"""Timers of systemd, read from their unit files; systemd itself need not run."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tvmdash.errors import DashboardError

_FOLDERS = ("~/.config/systemd/user", "/etc/systemd/user", "/etc/systemd/system")
_LISTED = re.compile(
    r"^\s*(?:Next elapse|Iter\. #\d+|\(in UTC\)): \w{3} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC", re.MULTILINE
)
_ITERATIONS, _TIMEOUT_S = 1500, 20
_DAYS_BACK = (1, 8, 40, 400)


@dataclass(frozen=True)
class Timer:
    """A timer with its `OnCalendar` lines; is_enabled: something starts it. service: its unit's settings."""

    path: Path
    calendars: tuple[str, ...]
    is_enabled: bool
    service: dict[str, list[str]]

    @property
    def text(self) -> str:
        """What it says, for people."""
        return ", ".join(self.calendars)

    def find_latest(self, before: datetime.datetime) -> datetime.datetime | None:
        """The last time at `before` or earlier, None where there is none within 400 days."""
        for days in _DAYS_BACK:
            base = before - datetime.timedelta(days=days)
            times = [time for text in self.calendars for time in _list_times(text, base, self.path) if time <= before]
            if times:
                return max(times)
        return None


def find_timers() -> Iterator[Timer]:
    """Every timer of this user and machine that has an `OnCalendar`."""
    for text in _FOLDERS:
        folder = Path(text).expanduser()
        for path in sorted(folder.glob("*.timer")):
            unit = _read_unit(path)
            service = folder / (unit.get("Unit") or [f"{path.stem}.service"])[-1]
            if unit.get("OnCalendar"):
                yield Timer(path, tuple(unit["OnCalendar"]), _is_enabled(folder, path.name), _read_unit(service))


def _is_enabled(folder: Path, name: str) -> bool:
    return any(os.path.lexists(wanting / name) for wanting in folder.glob("*.wants"))


def _read_unit(path: Path) -> dict[str, list[str]]:
    """The settings of a unit file, of all sections together; empty where it cannot be read."""
    settings: dict[str, list[str]] = {}
    try:
        content = path.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ")
    except OSError:
        return {}
    for line in content.splitlines():
        name, has_value, value = line.strip().partition("=")
        if has_value and not name.startswith(("#", ";")):
            # an empty value takes back what stood before
            settings[name.strip()] = [*settings.get(name.strip(), ()), value.strip()] if value.strip() else []
    return settings


def _list_times(calendar: str, base: datetime.datetime, path: Path) -> list[datetime.datetime]:
    program = shutil.which("systemd-analyze")
    if program is None:
        remedy = 'Set the same time in the config, e.g. "schedule": "0 3 * * *".'
        raise DashboardError(
            "systemd-analyze, which is needed to read OnCalendar, is not installed.", place=path, remedy=remedy
        )
    words = [program, "calendar", f"--base-time={base:%Y-%m-%d %H:%M:%S} UTC", f"--iterations={_ITERATIONS}", calendar]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise DashboardError(f"OnCalendar={calendar}: rejected by systemd: {done.stderr.strip():.200}", place=path)
    return [
        datetime.datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=datetime.UTC)
        for text in _LISTED.findall(done.stdout)
    ]
