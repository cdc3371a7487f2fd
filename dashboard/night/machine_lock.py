"""One measurement at a time on a machine, whatever home and user it is for; the lock says who holds it.

It lies where all users of the machine can reach it, and is named by the machine's node: `TVMDASH_NODE`, Slurm's name of
the node, or the host name.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from tvmdash.common import stamp_of, utc_now
from tvmdash.dashboard_info import Home
from tvmdash.files import lock

NODE = "TVMDASH_NODE"
_SLURM_NODE = "SLURMD_NODENAME"
PATIENCE_S = 6 * 3600.0
"""How long a night waits for another home's."""
_FOLDERS = ("/run/lock", "/tmp")  # noqa: S108 - it holds no secret and every user must find it
_GLANCE_S = 0.2
_log = logging.getLogger("night")


def node() -> str:
    """What this machine is locked as."""
    return os.environ.get(NODE) or os.environ.get(_SLURM_NODE) or socket.gethostname() or "machine"


def hold(home: Home, patience_s: float) -> contextlib.AbstractContextManager[object] | None:
    """The machine, for whatever measures for `home`; None where others hold it for `patience_s`.

    While it waits, commands that let nights pass do not begin. OSError where the lock's file cannot be opened.
    """
    purpose = f"for {home.root}, since {stamp_of(utc_now())}"
    held = lock.take(_file("lock"), purpose, within_s=_GLANCE_S, everyone=True)
    if held is not None or patience_s <= 0:
        return held
    _log.info("Waiting: %s", describe_holder())
    end = time.monotonic() + patience_s
    with _wait_visibly():
        return lock.take(_file("lock"), purpose, within_s=end - time.monotonic(), everyone=True)


@contextlib.contextmanager
def _wait_visibly() -> Iterator[None]:
    with lock.take(_file("waiting"), shared=True, everyone=True) or contextlib.nullcontext():
        yield


def is_waited_for() -> bool:
    """Whether a night of some home waits for this machine."""
    asked = lock.take(_file("waiting"), everyone=True)
    if asked is None:
        return True
    asked.release()
    return False


def describe_holder() -> str:
    """Who measures on this machine now, as a sentence."""
    holder = lock.read_holder(_file("lock")) or "an unknown process"
    return f"another home is measuring on this machine ({node()}): {holder}."


def _file(what: str) -> Path:
    folder = next((name for name in _FOLDERS if os.access(name, os.W_OK | os.X_OK)), _FOLDERS[-1])
    return Path(folder) / f"tvm-dashboard.{re.sub(r'[^A-Za-z0-9._-]', '_', node())}.{what}"
