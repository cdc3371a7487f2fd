"""`python3 -m tvmdash.traces VERB ...` is `python3 -m tvmtraces`, which then reads a home's files and has `diff`."""

import sys

from tvmdash.traces.diff import DIFF
from tvmtraces.__main__ import main
from tvmtraces.commands import COMMANDS

__all__ = ["main"]

COMMANDS["diff"] = DIFF

if __name__ == "__main__":
    sys.exit(main())
