"""Recipes for the runtimes of devices: TVM's own files to compile, or packages to install."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from dashboard.artifacts.artifact import CUDA
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.wheel import package_index


@dataclass(frozen=True)
class Recipe:
    """Instructions for building the runtime of one kind of device from TVM's tree.

    folders: of the tree, which the files include. defines, libraries: for the compiler. header: of the libraries.
    system: what the machine has to have for it, as packages of Debian and Ubuntu.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]
    defines: tuple[str, ...]
    libraries: tuple[str, ...]
    header: str
    system: tuple[str, ...]

    @property
    def install(self) -> str:
        """The command that installs what it needs of the machine."""
        return f"apt install {' '.join(self.system)}"


RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        "opencl": Recipe(
            files=(
                "src/backend/opencl/runtime/opencl_device_api.cc",
                "src/backend/opencl/runtime/opencl_module.cc",
            ),
            folders=("include", "src"),
            defines=("CL_TARGET_OPENCL_VERSION=120", "TVM_FFI_EXPORTS"),
            libraries=("OpenCL",),
            header="CL/opencl.h",
            system=("git", "g++", "opencl-headers", "ocl-icd-opencl-dev"),
        )
    }
)
"""Recipes by kind of device. Other runtimes are in the wheel, or need a build of TVM from source."""


PACKAGES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "cuda": {
            "nvidia-cuda-runtime": "13.0.96",
            "nvidia-cuda-nvrtc": "13.0.88",
            "nvidia-cuda-cccl": "13.0.85",
            "nvidia-cuda-crt": "13.0.88",
            "cuda-bindings": "13.0.3",
            "cuda-pathfinder": "1.9.0",
        }
    }
)
"""Packages by kind of device. CUDA 13.0, whose code every driver of CUDA 13 takes; no wheel of TVM asks for more."""
_TRIPLES: Mapping[str, str] = MappingProxyType({"aarch64": "sbsa-linux"})


def format_packages(kind: str) -> str:
    return " ".join(f"{name}=={version}" for name, version in PACKAGES[kind].items())


def install_packages(kind: str, folder: Path, log: Path, context: BuildContext) -> None:
    """Install them into `folder`, as TVM finds them."""
    scratch = folder.with_name(f"{folder.name}.pip")
    package_index.install_all(PACKAGES[kind], folder, scratch=scratch, log=log, deadline=context.deadline)
    root = folder / CUDA
    if root.is_dir():  # TVM looks for the headers of CCCL where NVIDIA's installer puts them, the packages do not
        headers = root / "targets" / _TRIPLES.get(platform.machine(), f"{platform.machine()}-linux") / "include"
        headers.parent.mkdir(parents=True)
        headers.symlink_to("../../include")
