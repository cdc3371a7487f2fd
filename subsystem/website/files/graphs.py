"""The graphs that an experiment left: found, described in words, copied into the site."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from files.files import carry_over, regular_file_bytes
from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.text import elide, format_bytes

SUFFIXES = (".svg", ".png")
MAX_GRAPHS = 100
MAX_BYTES = 8 << 20
_PNG = b"\x89PNG\r\n\x1a\n"
_POINTS = re.compile(rb'<svg[^>]* width="(\d{1,5}(?:\.\d+)?)pt" height="(\d{1,5}(?:\.\d+)?)pt"')
_DESCRIBED = re.compile(r"<svg[^>]*>\s*<title>(.*?)</title>\s*(?:<desc>(.*?)</desc>)?", re.DOTALL)


@dataclass(frozen=True)
class SiteGraph:
    """A picture in the site: `src` relative to the site's root, its content in words.

    `name` is its file's for people, empty where it has a title of its own. `size` is its width and height in CSS
    pixels, where it says them.
    """

    src: str
    name: str
    alt: str
    size: tuple[int, int] | None


@dataclass(frozen=True)
class SiteGraphs:
    """The graphs of one experiment, and what of them is not shown, in words."""

    shown: tuple[SiteGraph, ...]
    left_out: tuple[str, ...]


def take(folder: Path, site: Path, experiment: str, old: Path) -> SiteGraphs:
    """Copy the pictures below `folder` into `site`; whatever is no picture, or a link to elsewhere, stays out.

    What the site `old` has already is carried over.
    """
    shown: list[SiteGraph] = []
    left_out: list[str] = []
    for path in sorted(_pictures(folder), key=lambda path: (path.stem != "tonight", str(path))):
        name = str(path.relative_to(folder).with_suffix(""))
        size = path.stat().st_size
        if size > MAX_BYTES:
            left_out.append(
                f"{elide(path.name, 80)} is not shown because {format_bytes(size)} is too large for a page."
            )
        elif len(shown) < MAX_GRAPHS:
            src = f"graphs/{common.safe_name(experiment)}/{common.safe_name(name)}{path.suffix.lower()}"
            place_picture(path, site / src, old / src)
            shown.append(described(path, src, name))
        else:
            left_out.append(f"{elide(path.name, 80)} is not shown because a page shows at most {MAX_GRAPHS} graphs.")
    return SiteGraphs(tuple(shown), tuple(left_out))


def described(path: Path, src: str, name: str) -> SiteGraph:
    """Describe the graph in `path`, as the site shows it under `src`."""
    head = _head(path)
    own = _DESCRIBED.search(head.decode("utf-8", errors="replace"))
    text = elide(html.unescape(own[2] or own[1]), 1000) if own else f"Graph {elide(name, 100)}"
    return SiteGraph(src, "" if own else name.replace("_", " "), text, _size(head))


def place_picture(path: Path, target: Path, old: Path) -> None:
    """Have the picture `path` at `target` too; from `old`, where that is the same file by size and time."""
    there, known = path.stat(), old.stat() if old.is_file() else None
    target.parent.mkdir(parents=True, exist_ok=True)
    if known and (known.st_size, known.st_mtime_ns) == (there.st_size, there.st_mtime_ns):
        carry_over(old, target)
        return
    target.unlink(missing_ok=True)  # another page may have put it there, as a name of a file of the old site
    shutil.copy2(path, target)


def take_picture(path: Path, name: str, site: Path, old: Path) -> SiteGraph | None:
    """Put a subsystem's picture into `site`; None where it is no picture, a link, or too large."""
    size = regular_file_bytes(path)
    if path.suffix.lower() not in SUFFIXES or size is None or size > MAX_BYTES:
        return None
    src = f"graphs/{name}/{common.safe_name(path.stem)}{path.suffix.lower()}"
    place_picture(path, site / src, old / src)
    return described(path, src, path.stem)


def _pictures(folder: Path) -> Iterator[Path]:
    for entry in trees.walk(folder).files:
        if entry.path.lower().endswith(SUFFIXES) and entry.status.st_size:
            yield folder / entry.path


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(64 << 10)


def _size(head: bytes) -> tuple[int, int] | None:
    if head.startswith(_PNG):
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    match = _POINTS.search(head)
    # matplotlib writes points, of which CSS has 72 to 96 pixels
    return (round(float(match[1]) * 4 / 3), round(float(match[2]) * 4 / 3)) if match else None
