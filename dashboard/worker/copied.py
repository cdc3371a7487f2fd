"""A TVM that came from the home as it is there: proved on this machine before it counts as one."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from dashboard.artifacts import artifact_store, proof
from dashboard.artifacts.artifact import LAST_USED, MANIFEST, Artifact, ArtifactError, read_artifact
from dashboard.artifacts.locks import Deadline
from dashboard.worker.unpacking import unpack

_CHUNK = 1 << 20
_WITHIN_S = 600.0
_ROOM = 2.2
"""What a copy takes while it is unpacked, in its own size."""


def list_lacking(offered: Mapping[str, int], folder: Path) -> Iterator[tuple[str, str]]:
    """Those that are not in the artifacts' `folder`, each with why it cannot be copied, which is mostly empty."""
    folder.mkdir(parents=True, exist_ok=True)
    for key, size_bytes in offered.items():
        with contextlib.suppress(ArtifactError):
            read_artifact(folder / key)
            continue
        free, wanted = shutil.disk_usage(folder).free, round(size_bytes * _ROOM)
        yield key, f"{folder} has {free >> 20} MB free, but the copy needs {wanted >> 20} MB." if free < wanted else ""


def hash_content(content: IO[bytes]) -> str:
    """The SHA-256 of all of it, in hexadecimal."""
    digest = hashlib.sha256()
    content.seek(0)
    while chunk := content.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def take_in(key: str, content: IO[bytes], folder: Path, log: Path) -> None:
    """Unpack the copy, prove it and put it into the artifacts' `folder`; ArtifactError where it is not healthy here."""
    deadline = Deadline(_WITHIN_S)
    content.seek(0)
    with artifact_store.claim(folder, key, deadline), artifact_store.workplace(folder, key) as place:
        unpack(content, place)
        if not (place / key / MANIFEST).is_file():
            raise ArtifactError(f"{key}: the archive from the home does not contain this TVM.")
        copy = read_artifact(place / key)
        _prove(copy, place / "scratch", log, deadline)
        (copy.path / LAST_USED).touch()
        artifact_store.put(copy.path, folder, key, deadline)


def _prove(copy: Artifact, scratch: Path, log: Path, deadline: Deadline) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    healthy = proof.prove(copy.pythonpath, copy.library_path, scratch=scratch, log=log, deadline=deadline)
    if healthy.commit and copy.commit and not copy.commit.startswith(healthy.commit):
        raise ArtifactError(f"{copy.key}: was built from commit {healthy.commit}, but its manifest says {copy.commit}.")
