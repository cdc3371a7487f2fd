"""A start that an error ended: kept until a night begins, so that `watch`, `status`, `check` and `doctor` can tell it.

The note is a text, as the shell scripts that start a night leave one too: its first line is the moment and, where the
start was not just refused, how it ended; the rest why.
"""

from __future__ import annotations

import enum
import logging
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.dashboard_info.home_secrets import find_secrets_of_home
from tvmdash.redaction import redact

_FILE = "refused_start.txt"
_MAX_CHARS = 4000
_log = logging.getLogger("night")


class Ending(enum.StrEnum):
    """The manner in which a start ended."""

    REFUSED = "refused"
    """No night began."""
    FAILED = "failed"
    """An error ended the night."""
    CRASHED = "crashed"
    """A bug of the dashboard did, whether the night had begun or not."""


_WORDS = {
    Ending.REFUSED: "was refused",
    Ending.FAILED: "ended with an error",
    Ending.CRASHED: "ended with an internal error, a bug in the dashboard",
}


@dataclass(frozen=True)
class Refusal:
    """A start at the stamp `at` of which no complete night came."""

    at: str
    reason: str
    ending: Ending = Ending.REFUSED

    def __str__(self) -> str:
        return f"The start at {common.format_moment(self.at)} {_WORDS[self.ending]}: {self.reason}"


def keep(home: Home, reason: str, ending: Ending = Ending.REFUSED) -> None:
    """Note how a start ended now. A folder that is no home is left as it is."""
    if not home.config_file.parent.is_dir():
        return
    why = redact(reason, find_secrets_of_home(home))[:_MAX_CHARS]
    try:
        _find(home).parent.mkdir(exist_ok=True)
        common.write_text(_find(home), f"{common.stamp_of(common.utc_now())} {ending}\n{why}\n")
    except OSError as error:
        _log.warning("%s: could not note how the start ended: %s", _find(home), error.strerror)


def clear(home: Home) -> None:
    """Forget the last refusal, because a night has begun."""
    try:
        _find(home).unlink(missing_ok=True)
    except OSError as error:
        _log.warning("%s: could not be removed: %s", _find(home), error.strerror)


def read(home: Home) -> Refusal | None:
    """Read the last start that an error ended, since a night began; None for a damaged note."""
    path = _find(home)
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", errors="replace") as file:
        first, _, why = file.read(_MAX_CHARS).partition("\n")
    stamp, _, ending = first.partition(" ")
    if not common.is_stamp(stamp) or not why.strip() or (ending and ending not in set(Ending)):
        return None
    why = redact(" ".join(why.split()), find_secrets_of_home(home))
    return Refusal(stamp, why, Ending(ending or Ending.REFUSED))


def _find(home: Home) -> Path:
    return home.root / "results" / _FILE
