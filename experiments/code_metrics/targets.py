"""The targets of generated code, each under the name that its series have. None of them has to be here."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

HOST: Mapping[str, Any] = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "x86-64-v3"}
"""The target of the code that calls the kernels of a device; it is the same on every machine."""
_CUDA: Mapping[str, Any] = {
    "kind": "cuda",
    "max_threads_per_block": 1024,
    "thread_warp_size": 32,
    "max_shared_memory_per_block": 49152,
    "host": HOST,
}
TARGETS: Mapping[str, Mapping[str, Any]] = {
    "x86_64": {**HOST, "num-cores": 1},
    "aarch64": {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-n1", "num-cores": 1},
    "cuda_sm80": {**_CUDA, "arch": "sm_80"},
    "cuda_sm90": {**_CUDA, "arch": "sm_90"},
    "rocm": {"kind": "rocm", "mcpu": "gfx90a", "max_threads_per_block": 256, "thread_warp_size": 64, "host": HOST},
    "opencl": {"kind": "opencl", "host": HOST},
    "metal": {"kind": "metal", "host": HOST},
    "webgpu": {"kind": "webgpu", "host": HOST},
}
"""All that a device would be asked for is stated, so that a card in this machine changes nothing."""


def is_on_cpu(target: str) -> bool:
    """Tell a processor, whose kernels need no schedule."""
    return bool(TARGETS[target]["kind"] == "llvm")


@contextlib.contextmanager
def collecting_objects() -> Iterator[list[bytes]]:
    """The object files of AMD's kernels that are compiled meanwhile. TVM would link them with ROCm's linker.

    ROCm's device libraries are not linked in either: what calls one of their functions stays a call.
    """
    _register_rocm()
    _objects.clear()
    yield _objects


_objects: list[bytes] = []


@functools.cache
def _register_rocm() -> None:
    import tvm
    import tvm_ffi

    for module in ("tvm.support.rocm", "tvm.contrib.rocm"):  # what registers TVM's own functions comes first
        with contextlib.suppress(ImportError):
            importlib.import_module(module)

    def keep(binary: Any) -> bytearray:
        _objects.append(bytes(binary))
        return bytearray(binary)

    tvm_ffi.register_global_func("tvm_callback_rocm_link", keep, override=True)
    tvm_ffi.register_global_func("tvm_callback_rocm_bitcode_path", lambda *_: tvm.runtime.convert([]), override=True)
