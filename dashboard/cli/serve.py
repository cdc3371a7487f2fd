"""`serve`, `submit`: serve the home's website, and send results to where it is served.

A submission that can be read is written into results/inbox before it is acknowledged, and imported from there at once
or, while a night runs, by the next one. The same bytes sent again change nothing.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote, urlencode

from dashboard.cli import importing
from dashboard.cli.arguments import (
    OK_CODE,
    SOME_FAILED,
    Verbs,
    add_home_verb,
    find_home,
    make_absolute,
)
from dashboard.importing.ingest import ImportRequest
from dashboard.importing.source import MAX_FILE_BYTES
from dashboard.night import lock
from dashboard.report import site_server
from dashboard.report.triage import Clerk
from tvmdash import common
from tvmdash.common import http_util
from tvmdash.common.secret_file import SecretFile
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

OPTIONS = ("experiment", "machine", "tvm", "timezone")
_INBOX = "inbox"
_MOST_WAITING = 1000
_LEAST_SECRET = 16
_TRIES, _TIMEOUT_S = 3, 180.0
_one_at_a_time = threading.Lock()
"""The server answers in threads, of which two must not import the same submission."""


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    serve = add_home_verb(verbs, "serve", _serve, "serve the home's website to a browser", code=False)
    serve.add_argument("--port", type=int, default=0, help="port (default: 0, any free port)")
    serve.add_argument(
        "--bind", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default: this machine only)"
    )
    serve.add_argument(
        "--token-file", type=make_absolute, metavar="FILE", help="accept results from who sends the token in this file"
    )
    serve.add_argument(
        "--triage", nargs="?", const="", metavar="HEADER",
        help="let incidents be changed in the pages; HEADER: in which your proxy names the person, as X-Forwarded-User",
    )  # fmt: skip
    serve.add_argument(
        "--name", action="append", default=[], help="additional host name that browsers use for this server"
    )
    submit = verbs.add_parser("submit", help="send results of other tools to a home that `serve` serves")
    submit.add_argument("url", metavar="URL", help="address of the `serve`, or of the proxy before it")
    submit.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files as `import` takes them")
    submit.add_argument("--token-file", type=Path, required=True, metavar="FILE", help="file with mode 600")
    importing.add_overrides(submit)
    submit.set_defaults(verb=_submit)


def _serve(arguments: argparse.Namespace) -> int:
    home = find_home(arguments)
    desk = clerk = None
    if arguments.triage is not None:
        if not http_util.is_local(arguments.bind):
            problem = f"--bind {arguments.bind} --triage: anybody in the network could change incidents."
            raise DashboardError(problem, remedy="Listen on 127.0.0.1 and put a proxy that asks who it is before it.")
        clerk = Clerk(home, arguments.triage)
    if arguments.token_file is not None:
        if not http_util.is_local(arguments.bind):
            problem = f"--bind {arguments.bind}: a token would be sent in the clear."
            raise DashboardError(problem, remedy="Listen on 127.0.0.1 and put a proxy with TLS before it.")
        token = _read_token(arguments.token_file, home.root)
        desk = site_server.Desk(token, MAX_FILE_BYTES, functools.partial(accept, home))
    site_server.serve(home, arguments.bind, arguments.port, arguments.name, desk, clerk)
    return OK_CODE


def _read_token(path: Path, home: Path) -> str:
    """Read the token in a file that only this user can read; DashboardError where it is none."""
    lines = SecretFile(path, "token", "~/.config/tvmdash/submit_token").read_lines(home)
    if not lines or len(lines[0].strip()) < _LEAST_SECRET:
        problem = f"no token of {_LEAST_SECRET} characters."
        raise DashboardError(problem, place=f"--token-file {path}", remedy="Make one: openssl rand -hex 32")
    return lines[0].strip()


def _submit(arguments: argparse.Namespace) -> int:
    token = _read_token(arguments.token_file, Path("/nowhere"))
    if not http_util.is_safe(arguments.url):
        raise DashboardError(f"{arguments.url}: a token is sent over TLS or within this machine only. Use https://.")
    options = {name: getattr(arguments, name) for name in OPTIONS if getattr(arguments, name)}
    answers = [_send(f"{arguments.url.rstrip('/')}/submit", path, options, token) for path in arguments.files]
    for path, answer in zip(arguments.files, answers, strict=True):
        print(f"{path}: {answer.body.decode(errors='replace').strip()}")
    return OK_CODE if all(answer.status in (HTTPStatus.OK, HTTPStatus.ACCEPTED) for answer in answers) else SOME_FAILED


def _send(url: str, path: Path, options: dict[str, str], token: str) -> http_util.Answer:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DashboardError(f"{path}: cannot be read: {error.strerror}.") from error
    whole = f"{url}/{quote(path.name)}?{urlencode(options)}"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream"}
    for left in reversed(range(_TRIES)):
        try:
            return http_util.send("POST", whole, content, headers, _TIMEOUT_S)
        except http_util.NoAnswerError as error:  # sent twice is as good as once
            if not left:
                raise DashboardError(f"{url}: {error}. Is `serve --token-file` running there?") from error
            time.sleep(1)
    raise AssertionError


def accept(home: Home, submission: site_server.Submission) -> tuple[HTTPStatus, str]:
    """Take a submission in: checked as `import` checks it, kept, and imported now where nothing else runs."""
    header = {"name": submission.name, **{name: value for name, value in submission.options.items() if name in OPTIONS}}
    whole = json.dumps(header).encode() + b"\n" + submission.content
    lines: list[str] = []
    try:
        broken = _import(home, whole, lines, dry_run=True)
    except DashboardError as error:
        broken, lines = True, [str(error)]
    if broken:
        return HTTPStatus.UNPROCESSABLE_ENTITY, "\n".join(lines)
    inbox = _inbox_of(home)
    try:
        inbox.mkdir(parents=True, exist_ok=True)
        if sum(1 for _ in inbox.glob("*.submission")) >= _MOST_WAITING:
            return HTTPStatus.SERVICE_UNAVAILABLE, f"{_MOST_WAITING} submissions wait already. Send it tomorrow."
        common.write_bytes(inbox / f"{hashlib.sha256(whole).hexdigest()}.submission", whole, mode=0o600)
    except OSError as error:
        return HTTPStatus.INSUFFICIENT_STORAGE, f"It could not be kept: {error.strerror}."
    try:
        return HTTPStatus.OK, "\n".join(take_inbox(home))
    except lock.HeldError:
        return HTTPStatus.ACCEPTED, "Kept: a night is running, and the next one imports it."


def take_inbox(home: Home) -> Iterator[str]:
    """Import what waits in the inbox; the lines of `import`. HeldError where the home is in use.

    What cannot be imported was taken in all the same, so it stays: under another name, or to be tried again.
    """
    with _one_at_a_time:
        for path in sorted(_inbox_of(home).glob("*.submission")):
            lines: list[str] = []
            try:
                is_broken = _import(home, path.read_bytes(), lines)
            except lock.HeldError:
                raise
            except OSError as error:
                yield f"{path}: {error.strerror}. It is kept, and the next night tries again."
                continue
            except DashboardError as error:
                is_broken = True
                lines.append(str(error))
            if is_broken:
                aside = path.rename(path.with_suffix(".refused"))
                lines.append(f"{aside}: kept, but not imported. Import it by hand, or delete it.")
            else:
                path.unlink()
            yield from lines


def _inbox_of(home: Home) -> Path:
    return home.root / "results" / _INBOX


def _import(home: Home, whole: bytes, lines: list[str], *, dry_run: bool = False) -> bool:
    """Import what a file of the inbox holds; whether it is broken."""
    first, _, content = whole.partition(b"\n")
    header = common.parse_json(first, "submission")
    if not isinstance(header, dict) or not isinstance(header.get("name"), str):
        raise DashboardError("The submission is damaged: its first line names no file.")
    reading = importing.make_reading(header.get("timezone", "UTC"), header.get("experiment"))
    with tempfile.NamedTemporaryFile() as spooled:
        spooled.write(content)
        spooled.flush()
        given = (reading, dry_run, header.get("machine"), header.get("tvm"), header["name"])
        return importing.run(ImportRequest(home, Path(spooled.name), *given), lines.append)
