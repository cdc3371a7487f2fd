"""Where an incident is looked at, and the command that comes next for it."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path

from tvmdash.dashboard_info import Home, name_wheel
from tvmdash.errors import DashboardError
from tvmdash.incidents.ledger import CHANGE, Incident
from tvmdash.text import is_commit

PROGRAM = "python3 -m dashboard"
PAGE = "alerts.html"
"""Of the website; it has every incident."""
_ID = re.compile(r"i[0-9]{8}-[0-9a-z]+")
_RELEASE = re.compile(r"[0-9]+(\.[0-9a-z]+)+")


def format_address(website: str, incident: Incident) -> str:
    """Return where the website at that address shows it; empty where there is no website."""
    page = f"incidents/{incident.id}.html" if _ID.fullmatch(incident.id) else PAGE
    return f"{website.rstrip('/')}/{page}" if website else ""


def format_night_address(website: str, night: str) -> str:
    """Return where the website at that address shows the night for good; empty where there is no website."""
    return f"{website.rstrip('/')}/nights/{night}.html" if website else ""


def format_next_step(incident: Incident, home: str) -> str:
    """The command to copy: it finds the commit, or where that cannot be asked says what the incident rests on."""
    words = list_bisection(incident, home) or ["explain", home, incident.id]
    return f"{PROGRAM} {shlex.join(words)}"


def list_bisection(incident: Incident, home: str) -> list[str]:
    """The words after the program's name that find its commit; none where that cannot be asked, or was."""
    worst = next(iter(incident.worst_first), None)
    if not worst or not worst.experiment or incident.kind != CHANGE or incident.bisected or not incident.is_open:
        return []
    before, after = name_tvms(incident, Home(Path(home)))
    if not before or not after or before == after:
        return []
    between = ["--good", before, "--bad", after, "--incident", incident.id]
    return ["bisect", home, worst.experiment, worst.series, *between]


def format_acknowledge(incident: Incident, home: str) -> str:
    """Format the command by which somebody takes it on."""
    return f"{PROGRAM} incidents {shlex.quote(home)} ack {shlex.quote(incident.id)}"


def format_status(home: str) -> str:
    return f"{PROGRAM} status {shlex.quote(home)}"


def name_tvms(incident: Incident, home: Home) -> tuple[str, str]:
    """The two TVMs that it came between, as commands take them; empty where one is neither a commit nor a release."""
    before, after = incident.versions
    return _name_tvm(before, home, incident.after), _name_tvm(after, home, incident.begin)


def _name_tvm(version: str, home: Home, stamp: str) -> str:
    with contextlib.suppress(DashboardError):  # an imported night has no record
        for artifact in home.read_night(stamp).artifacts:
            # A wheel's commit is none of the home's remote, but the night's record says which release it is.
            if (artifact.get("provider"), artifact.get("commit")) == ("wheel", version):
                return name_wheel(str(artifact.get("version")), (artifact.get("facts") or {}).get("source"))
    if is_commit(version):
        return f"git:{version}"
    return f"pypi:{version}" if _RELEASE.fullmatch(version) else ""
