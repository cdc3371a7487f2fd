"""A small site, and a client that asks for exactly what it is told to."""

from __future__ import annotations

import contextlib
import http.client
from dataclasses import dataclass
from http.client import HTTPMessage
from pathlib import Path

from tvmdash import common
from tvmdash.dashboard_info import Home

FILES = {
    "index.html": "<!DOCTYPE html><title>Tonight</title>" + "x" * 5000,
    "index.json": '{"schema_version": 1}',
    "js/app.js": "export {};",
    "nights/index.html": "all nights",
    "nights/2026 ä.html": "one",
    "graphs/a/tonight.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
    "receipts/n/e.perfetto-trace": "\x00\x01",
}


def publish(home: Home, files: dict[str, str] = FILES) -> Path:
    site = home.output("website")
    with common.folder_beside(site) as new:
        for name, text in files.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_text(text, encoding="utf-8")
    return site


@dataclass
class Answer:
    status: int
    headers: HTTPMessage
    body: bytes


@dataclass
class Client:
    port: int

    def ask(self, target: str, method: str = "GET", **headers: str) -> Answer:
        """What the server says to exactly this target, which no client has put in order first."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(connection):
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
