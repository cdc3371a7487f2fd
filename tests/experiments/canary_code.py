"""The canary's modules, imported as its script imports them, and seen by nobody else afterwards."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "canary"


def load() -> SimpleNamespace:
    """Its modules by their names."""
    names = sorted(path.stem for path in FOLDER.glob("*.py"))
    hidden = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path.insert(0, str(FOLDER))
    try:
        return SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    finally:
        sys.path.remove(str(FOLDER))
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)
