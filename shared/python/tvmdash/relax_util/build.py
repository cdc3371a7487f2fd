"""Compile with Relax, and identify the running TVM. Importing this module imports no TVM."""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.measure import prebuilt
from tvmdash.measure.elf import loaded_bytes, read_comment
from tvmdash.measure.phases import COMPILE, phase
from tvmdash.measure.prebuilt import Prebuilt
from tvmdash.networks.ops import Array
from tvmdash.relax_util.linking import link
from tvmdash.relax_util.on_device import code_of_device
from tvmdash.relax_util.passes import CODE_GENERATION, PassWatch, describe_operators, pipeline_steps, unknown_name
from tvmdash.relax_util.targets import make_target

BUILD_VARIABLE = "TVMDASH_BUILD"
"""Variable with the build of an artifact from source: `toolchain` and `options` as JSON."""
EXEC_MODES = ("bytecode", "compiled")


@dataclass(frozen=True)
class CompileOptions:
    """Options of a compilation.

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

    def describe(self) -> dict[str, Any]:
        """Return the options as a record holds them; the target has its own column."""
        passes = {"added_passes": list(self.added_passes), "disabled_passes": list(self.disabled_passes)}
        return {"pipeline": self.pipeline, "exec_mode": self.exec_mode, **passes}


@dataclass(frozen=True)
class CompileFacts:
    """Cost and results of a compilation, in numbers.

    `compile_ms` reaches from the Relax module to machine code in memory, without what TVM imports meanwhile, once in a
    process; `compile_cpu_ms`: the same by the CPU clock. `pass_times_ms`: each pass with its own time, longest first.
    `code_size_bytes`: machine code with its tables, as loaded, without symbols; None where the target is not LLVM; that
    of a device is not counted. `planned_memory_bytes`: all storage that a call asks for, the output's included; None
    where shapes are not static. `module_hash`: equal for two compilations exactly when code, also that of a device, and
    bytecode are the same (the weights are not in it). `operators`: what passes.describe_operators says.
    """

    compile_ms: float
    compile_cpu_ms: float
    pass_times_ms: tuple[tuple[str, float], ...] = field(repr=False)
    code_size_bytes: int | None
    planned_memory_bytes: int | None
    module_hash: str
    operators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, kw_only=True)


@dataclass(frozen=True)
class Compiled(CompileFacts):
    """A compiled module: TVM's executable, or the library that a process before this one made of it.

    content_hash: of the library's module with its weights. runtime: TVM's runtime library that it was made beside.
    """

    options: CompileOptions
    executable: Any = field(default=None, repr=False)
    library: Path | None = None
    content_hash: str = ""
    runtime: str = ""

    @property
    def exec_mode(self) -> str:
        return self.options.exec_mode


@dataclass(frozen=True)
class TvmFacts:
    """The TVM that this process has imported; `commit` is None where the build carries none."""

    version: str
    commit: str | None
    ffi_version: str
    llvm_version: int
    library_path: str


def tvm_facts() -> TvmFacts:
    """Return the facts of the running TVM."""
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


def describe_build(facts: TvmFacts) -> dict[str, Any]:
    """Return how this TVM is built, for the engine_config of a record.

    From source: CMake's options and the compiler's name, which the night knows; else what the library says of itself.
    """
    said = json.loads(os.environ.get(BUILD_VARIABLE) or "{}")
    compilers = read_comment(Path(facts.library_path)) if facts.library_path else ()
    return {
        "llvm": f"llvm-{facts.llvm_version}",
        "tvm_ffi": facts.ffi_version,
        "compiler": next(iter(compilers), None),
        "toolchain": said.get("toolchain"),
        "flags": json.loads(said.get("options") or "{}"),
    }


def _library_path() -> str:
    """Return the path of TVM's runtime library in this process."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    mapped = {line.split(maxsplit=5)[5] for line in lines if "/libtvm" in line}
    runtime = sorted(mapped, key=lambda path: (Path(path).name != "libtvm_runtime.so", path))
    return runtime[0] if runtime else ""


def compile_module(module: Any, options: CompileOptions, *, shared: str = "") -> Compiled:
    """Compile a Relax IRModule (see relax_lower.lower), or the one that a function without arguments returns.

    With a function it is compiled once for all processes that measure the point: these load the library. It is called
    only where something has to be compiled. `shared` names a module of several points, which each process compiles or
    loads once. DashboardError for a target, pipeline, mode or pass that does not exist, and for what TVM cannot
    compile.
    """
    kept = prebuilt.current()
    stem = kept.next_stem(shared) if kept and callable(module) else None
    if not shared:
        return _make_or_find(module, options, kept, stem)
    if shared not in _shared:
        _shared[shared] = _make_or_find(module, options, kept, stem)
    return _shared[shared]


_shared: dict[str, Compiled] = {}
"""Modules that this process compiled or loaded for several points, by name."""


def _make_or_find(module: Any, options: CompileOptions, kept: Prebuilt | None, stem: Path | None) -> Compiled:
    if kept is None or stem is None:
        return _compile(module() if callable(module) else module, options)
    library, facts_file = stem.with_suffix(".so"), stem.with_suffix(".json")
    facts = before = common.read_json(facts_file) if facts_file.exists() else {}
    if kept.builds:
        compiled = _compile(module(), options)
        facts = {**before, **{name: getattr(compiled, name) for name in CompileFacts.__dataclass_fields__}}
        if before.get("module_hash") != compiled.module_hash:  # else it was compiled again to see how long that takes
            with phase("link"):
                link(compiled.executable, stem, device="", cc="", is_here=True, layout=kept.layout)
            facts |= {"content_hash": _hash_content(compiled.executable), "runtime": _library_path()}
        common.write_json(facts_file, facts, durable=False)
    # A process that compiles goes on with the library, too: of the module in memory TVM would make machine code again.
    return Compiled(options=options, library=library, **facts)


def hash_program(compiled: Compiled, inputs: Sequence[Array]) -> str:
    """Hash machine code, bytecode, weights and inputs; equal where two processes call the same with the same."""
    digest = hashlib.sha256(compiled.module_hash.encode())
    digest.update(bytes.fromhex(compiled.content_hash or _hash_content(compiled.executable)))
    for array in inputs:
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _hash_content(executable: Any) -> str:
    with tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
        path = Path(folder) / "module"
        with _stderr_closed():
            executable.mod.write_to_file(str(path))
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _stderr_closed() -> Iterator[None]:
    # TVM warns of each constant that it writes, which the reader of a night's log can do nothing about
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _compile(module: Any, options: CompileOptions) -> Compiled:
    if options.exec_mode not in EXEC_MODES:
        raise unknown_name("exec_mode", options.exec_mode, EXEC_MODES)
    target, steps = make_target(options.target), pipeline_steps(options.pipeline, options.added_passes)
    watch = PassWatch(options.disabled_passes)
    begun, begun_cpu = time.perf_counter_ns(), time.process_time_ns()
    try:
        with phase(COMPILE), _imports_timed(watch) as imports_ns:
            with _code_generation_timed(str(target.kind.name), watch):
                executable = _build(module, target, steps, options.exec_mode, watch)
            with phase("compile: machine code"), watch.timing(CODE_GENERATION):
                code = _machine_code(executable.mod)
    except Exception as error:  # TVM's passes raise anything; who chose the options needs them beside TVM's words
        raise DashboardError(f"TVM cannot compile with {options}: {error}"[:1500]) from error
    compile_ms = (time.perf_counter_ns() - begun - imports_ns[0]) / 1e6
    compile_cpu_ms = (time.process_time_ns() - begun_cpu - imports_ns[1]) / 1e6
    watch.check_disabled()
    of_device = code_of_device(executable.mod)
    return Compiled(
        executable=executable,
        options=options,
        compile_ms=compile_ms,
        compile_cpu_ms=compile_cpu_ms,
        pass_times_ms=watch.times_ms,
        code_size_bytes=sum(loaded_bytes(part) for part in code) if code and not of_device else None,
        planned_memory_bytes=watch.planned_memory_bytes,
        module_hash=hashlib.sha256(b"\0".join([*code, *of_device, executable.as_text().encode()])).hexdigest(),
        operators=describe_operators(watch.operators_of),
    )


@contextlib.contextmanager
def _code_generation_timed(kind: str, watch: PassWatch) -> Iterator[None]:
    """Time code generation from lowered functions, which TVM calls as a function of the target, as a pass."""
    import tvm

    name = f"target.build.{kind}"
    plain = tvm.get_global_func(name, allow_missing=True)
    if plain is None:
        yield
        return

    def timed(*arguments: Any) -> Any:
        with watch.timing(CODE_GENERATION):
            return plain(*arguments)

    tvm.register_global_func(name, timed, override=True)
    try:
        yield
    finally:
        tvm.register_global_func(name, plain, override=True)


@contextlib.contextmanager
def _imports_timed(watch: PassWatch) -> Iterator[list[int]]:
    """Yield the nanoseconds that imports take in the block, by both clocks; they count for no pass.

    The first tensor intrinsic's imports take 46 s.
    """
    plain, depth, taken_ns = builtins.__import__, [0], [0, 0]

    def timed(*arguments: Any, **named: Any) -> Any:
        begun, begun_cpu, depth[0] = time.perf_counter_ns(), time.process_time_ns(), depth[0] + 1
        try:
            return plain(*arguments, **named)
        finally:
            depth[0] -= 1
            # only the outermost import, which contains the others
            if not depth[0]:
                elapsed = time.perf_counter_ns() - begun
                watch.leave_out(elapsed)
                taken_ns[0] += elapsed
                taken_ns[1] += time.process_time_ns() - begun_cpu

    builtins.__import__ = timed
    try:
        yield taken_ns
    finally:
        builtins.__import__ = plain


def _build(module: Any, target: Any, steps: Sequence[Any], exec_mode: str, watch: PassWatch) -> Any:
    import tvm
    from tvm import relax

    with target, tvm.transform.PassContext(instruments=[watch.instrument()]):
        with phase("compile: pipeline"):
            module = tvm.transform.Sequential(steps)(module)
        with phase("compile: build"):
            return relax.build(module, target=target, exec_mode=exec_mode)


def _machine_code(module: Any) -> list[bytes]:
    """Return the object files of the LLVM modules in a runtime module's imports: its JIT makes the same."""
    parts = []
    with tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
        for index, imported in enumerate(part for part in module.imports if part.kind == "llvm"):
            path = Path(folder) / f"{index}.o"
            imported.write_to_file(str(path))
            parts.append(path.read_bytes())
    return parts
