"""The secrets that a home's configs and this process's environment name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from tvmdash import common, config_util
from tvmdash.common.files import trees
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.redaction import known_secrets

_MAX_BYTES = 4 << 20


def find_secrets_of_home(home: Home) -> tuple[str, ...]:
    """Return the values to hide, as `redaction.redact` takes them; an unreadable config names none."""
    return known_secrets(os.environ, *_read_configs(home))


def _read_configs(home: Home) -> Iterator[Mapping[str, Any]]:
    folder = home.config_file.parent
    for entry in trees.walk(folder).entries:
        path = folder / entry.path
        if entry.name != config_util.CONFIG_FILE:
            continue
        with contextlib.suppress(DashboardError):
            value = common.read_json(path, max_bytes=_MAX_BYTES)
            if isinstance(value, dict):
                yield value
