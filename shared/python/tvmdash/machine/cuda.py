"""CUDA cards, queried from the driver without TVM."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

_LIBRARY, _TEXT_BYTES = "libcuda.so.1", 256
_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR of cuda.h."""


@dataclass(frozen=True)
class CudaCard:
    """A card: `model`, architecture as compilers name it (sm_90), and place in the machine (0000:41:00.0)."""

    model: str
    arch: str
    pci_bus_id: str


def find_cuda_card(number: int) -> CudaCard | None:
    """Find the card with that number in this process; None where there is no driver or no such card."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    device, values = ctypes.c_int(), (ctypes.c_int * 2)()
    name, place = (ctypes.create_string_buffer(_TEXT_BYTES) for _ in range(2))
    if library.cuInit(0) or library.cuDeviceGet(ctypes.byref(device), number):
        return None
    for index, which in enumerate((_MAJOR, _MINOR)):
        at = ctypes.byref(values, index * ctypes.sizeof(ctypes.c_int))
        if library.cuDeviceGetAttribute(at, which, device):
            return None
    if library.cuDeviceGetName(name, _TEXT_BYTES, device) or library.cuDeviceGetPCIBusId(place, _TEXT_BYTES, device):
        return None
    return CudaCard(name.value.decode(errors="replace"), f"sm_{values[0]}{values[1]}", place.value.decode())
