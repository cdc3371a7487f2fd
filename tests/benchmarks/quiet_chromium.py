"""Headless Chromium with nobody watching: only what is asked goes over its debugging pipe, and no event of the network.

Playwright hears of every request, which takes a fifth of a small machine's time while a page loads.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

SIZE = {"width": 1280, "height": 720}
_AT_3_AND_4 = """
import os, sys
reads, writes = (os.dup(int(number)) for number in sys.argv[1:3])
while min(reads, writes) < 5: reads, writes = os.dup(reads), os.dup(writes)
os.dup2(reads, 3), os.dup2(writes, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads its commands from descriptor 3 and answers to 4."""


class Chromium:
    """A running browser; its protocol's commands by name."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes = reads, writes
        self._numbers = itertools.count(1)
        self._rest = b""

    def ask(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """The result of a command; RuntimeError where it has none."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._reads, 1 << 16)
            if not more:
                raise RuntimeError("Chromium has ended.")
            self._rest += more
        one, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(one)
        return answer

    @contextlib.contextmanager
    def page(self) -> Iterator[Page]:
        """A page with a cache of its own, empty."""
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        target = self.ask("Target.createTarget", url="about:blank", browserContextId=context, **SIZE)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        yield Page(self, session)
        self.ask("Target.disposeBrowserContext", browserContextId=context)


class Page:
    """A tab."""

    def __init__(self, chromium: Chromium, session: str) -> None:
        self._chromium, self._session = chromium, session

    def go(self, address: str) -> None:
        """Begin to load an address."""
        self._chromium.ask("Page.navigate", self._session, url=address)

    def evaluate(self, script: str) -> Any:
        """What an expression gives, or the promise that it is."""
        asked = {"expression": script, "awaitPromise": True, "returnByValue": True}
        answer = self._chromium.ask("Runtime.evaluate", self._session, **asked)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")


@contextlib.contextmanager
def running(program: str) -> Iterator[Chromium]:
    """A browser with a profile of its own."""
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    fixed = [
        "--headless",
        "--no-sandbox",
        "--remote-debugging-pipe",
        "--no-first-run",
        "--disable-background-networking",
    ]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _AT_3_AND_4,
                f"{in_read}",
                f"{out_write}",
                program,
                *fixed,
                f"--user-data-dir={profile}",
            ],
            pass_fds=(in_read, out_write),
            stderr=subprocess.DEVNULL,
        )
        os.close(in_read)
        os.close(out_write)
        try:
            yield Chromium(out_read, in_write)
        finally:
            process.terminate()
            process.wait()
            os.close(in_write)
            os.close(out_read)
