"""Loads the simulator and its description from where VTA's own package looks for them."""

import ctypes
import json
from pathlib import Path

_TREE = Path(__file__).parents[3]
CONFIG = json.loads((_TREE / "3rdparty" / "vta-hw" / "config" / "vta_config.json").read_text(encoding="utf-8"))
LIBRARY = ctypes.CDLL(str(_TREE / "build" / "libvta_fsim.so"))
