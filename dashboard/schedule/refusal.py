"""A start that was refused: kept until a night begins, so that `watch` and `status` can tell it.

The note is a text, as the shell scripts that start a night leave one too: its first line is the moment, the rest why.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.home_secrets import find_secrets_of_home
from tvmdash.redaction import redact

_FILE = "refused_start.txt"
_MAX_CHARS = 4000
_log = logging.getLogger("night")


@dataclass(frozen=True)
class Refusal:
    """A night that could not begin at the stamp `at`."""

    at: str
    reason: str


def keep(home: Home, reason: str) -> None:
    """Note that a night could not begin now. A folder that is no home is left as it is."""
    if not home.config_file.parent.is_dir():
        return
    why = redact(reason, find_secrets_of_home(home))[:_MAX_CHARS]
    try:
        _find(home).parent.mkdir(exist_ok=True)
        common.write_text(_find(home), f"{common.stamp_of(common.utc_now())}\n{why}\n")
    except OSError as error:
        _log.warning("%s: could not note that the night did not begin: %s", _find(home), error.strerror)


def clear(home: Home) -> None:
    """A night has begun."""
    try:
        _find(home).unlink(missing_ok=True)
    except OSError as error:
        _log.warning("%s: could not be removed: %s", _find(home), error.strerror)


def read(home: Home) -> Refusal | None:
    """The last refused start since a night began. A damaged note is none."""
    path = _find(home)
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", errors="replace") as file:
        stamp, _, why = file.read(_MAX_CHARS).partition("\n")
    if not common.is_stamp(stamp) or not why.strip():
        return None
    return Refusal(stamp, redact(" ".join(why.split()), find_secrets_of_home(home)))


def _find(home: Home) -> Path:
    return home.root / "results" / _FILE
