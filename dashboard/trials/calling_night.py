"""The night that a process is a part of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from dashboard.night import lock
from tvmdash import common
from tvmdash.dashboard_info import Home


def find_calling_night(home: Home) -> str | None:
    """The stamp of the home's running night that this process is a part of; None where it is part of none.

    It is part of one where its environment says so and an ancestor of it holds the home's lock.
    """
    stamp, named = os.environ.get("TVMDASH_NIGHT", ""), os.environ.get("TVMDASH_HOME", "")
    if not common.is_stamp(stamp) or not named or Path(named).resolve() != home.root.resolve():
        return None
    holder = lock.read_holder_pid(home) if lock.is_held(home) else None
    return stamp if holder is not None and holder in _list_ancestors() else None


def _list_ancestors() -> Iterator[int]:
    pid = os.getppid()
    while pid > 1:
        yield pid
        try:
            status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        pid = int(status.rpartition(")")[2].split()[1])
    yield pid
