"""Starters of a home's nights: lines for a crontab, and units for a user's systemd.

Everything of one home is marked with its path, so that it can be replaced and removed, and nothing else is touched.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.errors import DashboardError

UNITS = "~/.config/systemd/user"
_WATCH_MINUTES = 20
_TIMEOUT_S = 60


@dataclass(frozen=True)
class Starter:
    """Commands that run the nights of `home` at `hour`:`minute` each day, and that watch over them."""

    home: Path
    run: Sequence[str]
    watch: Sequence[str]
    hour: int
    minute: int

    def make_cron_lines(self) -> list[str]:
        """Make a crontab's lines, with a first and a last as marks; DashboardError for what cron cannot hold."""
        begin, end = make_marks(self.home)
        night, watching = _quote_for_cron(self.run), _quote_for_cron(self.watch)
        return [begin, f"{self.minute} {self.hour} * * *  {night}", f"*/{_WATCH_MINUTES} * * * *  {watching}", end]

    def make_units(self) -> dict[str, str]:
        name = name_units(self.home)
        about = _escape_specifiers(str(self.home))
        night, watching = (" ".join(map(_quote_for_systemd, words)) for words in (self.run, self.watch))
        return {
            f"{name}.timer": f"""[Unit]
Description=Timer of the nightly TVM benchmarks for {about}

[Timer]
OnCalendar=*-*-* {self.hour:02}:{self.minute:02}:00
Persistent=true

[Install]
WantedBy=timers.target
""",
            f"{name}.service": f"""[Unit]
Description=Nightly TVM benchmarks for {about}
OnFailure={name}-watch.service

[Service]
Type=oneshot
ExecStart={night}
""",
            f"{name}-watch.timer": f"""[Unit]
Description=Check that nightly TVM benchmarks run for {about}

[Timer]
OnCalendar=*:0/{_WATCH_MINUTES}

[Install]
WantedBy=timers.target
""",
            f"{name}-watch.service": f"""[Unit]
Description=Check that nightly TVM benchmarks run for {about}

[Service]
Type=oneshot
ExecStart={watching}
""",
        }


def can_mail() -> bool:
    """Return True where cron finds a program to mail what a command printed."""
    return shutil.which("sendmail", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/lib") is not None


def name_units(home: Path) -> str:
    """Return the beginning of the names of a home's units."""
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", home.name).strip("-.") or "home"
    return f"tvm-dashboard-{readable}-{hashlib.sha256(os.fsencode(home)).hexdigest()[:8]}"


def make_marks(home: Path) -> tuple[str, str]:
    return f"# nights of {home}: begin", f"# nights of {home}: end"


def _quote_for_cron(words: Sequence[str]) -> str:
    """Quote a command for cron's shell; an unescaped % would end it there."""
    for word in words:
        if "\n" in word or "\\" in word:
            raise DashboardError(
                f"{word!r}: this path cannot be used in a crontab line. Use --with systemd, or rename it."
            )
    return shlex.join(words).replace("%", "\\%")


def _quote_for_systemd(word: str) -> str:
    if "\n" in word:
        raise DashboardError(f"{word!r}: this path cannot be used in a systemd unit. Rename it.")
    return '"' + _escape_specifiers(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$") + '"'


def _escape_specifiers(text: str) -> str:
    return text.replace("%", "%%")


def read_crontab() -> list[str]:
    """Read the lines of this user's crontab, none where there is no crontab yet."""
    done = _call(["crontab", "-l"])
    if done.returncode and "no crontab" not in done.stderr:
        raise DashboardError(f"crontab -l: {done.stderr.strip():.200}")
    return done.stdout.splitlines() if not done.returncode else []


def replace_in_crontab(lines: Sequence[str], home: Path, own: Sequence[str]) -> list[str]:
    """Put `own` in place of this home's lines, or at the end; DashboardError where those do not end."""
    begin, end = make_marks(home)
    if begin not in lines:
        return [*lines, *own]
    first = lines.index(begin)
    if end not in lines[first:]:
        raise DashboardError(
            f"The crontab contains the line {begin!r} but no {end!r} after it. Restore that line with crontab -e."
        )
    return [*lines[:first], *own, *lines[lines.index(end, first) + 1 :]]


def write_crontab(lines: Sequence[str]) -> None:
    done = _call(["crontab", "-"], "".join(f"{line}\n" for line in lines))
    if done.returncode:
        raise DashboardError(f"crontab rejected the new lines: {done.stderr.strip():.300}")


def write_units(units: Mapping[str, str]) -> None:
    """Write units and start their timers, now and with each session of the user; DashboardError where that fails."""
    if not has_user_systemd():
        raise DashboardError(
            "systemctl --user: no systemd of this user answers.",
            remedy="Install libpam-systemd and dbus-user-session, run `sudo loginctl enable-linger $USER` and log in "
            "again; or use --with cron.",
        )
    folder = Path(UNITS).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in units.items():
        common.write_text(folder / name, text)
    _control("daemon-reload")
    _control("enable", "--now", *(name for name in units if name.endswith(".timer")))


def list_units(home: Path) -> list[Path]:
    name = name_units(home)
    found = (
        Path(UNITS).expanduser() / f"{name}{end}" for end in (".timer", ".service", "-watch.timer", "-watch.service")
    )
    return [path for path in found if path.is_file()]


def remove_units(home: Path) -> None:
    """Stop this home's timers and remove its units; DashboardError while a night of them runs: it would be ended."""
    paths, service = list_units(home), f"{name_units(home)}.service"
    # A oneshot service is `activating` for as long as its program runs.
    if _call(["systemctl", "--user", "is-active", service]).stdout.strip() in {"activating", "active"}:
        raise DashboardError(
            f"{service}: a night is running, and removing its unit would end it.",
            remedy=f"Wait for its end, or end it: systemctl --user stop {service}",
        )
    _control("disable", "--now", *(path.name for path in paths if path.suffix == ".timer"))
    for path in paths:
        path.unlink()
    _control("daemon-reload")


def does_linger() -> bool:
    """Return True where the systemd of this user runs without a login."""
    return Path("/var/lib/systemd/linger", getpass.getuser()).exists()


def has_user_systemd() -> bool:
    return shutil.which("systemctl") is not None and not _call(["systemctl", "--user", "show-environment"]).returncode


def _control(*words: str) -> None:
    done = _call(["systemctl", "--user", *words])
    if done.returncode:
        raise DashboardError(f"systemctl --user {' '.join(words)}: {done.stderr.strip():.300}")


def _call(words: Sequence[str], given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, input=given, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
