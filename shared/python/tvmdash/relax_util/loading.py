"""Load a compiled module, run it on a device, time it there, profile it. Importing this module imports no TVM.

On this machine's processor a library runs through tvm-ffi alone: `import tvm` takes 0.6 to 1 s of CPU and 190 MB, what
a compiled library needs 0.1 s and 50 MB. The runtime's functions are those that TVM's own Python calls, in 0.25 to
0.27.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tvmdash.errors import DashboardError
from tvmdash.machine.devices import CPU
from tvmdash.measure.capture import OperatorSpan
from tvmdash.networks.ops import Array
from tvmdash.relax_util.build import Compiled
from tvmdash.relax_util.on_device import open_device, told_of
from tvmdash.trial_util import Timer, python_timer

_CPU, _POOLED = 1, 2
"""DLPack's number of the processor, and that of the allocator that `relax.VirtualMachine` takes by default."""
_NAMES = ("TVMTensorAllocWithScope", "TVMTensorCopyFromBytes", "TVMTensorCopyToBytes", "RPCTimeEvaluator", "NumThreads")


@functools.cache
def open_runtime(library: str) -> bool:
    """Load TVM's runtime library; return True where it has all functions used here, as another TVM may not."""
    import tvm_ffi

    # global, as the libraries loaded later take its symbols without naming it
    ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    return all(tvm_ffi.get_global_func(f"runtime.{name}", True) is not None for name in _NAMES)


@functools.cache
def find(name: str) -> Any:
    import tvm_ffi

    return tvm_ffi.get_global_func(f"runtime.{name}")


def make_tensor(array: Array) -> Any:
    """Return a tensor in the runtime's own memory with the array's values."""
    import numpy as np
    import tvm_ffi

    # reshaped, as ascontiguousarray gives a scalar one dimension
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


DEVICE_CALLS = 5
"""Calls over which a device's own clock is averaged."""


class Loaded:
    """A module ready to run on a device. Inputs are numpy arrays in the shapes and dtypes of `main`, in its order.

    `machine` has every function of the module by its name; these take and give tensors (`tensor`, `read`).
    """

    def __init__(self, compiled: Compiled, device: str = CPU) -> None:
        self._compiled, self.device = compiled, device
        self._opened, self._is_bare = open_device(device), device == CPU and _runs_bare(compiled)
        self._device = self._opened.handle if self._opened else None if self._is_bare else _import_tvm().cpu()
        self.machine = self.make_machine()
        self._timed = 0

    def make_machine(self) -> Any:
        library = self._compiled.library
        if self._is_bare and library:
            return VirtualMachine(library)
        tvm = _import_tvm()
        with told_of(self.device):
            executable = tvm.runtime.load_module(str(library)) if library else self._compiled.executable
            return tvm.relax.VirtualMachine(self._opened.load(executable) if self._opened else executable, self._device)

    def run(self, *inputs: Array) -> Array:
        (output,) = self.outputs(*inputs)
        return output

    def outputs(self, *inputs: Array) -> tuple[Array, ...]:
        """Return the outputs of a `main` that returns a tuple of tensors, or its one output."""
        with told_of(self.device):
            return tuple(map(self.read, self._call(*inputs)))

    def _call(self, *inputs: Array) -> tuple[Any, ...]:
        given = self.machine["main"](*map(self.tensor, inputs))
        return (given,) if hasattr(given, "shape") else tuple(given)

    def caller(self, *inputs: Array) -> Callable[[], object]:
        """Return a call of `main` from Python on `inputs`, already on the device: for a clock that engines share."""
        with told_of(self.device):
            return functools.partial(self.machine["main"], *map(self.tensor, inputs))

    def python_timer(self, *inputs: Array) -> Timer:
        """Return a timer of calls from Python, by the wall clock; a sample ends when the device has done its last call.

        A device elsewhere times by itself, so that the network between is not in it.
        """
        if self._opened is None:
            return python_timer(self.caller(*inputs))
        timer = self._opened.timer(self.caller(*inputs)) if self._opened.waits_here else self._evaluator(*inputs)
        return self._told(timer)

    def timer(self, *inputs: Array) -> Timer:
        """Return a timer of `main` on `inputs`, which lie on the device before the clock starts.

        On the processor it is TVM's time_evaluator: wall clock, and one more call, not timed, before each use. On
        other devices that one tells what the device did, not how long one waits for it; there it is `python_timer`.
        """
        return self.python_timer(*inputs) if self._opened else self._evaluator(*inputs)

    @property
    def called_from(self) -> str:
        """Return the language that `timer` calls from."""
        return "Python" if self._opened and self._opened.waits_here else "C++"

    def _told(self, timer: Timer) -> Timer:
        """Return the timer with errors that name the device."""

        def told(number: int, repeat: int) -> list[int]:
            with told_of(self.device):
                return timer(number, repeat)

        return timer if self._opened is None else told

    def _evaluator(self, *inputs: Array) -> Timer:
        self._timed += 1
        name = f"timed{self._timed}"
        self.machine.save_function("main", name, *map(self.tensor, inputs), include_return=False)

        def timer(number: int, repeat: int) -> list[int]:
            evaluator = self.machine.time_evaluator(name, self._device, number=number, repeat=repeat)
            return [round(seconds * number * 1e9) for seconds in evaluator().results]

        return timer

    def device_facts(self, *inputs: Array) -> dict[str, Any]:
        """Return a record's facts about the device and a call with `inputs` there; none for this machine's processor.

        The transfers, what the device's own clock says of a call (the kernels alone where TVM can ask for them), and
        what its maker's library says of energy and throttling.
        """
        if not self._opened:
            return {}
        with told_of(self.device):
            found: dict[str, Any] = {"transfer_time": self._opened.time_transfers(inputs, self._call(*inputs))}
            if self._opened.waits_here:
                found["device_time"] = self._evaluator(*inputs)(DEVICE_CALLS, 1)[0] / DEVICE_CALLS / 1e6
            return {**self.describe_device(self.caller(*inputs)), **found}

    def describe_device(self, call: Callable[[], object]) -> dict[str, Any]:
        """Return a record's facts about the device, watched while it repeats the call."""
        if not self._opened:
            return {}
        return {**self._opened.facts(), **(self._opened.watch(call) if self._opened.waits_here else {})}

    def wait(self) -> None:
        """Wait until the device is done."""
        if self._opened:
            self._opened.handle.sync()

    def profile(self, x: Array, repeats: int) -> list[OperatorSpan]:
        """Profile every call of the virtual machine, kernels and builtins alike, in `repeats` runs after two warm ones.

        Fewer runs where they take longer than `_MOST_PROFILING_S`, but no fewer than `_FEWEST_PROFILED`. A watched run
        is slower by some microseconds a call; use `timer` for the whole. A device has done each call before the next
        one begins.
        """
        if self._opened and not self._opened.waits_here:
            return []  # the calls are made elsewhere, where nobody watches them
        if self._compiled.exec_mode != "bytecode":
            raise DashboardError("only exec_mode 'bytecode' can be profiled: compiled code does not name its calls.")
        machine, tensor, spans = self.make_machine(), self.tensor(x), []
        sync = self._opened.handle.sync if self._opened else None
        for _ in range(_WARM_RUNS):
            machine["main"](tensor)
        begun = time.monotonic()
        for repetition in range(repeats):
            if repetition >= _FEWEST_PROFILED and time.monotonic() - begun > _MOST_PROFILING_S:
                break
            spans += _profiled_run(machine, tensor, repetition, sync)
        return spans

    def read(self, tensor: Any) -> Array:
        values: Array = read_tensor(tensor) if self._is_bare else tensor.numpy()
        return values

    def tensor(self, x: Array) -> Any:
        """Return a tensor with the array's values where the module runs."""
        return make_tensor(x) if self._is_bare else _import_tvm().runtime.tensor(x, device=self._device)


_WARM_RUNS = 2
_FEWEST_PROFILED = 3
_MOST_PROFILING_S = 10.0
"""Limit for profiling: a network of seconds would otherwise take minutes of a night in each of its processes."""


def _runs_bare(compiled: Compiled) -> bool:
    """Return True where it can be called without TVM's Python."""
    return compiled.library is not None and open_runtime(compiled.runtime)


def _import_tvm() -> Any:
    import tvm

    return tvm


def _profiled_run(machine: Any, tensor: Any, repetition: int, sync: Callable[[], None] | None) -> list[OperatorSpan]:
    spans: list[OperatorSpan] = []
    open_calls: list[int] = []

    def instrument(_function: Any, symbol: str, before_run: object, _value: Any, *_arguments: Any) -> int:
        if sync:
            sync()
        now = time.perf_counter_ns()
        if before_run:
            open_calls.append(time.perf_counter_ns())
        else:
            start = open_calls.pop()
            spans.append(OperatorSpan(repetition, str(symbol), start - begun, now - start, began_ns))
        return 0

    machine.set_instrument(instrument)
    began_ns, begun = time.time_ns(), time.perf_counter_ns()
    machine["main"](tensor)
    return spans


def load(compiled: Compiled, threads: int, device: str = CPU) -> Loaded:
    """Load the module on a device, with this process's TVM at `threads` threads (see `use_threads`)."""
    if device == CPU and _runs_bare(compiled):
        _check_threads(threads, find("NumThreads"))
    else:
        use_threads(threads)
    return Loaded(compiled, device)


def use_threads(threads: int) -> None:
    """Give TVM's thread pool `threads` threads, or raise.

    TVM reads TVM_NUM_THREADS once in a process's life, when the pool is first used. The surest is to start the process
    with it; a process whose pool sleeps still is given it here; for one whose pool is up it is too late.
    """
    _check_threads(threads, _import_tvm().get_global_func("runtime.NumThreads"))


def _check_threads(threads: int, count: Callable[[], int]) -> None:
    os.environ["TVM_NUM_THREADS"] = str(threads)
    running = int(count())
    if running != threads:
        raise DashboardError(
            f"TVM's thread pool has {running} threads, not {threads}. It is made once in a process: start this one "
            f"with TVM_NUM_THREADS={threads}, and measure other numbers of threads in other processes."
        )
