"""Results of setup stages, kept while the experiment's folder and config stay the same; and copies of that folder."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common.files import sync, trees
from tvmdash.common.files.trees import TreeEntry
from tvmdash.dashboard_info.stages import SETUP_RETRY_FILE

COMPLETE = ".complete"
"""Written last: a folder without it is an interrupted setup and does not count."""


def fingerprint(code: Path, config: Mapping[str, Any]) -> str:
    """Twelve hex digits over the names, modes and contents below `code` and the config's values."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for entry in common.walk_whole(code, leaves_out=_is_left_out).entries:
        if entry.is_folder:
            continue
        outside = _find_outside(code, entry)
        status = outside.stat() if outside else entry.status
        size_bytes = len(os.fsencode(entry.target)) if entry.is_link and not outside else status.st_size
        head = f"\0{entry.path}\0{bool(status.st_mode & 0o100)}\0{size_bytes}\0"
        digest.update(head.encode("utf-8", "surrogateescape"))
        if entry.is_link and not outside:
            digest.update(os.fsencode(entry.target))
            continue
        for piece in trees.read_pieces(*(outside.parent, outside.name) if outside else (code, entry.path)):
            digest.update(piece)
    return digest.hexdigest()[:12]


def copy_code(folder: Path, destination: Path) -> None:
    """Copy a job's folder to `destination`; DashboardError or OSError where that cannot be.

    Links stay links, but a relative one to a file outside the folder, as those to shared/bash/stage.sh, would lead
    nowhere from there: the copy has the file itself.
    """
    common.copy_tree(folder, destination, leaves_out=_is_left_out)
    for entry in common.walk_whole(folder, leaves_out=_is_left_out).entries:
        if outside := _find_outside(folder, entry):
            copy = destination / entry.path
            copy.unlink()
            shutil.copy2(outside, copy)


def _is_left_out(entry: TreeEntry) -> bool:
    return entry.name in {"__pycache__", ".git"} or entry.name.endswith(".pyc")


def _find_outside(folder: Path, entry: TreeEntry) -> Path | None:
    """Find the file outside `folder` to which a relative link in it leads; None for anything else."""
    if not entry.is_link or os.path.isabs(entry.target):
        return None
    target = trees.find_target(folder, entry.path)
    if target is None or not target.is_file() or target.is_relative_to(os.path.realpath(folder)):
        return None
    return target


def find(setup_dir: Path, experiment: str, key: str) -> Path | None:
    """Find the newest complete setup with this fingerprint; None where it asks to be run again."""
    markers = sorted((setup_dir / experiment).glob(f"{key}-*/{COMPLETE}"))
    return markers[-1].parent if markers and not (markers[-1].parent / SETUP_RETRY_FILE).exists() else None


def find_made(setup_dir: Path, experiment: str, key: str, stamp: str) -> Path | None:
    """Find the complete setup of this night, also one that asks to be run again: by the next night."""
    setup = _place(setup_dir, experiment, key, stamp)
    return setup if (setup / COMPLETE).exists() else None


def _place(setup_dir: Path, experiment: str, key: str, stamp: str) -> Path:
    return setup_dir / experiment / f"{key}-{stamp}"


def stamp_of(setup: Path) -> str:
    """Return the night that a kept setup is of."""
    return setup.name.partition("-")[2]


def begin(setup_dir: Path, experiment: str, key: str, stamp: str) -> Path:
    """Make an empty folder for a setup. It keeps this path, so that paths written into it stay right."""
    setup = _place(setup_dir, experiment, key, stamp)
    trees.remove(setup)
    setup.mkdir(parents=True)
    return setup


def finish(setup: Path) -> None:
    """Count the setup as complete and remove the experiment's older ones."""
    # The marker comes after the content is on disk: a power cut must not leave a complete setup without files.
    sync.sync_tree(setup)
    common.write_text(setup / COMPLETE, "")
    for other in setup.parent.iterdir():
        if other != setup:
            trees.remove(other)
