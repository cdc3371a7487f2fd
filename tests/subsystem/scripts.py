"""The code of a subsystem's folder, imported as its script imports it: its own files by their bare names."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

REPO = Path(__file__).resolve().parents[2]


def load(subsystem: str) -> ModuleType:
    """The main module of a subsystem, under a name of its own; its siblings are seen by nobody else afterwards."""
    folder = REPO / "subsystem" / subsystem
    name = f"subsystem_{subsystem}"
    spec = importlib.util.spec_from_file_location(name, folder / f"{subsystem}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    siblings = [path.stem for path in folder.glob("*.py")]
    hidden = {sibling: sys.modules.pop(sibling) for sibling in siblings if sibling in sys.modules}
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
        for sibling in siblings:
            sys.modules.pop(sibling, None)
        sys.modules.update(hidden)
    return module
