"""Readings of NVIDIA GPUs through NVML, the library that comes with their driver; no package and no process needed."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Mapping
from dataclasses import dataclass

_LIBRARY = "libnvidia-ml.so.1"
_OK = 0
_TEMPERATURE_GPU = 0
_CLOCK_SM = 1
_log = logging.getLogger("night")


class _Utilisation(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


@dataclass(frozen=True)
class Gpus:
    """The GPUs of this machine, opened. Call it for a reading; `close` it at the end."""

    library: ctypes.CDLL
    handles: tuple[ctypes.c_void_p, ...]

    def __call__(self) -> Mapping[str, float | None]:
        """Temperature, clock and utilisation of each."""
        return {name: value for number, handle in enumerate(self.handles) for name, value in self._read(number, handle)}

    def _read(self, number: int, handle: ctypes.c_void_p) -> list[tuple[str, float | None]]:
        value, used = ctypes.c_uint(), _Utilisation()
        nvml = self.library
        temperature = _read(nvml.nvmlDeviceGetTemperature(handle, _TEMPERATURE_GPU, ctypes.byref(value)), value)
        clock = _read(nvml.nvmlDeviceGetClockInfo(handle, _CLOCK_SM, ctypes.byref(value)), value)
        code = nvml.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(used))
        return [
            (f"gpu_temperature_c.{number}", temperature),
            (f"gpu_mhz.{number}", clock),
            (f"gpu_percent.{number}", float(used.gpu) if code == _OK else None),
        ]

    def close(self) -> None:
        """Let go of the library."""
        self.library.nvmlShutdown()


def _read(code: int, value: ctypes.c_uint) -> float | None:
    """The value where the call went well; NVML says "not supported" of what a card does not have."""
    return float(value.value) if code == _OK else None


def open_gpus(library: str = _LIBRARY) -> Gpus | None:
    """The machine's NVIDIA GPUs; None where there is no driver or no GPU."""
    try:
        nvml = ctypes.CDLL(library)
    except OSError:
        return None
    if nvml.nvmlInit_v2() != _OK:
        _log.info("%s is there, but finds no driver: no GPU is recorded.", library)
        return None
    count = ctypes.c_uint()
    handles = []
    if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == _OK:
        for number in range(count.value):
            handle = ctypes.c_void_p()
            if nvml.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(handle)) == _OK:
                handles.append(handle)
    if not handles:
        nvml.nvmlShutdown()
        return None
    return Gpus(nvml, tuple(handles))
