"""Relax's virtual machine on this machine's processor through tvm-ffi alone: without TVM's Python and its compiler.

`import tvm` takes 0.6 to 1 s of CPU and 190 MB; what a compiled library needs to run takes 0.1 s and 50 MB. The names
asked for are those that TVM's own Python calls, in 0.25 to 0.27.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tvmdash.networks.ops import Array

_CPU, _POOLED = 1, 2
"""DLPack's number of the processor, and that of the allocator that `relax.VirtualMachine` takes by default."""
_NAMES = ("TVMTensorAllocWithScope", "TVMTensorCopyFromBytes", "TVMTensorCopyToBytes", "RPCTimeEvaluator", "NumThreads")


@functools.cache
def open_runtime(library: str) -> bool:
    """Load TVM's runtime library; return True where it has all functions used here, as another TVM may not."""
    import tvm_ffi

    ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    return all(tvm_ffi.get_global_func(f"runtime.{name}", True) is not None for name in _NAMES)


@functools.cache
def find(name: str) -> Any:
    """Return a function of the runtime."""
    import tvm_ffi

    return tvm_ffi.get_global_func(f"runtime.{name}")


def make_tensor(array: Array) -> Any:
    """Return a tensor in the runtime's own memory with the array's values."""
    import numpy as np
    import tvm_ffi

    array, processor = np.ascontiguousarray(array).reshape(array.shape), tvm_ffi.device("cpu", 0)
    shape, dtype = tvm_ffi.Shape(array.shape), tvm_ffi.dtype(str(array.dtype))
    tensor = find("TVMTensorAllocWithScope")(shape, dtype, processor, None)
    find("TVMTensorCopyFromBytes")(tensor, array.ctypes.data_as(ctypes.c_void_p), array.nbytes)
    return tensor


def read_tensor(tensor: Any) -> Array:
    """Return the tensor's values as a numpy array."""
    import numpy as np

    dtype: Any = str(tensor.dtype)
    if dtype == "bfloat16":
        from ml_dtypes import bfloat16 as dtype
    array: Array = np.empty(tuple(tensor.shape), dtype)
    find("TVMTensorCopyToBytes")(tensor, array.ctypes.data_as(ctypes.c_void_p), array.nbytes)
    return array


class VirtualMachine:
    """The part of `relax.VirtualMachine` that a measuring process calls, over an exported library."""

    def __init__(self, library: Path) -> None:
        import tvm_ffi

        self._module = tvm_ffi.load_module(str(library))["vm_load_executable"]()
        self._module["vm_initialization"](_CPU, 0, _POOLED)
        self._evaluate = find("RPCTimeEvaluator")  # found now: looking for it is none of a sample's Python
        self.set_instrument = self._module["set_instrument"]

    def __getitem__(self, name: str) -> Any:
        return self._module[name]

    def save_function(self, name: str, saved: str, *tensors: Any, include_return: bool) -> None:
        """Keep a call of the function with these tensors under another name."""
        self._module["save_function"](name, saved, int(include_return), *tensors)

    def time_evaluator(self, name: str, _device: Any, *, number: int, repeat: int) -> Callable[[], SimpleNamespace]:
        """Time like TVM's: one call first, then `repeat` times `number` calls, each of `results` in seconds a call."""
        evaluate = self._evaluate(self._module, name, _CPU, 0, number, repeat, 0, 100, 0, 1, 0, "")
        return lambda: SimpleNamespace(results=struct.unpack(f"@{repeat}d", bytes(evaluate())))
