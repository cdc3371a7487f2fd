"""What health.py asks of a TVM, on one compiled function."""

import ctypes
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import tvm_ffi

from tvm import _version

__version__ = _version.version
_LIBRARY = ctypes.CDLL(str(Path(__file__).parents[2] / "build" / "lib" / "libtvm_compiler.so"))
assert tvm_ffi.answer() == 42


class _Tensor:
    def __init__(self, array):
        self.array = np.ascontiguousarray(array, dtype="float32")

    def numpy(self):
        return self.array


def _main(x, weight):
    (rows, inner), columns = x.array.shape, weight.array.shape[1]
    out = np.empty((rows, columns), dtype="float32")
    pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (x.array, weight.array, out))
    _LIBRARY.product_relu(*pointers, rows, inner, columns)
    return _Tensor(out)


def _same(one, other):
    assert one == other


def compile(module, target):  # noqa: A001 - TVM names it so
    return module


def cpu():
    return "cpu"


script = SimpleNamespace(from_source=lambda text: {"source": text})
target = SimpleNamespace(Target=dict)
ir = SimpleNamespace(save_json=json.dumps, load_json=json.loads, assert_structural_equal=_same)
runtime = SimpleNamespace(tensor=_Tensor)
relax = SimpleNamespace(
    get_pipeline=lambda name: lambda module: module, VirtualMachine=lambda executable, device: {"main": _main}
)
