"""Mail by SMTP: what it holds, who gets it, and what becomes of failures, against a strict server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mail import server
from tests.mail.server import CERTIFICATE, PASSWORD, SENDER, USER, Fault, State
from tests.tvmdash.notify.route_homes import AFTER, BEFORE, ONE, SITE, RouteHome, moved
from tvmdash.notify import errors

TEAM, ADA, BOB = "team@example.org", "ada@example.org", "bob@example.org"


@pytest.fixture(params=["starttls", "tls", "none"])
def security(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def state() -> Iterator[State]:
    with server.mail_server() as started:
        yield started
    assert not started.violations


@pytest.fixture(autouse=True)
def _trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    monkeypatch.setattr(errors, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(errors, "_REQUEST_S", 1.5)


def make_home(root: Path, state: State) -> RouteHome:
    home = RouteHome(root)
    home.routes["mail"] = {
        "kind": "email", "server": f"localhost:{state.port}", "security": state.security, "from": SENDER, "to": [TEAM],
        "user": USER, "secret_file": home.secret("password", PASSWORD),
    }  # fmt: skip
    return home


@pytest.fixture
def home(tmp_path: Path, state: State) -> RouteHome:
    return make_home(tmp_path, state)


def test_mail_goes_over_a_safe_connection_after_a_login(tmp_path: Path, security: str) -> None:
    with server.mail_server(security) as state:
        home = make_home(tmp_path, state)
        home.opens(10)
        assert home.tell(10).state.fault == ""
        assert home.tell(11).sent == 0
    assert (len(state.mails), state.violations) == (1, [])
    order = {"starttls": ["EHLO", "STARTTLS", "EHLO"]}.get(security, ["EHLO"])
    assert state.commands[: len(order) + 2] == [*order, "AUTH", "MAIL"]


def test_a_tired_person_reads_what_moved_how_sure_it_is_and_what_to_do(home: RouteHome, state: State) -> None:
    home.owners = [{"name": "CNN team", "experiment": "cnn_*", "email": [ADA]}]
    home.opens(10, ONE, moved("resnet18"), moved("resnet50", effect=0.071))
    home.tell(10)
    (mail,) = state.mails
    assert mail.content["Subject"].startswith("[TVM] resnet18 and")
    place = home.home.root
    command = f"bisect {place} cnn_comp id-cnn_comp-resnet18 --good git:{BEFORE} --bad git:{AFTER} --incident {ONE}"
    plain = mail.plain.replace("\r\n", "\n")
    for part in ("+8.1 %", "+7.1 %", f"Look at it: {SITE}/incidents/{ONE}.html\n", f" {command}\n", "CNN team"):
        assert part in plain
    assert f'<a href="{SITE}/incidents/{ONE}.html">' in mail.html
    assert f" {command}</pre>" in mail.html


def test_owners_get_the_mail_that_pings_them_and_no_other(home: RouteHome, state: State) -> None:
    home.owners = [{"experiment": "cnn_*", "email": [ADA]}, {"experiment": "rnn_*", "email": [BOB]}]
    home.opens(10)
    home.tell(10)
    home.changes(11, "acknowledged", who="ann")
    home.tell(11)
    home.grows(12, moved("gru", "rnn_comp"), moved("vgg11"))
    home.tell(12)
    home.changes(13, "fixed")
    home.tell(13)
    assert [mail.recipients for mail in state.mails] == [(TEAM, ADA), (TEAM,), (TEAM, BOB), (TEAM,)]
    first = state.mails[0].content["Message-ID"]
    assert [mail.content["In-Reply-To"] for mail in state.mails] == [None, first, first, first]
    assert state.mails[3].content["Subject"].startswith("Re: [TVM] Fixed: ")


def test_what_got_better_goes_to_no_owner(home: RouteHome, state: State) -> None:
    home.routes["mail"]["at_once"] = ["improved"]
    home.owners = [{"email": [ADA]}]
    home.opens(10, ONE, moved("resnet18", worse=False, effect=-0.1))
    home.tell(10)
    assert [mail.recipients for mail in state.mails] == [(TEAM,)]


def test_without_to_only_owners_get_anything(home: RouteHome, state: State) -> None:
    home.routes["mail"]["to"] = []
    home.owners = [{"experiment": "cnn_*", "email": [ADA]}]
    home.opens(10)
    home.opens(10, "i20260511-00bb", moved("gru", "rnn_comp"))
    home.tell(10)
    home.changes(11, "fixed")
    assert home.tell(11).state.fault == ""
    assert [mail.recipients for mail in state.mails] == [(ADA,)]


def test_hostile_names_stay_text(home: RouteHome, state: State) -> None:
    evil = "<script>alert(1)</script>\r\nBcc: x@evil.org\r\n\r\n.\r\nMAIL FROM:<x@evil.org> \u202e\x00 é→ " + "z" * 1200
    home.owners = [{"name": evil, "email": [ADA]}]
    home.opens(10, "../<b>x", moved(evil, name=evil))
    home.changes(10, "acknowledged", "../<b>x", who=evil, words=evil)
    assert home.tell(10).state.fault == ""
    (mail,) = state.mails
    assert mail.recipients == (TEAM, ADA)
    assert "<script>" not in mail.html
    assert "<b>x" not in mail.html
    assert mail.content["Bcc"] is None


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        ("CONNECT", Fault(421)),
        ("MAIL", Fault(451)),
        ("RCPT", Fault(450)),
        ("DATA", Fault(452)),
        ("END", Fault(451)),
        ("CONNECT", Fault(kind="cut")),
        ("AUTH", Fault(kind="cut")),
        ("CONNECT", Fault(kind="hang")),
        ("EHLO", Fault(kind="drip")),
        ("END", Fault(kind="cut", taken=True)),
        ("END", Fault(kind="hang", taken=True)),
        ("END", Fault(kind="cut")),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.kind}{value.code or ''}{'-taken' * value.taken}",
)
def test_after_a_failure_that_passes_the_mail_is_there_once(
    home: RouteHome, state: State, step: str, fault: Fault
) -> None:
    home.opens(10)
    state.fail(step, fault)
    assert home.tell(10).state.fault == ""
    assert home.tell(11).sent == 0
    assert len({mail.content["Message-ID"] for mail in state.mails}) == 1
    assert len(state.mails) == 1 + fault.taken, "by its Message-ID it is known as the same"


@pytest.mark.parametrize(
    ("step", "code", "says"),
    [
        ("AUTH", 535, "localhost rejected the login (535); check user, secret_file and security"),
        ("MAIL", 550, "localhost rejected a recipient (550)"),
        ("END", 554, "localhost rejected the message (554)"),
    ],
)
def test_a_refusal_is_told_with_its_code_alone_and_tried_the_next_night(
    home: RouteHome, state: State, step: str, code: int, says: str
) -> None:
    home.opens(10)
    state.fail(step, *[Fault(code)] * (2 if step == "AUTH" else 1))  # a login is tried in two ways
    done = home.tell(10)
    assert (done.state.fault, done.state.waiting) == (says, 1)
    assert home.tell(11).state.fault == ""
    assert len(state.mails) == 1


def test_a_wrong_password_is_in_no_fault_though_the_server_says_it(home: RouteHome, state: State) -> None:
    home.routes["mail"]["secret_file"] = home.secret("wrong", "hunter2hunter2")
    home.opens(10)
    assert "rejected the login (535)" in home.tell(10).state.fault
    whole = "".join(path.read_text() for path in home.home.root.rglob("*") if path.is_file())
    assert "hunter2" not in whole


def test_one_recipient_that_is_refused_costs_the_others_nothing(home: RouteHome, state: State) -> None:
    home.owners = [{"email": [ADA]}]
    state.refused.add(ADA)
    home.opens(10)
    done = home.tell(10)
    assert (done.sent, done.notes) == (1, (f"localhost accepted the message, but not for {ADA}",))
    assert [mail.recipients for mail in state.mails] == [(TEAM,)]
    assert home.tell(11).sent == 0


def test_without_tls_nothing_is_said(home: RouteHome, state: State) -> None:
    state.offers_tls = False
    home.opens(10)
    assert "does not support starttls or login, which the config requires" in home.tell(10).state.fault
    assert "AUTH" not in state.commands
    assert "MAIL" not in state.commands


def test_a_certificate_that_nobody_trusts_is_refused(
    home: RouteHome, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    home.opens(10)
    assert "the certificate of localhost is invalid" in home.tell(10).state.fault
    assert "AUTH" not in state.commands


def test_a_server_that_drips_costs_no_more_than_the_route_may(home: RouteHome, state: State) -> None:
    home.routes["mail"]["seconds"] = 2
    home.opens(10)
    state.fail("EHLO", *[Fault(kind="drip")] * 9)
    begun = time.monotonic()
    assert home.tell(10).state.fault
    assert time.monotonic() - begun < 5
