"""What a browser is sent before a page of the site can work."""

from __future__ import annotations

import gzip
import re
from pathlib import Path


def sent(path: Path) -> int:
    """Bytes, gzipped."""
    return len(gzip.compress(path.read_bytes(), 6))


def with_imports(site: Path, page: str) -> set[Path]:
    """A page with its style sheets and scripts, also those that it asks for once the chart is there."""
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    named = re.findall(r'(?:<script[^>]* src|<link rel="stylesheet" href)="([^"]+)"', text)
    later = [f"js/{page}/around.js", "vendor/uplot/uPlot.iife.min.js"] if page == "explore" else []
    return {site / name for name in (f"{page}.html", *named, *later)}
