"""Data files as scripts, for pages opened from disk: a browser lets no page read a file of data."""

from __future__ import annotations

from files.incremental import IncrementalSite, fingerprint
from tvmdash.dashboard_info.pages import as_script

_FOLDERS = ("nights/", "receipts/")


def write_scripts(carrier: IncrementalSite) -> None:
    """Beside each data file that pages read, a script of the same content."""
    sources = {name: made_from for name, (made_from, _) in carrier.files.items() if name.startswith(_FOLDERS)}
    sources["index.json"] = fingerprint((carrier.new / "index.json").read_text("ascii"))
    for name, made_from in sources.items():
        if name.endswith(".json") and not carrier.carry(_script_of(name), made_from):
            content = as_script(name, (carrier.new / name).read_bytes().rstrip(b"\n"))
            carrier.write(_script_of(name), content, made_from)


def _script_of(name: str) -> str:
    return name.removesuffix(".json") + ".js"
