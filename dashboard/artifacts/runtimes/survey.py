"""What this machine's drivers and a TVM can do with a device, and the command that installs what lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from dashboard.artifacts.artifact import RUNTIMES, Artifact, ArtifactError
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.locks import Deadline
from dashboard.artifacts.runtimes import drivers
from dashboard.artifacts.runtimes.abilities import find_abilities
from dashboard.artifacts.runtimes.making import check_offered
from dashboard.artifacts.runtimes.recipes import RECIPES
from dashboard.artifacts.runtimes.runtimes import find_lacking
from dashboard.artifacts.spec import WHEEL
from tvmdash import common
from tvmdash.errors import DashboardError

_DRIVER_S, _TVM_S = 60.0, 300.0
DRIVERS: Mapping[str, str] = MappingProxyType(
    {
        "opencl": "Debian, Ubuntu: apt install pocl-opencl-icd, for the processor; a GPU has its maker's",
        "cuda": "NVIDIA's driver; Debian: apt install nvidia-driver, Ubuntu: ubuntu-drivers install",
        "rocm": "AMD's ROCm: apt install rocm from AMD's repository",
        "vulkan": "Debian, Ubuntu: apt install libvulkan1 mesa-vulkan-drivers",
        "metal": "only macOS has it",
    }
)
"""Where the driver of each kind of device comes from."""


@dataclass(frozen=True)
class Finding:
    """What was found about one device, in a sentence. is_fault: its points would fail."""

    text: str
    is_fault: bool = False


def survey(kind: str, index: int, artifact: Artifact | None, source: str) -> Finding:
    """What can be done with that device of this machine; artifact: the TVM that the home has by now, where it has one.

    source: the git remote that the runtime which a wheel lacks is built from.
    """
    seen = list_driver_devices(kind)
    if not seen:
        what = "no driver for it is here" if seen is None else "its driver shows no device"
        return Finding(f"{what} ({DRIVERS[kind]}).", is_fault=True)
    if index >= len(seen):
        return Finding(f"its driver shows {len(seen)}: {', '.join(seen)}; the first has number 0.", is_fault=True)
    driver = f"the driver shows {seen[index]}"
    if artifact is None:
        return Finding(f"{driver}; the first night says what its TVM can do.")
    if find_lacking(artifact, [kind]):
        return _describe_build(kind, driver, artifact, source)
    return _ask_tvm(kind, index, driver, artifact)


def list_driver_devices(kind: str) -> list[str] | None:
    """The devices of that kind as the machine's own drivers name them; None where there is no driver."""
    argv = [sys.executable, str(drivers.__file__), kind]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=_DRIVER_S, check=True)
        listed = common.parse_json(done.stdout.strip().split(b"\n")[-1], kind)
    except (OSError, subprocess.SubprocessError, DashboardError):
        return None
    return [str(name) for name in listed] if isinstance(listed, list) else None


def _describe_build(kind: str, driver: str, artifact: Artifact, source: str) -> Finding:
    recipe = RECIPES[kind]
    missing = [name for name in ("git", "c++") if shutil.which(name) is None]
    if not missing and not _has_headers(recipe.header, recipe.libraries):
        missing = ["headers or library"]
    if missing:
        text = f"TVM {artifact.version} has no runtime for it, and {', '.join(missing)} to build one are not here"
        return Finding(f"{driver}; {text} (Debian, Ubuntu: {recipe.install}).", is_fault=True)
    try:
        check_offered(source, artifact.version)
    except ArtifactError as error:
        return Finding(
            f"{driver}; TVM {artifact.version} has no runtime for it, and its source is out of reach: {error}",
            is_fault=True,
        )
    return Finding(f"{driver}; the next night builds its runtime for TVM {artifact.version} from {source}.")


def _has_headers(header: str, libraries: tuple[str, ...]) -> bool:
    """Whether a program that includes the header links with the libraries."""
    with tempfile.TemporaryDirectory() as folder:
        argv = ["c++", "-x", "c++", "-", "-o", str(Path(folder) / "a"), *(f"-l{name}" for name in libraries)]
        text = f"#include <{header}>\nint main() {{ return 0; }}\n"
        try:
            return (
                subprocess.run(argv, input=text.encode(), capture_output=True, timeout=60, check=False).returncode == 0
            )
        except (OSError, subprocess.SubprocessError):
            return False


def _ask_tvm(kind: str, index: int, driver: str, artifact: Artifact) -> Finding:
    tvm = f"TVM {artifact.version}"
    with tempfile.TemporaryDirectory() as folder:
        context = BuildContext(artifact.path.parent, Path(folder), Deadline(_TVM_S))
        try:
            can = find_abilities(artifact, kind, index, None, context, Path(folder) / "scratch")
        except ArtifactError as error:
            return Finding(f"{driver}; {tvm} cannot use it: {error}", is_fault=True)
    if not can.drives:
        return Finding(f"{driver}; {tvm} does not drive it: {_describe_lack(kind, artifact)}.", is_fault=True)
    if not can.model:
        return Finding(f"{driver}; {tvm} does not see it.", is_fault=True)
    if can.max_error is None:
        return Finding(f"{driver}; {tvm} drives it and makes no code for it.", is_fault=True)
    return Finding(f"{driver}; {tvm} drives it, and its answer is right (largest error {can.max_error:.2g}).")


def _describe_lack(kind: str, artifact: Artifact) -> str:
    if kind == "cuda" and artifact.provider == WHEEL:
        path = os.environ.get("LD_LIBRARY_PATH", "")
        place = f" (LD_LIBRARY_PATH is {path!r})" if path else ""
        return f"libcudart.so.13, of CUDA 13, has to be where the system's loader looks{place}"
    if kind in RECIPES and artifact.provider == WHEEL:
        return (
            f"what was built for it does not load; remove {artifact.path / RUNTIMES / kind}, and a night builds it anew"
        )
    return f"build it from source (tvm_remote, tvm_branch); USE_{kind.upper()} is then on"
