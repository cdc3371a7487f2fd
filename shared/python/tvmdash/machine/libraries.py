"""Versions of libraries in this process besides its engine: Python packages, CUDA, cuDNN and HIP."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

_MAPS = Path("/proc/self/maps")
_NOT_PACKAGES = sys.stdlib_module_names | {"__main__"}


def describe_libraries() -> dict[str, str]:
    """Return the version of each loaded library by its name, such as `numpy` and `cudnn`."""
    packages = {name: module for name, module in sys.modules.items() if name not in _NOT_PACKAGES and "." not in name}
    # Not by getattr: what a module computes when asked may do anything.
    versions = {name: vars(module).get("__version__") for name, module in sorted(packages.items()) if module}
    stated = {name: str(version) for name, version in versions.items() if isinstance(version, str)}
    return {**stated, **dict(_ask_libraries(_list_loaded()))}


def _ask_libraries(loaded: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, (library, function, read) in _QUESTIONS.items():
        path = loaded.get(library)
        asked = getattr(ctypes.CDLL(path), function, None) if path else None
        if asked is not None:
            yield name, read(asked)


def _list_loaded() -> dict[str, str]:
    """Return the paths of this process's shared libraries, by their names without a version."""
    lines = _MAPS.read_text(encoding="utf-8", errors="replace").splitlines()
    paths = {parts[5] for line in lines if len(parts := line.split(maxsplit=5)) > 5 and ".so" in parts[5]}
    libraries = [path for path in map(Path, sorted(paths)) if ".so" in path.name and path.is_file()]
    return {path.name.partition(".so")[0]: str(path) for path in libraries}


def _read_number(function: Callable[..., int]) -> int:
    number = ctypes.c_int()
    function(ctypes.byref(number))
    return number.value


def _read_cuda(function: Callable[..., int]) -> str:
    """Decode a version: 1000 for each major, 10 for each minor one."""
    number = _read_number(function)
    return f"{number // 1000}.{number % 1000 // 10}"


def _read_cudnn(function: Callable[..., int]) -> str:
    """Decode a version: 10000 for each major, 100 for each minor one, from version 9 on; before, 1000 and 100."""
    number = int(function())
    major = 10_000 if number >= 90_000 else 1000
    return f"{number // major}.{number % major // 100}.{number % 100}"


def _read_hip(function: Callable[..., int]) -> str:
    number = _read_number(function)
    return f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"


def _read_nvrtc(function: Callable[..., int]) -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    function(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


_QUESTIONS: Mapping[str, tuple[str, str, Callable[[Callable[..., int]], str]]] = {
    "cuda_driver_api": ("libcuda", "cuDriverGetVersion", _read_cuda),
    "cuda": ("libcudart", "cudaRuntimeGetVersion", _read_cuda),
    "nvrtc": ("libnvrtc", "nvrtcVersion", _read_nvrtc),
    "cudnn": ("libcudnn", "cudnnGetVersion", _read_cudnn),
    "hip": ("libamdhip64", "hipRuntimeGetVersion", _read_hip),
}
"""The library of each name, its version function, and the decoder of the answer."""
