"""Routes by Apprise: its json and mailto services, against servers on this machine."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.local_server import FailingHandler, QuietServer, serving
from tests.mail import server as mail
from tests.tvmdash.notify.route_homes import ONE, RouteHome, moved
from tvmdash.common.structured import Stamp
from tvmdash.notify import errors
from tvmdash.notify.errors import BusyError, RefusedError, UncertainError
from tvmdash.notify.message import Item, Message, Occasion
from tvmdash.notify.senders import apprise
from tvmdash.notify.senders.apprise import AppriseSender

TOPIC = "a-topic-that-nobody-guesses"
TEST = Message("id", Occasion.TEST, Stamp("20260512T000000Z"), "A test", (Item("A test"),))


@dataclass
class Service:
    """What was posted, and how the next requests fail: a status, or a kind of failure."""

    url: str = ""
    posted: list[dict[str, Any]] = field(default_factory=list)
    faults: list[int | str] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)


class Handler(FailingHandler, BaseHTTPRequestHandler):
    """One request."""

    server: Server

    @property
    def closing(self) -> threading.Event:
        return self.server.service.closing

    def do_POST(self) -> None:
        value = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        faults = self.server.service.faults
        fault = faults.pop(0) if faults else 200
        if isinstance(fault, str):
            self.close_connection = True
            getattr(self, f"fail_{fault}")()
            return
        if fault == 200 and self.path == f"/{TOPIC}":
            self.server.service.posted.append(value)
        self.send_answer(fault)


class Server(QuietServer):
    """The listening socket."""

    service: Service


@pytest.fixture
def service() -> Iterator[Service]:
    server = Server(Handler)
    server.service = Service(f"json://127.0.0.1:{server.port}/{TOPIC}")
    with serving(server, server.service.closing):
        yield server.service


@pytest.fixture
def home(tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch) -> RouteHome:
    monkeypatch.setattr(errors, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(errors, "_REQUEST_S", 4.0)
    home = RouteHome(tmp_path)
    home.routes["chat"] = {"kind": "apprise", "secret_file": home.secret("address", service.url)}
    home.opens(10)
    return home


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What the program logs at its most talkative. pytest's caplog listens to loggers that do not propagate as well."""
    root, stream = logging.getLogger(), io.StringIO()
    handler, level = logging.StreamHandler(stream), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


def test_an_incident_is_told_once_in_plain_words(home: RouteHome, service: Service) -> None:
    assert home.tell(10).state.fault == ""
    home.tell(10)
    (posted,) = service.posted
    assert posted["title"].startswith("cnn_comp cnn.resnet18")
    assert "31.0 ms → 33.5 ms" in posted["message"]


@pytest.mark.parametrize(
    ("fault", "says", "told_next_night"),
    [
        (400, "its server rejected the request (400)", True),
        (429, "its server asked to wait (429)", True),
        (500, "", False),
        ("reset", "", False),
        ("hang", "", False),
    ],
)
def test_what_was_certainly_not_taken_is_sent_the_next_night(
    home: RouteHome, service: Service, fault: int | str, says: str, told_next_night: bool
) -> None:
    service.faults += [fault] * 4
    told = home.tell(10)
    assert told.state.fault == says
    assert bool(told.notes) == (not told_next_night)
    service.faults.clear()
    home.tell(11)
    assert len(service.posted) == told_next_night


def test_a_service_that_is_away_is_asked_again(home: RouteHome) -> None:
    home.routes["chat"]["secret_file"] = home.secret("gone", f"json://127.0.0.1:1/{TOPIC}")
    assert "could not be reached" in home.tell(10).state.fault


def test_nothing_of_the_address_is_told_or_logged(home: RouteHome, service: Service, logged: io.StringIO) -> None:
    service.faults += [500, 400]
    home.opens(10, "i20260512-00bb", moved("vgg11"))
    told = home.tell(10)
    files = [path.read_text() for path in home.home.output("routes").rglob("*") if path.is_file()]
    assert not [text for text in (str(told), logged.getvalue(), *files) if TOPIC in text]


def test_sends_at_the_same_time_log_no_address_and_know_each_its_own_outcome(
    service: Service, logged: io.StringIO
) -> None:
    service.faults += [500] * 4
    away = AppriseSender(f"json://127.0.0.1:1/{TOPIC}")
    with ThreadPoolExecutor(max_workers=16) as pool:
        sends = [pool.submit(sender.send, TEST, 5.0, "") for sender in [AppriseSender(service.url), away] * 8]
    outcomes = [str(send.exception() or "sent") for send in sends]
    assert Counter("(500)" in outcome for outcome in outcomes[::2]) == {True: 4, False: 4}
    assert {"could not be reached" in outcome for outcome in outcomes[1::2]} == {True}
    assert TOPIC not in logged.getvalue()


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "must contain exactly one URL"),
        (["json://a/b", "json://c/d"], "must contain exactly one URL"),
        (["nosuchservice://x"], "Apprise does not recognize its URL"),
    ],
)
def test_a_bad_address_is_told(home: RouteHome, lines: list[str], says: str) -> None:
    home.routes["chat"]["secret_file"] = home.secret("bad", *lines)
    assert says in home.tell(10).state.fault


def test_mailto_sends_mail(home: RouteHome) -> None:
    with mail.mail_server("none") as state:
        state.needs_login = state.has_html = False
        address = f"mailto://127.0.0.1:{state.port}/team@example.org?from={mail.SENDER}&mode=insecure"
        home.routes["chat"]["secret_file"] = home.secret("mailto", address)
        told = home.tell(10)
        assert (told.sent, told.state.fault) == (1, ""), (state.violations, state.commands)
        assert "run time +8.1 % since" in str(state.mails[0].content["Subject"])


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Failed to send JSON POST notification: error=503.", BusyError),
        ("Socket Exception: {'a@b': (550, b'no such user')}", RefusedError),
        ("Socket Exception: (451, b'later')", BusyError),
        ("Socket Exception: [Errno 111] Connection refused", BusyError),
        ("Socket Exception: timed out", UncertainError),
    ],
)
def test_outcomes_are_read_from_what_apprise_logs(said: str, kind: type[Exception]) -> None:
    assert isinstance(apprise.make_outcome(said), kind)


def test_the_incident_is_named(home: RouteHome, service: Service) -> None:
    home.tell(10)
    assert ONE in service.posted[0]["message"]
