"""Whether this process runs in a container, and which image that is of.

The image's tag and hash are those of the variables TVMDASH_DOCKER_TAG and TVMDASH_DOCKER_HASH, of the file
/etc/tvmdash-image.json, or of what the engine leaves in the container, in this order: an image does not know its own
hash, so who starts the container says it (docs/how-to/install.md). Nothing is known of most: then they are null.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LABEL_FILE = "etc/tvmdash-image.json"
TAG, HASH = "TVMDASH_DOCKER_TAG", "TVMDASH_DOCKER_HASH"
_MARKS = {
    ".dockerenv": "docker",
    "run/.containerenv": "podman",
    ".singularity.d": "apptainer",
    "var/run/secrets/kubernetes.io": "kubernetes",
}
"""What engines leave in a container."""
_SYSTEMD = "run/systemd/container"
"""Where systemd notes the kind of the container that it runs in."""
_CGROUP = re.compile(r"/(docker|libpod|lxc|kubepods|crio|containerd)\b")
_MOST_BYTES = 1 << 16
_log = logging.getLogger("machine")


@dataclass(frozen=True)
class Container:
    """`kind` as in docker; tag and image_hash where they are known."""

    kind: str
    tag: str | None = None
    image_hash: str | None = None


def find_container(environment: Mapping[str, str], root: Path = Path("/")) -> Container | None:
    """The container of the system whose files lie in `root`; None where nothing tells of one."""
    said, left = _read_label(root / LABEL_FILE), _read_left(root / "run/.containerenv")
    tag = environment.get(TAG) or said.get("tag") or left.get("image")
    image_hash = environment.get(HASH) or said.get("hash") or left.get("imageid")
    kind = _find_kind(root) or ("unknown" if tag or image_hash else "")
    return Container(kind, tag or None, image_hash or None) if kind else None


def _find_kind(root: Path) -> str:
    marked = next((kind for mark, kind in _MARKS.items() if (root / mark).exists()), "")
    if marked:
        return marked
    named = _CGROUP.search(_read(root / "proc/1/cgroup"))
    return _read(root / _SYSTEMD).strip() or (named[1] if named else "")


def _read_label(path: Path) -> dict[str, str]:
    try:
        value = json.loads(_read(path) or "{}")
    except ValueError as error:
        _log.warning("%s: not JSON, so the container image is unknown: %s", path, error)
        return {}
    return {name: item for name, item in value.items() if isinstance(item, str)} if isinstance(value, dict) else {}


def _read_left(path: Path) -> dict[str, str]:
    """What podman leaves: `image="debian:12"` and the like, a line each; in some containers nothing."""
    return dict(re.findall(r'^(\w+)="([^"\n]*)"$', _read(path), re.MULTILINE))


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return ""
