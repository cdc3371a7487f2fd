"""The abilities of one TVM build with a device, tested in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from dashboard.artifacts.artifact import Artifact, ArtifactError
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.proof import Check, read_answer
from dashboard.artifacts.runtimes import drivers, health
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
"""The way to get the driver of each kind of device."""


def list_driver_devices(kind: str) -> list[str] | None:
    """List the devices of that kind as the machine's own drivers name them; None where there is no driver."""
    argv = [sys.executable, str(drivers.__file__), kind]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=_DRIVER_S, check=True)
        listed = common.parse_json(done.stdout.strip().split(b"\n")[-1], kind)
    except (OSError, subprocess.SubprocessError, DashboardError):
        return None
    return [str(name) for name in listed] if isinstance(listed, list) else None


@dataclass(frozen=True)
class Abilities:
    """The abilities of a TVM build with a device.

    generates: it makes code for it. drives: it has a runtime for it. model, driver: of the device that the runtime
    sees, empty where it sees none. max_error: of an answer that it was asked for.
    """

    generates: bool
    drives: bool
    model: str
    driver: str
    max_error: float | None


def find_abilities(artifact: Artifact, kind: str, index: int, context: BuildContext, scratch: Path) -> Abilities:
    """Test the artifact on that device.

    ArtifactError where the process that finds out does not come to its end, or the device computes wrongly.
    """
    log = context.log_folder / f"device-{kind}-{index}-{artifact.version}.log"
    paths = artifact.import_path, artifact.loader_path
    check = Check(*paths, scratch, log, context.deadline, artifact.variables)
    tail = check.run([str(health.__file__), kind, str(index)])
    try:
        value = read_answer(tail, log)
        device = value["device"] or {}
        seen = str(device.get("model", "")), str(device.get("driver", ""))
        return Abilities(bool(value["generates"]), bool(value["drives"]), *seen, value["max_error"])
    except (DashboardError, KeyError, TypeError) as error:
        raise ArtifactError(f"the check wrote no readable result: {error} (log: {log})") from error
