"""A mail server on this machine, stricter than those of the world, that fails when it is told to.

Whatever is wrong with a conversation or a mail is refused, and kept in `violations`.
"""

from __future__ import annotations

import base64
import contextlib
import email
import email.policy
import email.utils
import re
import socketserver
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import cast

from tests.local_server import QuietServer, reset, serving

CERTIFICATE = Path(__file__).with_name("localhost.pem")
USER, PASSWORD, SENDER = "tvm", "correct horse battery", "tvm@bench.example.org"
_MAX_BYTES, _LINE = 1 << 20, 998
_NAME = re.compile(r"\[127\.0\.0\.1\]|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")
_PATH = re.compile(r"(?:FROM|TO):<([^<>@\s]+@[^<>@\s]+)>(?: (?:BODY=8BITMIME|SIZE=\d+))*", re.IGNORECASE)


@dataclass(frozen=True)
class Fault:
    """How one step fails: with a code, cut, or hanging; with `taken`, the mail is kept before."""

    code: int = 0
    kind: str = "code"
    taken: bool = False


@dataclass
class State:
    """What the server has, and how it shall behave. security: starttls, tls or none. has_html: what mails must have."""

    security: str = "starttls"
    port: int = 0
    mails: list[Mail] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    offers_tls: bool = True
    needs_login: bool = True
    has_html: bool = True
    closing: threading.Event = field(default_factory=threading.Event)

    def fail(self, step: str, *faults: Fault) -> None:
        """The next times of this step (a command, or END of the data) go so."""
        self.faults.setdefault(step, []).extend(faults)

    def take(self, step: str) -> Fault | None:
        """How this step fails, where it does."""
        faults = self.faults.get(step)
        return faults.pop(0) if faults else None


@dataclass(frozen=True)
class Mail:
    """A mail that was taken."""

    recipients: tuple[str, ...]
    content: EmailMessage

    @property
    def plain(self) -> str:
        return _text_of(self.content, "plain")

    @property
    def html(self) -> str:
        return _text_of(self.content, "html")


def _text_of(mail: EmailMessage, kind: str) -> str:
    body = mail.get_body((kind,))
    assert body is not None
    return str(body.get_content())


class _RefusedError(Exception):
    def __init__(self, code: int, text: str, *, violation: bool = True) -> None:
        super().__init__(text)
        self.code, self.violation = code, violation


def need(condition: object, code: int, text: str) -> None:
    if not condition:
        raise _RefusedError(code, text)


class Handler(socketserver.BaseRequestHandler):
    """One conversation."""

    @property
    def state(self) -> State:
        return cast("Server", self.server).state

    def handle(self) -> None:
        self.secure, self.user, self.hello = self.state.security == "tls", "", False
        self.sender, self.recipients = "", list[str]()
        with contextlib.suppress(OSError, ValueError):  # a client that has gone
            self.file = self.request.makefile("rb")
            try:
                self.converse()
            finally:
                self.file.close()
                self.request.close()

    def converse(self) -> None:
        if self.secure:
            self.wrap()
        self.step("CONNECT", lambda: "220 localhost strict")
        while line := self.file.readline(_LINE + 2):
            if not self.obey(line):
                return

    def wrap(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        self.file.close()
        self.request = context.wrap_socket(self.request, server_side=True)
        self.file = self.request.makefile("rb")

    def obey(self, line: bytes) -> bool:
        text = line.decode("ascii", errors="replace")
        verb, _, rest = text.rstrip("\r\n").partition(" ")
        verb = verb.upper()
        self.state.commands.append(verb)
        if not text.endswith("\r\n"):
            self.refuse(_RefusedError(500, f"{verb}: no CRLF"))
            return False
        handler = getattr(self, f"do_{verb.lower()}", None)
        if handler is None:
            self.refuse(_RefusedError(500, f"unknown command {verb}"))
            return True
        self.step(verb, lambda: handler(rest))
        if verb == "STARTTLS" and not self.secure and self.state.offers_tls:
            self.secure, self.hello = True, False
            self.wrap()
        return verb != "QUIT"

    def step(self, name: str, work: object) -> None:
        fault = self.state.take(name)
        if fault is not None and not fault.taken:
            self.perform(fault)
            return
        try:
            answer = work()  # type: ignore[operator]
        except _RefusedError as error:
            self.refuse(error)
            return
        if fault is not None:
            self.perform(fault)
            return
        self.say(answer)

    def perform(self, fault: Fault) -> None:
        if fault.kind == "code":
            self.say(f"{fault.code} told to fail")
            return
        if fault.kind == "hang":
            self.state.closing.wait(60)
        if fault.kind == "drip":
            while not self.state.closing.wait(0.05):
                self.request.sendall(b"250-")
        reset(self.request)
        raise ConnectionResetError

    def refuse(self, error: _RefusedError) -> None:
        if error.violation:
            self.state.violations.append(f"{error.code} {error}")
        self.say(f"{error.code} {error}")

    def say(self, text: str) -> None:
        self.request.sendall("".join(f"{line}\r\n" for line in text.split("\n")).encode())

    def do_ehlo(self, name: str) -> str:
        need(_NAME.fullmatch(name), 501, f"EHLO {name}: neither a full name nor an address")
        self.hello = True
        offers = ["localhost", "SIZE 1048576", "8BITMIME"]
        offers += (
            ["STARTTLS"] if self.state.security == "starttls" and not self.secure and self.state.offers_tls else []
        )
        offers += ["AUTH PLAIN LOGIN"] if self.state.needs_login and self.is_safe else []
        return "\n".join([*(f"250-{offer}" for offer in offers[:-1]), f"250 {offers[-1]}"])

    @property
    def is_safe(self) -> bool:
        return self.secure or self.state.security == "none"

    def do_starttls(self, rest: str) -> str:
        need(not rest and self.hello and not self.secure and self.state.offers_tls, 503, "STARTTLS out of order")
        return "220 go ahead"

    def do_auth(self, rest: str) -> str:
        need(self.is_safe, 538, "AUTH without TLS")
        need(self.hello and not self.user, 503, "AUTH out of order")
        kind, _, given = rest.partition(" ")
        need(kind in ("PLAIN", "LOGIN") and given, 504, f"AUTH {kind}")
        decoded = base64.b64decode(given, validate=True).decode()
        if kind == "PLAIN":
            _, user, password = decoded.split("\0")
        else:
            self.say("334 UGFzc3dvcmQ6")
            user, password = decoded, base64.b64decode(self.file.readline().strip(), validate=True).decode()
        if (user, password) != (USER, PASSWORD):
            raise _RefusedError(535, f"bad credentials {user} {password}", violation=False)
        self.user = user
        return "235 welcome"

    def do_mail(self, rest: str) -> str:
        need(self.hello and self.is_safe, 530, "MAIL without TLS")
        need(self.user or not self.state.needs_login, 530, "MAIL without a login")
        found = _PATH.fullmatch(rest)
        need(found and found[1] == SENDER, 553, f"MAIL {rest}")
        self.sender, self.recipients = SENDER, []
        return "250 ok"

    def do_rcpt(self, rest: str) -> str:
        need(self.sender, 503, "RCPT before MAIL")
        found = _PATH.fullmatch(rest)
        need(found, 501, f"RCPT {rest}")
        assert found is not None
        need(found[1] not in self.recipients, 553, f"{found[1]} twice")
        if found[1] in self.state.refused:
            raise _RefusedError(550, f"no such user {found[1]}", violation=False)
        self.recipients.append(found[1])
        return "250 ok"

    def do_rset(self, rest: str) -> str:
        self.sender, self.recipients = "", []
        return "250 ok"

    def do_quit(self, rest: str) -> str:
        return "221 bye"

    def do_data(self, rest: str) -> str:
        need(self.recipients, 503, "DATA before RCPT")
        self.say("354 end with a dot")
        lines = []
        while (line := self.file.readline()) != b".\r\n":
            if not line:
                raise ConnectionResetError
            lines.append(line[1:] if line.startswith(b"..") else line)
        fault = self.state.take("END")
        if fault is None or fault.taken:
            self.keep(lines)
        if fault is not None:
            if fault.kind == "code":
                return f"{fault.code} told to fail"
            self.perform(fault)
        return "250 kept"

    def keep(self, lines: list[bytes]) -> None:
        raw = b"".join(lines)
        need(len(raw) <= _MAX_BYTES, 552, f"{len(raw)} bytes")
        for line in lines:
            need(
                line.endswith(b"\r\n") and b"\n" not in line[:-1] and b"\r" not in line[:-2],
                550,
                f"a bare end in {line!r}",
            )
            need(len(line) <= _LINE + 2, 550, f"a line of {len(line)}")
            need(line.isascii(), 550, f"8 bits in {line!r}")
        need(PASSWORD.encode() not in raw, 550, "the password is in the mail")
        mail = email.message_from_bytes(raw, policy=email.policy.default)
        assert isinstance(mail, EmailMessage)
        self.check(mail)
        self.state.mails.append(Mail(tuple(self.recipients), mail))

    def check(self, mail: EmailMessage) -> None:
        for name in ("From", "To", "Subject", "Date", "Message-ID", "MIME-Version"):
            need(len(mail.get_all(name, [])) == 1, 550, f"{name}: {mail.get_all(name)}")
        need(email.utils.parseaddr(str(mail["From"]))[1] == SENDER, 550, f"From: {mail['From']}")
        shown = [address for _, address in email.utils.getaddresses([str(mail["To"])])]
        need(set(self.recipients) <= set(shown), 550, f"To: {shown} is not {self.recipients}")
        need(email.utils.parsedate_to_datetime(str(mail["Date"])).tzinfo, 550, f"Date: {mail['Date']}")
        need(re.fullmatch(r"<[\w.-]+@[\w.-]+>", str(mail["Message-ID"])), 550, f"Message-ID: {mail['Message-ID']}")
        kinds = [part.get_content_type() for part in mail.walk()]
        whole = ["multipart/alternative", "text/plain", "text/html"] if self.state.has_html else ["text/plain"]
        need(kinds == whole, 550, f"{kinds}")
        need(not [part.defects for part in mail.walk() if part.defects], 550, "defects")


class Server(QuietServer):
    """The listening socket."""

    state: State


@contextlib.contextmanager
def mail_server(security: str = "starttls") -> Iterator[State]:
    """A mail server that ends with the block."""
    server = Server(Handler)
    server.state = State(security, port=server.port)
    with serving(server, server.state.closing):
        yield server.state
