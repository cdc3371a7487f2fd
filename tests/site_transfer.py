"""What a browser is sent before a page of the site can work."""

from __future__ import annotations

import gzip
import re
from pathlib import Path


def sent(path: Path) -> int:
    """Bytes, gzipped."""
    return len(gzip.compress(path.read_bytes(), 6))


def with_imports(site: Path, page: str) -> set[Path]:
    """A page with its style sheets, scripts, modules and whatever these import, also once the chart is there."""
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    named = re.findall(r'(?:<script[^>]* src|<link rel="stylesheet" href)="([^"]+)"', text)
    modules = [
        f"js/{name}.js"
        for name in ("app", f"{page}/{page}", f"{page}/around")
        if (site / "js" / f"{name}.js").is_file()
    ]
    found: set[Path] = set()
    waiting = [site / name for name in (*named, *modules)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            if path.suffix == ".js" and "vendor" not in path.parts:
                script = path.read_text("utf-8")
                names = re.findall(r'^(?:import|export)\b[^;"]*"(\.[^"]+)"', script, re.MULTILINE)
                waiting += [(path.parent / name).resolve() for name in names]
                waiting += [
                    site / name for name in re.findall(r'^const \w+ = "(vendor/[^"]+)";$', script, re.MULTILINE)
                ]
    return {site / f"{page}.html", *found}
