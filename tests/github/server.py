"""A GitHub on this machine that speaks its REST API's part for issues and comments, stricter than GitHub.

Whatever is wrong with a request is refused as GitHub would, or more strictly, and kept in `violations`.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.local_server import QuietServer, serving

TOKEN = "ghs_0123456789abcdefghijABCDEFGHIJ456789"
REPOSITORY, PULL, ME = "apache/tvm", 7, "github-actions[bot]"
_LIST = re.compile(r"/repos/([^/]+/[^/]+)/issues/(\d+)/comments")
_ONE = re.compile(r"/repos/([^/]+/[^/]+)/issues/comments/(\d+)")
_ISSUES = re.compile(r"/repos/([^/]+/[^/]+)/issues")
_ISSUE = re.compile(r"/repos/([^/]+/[^/]+)/issues/(\d+)")
_MOST_CHARS, _MOST_TITLE = 65536, 256


@dataclass(frozen=True)
class Fault:
    """How one request fails; with `taken`, GitHub does what it was asked before it fails. Status 0: no answer."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    taken: bool = False
    message: str = "told to fail"


class RefusedError(Exception):
    """An answer that is none of success."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


@dataclass
class State:
    """What GitHub knows, and how its next requests fail. is_app: the token is an installation's, which has no user."""

    url: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    faults: list[Fault | None] = field(default_factory=list)
    is_app: bool = False
    can_write: bool = True
    edits: int = 0
    issues: list[dict[str, Any]] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)

    def add_issue(self, title: str, body: str, labels: list[str] | None = None) -> dict[str, Any]:
        """An issue, the text as it is."""
        number = 100 + len(self.issues)
        url = f"https://github.com/{REPOSITORY}/issues/{number}"
        facts = {"title": title, "body": body, "labels": labels or [], "state": "open", "state_reason": None}
        self.issues.append({"number": number, "html_url": url, "edits": 0, **facts})
        return self.issues[-1]

    def comments_on(self, number: int) -> list[str]:
        """The texts of an issue's comments."""
        return [comment["body"] for comment in self.comments if comment.get("issue", PULL) == number]

    def add(self, body: str, login: str = ME) -> dict[str, Any]:
        """A comment of that user, the text as it is."""
        number = 1000 + len(self.comments)
        url = f"https://github.com/{REPOSITORY}/pull/{PULL}#issuecomment-{number}"
        self.comments.append({"id": number, "user": {"login": login}, "body": body, "html_url": url})
        return self.comments[-1]

    def of(self, login: str) -> list[str]:
        """The texts of that user's comments."""
        return [comment["body"] for comment in self.comments if comment["user"]["login"] == login]


@contextlib.contextmanager
def serve() -> Iterator[State]:
    """A GitHub until the block ends."""
    state = State()
    server = QuietServer(type("Handler", (_Handler,), {"state": state}))
    state.url = f"http://127.0.0.1:{server.port}"
    with serving(server, threading.Event()):
        yield state


class _Handler(BaseHTTPRequestHandler):
    state: State

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_PATCH(self) -> None:
        self._handle()

    def log_message(self, *_: object) -> None:
        pass

    def _handle(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        path = urlsplit(self.path)
        self.state.calls.append(f"{self.command} {path.path}")
        fault = self.state.faults.pop(0) if self.state.faults else None
        try:
            self._check_headers(content)
            if fault and not fault.taken:
                raise RefusedError(fault.status, fault.message, fault.headers)
            status, value, headers = self._perform(path.path, dict(parse_qsl(path.query)), content)
            if fault:
                raise RefusedError(fault.status, fault.message, fault.headers)
        except RefusedError as error:
            status, value, headers = error.status, {"message": str(error)}, error.headers
            if fault is None and status not in (403, 404):
                self.state.violations.append(f"{self.command} {self.path}: {status} {error}")
        self._answer(status, value, headers)

    def _answer(self, status: int, value: Any, headers: dict[str, str]) -> None:
        if not status:
            self.close_connection = True
            return
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def _check_headers(self, content: bytes) -> None:
        need(self.headers.get("User-Agent"), 403, "Request forbidden by administrative rules")
        need(self.headers.get("Authorization") == f"Bearer {TOKEN}", 401, "Bad credentials")
        need(self.headers.get("Accept") == "application/vnd.github+json", 415, "Unsupported 'Accept' header")
        need(self.headers.get("X-GitHub-Api-Version") == "2022-11-28", 400, "no such version of the API")
        need(not content or self.headers.get("Content-Type") == "application/json", 415, "not JSON")
        need(TOKEN not in self.path and TOKEN.encode() not in content, 422, "the token stands in the request")

    def _perform(self, path: str, query: dict[str, str], content: bytes) -> tuple[int, Any, dict[str, str]]:
        if (self.command, path) == ("GET", "/user"):
            need(not self.state.is_app, 403, "Resource not accessible by integration")
            return 200, {"login": ME}, {}
        found = next(filter(None, (form.fullmatch(path) for form in (_LIST, _ONE, _ISSUES, _ISSUE))), None)
        need(found, 404, "Not Found")
        assert found is not None
        need(found[1] == REPOSITORY, 404, "Not Found")
        if found.re is _ONE:
            return self._edit(int(found[2]), content)
        if found.re is _ISSUES:
            return self._list_issues(query) if self.command == "GET" else self._open(content)
        if found.re is _ISSUE:
            return self._edit_issue(int(found[2]), content)
        number = int(found[2])
        need(number not in self.state.gone, 410, "This issue was deleted")
        known = number == PULL or any(issue["number"] == number for issue in self.state.issues)
        need(known, 404, "Not Found")
        return self._list(query, number) if self.command == "GET" else self._add(content, number)

    def _list_issues(self, query: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        need(set(query) == {"state", "sort", "direction", "since", "per_page", "page"}, 422, f"parameters {query}")
        need((query["state"], query["sort"], query["direction"]) == ("all", "created", "desc"), 422, "order")
        need(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", query["since"]), 422, "since")
        size, page = min(100, int(query["per_page"])), int(query["page"])
        newest = [issue for issue in self.state.issues[::-1] if issue["number"] not in self.state.gone]
        return 200, newest[(page - 1) * size : page * size], {}

    def _open(self, content: bytes) -> tuple[int, Any, dict[str, str]]:
        value = self._fields(content, {"title": str, "body": str, "labels": list})
        need(value.get("title") and value.get("body"), 422, "Validation Failed: missing")
        return 201, self.state.add_issue(value["title"], value["body"], value.get("labels")), {}

    def _edit_issue(self, number: int, content: bytes) -> tuple[int, Any, dict[str, str]]:
        need(self.command == "PATCH", 404, "Not Found")
        need(number not in self.state.gone, 410, "This issue was deleted")
        issue = next((issue for issue in self.state.issues if issue["number"] == number), None)
        need(issue, 404, "Not Found")
        assert issue is not None
        value = self._fields(content, {"title": str, "body": str, "state": str, "state_reason": str})
        need(value.get("state", "open") in ("open", "closed"), 422, "Validation Failed: state")
        need(value.get("state_reason", "completed") in ("completed", "not_planned"), 422, "Validation Failed: reason")
        issue.update(value, edits=issue["edits"] + 1)
        return 200, issue, {}

    def _fields(self, content: bytes, known: dict[str, type]) -> dict[str, Any]:
        need(self.state.can_write, 403, "Resource not accessible by integration")
        value = json.loads(content)
        need(isinstance(value, dict) and set(value) <= set(known), 422, f"Validation Failed: {value}")
        need(all(isinstance(value[name], known[name]) for name in value), 422, "Validation Failed: type")
        need(len(value.get("title", "")) <= _MOST_TITLE, 422, "title is too long (maximum is 256 characters)")
        need(len(value.get("body", "")) <= _MOST_CHARS, 422, "body is too long (maximum is 65536 characters)")
        need("\n" not in value.get("title", ""), 422, "Validation Failed: title")
        return dict(value)

    def _list(self, query: dict[str, str], number: int) -> tuple[int, Any, dict[str, str]]:
        need(set(query) <= {"per_page", "page"}, 422, "unknown parameter")
        size, page = min(100, int(query.get("per_page", "30"))), int(query.get("page", "1"))
        own = [comment for comment in self.state.comments if comment.get("issue", PULL) == number]
        shown = own[(page - 1) * size : page * size]
        more = len(own) > page * size
        return 200, shown, {"Link": f'<{self.state.url}/next>; rel="next"'} if more else {}

    def _add(self, content: bytes, number: int) -> tuple[int, Any, dict[str, str]]:
        need(self.command == "POST", 404, "Not Found")
        comment = self.state.add(self._body(content))
        comment["issue"] = number
        return 201, comment, {}

    def _edit(self, number: int, content: bytes) -> tuple[int, Any, dict[str, str]]:
        """With leave to write, a token may edit anybody's comment: it is for the caller not to."""
        need(self.command == "PATCH", 404, "Not Found")
        comment = next((comment for comment in self.state.comments if comment["id"] == number), None)
        need(comment, 404, "Not Found")
        assert comment is not None
        comment["body"] = self._body(content)
        self.state.edits += 1
        return 200, comment, {}

    def _body(self, content: bytes) -> str:
        need(self.state.can_write, 403, "Resource not accessible by integration")
        try:
            value = json.loads(content)
        except ValueError:
            raise RefusedError(400, "Problems parsing JSON") from None
        is_comment = isinstance(value, dict) and set(value) == {"body"} and isinstance(value["body"], str)
        need(is_comment and value["body"].strip(), 422, "Validation Failed: body")
        need(len(value["body"]) <= _MOST_CHARS, 422, "body is too long (maximum is 65536 characters)")
        return str(value["body"])


def need(condition: object, status: int, message: str) -> None:
    if not condition:
        raise RefusedError(status, message)
