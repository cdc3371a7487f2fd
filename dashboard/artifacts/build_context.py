"""Where and by when an artifact is made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dashboard.artifacts.locks import Deadline


@dataclass(frozen=True)
class BuildContext:
    """The folder where artifacts stand, where the logs of making one go, and the moment by which it has to be done.

    What helps a provider the next time (mirrors, caches, tools) lies in folders of `folder` that begin with a dot.
    """

    folder: Path
    log_folder: Path
    deadline: Deadline
