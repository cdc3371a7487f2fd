"""The schedule of a home's nights: by the config, a crontab as Debian's cron reads it, or a timer of systemd."""

from __future__ import annotations

import datetime
import getpass
import os
import re
import shlex
import shutil
import subprocess
import zoneinfo
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cronsim import CronSim, CronSimError

from tvmdash.dashboard_info import Home, last_config
from tvmdash.errors import DashboardError

_BEYOND = re.compile(r"#|(?<![a-z])[lw]+(?![a-z])", re.IGNORECASE)  # what cronsim takes, and Debian's cron does not
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True)
class CronLine:
    """The times of a crontab's line. zone: of its times, None for this machine's."""

    text: str
    zone: datetime.tzinfo | None = None

    def find_latest(self, before: datetime.datetime) -> datetime.datetime | None:
        """Find the last time at `before` or earlier; None where there is none."""
        # an hour that the clocks repeat has two moments for a time of day: so from an hour later on, back
        begin = before.astimezone(self.zone).replace(tzinfo=None) + datetime.timedelta(minutes=61)
        local = CronSim(NICKNAMES.get(self.text.lower(), self.text), begin, reverse=True)
        times = (time.replace(tzinfo=self.zone).astimezone(datetime.UTC) for time in local)
        return next((time for time in times if time <= before), None)


def parse_cron(text: str, zone: datetime.tzinfo | None = None) -> CronLine:
    """Parse the fields `0 3 * * *`, or `@daily`; DashboardError says what is wrong."""
    fields = NICKNAMES.get(text.strip().lower(), text).split()
    odd = _BEYOND.search(" ".join(fields))
    try:
        if len(fields) != 5 or odd:
            raise CronSimError(f"cron knows no {odd[0]!r}" if odd else f"it has {len(fields)} fields instead of 5")
        CronSim(" ".join(fields), datetime.datetime.now(datetime.UTC))
    except CronSimError as error:
        problem = f"{text!r:.80} is not a cron schedule: {error}."
        raise DashboardError(problem, remedy="Use e.g. 0 3 * * * (every night at 03:00).") from error
    return CronLine(text.strip(), zone)


_SYSTEM_CRONTABS = ("/etc/crontab", "/etc/cron.d")
_SCRIPTS, _PROGRAMS = frozenset({"run_dashboard.sh"}), frozenset({"dashboard"})
_JOB = "dashboard_job.sh"
_VARIABLE = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*")
_SETTINGS_BYTES = 1 << 16
_TIMEOUT_S = 20
_TIMER_FOLDERS = ("~/.config/systemd/user", "/etc/systemd/user", "/etc/systemd/system")
_LISTED = re.compile(
    r"^\s*(?:Next elapse|Iter\. #\d+|\(in UTC\)): \w{3} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC", re.MULTILINE
)
_ITERATIONS = 1500
_DAYS_BACK = (1, 8, 40, 400)


class Times(Protocol):
    """Times at which something runs."""

    @property
    def text(self) -> str: ...

    def find_latest(self, before: datetime.datetime) -> datetime.datetime | None:
        """Find the last time at `before` or earlier; None where there is none."""
        ...


@dataclass(frozen=True)
class Schedule:
    """The schedule of a home's nights.

    origin: where that stands. is_enabled: whether anything starts them. since: from when on, where that is known.
    """

    times: Times
    origin: str
    is_enabled: bool = True
    since: datetime.datetime | None = None

    def __str__(self) -> str:
        return f"{self.times.text} ({self.origin})"


def find_schedule(home: Home) -> Schedule | None:
    """Find the schedule: the config's, else of the first cron line or timer that runs nights of this home."""
    stated = _read_stated(home)
    if stated:
        try:
            return Schedule(parse_cron(stated), "schedule in its config")
        except DashboardError as error:
            raise DashboardError(f"{home.config_file}: $.schedule: {error}") from error
    return next(find_started(home), None)


def _read_stated(home: Home) -> str:
    """Read the config's schedule, also where something else in it has a fault: then nights do not run."""
    try:
        value = last_config.read_config(home)
    except DashboardError:
        return ""
    stated = value.get("schedule") if isinstance(value, dict) else None
    return stated if isinstance(stated, str) else ""


def find_started(home: Home) -> Iterator[Schedule]:
    """Yield the schedules of all that starts nights of this home on this machine: cron lines, then timers."""
    for origin, lines, has_user in _read_crontabs():
        zone: datetime.tzinfo | None = None
        for line in lines:
            variable = _VARIABLE.fullmatch(line)
            if variable:
                zone = _find_zone(variable[2]) if variable[1] == "CRON_TZ" else zone
                continue
            when, command = _split(line, has_user=has_user)
            if when and runs_nights(command, home):
                yield Schedule(_parse_line(when, zone, origin), origin)
    for timer in _find_timers():
        # systemd's prefixes of a command, and below its escapes of % and $.
        commands = [command.lstrip("@-:+!") for command in timer.service.get("ExecStart", ())]
        if any(runs_nights(command.replace("%%", "%").replace("$$", "$"), home) for command in commands):
            since = datetime.datetime.fromtimestamp(timer.path.stat().st_mtime, datetime.UTC)
            yield Schedule(timer, str(timer.path), timer.is_enabled, since)


def _parse_line(when: str, zone: datetime.tzinfo | None, origin: str) -> CronLine:
    try:
        return parse_cron(when, zone)
    except DashboardError as error:
        raise DashboardError(f"{origin}: {error}") from error


def _find_zone(name: str) -> datetime.tzinfo | None:
    try:
        return zoneinfo.ZoneInfo(name.strip("\"'"))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return None


def _read_crontabs() -> Iterator[tuple[str, list[str], bool]]:
    """Name, lines, and whether they name the user, of each crontab that can be read."""
    program = shutil.which("crontab")
    if program is not None:
        done = subprocess.run([program, "-l"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        if done.returncode == 0:
            yield f"crontab of {getpass.getuser()}", done.stdout.splitlines(), False
    for text in _SYSTEM_CRONTABS:
        place = Path(text)
        for path in sorted(place.iterdir()) if place.is_dir() else [place]:
            if path.is_file() and os.access(path, os.R_OK):
                yield str(path), path.read_text(encoding="utf-8", errors="replace").splitlines(), True


def _split(line: str, *, has_user: bool) -> tuple[str, str]:
    """Split a line of a crontab into time and command; empty where it runs nothing at times."""
    line = line.strip()
    if not line or line.startswith("#"):
        return "", ""
    count = 1 if line.startswith("@") else 5
    parts = line.split(None, count + has_user)
    if len(parts) <= count + has_user or (count == 1 and parts[0].lower() not in NICKNAMES):
        return "", ""
    # In a crontab a plain % ends the command.
    return " ".join(parts[:count]), parts[-1].replace("\\%", "%")


def runs_nights(command: str, home: Home) -> bool:
    """Return True for dashboard_job.sh, run_dashboard.sh or `dashboard run` with this home."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    words = [_expand(word) for word in words]
    for at, word in enumerate(words):
        name, rest = Path(word).name, words[at + 1 :]
        if name == _JOB:
            return any(_is_home(path, home) for path in _list_homes_of_job(rest))
        if name in _SCRIPTS:
            given = rest[2:3] if rest[:2] == ["--command", "run"] else rest[:1]
            return any(_is_home(path, home) for path in given)
        if name in _PROGRAMS and rest[:1] == ["run"]:
            return any(_is_home(path, home) for path in rest[1:2])
    return False


def _expand(word: str) -> str:
    """Expand as the shell or systemd does: ~, $HOME and %h are the user's folder."""
    own = os.path.expanduser("~")
    word = own + word[1:] if word == "~" or word.startswith("~/") else word
    return word.replace("${HOME}", own).replace("$HOME", own).replace("%h", own)


def _list_homes_of_job(words: Sequence[str]) -> Iterator[str]:
    """Yield the DASHBOARD_HOME of dashboard_job.sh's arguments and settings."""
    for at, word in enumerate(words):
        if word.startswith("DASHBOARD_HOME="):
            yield _expand(word.partition("=")[2])
        if word == "--settings" and at + 1 < len(words):
            yield from _read_homes(Path(os.path.expanduser("~")) / words[at + 1])


def _read_homes(path: Path) -> Iterator[str]:
    try:
        content = path.read_bytes()[:_SETTINGS_BYTES].decode("utf-8", errors="surrogateescape")
    except OSError:
        return
    for line in content.splitlines():
        if line.startswith("DASHBOARD_HOME="):
            yield _expand(line.partition("=")[2].rstrip())


def _is_home(text: str, home: Home) -> bool:
    """Relative ones are relative to the user's folder, in which cron and systemd start what they run."""
    return (Path(os.path.expanduser("~")) / text).resolve() == home.root.resolve()


@dataclass(frozen=True)
class Timer:
    """A timer with its `OnCalendar` lines; is_enabled: something starts it. service: its unit's settings."""

    path: Path
    calendars: tuple[str, ...]
    is_enabled: bool
    service: dict[str, list[str]]

    @property
    def text(self) -> str:
        return ", ".join(self.calendars)

    def find_latest(self, before: datetime.datetime) -> datetime.datetime | None:
        """Find the last time at `before` or earlier; None where there is none within 400 days."""
        # systemd-analyze lists times forwards only, and at most _ITERATIONS: so from ever earlier moments.
        for days in _DAYS_BACK:
            base = before - datetime.timedelta(days=days)
            times = [time for text in self.calendars for time in _list_times(text, base, self.path) if time <= before]
            if times:
                return max(times)
        return None


def _find_timers() -> Iterator[Timer]:
    """Yield every timer of this user and machine that has an `OnCalendar`."""
    for text in _TIMER_FOLDERS:
        folder = Path(text).expanduser()
        for path in sorted(folder.glob("*.timer")):
            unit = _read_unit(path)
            service = folder / (unit.get("Unit") or [f"{path.stem}.service"])[-1]
            if unit.get("OnCalendar"):
                yield Timer(path, tuple(unit["OnCalendar"]), _is_enabled(folder, path.name), _read_unit(service))


def _is_enabled(folder: Path, name: str) -> bool:
    return any(os.path.lexists(wanting / name) for wanting in folder.glob("*.wants"))


def _read_unit(path: Path) -> dict[str, list[str]]:
    """Read a unit file's settings, of all sections together; empty where it cannot be read."""
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
