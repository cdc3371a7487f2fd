"""Compile with Relax, load, time, profile: the one door to TVM. Importing this module imports no TVM."""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvmdash.errors import DashboardError
from tvmdash.measure.capture import OperatorSpan
from tvmdash.measure.elf import loaded_bytes
from tvmdash.measure.phases import COMPILE, phase
from tvmdash.networks.ops import Array
from tvmdash.relax_util.passes import PassWatch, pipeline_steps, unknown_name
from tvmdash.relax_util.targets import make_target
from tvmdash.trial_util import Timer

EXEC_MODES = ("bytecode", "compiled")


@dataclass(frozen=True)
class CompileOptions:
    """How a module is compiled.

    `target` is TVM's: a kind, or a mapping such as
    `{"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 2, "opt-level": 3, "fast-math": True}`.
    `pipeline` is a name in `relax_passes.PIPELINES`; `added_passes`, functions of relax.transform, are applied before
    it; `disabled_passes` are names as PassInfo has them, and no pass of that name runs anywhere.
    """

    target: Mapping[str, Any] | str = "llvm"
    pipeline: str = "zero"
    added_passes: tuple[str, ...] = ()
    disabled_passes: tuple[str, ...] = ()
    exec_mode: str = "bytecode"


@dataclass(frozen=True)
class Compiled:
    """A compiled module and what its compilation cost.

    `compile_ms` reaches from the Relax module to machine code in memory. `pass_times_ms`: each pass with its own time,
    longest first. `code_size_bytes`: machine code with its tables, as loaded, without symbols; None where the target
    is not LLVM. `planned_memory_bytes`: all storage that a call asks for, the output's included; None where shapes are
    not static. `module_hash`: equal for two compilations exactly when machine code and bytecode are the same (the
    weights are not in it).
    """

    executable: Any = field(repr=False)
    exec_mode: str
    compile_ms: float
    pass_times_ms: tuple[tuple[str, float], ...] = field(repr=False)
    code_size_bytes: int | None
    planned_memory_bytes: int | None
    module_hash: str


@dataclass(frozen=True)
class TvmFacts:
    """The TVM that this process has imported; `commit` is None where the build does not carry one."""

    version: str
    commit: str | None
    ffi_version: str
    llvm_version: int
    library_path: str


def tvm_facts() -> TvmFacts:
    """What the running TVM says of itself."""
    import tvm
    import tvm_ffi

    commit = getattr(getattr(tvm, "_version", None), "__commit_id__", None)
    return TvmFacts(
        version=str(tvm.__version__),
        commit=str(commit).removeprefix("g") if commit else None,
        ffi_version=str(tvm_ffi.__version__),
        llvm_version=int(tvm.get_global_func("target.llvm_version_major")()),
        library_path=_library_path(),
    )


def _library_path() -> str:
    """Where the process has mapped TVM's runtime library from."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    mapped = {line.split(maxsplit=5)[5] for line in lines if "/libtvm" in line}
    runtime = sorted(mapped, key=lambda path: (Path(path).name != "libtvm_runtime.so", path))
    return runtime[0] if runtime else ""


def compile_module(module: Any, options: CompileOptions) -> Compiled:
    """Compile a Relax IRModule (see relax_lower.lower).

    DashboardError for a target, pipeline, mode or pass that does not exist, and for what TVM cannot compile.
    """
    if options.exec_mode not in EXEC_MODES:
        raise unknown_name("exec_mode", options.exec_mode, EXEC_MODES)
    target, steps = make_target(options.target), pipeline_steps(options.pipeline, options.added_passes)
    watch = PassWatch(options.disabled_passes)
    begun = time.perf_counter_ns()
    try:
        with phase(COMPILE):
            executable = _build(module, target, steps, options.exec_mode, watch)
            with phase("compile: machine code"):
                code = _machine_code(executable.mod)
    except Exception as error:  # TVM's passes raise anything; who chose the options needs them beside TVM's words
        raise DashboardError(f"TVM cannot compile with {options}: {error}"[:1500]) from error
    compile_ms = (time.perf_counter_ns() - begun) / 1e6
    watch.check_disabled()
    return Compiled(
        executable=executable,
        exec_mode=options.exec_mode,
        compile_ms=compile_ms,
        pass_times_ms=watch.times_ms,
        code_size_bytes=sum(loaded_bytes(part) for part in code) if code else None,
        planned_memory_bytes=watch.planned_memory_bytes,
        module_hash=hashlib.sha256(b"\0".join([*code, executable.as_text().encode()])).hexdigest(),
    )


def _build(module: Any, target: Any, steps: Sequence[Any], exec_mode: str, watch: PassWatch) -> Any:
    import tvm
    from tvm import relax

    with target, tvm.transform.PassContext(instruments=[watch.instrument()]):
        with phase("compile: pipeline"):
            module = tvm.transform.Sequential(steps)(module)
        with phase("compile: build"):
            return relax.build(module, target=target, exec_mode=exec_mode)


def _machine_code(module: Any) -> list[bytes]:
    """The object files of the LLVM modules in a runtime module's imports: what its JIT makes, too."""
    parts = []
    with tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
        for index, imported in enumerate(part for part in module.imports if part.kind == "llvm"):
            path = Path(folder) / f"{index}.o"
            imported.write_to_file(str(path))
            parts.append(path.read_bytes())
    return parts


class Loaded:
    """A module ready to run on a device. Inputs are numpy arrays in the shapes and dtypes of `main`, in its order."""

    def __init__(self, compiled: Compiled, device: str = "cpu") -> None:
        import tvm
        from tvm import relax

        self._compiled = compiled
        self._device = tvm.device(device)
        self._vm = relax.VirtualMachine(compiled.executable, self._device)
        self._timed = 0

    def run(self, *inputs: Array) -> Array:
        """The output of `main` for `inputs`."""
        output: Array = self._vm["main"](*map(self._tensor, inputs)).numpy()
        return output

    def outputs(self, *inputs: Array) -> tuple[Array, ...]:
        """The outputs of a `main` that gives a tuple of tensors, or its one output."""
        given = self._vm["main"](*map(self._tensor, inputs))
        return (given.numpy(),) if hasattr(given, "numpy") else tuple(part.numpy() for part in given)

    def caller(self, *inputs: Array) -> Callable[[], object]:
        """A call of `main` from Python on `inputs`, which lie on the device already: for a clock that engines share."""
        return functools.partial(self._vm["main"], *map(self._tensor, inputs))

    def timer(self, *inputs: Array) -> Timer:
        """A timer of `main` on `inputs`, which lie on the device before the clock starts.

        It is TVM's time_evaluator: wall clock, and one more call, not timed, before each use.
        """
        self._timed += 1
        name = f"timed{self._timed}"
        self._vm.save_function("main", name, *map(self._tensor, inputs), include_return=False)

        def timer(number: int, repeat: int) -> list[int]:
            evaluator = self._vm.time_evaluator(name, self._device, number=number, repeat=repeat)
            return [round(seconds * number * 1e9) for seconds in evaluator().results]

        return timer

    def profile(self, x: Array, repeats: int) -> list[OperatorSpan]:
        """Every call the virtual machine makes, kernels and builtins alike, in `repeats` runs after one unwatched.

        A watched run is slower by some microseconds a call; use `timer` for the whole.
        """
        from tvm import relax

        if self._compiled.exec_mode != "bytecode":
            raise DashboardError("only exec_mode 'bytecode' can be profiled: compiled code does not name its calls.")
        machine, tensor, spans = relax.VirtualMachine(self._compiled.executable, self._device), self._tensor(x), []
        machine["main"](tensor)
        for repetition in range(repeats):
            spans += _profiled_run(machine, tensor, repetition)
        return spans

    def _tensor(self, x: Array) -> Any:
        import tvm

        return tvm.runtime.tensor(x, device=self._device)


def _profiled_run(machine: Any, tensor: Any, repetition: int) -> list[OperatorSpan]:
    spans: list[OperatorSpan] = []
    open_calls: list[int] = []

    def instrument(_function: Any, symbol: str, before_run: object, _value: Any, *_arguments: Any) -> int:
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


def load(compiled: Compiled, threads: int, device: str = "cpu") -> Loaded:
    """The compiled module, ready to run with `threads` threads (see `use_threads`)."""
    use_threads(threads)
    return Loaded(compiled, device)


def use_threads(threads: int) -> None:
    """Make TVM's thread pool have `threads` threads, or raise.

    TVM reads TVM_NUM_THREADS once in a process's life, when the pool is first used. The surest is to start the process
    with it; a process whose pool sleeps still is given it here; for one whose pool is up it is too late.
    """
    import tvm

    os.environ["TVM_NUM_THREADS"] = str(threads)
    running = int(tvm.get_global_func("runtime.NumThreads")())
    if running != threads:
        raise DashboardError(
            f"TVM's thread pool has {running} threads, not {threads}. It is made once in a process: start this one "
            f"with TVM_NUM_THREADS={threads}, and measure other numbers of threads in other processes."
        )
