"""Asks this machine's drivers for their devices, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from types import MappingProxyType

from dashboard.artifacts.runtimes import drivers
from tvmdash import common
from tvmdash.errors import DashboardError

_DRIVER_S = 60.0
DRIVERS: Mapping[str, str] = MappingProxyType(
    {
        "opencl": "Debian, Ubuntu: apt install pocl-opencl-icd git g++ opencl-headers ocl-icd-opencl-dev; for a GPU "
        "use the vendor's driver instead of pocl-opencl-icd",
        "cuda": "NVIDIA's driver; Debian: apt install nvidia-driver, Ubuntu: ubuntu-drivers install",
        "rocm": "AMD's ROCm: apt install rocm from AMD's repository",
        "vulkan": "Debian, Ubuntu: apt install libvulkan1 mesa-vulkan-drivers",
        "metal": "available on macOS only",
    }
)
"""Where the driver of each kind of device comes from."""


def list_driver_devices(kind: str) -> list[str] | None:
    """The devices of that kind as the machine's own drivers name them; None where there is no driver."""
    argv = [sys.executable, str(drivers.__file__), kind]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=_DRIVER_S, check=True)
        listed = common.parse_json(done.stdout.strip().split(b"\n")[-1], kind)
    except (OSError, subprocess.SubprocessError, DashboardError):
        return None
    return [str(name) for name in listed] if isinstance(listed, list) else None
