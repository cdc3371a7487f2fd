"""How a compiled module is executed: the virtual machine's two modes, and each of them out of a shared library."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash import relax_util
from tvmdash.errors import DashboardError
from tvmdash.networks.ops import Array
from tvmdash.relax_util import Compiled
from tvmdash.trial_util import Timer

MODES: Mapping[str, tuple[str, bool]] = {
    "bytecode": ("bytecode", False),
    "compiled": ("compiled", False),
    "library": ("bytecode", True),
    "compiled_library": ("compiled", True),
}
"""The virtual machine's mode, and whether the module is exported to a shared library and loaded from there."""
LINKERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")


@dataclass(frozen=True)
class Executor:
    """A module that can be called; `facts` say what it cost to make the library, where there is one."""

    run: Callable[[], Array]
    timer: Timer
    facts: Mapping[str, float]


def executor(name: str, compiled: Compiled, inputs: tuple[Array, ...], threads: int) -> Executor:
    """`main` of the module on `inputs`, which lie on the device before a clock starts."""
    import tvm
    from tvm import relax

    relax_util.use_threads(threads)
    module, facts = _from_library(compiled.executable) if MODES[name][1] else (compiled.executable, {})
    device = tvm.cpu()
    machine = relax.VirtualMachine(module, device)
    tensors = [tvm.runtime.tensor(value, device=device) for value in inputs]
    machine.save_function("main", "timed", *tensors, include_return=False)

    def run() -> Array:
        output: Array = machine["main"](*tensors).numpy()
        return output

    def timer(number: int, repeat: int) -> list[int]:
        evaluator = machine.time_evaluator("timed", device, number=number, repeat=repeat)
        return [round(seconds * number * 1e9) for seconds in evaluator().results]

    return Executor(run, timer, facts)


def linker() -> str:
    """The program that links a library; DashboardError where there is none."""
    chosen = os.environ.get("CXX") or os.environ.get("CC")
    compiler = chosen or next(filter(None, map(shutil.which, LINKERS)), None)
    if compiler is None:
        problem = f"no C compiler: none of {', '.join(LINKERS)} is on the PATH, and export_library links with one"
        raise DashboardError(f"{problem}. Install gcc, or leave the libraries out of $.executors.")
    return compiler


def _from_library(executable: Any) -> tuple[Any, dict[str, float]]:
    import tvm

    linker()
    with tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
        path = Path(folder) / "module.so"
        begun = time.perf_counter_ns()
        executable.export_library(str(path))
        exported = time.perf_counter_ns()
        module = tvm.runtime.load_module(str(path))  # it stays mapped when its file is gone
        loaded = time.perf_counter_ns()
        size_bytes = path.stat().st_size
    return module, {
        "export_ms": (exported - begun) / 1e6,
        "load_ms": (loaded - exported) / 1e6,
        "library_bytes": size_bytes,
    }
