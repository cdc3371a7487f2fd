"""The route of kind `email`: one SMTP conversation a message, over TLS."""

from __future__ import annotations

import datetime
import email.policy
import email.utils
import smtplib
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path

from tvmdash.common.http_util import make_tls_context
from tvmdash.common.secret_file import SecretFile
from tvmdash.errors import DashboardError
from tvmdash.notify import text
from tvmdash.notify.config import Route, Security
from tvmdash.notify.errors import BusyError, DeliveryError, IncompleteError, RefusedError, UncertainError
from tvmdash.notify.message import Message, Occasion
from tvmdash.notify.senders import Sender

_IN_LINES = email.policy.SMTP.clone(max_line_length=300)
"""Subjects on one line: one that is folded before its first word has a blank in front where a program shows it so."""
_LOGIN_REFUSED = frozenset({454, 530, 534, 535, 538})


@dataclass(frozen=True)
class MailSender(Sender):
    """A mail server that takes messages of one sender.

    A mail that is sent twice has the same Message-ID, by which mail servers and programs know it.
    """

    route: Route
    password: str = field(default="", repr=False)

    def send(self, message: Message, limit_s: float, remote: str, *, again: bool = False) -> str:
        """Give it to the server; DeliveryError where it is not taken, or not for all."""
        recipients = list_recipients(self.route, message)
        if recipients:
            mail = build_mail(self.route, message, recipients, datetime.datetime.now(datetime.UTC))
            _give(self.route, self.password, mail.as_bytes(policy=_IN_LINES), recipients, limit_s)
        return ""


def open_mail(route: Route, home: Path) -> MailSender:
    """The server, with the password; DashboardError where there is no good one."""
    if not route.user:
        return MailSender(route)
    file = SecretFile(home / Path(route.secret_file).expanduser(), "password", "~/.config/tvmdash/mail_password")
    lines = [line for line in file.read_lines(home) or [] if line]
    if len(lines) != 1:
        problem = "no such file." if file.read_lines(home) is None else "must contain exactly one line."
        raise DashboardError(problem, place=file.path, remedy="Put the mail server's password into it, with mode 600.")
    return MailSender(route, lines[0])


def list_recipients(route: Route, message: Message) -> tuple[str, ...]:
    """List those of the route, and those who are pinged."""
    return tuple(dict.fromkeys((*route.to, *message.people)))


def build_mail(route: Route, message: Message, recipients: Sequence[str], moment: datetime.datetime) -> EmailMessage:
    """Build the message as a mail: plain text, and the same as HTML."""
    domain = route.sender.rpartition("@")[2]
    mail = EmailMessage(policy=email.policy.SMTP)
    mail["From"] = email.utils.formataddr(("TVM dashboard", route.sender))
    mail["To"] = ", ".join(recipients)
    answers = message.first and message.event in (Occasion.UPDATED, Occasion.CLOSED)
    mail["Subject"] = f"{'Re: ' * bool(answers)}[TVM] {text.format_subject(message)}"
    mail["Date"] = email.utils.format_datetime(moment)
    mail["Message-ID"] = f"<{message.id}@{domain}>"
    if answers:
        mail["In-Reply-To"] = mail["References"] = f"<{message.first}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(text.format_plain(message), cte="quoted-printable")
    mail.add_alternative(text.format_html(message), subtype="html", cte="quoted-printable")
    return mail


def _give(route: Route, password: str, mail: bytes, recipients: Sequence[str], limit_s: float) -> None:
    """Hold one conversation with the server. Its words are from outside: only its code is told."""
    fault: DeliveryError
    try:
        with _connect(route, limit_s) as smtp:
            _begin(smtp, route, password)
            _hand_over(smtp, route, mail, recipients)
            return
    except DeliveryError:
        raise
    except ssl.SSLCertVerificationError as error:
        fault = RefusedError(f"the certificate of {route.host} is invalid: {error.verify_message}")
    except smtplib.SMTPNotSupportedError:
        fault = RefusedError(f"{route.host} does not support starttls or login, which the config requires")
    except smtplib.SMTPResponseException as error:
        fault = _make_error(route, error.smtp_code)
    except (OSError, smtplib.SMTPException) as error:
        fault = BusyError(f"{route.host} could not be reached ({type(error).__name__})")
    raise fault  # out here: the exceptions of smtplib hold what was said


def _connect(route: Route, limit_s: float) -> smtplib.SMTP:
    name = socket.gethostname()
    # Servers refuse a greeting that is no full domain name; an address in brackets is valid for all.
    own = name if "." in name else "[127.0.0.1]"
    if route.security is Security.TLS:
        context = make_tls_context()
        return smtplib.SMTP_SSL(route.host, route.port, local_hostname=own, timeout=limit_s, context=context)
    return smtplib.SMTP(route.host, route.port, local_hostname=own, timeout=limit_s)


def _begin(smtp: smtplib.SMTP, route: Route, password: str) -> None:
    smtp.ehlo_or_helo_if_needed()
    if route.security is Security.STARTTLS:
        smtp.starttls(context=make_tls_context())
        smtp.ehlo()
    if route.user:
        smtp.login(route.user, password)


def _hand_over(smtp: smtplib.SMTP, route: Route, mail: bytes, recipients: Sequence[str]) -> None:
    code, _ = smtp.mail(route.sender)
    if code != 250:
        raise _make_error(route, code)
    refused = {address: code for address in recipients if (code := smtp.rcpt(address)[0]) not in (250, 251)}
    if len(refused) == len(recipients):
        raise _make_error(route, min(refused.values()))
    try:
        code, _ = smtp.data(mail)
    except smtplib.SMTPDataError as error:
        raise _make_error(route, error.smtp_code) from None
    except (OSError, smtplib.SMTPException) as error:
        raise UncertainError(f"the connection to {route.host} was lost ({type(error).__name__})") from None
    if code != 250:
        raise _make_error(route, code)
    if refused:
        raise IncompleteError(f"{route.host} accepted the message, but not for {', '.join(refused)}")


def _make_error(route: Route, code: int) -> DeliveryError:
    if code in _LOGIN_REFUSED:
        return RefusedError(f"{route.host} rejected the login ({code}); check user, secret_file and security")
    # smtplib gives -1 where the server closed the connection without a code.
    if 400 <= code < 500 or code == -1:
        return BusyError(f"{route.host} asked to retry later ({code})")
    what = {550: "a recipient", 552: "the size", 553: "an address", 554: "the message"}.get(code, "it")
    return RefusedError(f"{route.host} rejected {what} ({code})")
