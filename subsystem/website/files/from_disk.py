"""The data files once more as scripts, for pages opened from disk: a browser lets no page read the files themselves."""

from __future__ import annotations

from pathlib import Path

from files.incremental import IncrementalSite, fingerprint

_FOLDERS = ("columns/", "receipts/", "series/")


def write_scripts(carrier: IncrementalSite) -> None:
    """Beside each data file that pages read, a script of the same content."""
    sources = {name: made_from for name, (made_from, _) in carrier.files.items() if name.startswith(_FOLDERS)}
    years = [f"nights/{path.name}" for path in carrier.new.glob("nights/*.json")]
    sources |= {name: fingerprint((carrier.new / name).read_text("ascii")) for name in ("index.json", *years)}
    for name, made_from in sources.items():
        if name.endswith(".json") and not carrier.carry(_script_of(name), made_from):
            carrier.write(_script_of(name), _content(carrier.new, name), made_from)


def _script_of(name: str) -> str:
    return name.removesuffix(".json") + ".js"


def _content(site: Path, name: str) -> bytes:
    """JSON is an expression of JavaScript."""
    return b'(globalThis.tvmdashFiles ??= {})["%b"]=%b' % (name.encode("ascii"), (site / name).read_bytes())
