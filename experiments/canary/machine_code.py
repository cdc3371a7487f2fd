"""The canary's kernels: bytes from code.json, made executable and called as C functions."""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
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
        return hashlib.sha256(self.code).hexdigest()

    def lacks(self, features: Collection[str]) -> list[str]:
        """List the features that it needs and a processor with these has not."""
        return [feature for feature in self.needs if feature not in features]


def kernels(architecture: str = "") -> Mapping[str, Kernel]:
    """Read the kernels of an architecture (this machine's by default) by name; none where there are none for it."""
    table = common.read_json(CODE_FILE)
    rows = table.get(architecture or platform.machine(), {})
    return {name: Kernel(name, tuple(row["needs"]), bytes.fromhex(row["code"])) for name, row in rows.items()}


def load(kernel: Kernel) -> Function:
    """Make the kernel a function. Its pages are written first and executable after, never both, and stay for good.

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


# What follows is run as a program (with shared/python on the path, GNU as and objcopy for each architecture) by whoever
# changes a source: a night reads code.json, and needs no assembler. Bytes that were once measured stay as they are;
# another kernel gets another name, because its series is another one.
HERE = Path(__file__).resolve().parent
ARCHITECTURES = ("x86_64", "aarch64")
NEEDS: Mapping[str, tuple[str, ...]] = {"multiply_add_avx2": ("avx2", "fma")}
"""The processor's features, by their names in /proc/cpuinfo, that a kernel needs beyond its architecture's own."""


def source(architecture: str) -> Path:
    return HERE / f"code_{architecture}.S"


def tools(architecture: str) -> tuple[str, str] | None:
    """Find `as` and `objcopy` for the architecture, None where this machine has none."""
    prefix = "" if platform.machine() == architecture else f"{architecture}-linux-gnu-"
    programs = shutil.which(f"{prefix}as"), shutil.which(f"{prefix}objcopy")
    return (programs[0], programs[1]) if programs[0] and programs[1] else None


def assembled(architecture: str, assembler: str, objcopy: str) -> dict[str, bytes]:
    """Assemble each kernel, a section of its own, to bytes."""
    names = re.findall(r"^\s*\.section (\w+),", source(architecture).read_text(), re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "code.o"
        subprocess.run([assembler, "-o", str(whole), str(source(architecture))], check=True)
        return {name: _section(objcopy, whole, name) for name in names}


def _section(objcopy: str, whole: Path, name: str) -> bytes:
    part = whole.with_suffix(f".{name}")
    subprocess.run([objcopy, "-O", "binary", "-j", name, str(whole), str(part)], check=True)
    return part.read_bytes()


def main() -> None:
    kernels = {}
    for architecture in ARCHITECTURES:
        pair = tools(architecture)
        if pair is None:
            sys.exit(f"{architecture}: no `as` and `objcopy` for it here. Install its binutils.")
        kernels[architecture] = {
            name: {"needs": list(NEEDS.get(name, ())), "code": code.hex()}
            for name, code in assembled(architecture, *pair).items()
        }
    (HERE / "code.json").write_text(json.dumps(kernels, indent=1) + "\n")


if __name__ == "__main__":
    main()
