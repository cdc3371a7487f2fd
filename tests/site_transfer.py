"""What a browser is sent before a page of the site can work."""

from __future__ import annotations

import gzip
import re
from pathlib import Path


def sent(path: Path) -> int:
    """Bytes, gzipped."""
    return len(gzip.compress(path.read_bytes(), 6))


def with_imports(site: Path, page: str) -> set[Path]:
    """A page with its style sheets, its scripts, its modules and whatever these import before they can start."""
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    named = re.findall(r'(?:<script[^>]* src|<link rel="stylesheet" href)="([^"]+)"', text)
    modules = [f"js/{name}.js" for name in ("app", page) if (site / "js" / f"{name}.js").is_file()]
    found: set[Path] = set()
    waiting = [site / name for name in (*named, *modules)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            if path.suffix == ".js" and "vendor" not in path.parts:
                names = re.findall(r'^(?:import|export)\b[^;"]*"(\.[^"]+)"', path.read_text("utf-8"), re.MULTILINE)
                waiting += [(path.parent / name).resolve() for name in names]
    return {site / f"{page}.html", *found}
