"""The circumstances under which an artifact is made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dashboard.artifacts.locks import LockDeadline
from dashboard.process.sandbox import Guest


@dataclass(frozen=True)
class BuildContext:
    """The folder where artifacts stand, where the logs of making one go, and the moment by which it has to be done.

    What helps a provider the next time (mirrors, caches, tools) lies in folders of `folder` that begin with a dot.
    guest: how what is built is built and proved where its code is not trusted.
    """

    folder: Path
    log_folder: Path
    deadline: LockDeadline
    guest: Guest | None = None
