"""What setup stages left, kept as long as the experiment's folder and config stay the same; the folder's copy."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.files import sync
from tvmdash.stages import SETUP_RETRY_FILE

COMPLETE = ".complete"
"""Written last: a folder without it is an interrupted setup and does not count."""
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc", ".git")


def fingerprint(code: Path, config: Mapping[str, Any]) -> str:
    """Twelve hex digits over the names, modes and contents below `code` and the config's values."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for path in _list_files(code):
        name = path.relative_to(code).as_posix()
        is_link = path.is_symlink() and not _leads_out(path, code)
        executable = bool((path.lstat() if is_link else path.stat()).st_mode & 0o100)
        content = os.readlink(path).encode() if is_link else path.read_bytes()
        digest.update(f"\0{name}\0{executable}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
    return digest.hexdigest()[:12]


def copy_code(folder: Path, destination: Path) -> None:
    """Copy a job's folder to `place`; shutil.Error or OSError where that cannot be.

    Links stay links, but a relative one to a file outside the folder, as those to shared/bash/stage.sh, would lead
    nowhere from there: the copy has the file itself.
    """
    shutil.copytree(folder, destination, symlinks=True, ignore=IGNORED)
    for path in _list_files(folder):
        if _leads_out(path, folder):
            copy = destination / path.relative_to(folder)
            copy.unlink()
            shutil.copy2(path, copy)


def _leads_out(path: Path, folder: Path) -> bool:
    """Whether `path` is a relative link to a file that is not in `folder`."""
    if not path.is_symlink() or os.path.isabs(os.readlink(path)) or not path.is_file():
        return False
    return not path.resolve().is_relative_to(folder.resolve())


def _list_files(code: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(code):
        folders[:] = sorted(set(folders) - {"__pycache__", ".git"})
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]
        for name in sorted([*files, *links]):
            if not name.endswith(".pyc"):
                yield Path(root, name)


def find(setup_dir: Path, experiment: str, key: str) -> Path | None:
    """The newest complete setup with this fingerprint; none where it asks to be run again."""
    markers = sorted((setup_dir / experiment).glob(f"{key}-*/{COMPLETE}"))
    return markers[-1].parent if markers and not (markers[-1].parent / SETUP_RETRY_FILE).exists() else None


def find_made(setup_dir: Path, experiment: str, key: str, stamp: str) -> Path | None:
    """The complete setup that this night made, also where it asks to be run again: by the next night."""
    setup = _place(setup_dir, experiment, key, stamp)
    return setup if (setup / COMPLETE).exists() else None


def _place(setup_dir: Path, experiment: str, key: str, stamp: str) -> Path:
    return setup_dir / experiment / f"{key}-{stamp}"


def stamp_of(setup: Path) -> str:
    """The night that a kept setup is of."""
    return setup.name.partition("-")[2]


def begin(setup_dir: Path, experiment: str, key: str, stamp: str) -> Path:
    """A new empty folder for a setup. It keeps this path, so that paths written into it stay right."""
    setup = _place(setup_dir, experiment, key, stamp)
    shutil.rmtree(setup, ignore_errors=True)
    setup.mkdir(parents=True)
    return setup


def finish(setup: Path) -> None:
    """Count the setup as complete and remove the experiment's older ones."""
    sync.sync_tree(setup)
    common.write_text(setup / COMPLETE, "")
    for other in setup.parent.iterdir():
        if other != setup:
            shutil.rmtree(other, ignore_errors=True)
