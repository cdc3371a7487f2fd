"""Incidents changed by hand in the page that `serve --triage` shows, by the functions of the command line.

What is asked for must come from a page of this server: its own token in a header that no other site can send here
unasked, and no other origin. Each act is a line of the ledger, with who did it.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents import command
from tvmdash.incidents.ledger import DETECTOR, Incident
from tvmdash.incidents.next_step import list_bisection

PREFIX = "triage/"
MAX_BYTES = 16 << 10
REPOSITORY = Path(__file__).resolve().parents[2]
_VERBS: Mapping[str, tuple[str, ...]] = {
    "ack": ("ack",),
    "expect": ("expect",),
    "fixed": ("close",),
    "false_alarm": ("close", "--as", "false_alarm"),
    "silence": ("silence",),
    "note": ("note",),
    "join": ("join",),
    "split": ("split",),
}
_OPTIONS: Mapping[str, tuple[str, ...]] = {"note": ("owner", "issue"), "split": ("series",)}
_log = logging.getLogger("triage")


@dataclass
class Clerk:
    """Does what the page asks for. user_header: the header in which the operator's proxy names the person."""

    home: Home
    user_header: str = ""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, name: str, headers: Message) -> tuple[str, bytes] | None:
        """Content type and bytes of what the page asks for; None where that is a file of the site."""
        if name == f"{PREFIX}triage.js":
            return "text/javascript; charset=utf-8", Path(__file__).with_suffix(".js").read_bytes()
        if name == f"{PREFIX}incidents.json" and headers.get("Sec-Fetch-Site", "same-origin") == "same-origin":
            known = command.ledger_of(self.home.root).incidents
            value: dict[str, Any] = {"token": self.token, "who": self._name(headers)}
            value |= {"incidents": {name: self._show(incident) for name, incident in known.items()}}
            return "application/json", json.dumps(value).encode()
        return None

    def add_script(self, name: str, content: bytes) -> bytes:
        """Add the script to a page with incidents, by which they are changed; leave others as they are."""
        if not name.startswith("incidents/") and name != "alerts.html":
            return content
        script = f'<script type="module" src="{"../" * name.count("/")}{PREFIX}triage.js"></script></body>'
        return content.replace(b"</body>", script.encode())

    def find_refusal(self, headers: Message) -> str:
        """Check who asks; return the reason for a refusal, or ""."""
        own, site = headers.get("Host", ""), headers.get("Sec-Fetch-Site", "same-origin")
        origin = urlsplit(headers.get("Origin", "")).netloc
        if site != "same-origin" or (origin and origin not in (own, headers.get("X-Forwarded-Host", own))):
            return "Incidents are changed by pages of this server only."
        given = headers.get("X-Triage-Token", "").encode(errors="replace")
        return "" if hmac.compare_digest(given, self.token.encode()) else "This page is old. Load it again."

    def act(self, body: bytes, headers: Message) -> tuple[HTTPStatus, str]:
        """Perform the act in the body; return a sentence about it."""
        try:
            asked = common.parse_json(body, "the request")
            if not isinstance(asked, dict) or not all(isinstance(value, str) for value in asked.values()):
                raise DashboardError("the request is not an object of texts.")
            who = self._name(headers) or asked.get("who", "").strip()
            if not who:
                raise DashboardError("give your name.")
            with self._lock:
                said = self._bisect(asked) if asked.get("act") == "bisect" else command.act(self._make_line(asked, who))
        except DashboardError as error:
            return HTTPStatus.UNPROCESSABLE_ENTITY, str(error)
        _log.info("%s: %s", who, said.strip())
        return HTTPStatus.OK, said.strip()

    def _name(self, headers: Message) -> str:
        return headers.get(self.user_header, "").strip() if self.user_header else ""

    def _make_line(self, asked: Mapping[str, str], who: str) -> list[str]:
        """Make the command line, in which nothing that was typed is an option."""
        verb, *options = _VERBS.get(asked.get("act", ""), ("",))
        if not verb:
            raise DashboardError(f"unknown act {asked.get('act')!r:.40}. Use one of: {', '.join(_VERBS)}, bisect.")
        incident = command.ledger_of(self.home.root).find(asked.get("incident", "")).id
        options += [f"--{name}={asked[name]}" for name in _OPTIONS.get(verb, ()) if asked.get(name)]
        if "days" in asked and verb == "silence":
            options += [f"--days={_parse_days(asked['days'])}"]
        into = [asked.get("into", "")] if verb == "join" else []
        return [str(self.home.root), verb, f"--who={who}", *options, "--", *into, incident, asked.get("words", "")]

    def _bisect(self, asked: Mapping[str, str]) -> str:
        """Start the incident's own bisection, which goes on when this server ends; its answer joins the incident."""
        incident = command.ledger_of(self.home.root).find(asked.get("incident", ""))
        words = list_bisection(incident, str(self.home.root))
        if not words:
            raise DashboardError(f"{incident.id} cannot be bisected: it is not between two known TVMs, or is settled.")
        log = self.home.root / "results" / "tries" / f"bisect_{incident.id}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        argv = [sys.executable, "-m", "dashboard", *words]
        with log.open("ab") as output:
            begun = subprocess.Popen(
                argv, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        threading.Thread(target=begun.wait, daemon=True).start()
        return f"The bisection has begun; what it says is in {log}."

    def _show(self, incident: Incident) -> dict[str, Any]:
        history = [
            {"at": one.at, "who": one.who, "words": ", ".join(filter(None, (one.state.replace("_", " "), one.words)))}
            for one in incident.history
            if one.who != DETECTOR
        ]
        can_bisect = bool(list_bisection(incident, str(self.home.root)))
        state = incident.state.replace("_", " ")
        facts = {"state": state, "owner": incident.owner, "issue": incident.issue}
        return {**facts, "history": history, "bisect": can_bisect}


def _parse_days(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DashboardError(f"{text!r:.40} is not a number of days.") from None
