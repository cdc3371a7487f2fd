"""Which commit of this repository runs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any


def describe(folder: Path) -> dict[str, Any]:
    """`commit` and `dirty` (whether tracked or new files differ from it); both None outside a git checkout."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(_git(folder, "status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return {"commit": None, "dirty": None}


def _git(folder: Path, *arguments: str) -> str:
    argv = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    return done.stdout.strip()
