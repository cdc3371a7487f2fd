"""Incidents are changed by a page of this server alone, by the functions of the command line, with who did it."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from dashboard.report import site_server
from dashboard.report.triage import Clerk
from tests.dashboard.site_client import publish
from tests.tvmdash.notify.route_homes import ONE, RouteHome, moved
from tvmdash.incidents import file as incident_file
from tvmdash.incidents.ledger import Incident


class Page:
    """A page of the server, as a browser lets it ask."""

    def __init__(self, made: RouteHome, port: int) -> None:
        self.made, self.home, self.port = made, made.home, port
        self.token = str(self.get("triage/incidents.json")[1]["token"])

    def ask(self, method: str, place: str, body: Any = None, **headers: str) -> tuple[int, str]:
        content = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        with contextlib.closing(HTTPConnection("127.0.0.1", self.port, timeout=120)) as connection:
            sent = {name.replace("_", "-"): text for name, text in headers.items()}
            connection.request(method, f"/{place}", content, sent)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def get(self, place: str, **headers: str) -> tuple[int, Any]:
        status, text = self.ask("GET", place, **headers)
        return status, json.loads(text) if text.startswith("{") else text

    def act(self, act: str, *, who: str = "ann", token: str = "", **asked: Any) -> tuple[int, str]:
        body = {"act": act, "incident": ONE, "who": who, **asked}
        return self.ask("POST", "triage/act", body, X_Triage_Token=token or self.token)

    def incident(self) -> Incident:
        return incident_file.read_ledger(self.home).incidents[ONE]


@pytest.fixture
def made(tmp_path: Path) -> RouteHome:
    home = RouteHome(tmp_path)
    home.opens(10)
    publish(home.home)
    for name in (f"incidents/{ONE}.html", "alerts.html"):
        path = home.home.output("website") / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("<html><body></body></html>")
    return home


def open_page(made: RouteHome, header: str = "") -> Iterator[Page]:
    with site_server.make_server(made.home, "127.0.0.1", 0, clerk=Clerk(made.home, header)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield Page(made, server.server_address[1])
        server.shutdown()
        thread.join()


@pytest.fixture
def page(made: RouteHome) -> Iterator[Page]:
    yield from open_page(made)


@pytest.fixture
def behind_proxy(made: RouteHome) -> Iterator[Page]:
    yield from open_page(made, "X-Forwarded-User")


@pytest.mark.parametrize(
    ("act", "state"),
    [("ack", "acknowledged"), ("expect", "expected"), ("fixed", "fixed"), ("false_alarm", "false_alarm")],
)
def test_an_act_is_a_line_of_the_ledger_with_who_and_why(page: Page, act: str, state: str) -> None:
    status, _ = page.act(act, words="--who=eve; it is fine")
    last = page.incident().changes[-1]
    assert status == 200
    assert (last.state, last.who, last.words) == (state, "ann", "--who=eve; it is fine")


def test_a_note_assigns_comments_and_links(page: Page) -> None:
    assert page.act("note", words="bisecting", owner="bob", issue="https://github.com/apache/tvm/issues/1")[0] == 200
    assert page.act("note", words="more")[0] == 200
    incident = page.incident()
    assert (incident.owner, incident.issue) == ("bob", "https://github.com/apache/tvm/issues/1")
    assert [remark.words for remark in incident.remarks][1:] == ["more"]
    shown = page.get("triage/incidents.json")[1]["incidents"][ONE]
    assert (shown["owner"], [each["who"] for each in shown["history"]]) == ("bob", ["ann", "ann"])


def test_incidents_are_joined_and_split(page: Page) -> None:
    page.made.opens(10, other := "i20260611-cafe", moved("resnet50"))
    assert page.act("join", into=other, words="one pass")[0] == 200
    assert incident_file.read_ledger(page.home).incidents[ONE].into == other
    assert page.act("split")[0] == 200
    assert page.incident().into == ""
    assert page.act("split", series="--who=eve")[0] == 422


def test_a_silence_ends(page: Page) -> None:
    assert page.act("silence", days="3", words="known")[0] == 200
    (silence,) = incident_file.read_ledger(page.home).silences
    assert (silence.pattern, silence.who, silence.words) == (ONE, "ann", "known")
    for days in ("0", "nan", "999", "x", "--who=eve"):
        assert page.act("silence", days=days)[0] == 422


@pytest.mark.parametrize(
    "asked",
    [
        {"act": "rm"},
        {"act": "note"},
        {"act": "note", "issue": "javascript:alert(1)"},
        {"act": "ack", "incident": "*"},
        {"act": "bisect", "incident": "x"},
        {"act": "ack", "who": " "},
        {"act": "ack", "who": "detector"},
        {"act": "ack", "words": 5},
    ],
)
def test_what_cannot_be_done_changes_nothing_and_says_why(page: Page, asked: dict[str, Any]) -> None:
    before = incident_file.read(incident_file.file_of(page.home))
    status, text = page.act(**asked)
    assert (status, len(text) > 10) == (422, True)
    assert incident_file.read(incident_file.file_of(page.home)) == before


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"X_Triage_Token": "wrong"}, 403),
        ({"X_Triage_Token": "", "Sec_Fetch_Site": "same-origin"}, 403),
        ({"X_Triage_Token": "good", "Sec_Fetch_Site": "cross-site"}, 403),
        ({"X_Triage_Token": "good", "Sec_Fetch_Site": "same-site"}, 403),
        ({"X_Triage_Token": "good", "Origin": "https://evil.example.org"}, 403),
        ({"X_Triage_Token": "good", "Host": "evil.example.org"}, 421),
        ({"X_Triage_Token": "good", "Transfer_Encoding": "chunked"}, 413),
    ],
)
def test_another_site_can_change_nothing(page: Page, headers: dict[str, str], status: int) -> None:
    body = {"act": "ack", "incident": ONE, "who": "eve"}
    sent = {name: page.token if text == "good" else text for name, text in headers.items()}
    assert page.ask("POST", "triage/act", None if status == 413 else body, **sent)[0] == status
    assert page.incident().state == "new"


def test_the_token_is_not_read_by_another_site(page: Page) -> None:
    assert page.get("triage/incidents.json", Sec_Fetch_Site="cross-site")[0] == 404


def test_a_body_too_large_or_no_json_is_refused(page: Page) -> None:
    assert page.act("ack", words="x" * 20000)[0] == 413
    assert page.ask("POST", "triage/act", b"\xff{", X_Triage_Token=page.token)[0] == 422


def test_the_proxy_says_who_it_is(behind_proxy: Page) -> None:
    told = {"act": "ack", "incident": ONE, "who": "eve"}
    headers = {"X_Triage_Token": behind_proxy.token, "X_Forwarded_User": "ann@example.org"}
    assert behind_proxy.ask("POST", "triage/act", told, **headers)[0] == 200
    assert behind_proxy.incident().changes[-1].who == "ann@example.org"


def test_only_pages_with_incidents_get_the_script(page: Page) -> None:
    assert '"../triage/triage.js"' in page.get(f"incidents/{ONE}.html")[1]
    assert '"triage/triage.js"' in page.get("alerts.html")[1]
    assert "triage" not in page.get("index.html")[1]


def test_without_triage_nothing_of_it_is_there(made: RouteHome) -> None:
    with site_server.make_server(made.home, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        with contextlib.closing(HTTPConnection("127.0.0.1", server.server_address[1], timeout=120)) as connection:
            connection.request("GET", "/alerts.html")
            assert b"triage" not in connection.getresponse().read()
            connection.request("POST", "/triage/act", b"{}")
            assert connection.getresponse().status == 501
        server.shutdown()
        thread.join()


def test_a_bisection_is_started_and_goes_on_by_itself(page: Page) -> None:
    status, said = page.act("bisect")
    log = page.home.root / "results" / "tries" / f"bisect_{ONE}.log"
    assert (status, str(log) in said) == (200, True)
    end = time.monotonic() + 60
    while b"cnn_comp" not in log.read_bytes() and time.monotonic() < end:
        time.sleep(0.1)
    assert b"cnn_comp" in log.read_bytes(), "it says that this home has no such experiment"
