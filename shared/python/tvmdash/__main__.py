"""The command `tvmdash`: the library's tools, without the application."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from tvmdash import __version__
from tvmdash.text import plain_output

_COMMANDS = {"traces": "tvmdash.traces.__main__", "records": "tvmdash.records.exchange.__main__"}
"""The module behind each command, imported when called; its `main` takes the remaining arguments."""


@plain_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named command and return its exit code."""
    parser = argparse.ArgumentParser(prog="tvmdash", description="Query measurements in SQL, and exchange records.")
    parser.add_argument("--version", action="version", version=f"tvmdash {__version__}")
    parser.add_argument("command", choices=_COMMANDS, help="`tvmdash COMMAND --help` lists its options")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="arguments of the command")
    parsed = parser.parse_args(arguments)
    code: int = importlib.import_module(_COMMANDS[parsed.command]).main(parsed.rest)
    return code


if __name__ == "__main__":
    sys.exit(main())
