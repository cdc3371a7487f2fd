"""`python3 -m tvmdash.slack_util check HOME`: a test message, and what is wrong where it does not arrive."""

from __future__ import annotations

import sys

from tvmdash.slack_util import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
