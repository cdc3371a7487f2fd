"""The top-level config as the last night had it: by it people are told that the config cannot be read any more.

It lies beside the results, as it may hold addresses that are in no result.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

_FILE = ".last_config.json"
_MAX_BYTES = 1 << 20


def keep(home: Home) -> None:
    """Copy the config of a night that begins, readable by its owner alone. OSError where it cannot be written."""
    common.write_bytes(_find(home), home.config_file.read_bytes(), mode=0o600)


def read_config(home: Home) -> common.Json:
    """Read the config, valid or not; where it is no JSON, the last night's copy.

    DashboardError where neither can be read.
    """
    try:
        return common.read_json(home.config_file)
    except DashboardError:
        kept = read(home)
        if kept is None:
            raise
        return kept


def read(home: Home) -> common.Json | None:
    """Return the last night's copy, or None."""
    with contextlib.suppress(DashboardError):
        return common.read_json(_find(home), max_bytes=_MAX_BYTES)
    return None


def _find(home: Home) -> Path:
    return home.root / _FILE
