"""CUDA C to machine code by NVIDIA's compilers of the package index, which need no card: NVRTC, then ptxas."""

from __future__ import annotations

import ctypes
import functools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tvmdash.errors import DashboardError
from tvmdash.experiment.engines import Engine

COMPILERS = Engine(
    "cuda_compilers",
    requirements=(
        "nvidia-cuda-nvcc==13.5.37",
        "nvidia-cuda-nvrtc==13.5.37",
        "nvidia-cuda-runtime==13.5.37",
        "nvidia-cuda-cccl==13.3.5.0.6",
    ),
)
"""It measures nothing: setup installs it, and what it says of TVM's code depends on its version, which stays."""
TIMEOUT_S = 600.0
_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


class NoAssemblerError(DashboardError):
    """The compilers are not here."""


def assemble(source: str, arch: str) -> tuple[dict[str, dict[str, int]], list[bytes]]:
    """Return registers, spills (bytes stored and loaded) and static shared memory of each kernel, and the cubin.

    NoAssemblerError where the compilers are missing, DashboardError with their words where the source is wrong.
    """
    root = _find()
    with tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
        ptx, cubin = Path(folder) / "module.ptx", Path(folder) / "module.cubin"
        ptx.write_bytes(_compile(root, source, arch))
        done = subprocess.run(
            [str(root / "bin" / "ptxas"), "--verbose", f"--gpu-name={arch}", str(ptx), f"--output-file={cubin}"],
            capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
        )  # fmt: skip
        if done.returncode:
            raise DashboardError(f"ptxas exited with {done.returncode}: {done.stderr.strip()[:500]}")
        return read_resources(done.stdout + done.stderr), [cubin.read_bytes()]


def read_resources(words: str) -> dict[str, dict[str, int]]:
    """Parse the words of `ptxas --verbose` on each kernel."""
    kernels: dict[str, dict[str, int]] = {}
    parts = _ENTRY.split(words)
    for name, part in zip(parts[1::2], parts[2::2], strict=True):
        spilled, used, shared = _SPILLS.search(part), _USED.search(part), _SHARED.search(part)
        if not spilled or not used:
            raise DashboardError(f"ptxas says nothing of {name}'s registers: {part.strip()[:200]!r}")
        kernels[name] = {
            "registers": int(used[1]),
            "spills": int(spilled[1]) + int(spilled[2]),
            "shared_memory": int(shared[1]) if shared else 0,
        }
    return kernels


def _find() -> Path:
    """Find the folder of the wheels' `bin`, `lib` and `include`."""
    for entry in sys.path:
        for root in Path(entry).glob("nvidia/cu*"):
            if (root / "bin" / "ptxas").is_file() and list(root.glob("lib/libnvrtc.so*")):
                return root
    pins = " ".join(COMPILERS.requirements)
    raise NoAssemblerError(f"NVIDIA's compilers are not installed ({pins}); setup installs them.")


@functools.cache
def _nvrtc(root: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(next(root.glob("lib/libnvrtc.so*"))))


def _compile(root: Path, source: str, arch: str) -> bytes:
    """Compile to PTX, by NVRTC."""
    library, program = _nvrtc(root), ctypes.c_void_p()
    include = root / "include"
    options = [
        f"--gpu-architecture={arch.replace('sm_', 'compute_')}",
        *(f"--include-path={folder}" for folder in (include, include / "cccl")),
        "--std=c++17", "-default-device", "--disable-warnings",
    ]  # fmt: skip
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"module.cu", 0, None, None)
    try:
        if library.nvrtcCompileProgram(program, len(options), given):
            raise DashboardError(f"NVRTC: {_read(library, program, 'ProgramLog').decode(errors='replace')[:1000]}")
        return _read(library, program, "PTX").rstrip(b"\0")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _read(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, text)
    return text.raw
