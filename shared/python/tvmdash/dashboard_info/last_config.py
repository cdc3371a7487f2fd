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
    """Keep the config of a night that begins, for its owner's eyes alone. OSError where it cannot be written."""
    common.write_bytes(_find(home), home.config_file.read_bytes(), mode=0o600)


def read_config(home: Home) -> common.Json:
    """The config, whatever faults its fields have; where it is no JSON, as the last night had it.

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
    """As the last night had it; None where no night kept it."""
    with contextlib.suppress(DashboardError):
        return common.read_json(_find(home), max_bytes=_MAX_BYTES)
    return None


def _find(home: Home) -> Path:
    return home.root / _FILE
