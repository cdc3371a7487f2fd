"""`python3 -m tvmdash.traces VERB ...` is `python3 -m tvmtraces`, which then reads what a home keeps as well."""

import sys

import tvmdash.traces  # noqa: F401 - it knows a home's files
from tvmtraces.__main__ import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
