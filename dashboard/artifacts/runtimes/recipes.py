"""Which of TVM's own files make the runtime of a device, and what they need of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


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
"""By kind of device. What is not here is in the wheel, or needs a build of TVM from source."""
