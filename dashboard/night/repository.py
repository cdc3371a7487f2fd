"""The version and commit of the dashboard that runs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from tvmdash import __version__


def describe(folder: Path) -> dict[str, Any]:
    """Return `version`; and `commit` and `dirty`, which are None where git does not know `folder`."""
    try:
        # An installed copy may lie inside somebody's checkout, whose commit is not ours.
        _git(folder, "ls-files", "--error-unmatch", "dashboard/__init__.py")
        commit: str | None = _git(folder, "rev-parse", "HEAD")
        dirty: bool | None = bool(_git(folder, "status", "--porcelain"))
    except (OSError, subprocess.SubprocessError):
        commit = dirty = None
    return {"version": __version__, "commit": commit, "dirty": dirty}


def _git(folder: Path, *arguments: str) -> str:
    argv = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    return done.stdout.strip()
