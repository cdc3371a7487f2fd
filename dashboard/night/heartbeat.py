"""Tell a dead man's switch that a night ended: who does not hear of it knows that the nightly did not run."""

from __future__ import annotations

import logging

_TIMEOUT_S = 10.0
_log = logging.getLogger("night")


def beat(url: str, *, success: bool) -> None:
    """Fetch `url`, after a failure with `/fail` behind it, as healthchecks.io understands. Never raises for the net."""
    if not url:
        return
    import requests

    address = url if success else f"{url.rstrip('/')}/fail"
    try:
        requests.get(address, timeout=_TIMEOUT_S).raise_for_status()
    except requests.RequestException as error:
        # Not the error's own words: they hold the address, and who knows that can answer in the night's stead.
        status = error.response.status_code if error.response is not None else type(error).__name__
        _log.warning("heartbeat_url: its host answered %s. The night itself is not affected.", status)
