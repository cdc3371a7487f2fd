"""The canary's kernels: bytes from code.json, made executable and called as C functions."""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import platform
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.errors import DashboardError

CODE_FILE = Path(__file__).with_name("code.json")

Function = Callable[[int, int, int, int], int]
"""`kernel(a, b, count, value)` on unsigned 64-bit words; what they mean is said beside each kernel's source."""


@dataclass(frozen=True)
class Kernel:
    """The bytes of one kernel, and the processor's features that they need."""

    name: str
    needs: tuple[str, ...]
    code: bytes

    @property
    def sha256(self) -> str:
        """Names the bytes for ever."""
        return hashlib.sha256(self.code).hexdigest()

    def lacks(self, features: Collection[str]) -> list[str]:
        """The features that it needs and a processor with these has not."""
        return [feature for feature in self.needs if feature not in features]


def kernels(architecture: str = "") -> Mapping[str, Kernel]:
    """The kernels of an architecture (this machine's by default) by name; none where there are none for it."""
    table = common.read_json(CODE_FILE)
    rows = table.get(architecture or platform.machine(), {})
    return {name: Kernel(name, tuple(row["needs"]), bytes.fromhex(row["code"])) for name, row in rows.items()}


def load(kernel: Kernel) -> Function:
    """The kernel as a function. Its pages are written first and executable after, never both, and stay for good.

    DashboardError where the system forbids to make memory executable.
    """
    size = -(-len(kernel.code) // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
    pages.write(kernel.code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    libc = ctypes.CDLL(None, use_errno=True)
    # On aarch64 the kernel makes instructions coherent with data when it maps a written page as executable.
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC):
        reason = os.strerror(ctypes.get_errno())
        raise DashboardError(
            f"kernel {kernel.name}: this system does not let memory become executable ({reason}). "
            "Allow it (SELinux: execmem), or switch the canary off."
        )
    _LOADED.append(pages)
    return ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_uint64] * 4)(address)


_LOADED: list[mmap.mmap] = []
"""Pages of functions that may still be called."""
