"""`python3 -m tvmtraces VERB ...` (docs/reference/traces.md). Exit codes: 0, 1 a fault, 2 usage, 130 stopped."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from tvmdash.errors import DashboardError
from tvmdash.text import exact_output, plain_output
from tvmtraces.commands import COMMANDS

_NEWS_EVERY_S = 0.2
_FOR_PROGRAMS = ("csv", "json")
"""Formats that keep every character of the data when written to a file or a pipe."""


class _Notices:
    """Progress on a terminal, on one line; silence elsewhere and in short work."""

    def __init__(self) -> None:
        self._stream = exact_output(sys.stderr)
        self._shown = self._stream.isatty()
        self._next = time.monotonic() + _NEWS_EVERY_S
        self._width = 0

    def __call__(self, what: str, done: int, of: int) -> None:
        now = time.monotonic()
        if self._shown and now >= self._next:
            self._next = now + _NEWS_EVERY_S
            self._put(f"{what} {done} of {of}")

    def _put(self, line: str) -> None:
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = len(line)

    def end(self) -> None:
        if self._width:
            self._put("")
            self._stream.write("\r")


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="traces", description="Query traces in SQL.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, command in COMMANDS.items():
        command.arguments(verbs.add_parser(name, help=command.about, description=command.about))
    return parser


@plain_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the verb and return the exit code."""
    options = _make_parser().parse_args(arguments)
    news = _Notices()
    try:
        text = COMMANDS[options.verb].work(options, news)
        news.end()
        is_for_programs = getattr(options, "format", "") in _FOR_PROGRAMS and not sys.stdout.isatty()
        (exact_output(sys.stdout) if is_for_programs else sys.stdout).write(text)
        sys.stdout.flush()
    except DashboardError as error:
        news.end()
        sys.stderr.write(f"{error}\n")
        return 1
    except BrokenPipeError:  # the reader, as in `| head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        news.end()
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
