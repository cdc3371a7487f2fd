"""The devices that this machine's own drivers show, without TVM: `python drivers.py KIND` prints their names as JSON.

In a process of its own, as drivers are what crashes. `null`: there is no driver for the kind.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Iterator, Mapping

_TEXT_BYTES = 256
_CL_ALL, _CL_NAME, _CL_DRIVER = 0xFFFFFFFF, 0x102B, 0x102D


def list_opencl() -> Iterator[str]:
    """Yield the devices of every OpenCL platform, as `NAME (DRIVER)`."""
    library = ctypes.CDLL("libOpenCL.so.1")
    platforms = _list_handles(library.clGetPlatformIDs)
    for platform in platforms:
        for device in _list_handles(library.clGetDeviceIDs, ctypes.c_void_p(platform), ctypes.c_uint64(_CL_ALL)):
            name, driver = (_ask(library, device, number) for number in (_CL_NAME, _CL_DRIVER))
            yield f"{name} ({driver})"


def _list_handles(ask: Callable[..., int], *of: object) -> list[int]:
    count = ctypes.c_uint()
    if ask(*of, 0, None, ctypes.byref(count)) != 0 or not count.value:
        return []
    handles = (ctypes.c_void_p * count.value)()
    ask(*of, count.value, handles, None)
    return [handle for handle in handles if handle]


def _ask(library: ctypes.CDLL, device: int, number: int) -> str:
    text = ctypes.create_string_buffer(_TEXT_BYTES)
    library.clGetDeviceInfo(ctypes.c_void_p(device), number, ctypes.c_size_t(_TEXT_BYTES), text, None)
    return text.value.decode(errors="replace").strip()


def list_cuda() -> Iterator[str]:
    library, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    if library.cuInit(0) == 0 and library.cuDeviceGetCount(ctypes.byref(count)) == 0:
        for index in range(count.value):
            text = ctypes.create_string_buffer(_TEXT_BYTES)
            library.cuDeviceGetName(text, _TEXT_BYTES, index)
            yield text.value.decode(errors="replace")


def list_rocm() -> Iterator[str]:
    library, count = ctypes.CDLL("libamdhip64.so"), ctypes.c_int()
    if library.hipGetDeviceCount(ctypes.byref(count)) == 0:
        yield from (f"device {index}" for index in range(count.value))


def list_vulkan() -> Iterator[str]:
    """Yield one name where Vulkan's loader is installed; its devices are not listed."""
    ctypes.CDLL("libvulkan.so.1")
    yield "Vulkan's loader"


LISTS: Mapping[str, Callable[[], Iterator[str]]] = {
    "opencl": list_opencl,
    "cuda": list_cuda,
    "rocm": list_rocm,
    "vulkan": list_vulkan,
}


def list_devices(kind: str) -> list[str] | None:
    """List the devices' names; None where the driver's library cannot be loaded."""
    try:
        return list(LISTS[kind]()) if kind in LISTS else None
    except OSError:
        return None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(list_devices(sys.argv[1])) + "\n")
