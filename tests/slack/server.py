"""A Slack on this machine, stricter than Slack, that fails when it is told to.

Whatever is wrong with a request is refused as Slack would, or more strictly, and kept in `violations`.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl

from tests.local_server import FailingHandler, QuietServer, serving

TOKEN = "xoxb-1111111111-2222222222-abcdefghijklmnopqrstuvwx"
HOOK_PATH = "/services/T00000000/B00000000/abcdefghijklmnopqrstuvwx"
CHANNEL, ME = "C0NIGHTLY01", "U0BOTBOT01"
ALL_SCOPES = "chat:write,files:write,channels:history"
SCOPE_OF = {
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "conversations.history": "channels:history",
    "conversations.replies": "channels:history",
    "files.getUploadURLExternal": "files:write",
    "files.completeUploadExternal": "files:write",
}
ENTITY = re.compile(
    r"<(?:@[UW][A-Z0-9]{7,20}|!subteam\^S[A-Z0-9]{7,20}|#[CG][A-Z0-9]{7,20}|https?://[^|<>\s]+\|[^|<>\n]+)>"
)
PING = re.compile(r"<(?:@|!)[^>]*>")
MESSAGE_FIELDS = {
    "channel": str,
    "text": str,
    "blocks": list,
    "unfurl_links": bool,
    "unfurl_media": bool,
    "parse": str,
    "metadata": dict,
    "thread_ts": str,
}
UPDATE_FIELDS = {"channel": str, "ts": str, "text": str, "blocks": list, "parse": str, "metadata": dict}
HOOK_FIELDS = {"text": str, "blocks": list, "unfurl_links": bool, "unfurl_media": bool}


@dataclass(frozen=True)
class Fault:
    """How one request fails; with `taken`, Slack does what it was asked before it fails."""

    kind: str
    """error, status, reset, hang, drip_head, drip_body, garbage, endless or redirect"""
    code: str = ""
    status: int = 200
    retry_after: str | None = None
    body: bytes = b""
    taken: bool = False


class RefusedError(Exception):
    """Slack's ok: false."""


@dataclass
class Posted:
    """A message in a channel."""

    channel: str
    ts: str
    text: str
    blocks: list[Any]
    user: str = ME
    thread_ts: str | None = None
    metadata: dict[str, Any] | None = None
    edits: int = 0

    def markup(self) -> str:
        return "\n".join(markup for block in self.blocks for _, markup in texts_of(block))

    def pings(self) -> list[str]:
        return PING.findall(self.markup())


@dataclass
class State:
    """What Slack knows, and how it shall behave."""

    url: str = ""
    messages: list[Posted] = field(default_factory=list)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    scopes: str = ALL_SCOPES
    token: str = TOKEN
    page: int = 100
    strays: list[str] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _clock: int = 0

    @property
    def hook(self) -> str:
        return self.url.removesuffix("/api/") + HOOK_PATH

    def fail(self, method: str, *faults: Fault) -> None:
        """The next requests of this method (`*`: of any) fail so, one after the other."""
        self.faults.setdefault(method, []).extend(faults)

    def channel(self) -> list[Posted]:
        """The messages that stand in the channel, without replies."""
        return [message for message in self.messages if message.thread_ts is None]

    def thread(self) -> list[Posted]:
        return [message for message in self.messages if message.thread_ts is not None]

    def next_ts(self) -> str:
        self._clock += 1
        return f"{time.time():.0f}.{self._clock:06d}"

    def fault_for(self, method: str) -> Fault | None:
        with self.lock:
            for name in (method, "*"):
                if self.faults.get(name):
                    return self.faults[name].pop(0)
        return None


def texts_of(block: dict[str, Any]) -> list[tuple[str, str]]:
    """Type and text of each text object in a block."""
    found = [block["text"]] if "text" in block else block.get("elements", [])
    return [(item["type"], item["text"]) for item in found]


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def need(condition: object, code: str) -> None:
    if not condition:
        raise RefusedError(code)


def check_fields(body: dict[str, Any], known: dict[str, type], required: tuple[str, ...]) -> None:
    need(set(body) <= set(known), f"invalid_arguments: unknown {sorted(set(body) - set(known))}")
    need(all(isinstance(body[name], known[name]) for name in body), "invalid_arguments: type")
    need(all(body.get(name) for name in required), "no_text" if "text" in required else "invalid_arguments: missing")


def check_content(body: dict[str, Any]) -> None:
    need(0 < units(body["text"]) <= 40000, "msg_too_long")
    check_markup(body["text"], pings=False)
    blocks = body["blocks"]
    need(1 <= len(blocks) <= 50, "invalid_blocks: count")
    for block in blocks:
        check_block(block)
    need(sum(units(text) for block in blocks for _, text in texts_of(block)) <= 13000, "msg_blocks_too_long")


def check_block(block: Any) -> None:
    need(isinstance(block, dict), "invalid_blocks: not an object")
    kind = block.get("type")
    need(kind in {"header", "section", "context", "divider"}, f"invalid_blocks: {kind}")
    if kind == "header":
        need(set(block) == {"type", "text"} and block["text"]["type"] == "plain_text", "invalid_blocks: header")
        check_text(block["text"], 150)
    elif kind == "section":
        need(set(block) == {"type", "text"}, "invalid_blocks: section")
        check_text(block["text"], 3000)
    elif kind == "context":
        need(set(block) == {"type", "elements"} and 1 <= len(block["elements"]) <= 10, "invalid_blocks: context")
        for element in block["elements"]:
            check_text(element, 2000)


def check_text(item: Any, limit: int) -> None:
    need(isinstance(item, dict) and item.get("type") in {"plain_text", "mrkdwn"}, "invalid_blocks: text")
    allowed = {"type", "text", "emoji"} if item["type"] == "plain_text" else {"type", "text", "verbatim"}
    need(set(item) <= allowed and isinstance(item.get("text"), str), "invalid_blocks: text fields")
    need(0 < units(item["text"]) <= limit, f"invalid_blocks: {units(item['text'])} is not within 1 and {limit}")
    need(not re.search(r"[\x00-\x08\x0b-\x1f\ud800-\udfff]", item["text"]), "invalid_blocks: control characters")
    if item["type"] == "mrkdwn":
        need(item.get("verbatim") is True, "invalid_blocks: Slack would turn names into links")
        need(item["text"].count("```") % 2 == 0, "invalid_blocks: a code block that does not end")
        check_markup(item["text"], pings=True)


def check_markup(text: str, *, pings: bool) -> None:
    left = ENTITY.sub("", text) if pings else text
    need("<" not in left and ">" not in left, f"invalid_blocks: unescaped < or > in {left[:200]!r}")
    need(not re.search(r"&(?!amp;|lt;|gt;)", left), f"invalid_blocks: unescaped & in {left[:200]!r}")


def post(state: State, body: dict[str, Any]) -> dict[str, Any]:
    check_fields(body, MESSAGE_FIELDS, ("channel", "text", "blocks"))
    need(body["channel"] == CHANNEL, "channel_not_found")
    need(body.get("parse") == "none" and body.get("unfurl_links") is False, "invalid_arguments: parse, unfurl")
    mark = body.get("metadata")
    if mark is not None:
        need(
            set(mark) == {"event_type", "event_payload"} and isinstance(mark["event_payload"], dict),
            "metadata_must_be_sent",
        )
    thread = body.get("thread_ts")
    need(thread is None or any(item.ts == thread for item in state.channel()), "thread_not_found")
    check_content(body)
    message = Posted(CHANNEL, state.next_ts(), body["text"], body["blocks"], thread_ts=thread, metadata=mark)
    state.messages.append(message)
    return {"channel": CHANNEL, "ts": message.ts, "message": {"text": message.text}}


def update(state: State, body: dict[str, Any]) -> dict[str, Any]:
    check_fields(body, UPDATE_FIELDS, ("channel", "ts", "text", "blocks"))
    need(body["channel"] == CHANNEL, "channel_not_found")
    message = next((item for item in state.messages if item.ts == body["ts"]), None)
    need(message is not None, "message_not_found")
    assert message is not None
    need(message.user == ME, "cant_update_message")
    check_content(body)
    message.metadata = body.get("metadata")
    message.text, message.blocks, message.edits = body["text"], body["blocks"], message.edits + 1
    return {"channel": CHANNEL, "ts": message.ts, "text": message.text}


def history(state: State, form: dict[str, str]) -> dict[str, Any]:
    need(set(form) <= {"channel", "oldest", "limit", "include_all_metadata", "cursor"}, "invalid_arguments")
    need(form.get("channel") == CHANNEL, "channel_not_found")
    need(re.fullmatch(r"\d+\.\d{6}", form.get("oldest", "")), "invalid_ts_oldest")
    need(0 < int(form["limit"]) < 1000, "invalid_limit")
    return page_of(state, form, [item for item in state.channel() if float(item.ts) > float(form["oldest"])][::-1])


def replies(state: State, form: dict[str, str]) -> dict[str, Any]:
    need(set(form) <= {"channel", "ts", "limit", "include_all_metadata", "cursor"}, "invalid_arguments")
    need(form.get("channel") == CHANNEL, "channel_not_found")
    need(any(item.ts == form.get("ts") for item in state.channel()), "thread_not_found")
    need(0 < int(form["limit"]) < 1000, "invalid_limit")
    return page_of(state, form, [item for item in state.messages if form["ts"] in {item.ts, item.thread_ts}])


def page_of(state: State, form: dict[str, str], found: list[Posted]) -> dict[str, Any]:
    """One page of the messages, as both methods give it."""
    begin = int(form.get("cursor", "0"))
    end = begin + min(int(form["limit"]), state.page)
    with_mark = form.get("include_all_metadata") == "true"
    shown = [
        {
            "type": "message",
            "ts": m.ts,
            "user": m.user,
            **({"metadata": m.metadata} if m.metadata and with_mark else {}),
        }
        for m in found[begin:end]
    ]
    return {"messages": shown, "response_metadata": {"next_cursor": str(end) if end < len(found) else ""}}


def get_upload_url(state: State, form: dict[str, str]) -> dict[str, Any]:
    need(
        set(form) == {"filename", "length"} and form["length"].isdecimal() and int(form["length"]), "invalid_arguments"
    )
    need(re.fullmatch(r"[\w.-]{1,200}", form["filename"]), "invalid_arguments: filename")
    name = f"F{len(state.files):08d}"
    state.files[name] = {"filename": form["filename"], "length": int(form["length"]), "content": None, "in": None}
    return {"upload_url": f"{state.url.removesuffix('api/')}upload/{name}", "file_id": name}


def complete_upload(state: State, form: dict[str, str]) -> dict[str, Any]:
    need(set(form) <= {"files", "channel_id", "thread_ts", "initial_comment"}, "invalid_arguments")
    need(form.get("channel_id") == CHANNEL, "channel_not_found")
    need(any(item.ts == form.get("thread_ts") for item in state.channel()), "invalid_thread_ts")
    for item in json.loads(form["files"]):
        need(set(item) <= {"id", "title"} and item["id"] in state.files, "file_not_found")
        known = state.files[item["id"]]
        need(known["content"] is not None, "file_not_found: not uploaded yet")
        need(known["in"] is None, "file_already_completed")
        known.update({"in": form["thread_ts"], "title": item.get("title")})
    return {"files": []}


JSON_METHODS = {"chat.postMessage": post, "chat.update": update}
FORM_METHODS = {
    "auth.test": lambda state, form: {"user_id": ME, "team": "Test"},
    "conversations.history": history,
    "conversations.replies": replies,
    "files.getUploadURLExternal": get_upload_url,
    "files.completeUploadExternal": complete_upload,
}


class Handler(FailingHandler, BaseHTTPRequestHandler):
    """One request."""

    server: Server

    @property
    def closing(self) -> threading.Event:
        return self.server.state.closing

    def do_GET(self) -> None:
        self.server.state.strays.append(f"GET {self.path} {self.headers.get('Authorization')}")
        self.answer(404, b"no")

    def do_POST(self) -> None:
        state = self.server.state
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        method = self.path.removeprefix("/api/")
        if self.path == HOOK_PATH:
            method = "webhook"
        elif self.path.startswith("/upload/"):
            method = "upload"
        with state.lock:
            state.calls.append(method)
        fault = state.fault_for(method)
        if fault is None or fault.taken:
            with state.lock:
                status, kind, content = self.serve(method, body)
            if fault is None:
                self.answer(status, content, kind)
                return
        assert fault is not None
        self.perform(fault, method)

    def serve(self, method: str, body: bytes) -> tuple[int, str, bytes]:
        state = self.server.state
        try:
            if method == "webhook":
                self.by_hook(json.loads(body))
                return 200, "text/html", b"ok"
            if method == "upload":
                self.take_file(body)
                return 200, "text/plain", b"OK - 12"
            return 200, "application/json; charset=utf-8", json.dumps({"ok": True, **self.api(method, body)}).encode()
        except (RefusedError, KeyError, TypeError, ValueError) as error:
            code, _, detail = str(error).partition(":")
            if detail or not isinstance(error, RefusedError):
                state.violations.append(f"{method}: {error!r}")
            if method == "webhook":
                return 400, "text/html", (code or "invalid_payload").encode()
            return 200, "application/json; charset=utf-8", json.dumps({"ok": False, "error": code}).encode()

    def api(self, method: str, body: bytes) -> dict[str, Any]:
        state = self.server.state
        need(self.headers.get("Authorization"), "not_authed")
        need(self.headers["Authorization"] == f"Bearer {state.token}", "invalid_auth")
        scope = SCOPE_OF.get(method)
        need(scope is None or scope in state.scopes, "missing_scope")
        need(TOKEN.encode() not in body and b"token=" not in body, "invalid_arguments: the token is in the body")
        kind = self.headers.get("Content-Type", "")
        if method in JSON_METHODS:
            need(kind.lower() == "application/json;charset=utf-8", "invalid_content_type: JSON")
            return JSON_METHODS[method](state, json.loads(body))
        need(method in FORM_METHODS, f"unknown_method: {method}")
        if body:
            need(kind == "application/x-www-form-urlencoded", "invalid_content_type: form")
        form = dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=True)) if body else {}
        return FORM_METHODS[method](state, form)

    def by_hook(self, body: dict[str, Any]) -> None:
        check_fields(body, HOOK_FIELDS, ("text", "blocks"))
        need("Authorization" not in self.headers, "invalid_token: sent to a webhook")
        check_content(body)
        state = self.server.state
        state.messages.append(Posted(CHANNEL, state.next_ts(), body["text"], body["blocks"], user="webhook"))

    def take_file(self, body: bytes) -> None:
        known = self.server.state.files.get(self.path.removeprefix("/upload/"))
        need(known is not None, "file_not_found")
        assert known is not None
        need("Authorization" not in self.headers, "invalid_auth: the token was sent to the upload address")
        need(known["content"] is None, "already_uploaded: twice")
        need(len(body) == known["length"], "wrong_length: of the file")
        known["content"] = body

    def answer(self, status: int, body: bytes, kind: str = "text/plain", **headers: str) -> None:
        scopes = self.server.state.scopes
        self.send_answer(status, body, Content_Type=kind, X_OAuth_Scopes=scopes, **headers)

    def perform(self, fault: Fault, method: str) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            getattr(self, f"fail_{fault.kind}")(fault, method)

    def fail_error(self, fault: Fault, method: str) -> None:
        if method == "webhook":
            self.answer(fault.status if fault.status != 200 else 403, fault.code.encode(), "text/html")
            return
        self.answer(
            fault.status, json.dumps({"ok": False, "error": fault.code}).encode(), "application/json; charset=utf-8"
        )

    def fail_status(self, fault: Fault, method: str) -> None:
        more = {"Retry_After": fault.retry_after} if fault.retry_after is not None else {}
        self.answer(fault.status, fault.body or b"<html>gateway</html>", "text/html", **more)

    def fail_garbage(self, fault: Fault, method: str) -> None:
        self.answer(fault.status, fault.body, "application/json; charset=utf-8")

    def fail_redirect(self, fault: Fault, method: str) -> None:
        self.answer(302, b"", Location=f"{self.server.state.url.removesuffix('api/')}elsewhere")


class Server(QuietServer):
    """The listening socket."""

    state: State


@contextlib.contextmanager
def slack_server() -> Iterator[State]:
    """A Slack that ends with the block."""
    server = Server(Handler)
    server.state = State(url=f"http://127.0.0.1:{server.port}/api/")
    with serving(server, server.state.closing):
        yield server.state
