"""A start that was refused: kept until a night begins, so that `watch` and `status` can tell it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common, structured
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.home_secrets import find_secrets_of_home
from tvmdash.redaction import redact
from tvmdash.structured import Stamp

_FILE = "refused_start.json"
_MAX_BYTES, _MAX_CHARS = 1 << 16, 4000
_log = logging.getLogger("night")


@dataclass(frozen=True)
class Refusal:
    """A night that could not begin at `at`."""

    at: Stamp
    reason: str


def keep(home: Home, reason: str) -> None:
    """Note that a night could not begin now. A folder that is no home is left as it is."""
    if not home.config_file.parent.is_dir():
        return
    refusal = Refusal(common.stamp_of(common.utc_now()), redact(reason, find_secrets_of_home(home))[:_MAX_CHARS])
    try:
        _find(home).parent.mkdir(exist_ok=True)
        common.write_json(_find(home), structured.to_json(refusal))
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
    try:
        return structured.read(Refusal, _find(home), max_bytes=_MAX_BYTES)
    except DashboardError:
        return None


def _find(home: Home) -> Path:
    return home.root / "results" / _FILE
