"""`python3 -m tvmdash.incidents HOME list|show|ack|...`: see `command`."""

from __future__ import annotations

import sys

from tvmdash.incidents.command import main

if __name__ == "__main__":
    sys.exit(main())
