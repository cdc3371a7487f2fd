"""One module compiled for one target: how long it took, its functions, and what each of them is made of."""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cuda
from targets import TARGETS, collecting_objects, is_on_cpu
from tracing import ExecutionTrace

from tvmdash.errors import DashboardError
from tvmdash.measure.elf import function_sizes
from tvmdash.relax_util.passes import PassWatch, pipeline_steps
from tvmdash.relax_util.targets import make_target

PACKED, OWN = "__tvm_ffi_", "__"
"""Prefixes of names: of a kernel on a processor, and of LLVM's helpers beside the kernels of a device."""
MAIN = "__tvm_ffi_main"
"""The caller of the kernels, where it is compiled with them."""
SOURCE_SIZE, CODE_SIZE, SHARED_MEMORY, KERNELS = "source_size", "code_size", "shared_memory", "kernels"
HOST_SIZE = "host_size"
"""The assembly of what calls the kernels of a device; `source_size` is without it."""


@dataclass(frozen=True)
class Function:
    """A function as generated: its text, and its numbers by the names of metrics (`registers`, ...)."""

    text: str = field(repr=False)
    numbers: Mapping[str, int]

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]

    def to_json(self) -> dict[str, int | str]:
        return {"hash": self.hash, **self.numbers}


@dataclass(frozen=True)
class Generated:
    """A module compiled for a target.

    compile_ms: CPU time. numbers: of the whole, by metric; facts: other numbers; missing: what is not known, and why.
    """

    compile_ms: float
    passes_ms: tuple[tuple[str, float], ...]
    planned_memory_bytes: int | None
    functions: Mapping[str, Function]
    numbers: Mapping[str, int]
    missing: Mapping[str, str]
    trace: ExecutionTrace
    executable: Any = field(repr=False)
    facts: Mapping[str, int] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """Of the names and texts of all functions."""
        return hashlib.sha256(
            "\n".join(f"{name} {self.functions[name].hash}" for name in sorted(self.functions)).encode()
        ).hexdigest()

    def counted(self, name: str, numbers: Mapping[str, int]) -> Generated:
        """Add one more number of functions, as far as they are known, and its sum."""
        functions = {
            own: replace(function, numbers={**function.numbers, name: numbers[own]}) if own in numbers else function
            for own, function in self.functions.items()
        }
        total = sum(function.numbers.get(name, 0) for function in functions.values())
        return replace(self, functions=functions, numbers={**self.numbers, name: total})


def generate(module: Any, target: str) -> Generated:
    """Compile a Relax module for a target of `TARGETS`; DashboardError where TVM cannot make it."""
    watch, trace = PassWatch(()), ExecutionTrace()
    with collecting_objects() as objects:
        begun = time.process_time_ns()
        try:
            executable = _build(module, target, watch, trace)
        except Exception as error:  # TVM's passes raise anything
            raise DashboardError(f"TVM cannot generate code for {target}: {_describe_error(error)}") from error
        compile_ms = (time.process_time_ns() - begun - trace.spent_ns) / 1e6
    kind, text, binaries = _generated_text(executable, target, objects)
    functions, missing = _describe(kind, text, binaries, target)
    functions = functions if is_on_cpu(target) else {**_host_functions(executable), **functions}
    return Generated(
        compile_ms, watch.times_ms, watch.planned_memory_bytes, functions, _sum(functions, target), missing, trace,
        executable,
    )  # fmt: skip


def _describe_error(error: Exception) -> str:
    """Name the kind of error, where in TVM's Python it was raised, and its words."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/tvm/" in frame.filename]
    at = f" at tvm/{frames[-1].filename.rpartition('/tvm/')[2]}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{at}: {error}"[:1500]


def _build(module: Any, target: str, watch: PassWatch, trace: ExecutionTrace) -> Any:
    import tvm
    from tvm import relax

    made = make_target(TARGETS[target])
    with made, tvm.transform.PassContext(instruments=[watch.instrument(), trace.instrument()]):
        trace.start(module)
        steps = [*pipeline_steps("zero"), *([] if is_on_cpu(target) else [_default_schedule()])]
        return relax.build(tvm.transform.Sequential(steps)(module), made)


def _default_schedule() -> Any:
    """Apply Dlight's rules, as TVM does to kernels that nobody has tuned."""
    try:
        from tvm.s_tir import dlight
    except ImportError:  # its place before 0.25
        from tvm import dlight

    gpu = dlight.gpu
    return dlight.ApplyDefaultSchedule(
        gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback()
    )


def _generated_text(executable: Any, target: str, objects: list[bytes]) -> tuple[str, str, list[bytes]]:
    """Return the kind of the module that holds the kernels, its text (assembly if it has some), its object files."""
    wanted = {"llvm": {"llvm"}, "rocm": {"hip", "rocm"}}.get(TARGETS[target]["kind"], {TARGETS[target]["kind"]})
    modules = [module for module in _walk(executable.mod) if module.kind in wanted]
    if not modules:
        raise DashboardError(f"the module for {target} contains no generated code of kind {' or '.join(wanted)}.")
    kind = modules[0].kind
    form = {"llvm": "s", "hip": "asm", "rocm": "asm"}.get(kind, "")
    text = "\n".join(str(module.inspect_source(form)) for module in modules)
    return kind, text, [_object(module) for module in modules] if kind == "llvm" else list(objects)


def _host_functions(executable: Any) -> dict[str, Function]:
    texts = [str(module.inspect_source("s")) for module in _walk(executable.mod) if module.kind == "llvm"]
    parts = {name: part for text in texts for name, part in split("llvm", text).items()}
    return {name: Function(part, {HOST_SIZE: len(part.encode())}) for name, part in sorted(parts.items())}


def _walk(module: Any) -> Iterator[Any]:
    for imported in module.imports:
        yield imported
        yield from _walk(imported)


def _object(module: Any) -> bytes:
    with tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
        path = Path(folder) / "module.o"
        module.write_to_file(str(path))
        return path.read_bytes()


def _describe(kind: str, text: str, binaries: list[bytes], target: str) -> tuple[dict[str, Function], dict[str, str]]:
    """Return every function with its numbers; what could not be found out of them, and why."""
    texts, missing = split(kind, text), dict[str, str]()
    found: dict[str, dict[str, int]] = {name: {SOURCE_SIZE: len(part.encode())} for name, part in texts.items()}
    for name, part in texts.items():
        shared = count_shared_bytes(kind, part)
        if shared is not None:
            found[name][SHARED_MEMORY] = shared
    if kind == "cuda":
        try:
            resources, binaries = cuda.assemble(text, str(TARGETS[target]["arch"]))
            _add(found, resources)
        except cuda.NoAssemblerError as error:
            missing["registers"] = str(error)
    elif kind in {"hip", "rocm"}:
        _add(found, read_amd_resources(text))
    for binary in binaries:
        _add(found, {name: {CODE_SIZE: size} for name, size in function_sizes(binary).items()})
    return {name: Function(texts[name], found[name]) for name in sorted(texts)}, missing


def _add(found: dict[str, dict[str, int]], more: Mapping[str, Mapping[str, int]]) -> None:
    for name, numbers in more.items():
        if name in found:
            found[name].update(numbers)


def _sum(functions: Mapping[str, Function], target: str) -> dict[str, int]:
    """Sum each number over all functions that have it, and count the kernels."""
    totals: dict[str, int] = {}
    for function in functions.values():
        for name, number in function.numbers.items():
            totals[name] = totals.get(name, 0) + number
    return {
        **totals,
        KERNELS: sum(SOURCE_SIZE in functions[name].numbers and _is_kernel(name, target) for name in functions),
    }


def _is_kernel(name: str, target: str) -> bool:
    return name.startswith(PACKED) and name != MAIN if is_on_cpu(target) else not name.startswith(OWN)


_CUDA = re.compile(r'^extern "C" __global__ [^;{]*?(\w+)\([^(){};]*\) \{$.*?^\}$', re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"^// Function: (\w+)$", re.MULTILINE)
_PROTOTYPE = re.compile(r"^__kernel void .*\);\n", re.MULTILINE)
_ASSEMBLY = re.compile(r"^\t\.type\t(\S+),[@%]function\n(.*?)^\t\.size\t\1,", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"^\.Lfunc_begin(\d+):", re.MULTILINE)
_POOL = re.compile(r"^\.L(?:CPI|JTI)(\d+)_\d+:\n(?:\t\..*\n)+", re.MULTILINE)
_DEBUG = re.compile(r"^(?:\t\.(?:loc|file|cfi_\w+|p2align|globl|section)\b.*|\.Ltmp\d+:)\n", re.MULTILINE)
_LABEL = re.compile(r"\.L(BB|CPI|JTI|func_begin|func_end)\d+")
_STRING = re.compile(r"^(\.L\.str(?:\.\d+)?):\n\t\.asciz\t(\".*\")$", re.MULTILINE)
_USED_STRING = re.compile(r"\.L\.str(?:\.\d+)?")


def split(kind: str, text: str) -> dict[str, str]:
    """Split what a module of that kind (`cuda`, `opencl`, `llvm`, ...) holds into the text of each function."""
    return dict(_SPLITTERS[kind](text))


def _split_cuda(text: str) -> Iterator[tuple[str, str]]:
    for found in _CUDA.finditer(text):
        yield found[1], found[0]


def _split_marked(text: str) -> Iterator[tuple[str, str]]:
    """Yield the functions, each behind `// Function: NAME`, perhaps twice; OpenCL repeats all prototypes."""
    parts = _MARK.split(text)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        if body.strip():
            yield name, _PROTOTYPE.sub("", body).strip()


def _split_assembly(text: str) -> Iterator[tuple[str, str]]:
    """Yield LLVM's assembly with each function's constants, jump tables and strings; no label says which one it is."""
    strings = {found[1]: found[2] for found in _STRING.finditer(text)}
    pools: dict[str, str] = {}
    for pool in _POOL.finditer(text):
        pools[pool[1]] = pools.get(pool[1], "") + pool[0]
    for found in _ASSEMBLY.finditer(text):
        number = _NUMBER.search(found[2])
        whole = found[2] + (pools.get(number[1], "") if number else "")
        bare = _LABEL.sub(r".L\1", _DEBUG.sub("", whole))
        yield found[1], _USED_STRING.sub(lambda used: strings.get(used[0], used[0]), bare)


_SPLITTERS: Mapping[str, Callable[[str], Iterator[tuple[str, str]]]] = {
    "cuda": _split_cuda,
    "opencl": _split_marked,
    "metal": _split_marked,
    "webgpu": _split_marked,
    "llvm": _split_assembly,
    "hip": _split_assembly,
    "rocm": _split_assembly,
}

_BITS = {"half": 16, "float": 32, "double": 64, "f16": 16, "f32": 32, "bool": 8, "char": 8, "uchar": 8}
_BITS |= {"int": 32, "uint": 32, "i32": 32, "u32": 32, "short": 16, "ushort": 16, "long": 64, "ulong": 64}
_SHARED = (
    re.compile(r"^\s*(?:__local|threadgroup) (\w+?)(\d*) \w+\[(\d+)\];", re.MULTILINE),
    re.compile(r"^var<workgroup> \w+ : array<(\w+), (\d+)>;", re.MULTILINE),
)


def count_shared_bytes(kind: str, text: str) -> int | None:
    """Count the work group's memory that a function in OpenCL C, Metal or WGSL declares; None for other languages."""
    if kind in {"opencl", "metal"}:
        return sum(_bytes(name, count) * int(lanes or 1) for name, lanes, count in _SHARED[0].findall(text))
    if kind == "webgpu":
        return sum(_bytes(name, count) for name, count in _SHARED[1].findall(text))
    return None


def _bytes(name: str, count: str) -> int:
    return _BITS.get(name, 32) // 8 * int(count)


_KEYS: Mapping[str, str] = {
    "vgpr_count": "registers",
    "sgpr_count": "scalar_registers",
    "group_segment_fixed_size": "shared_memory",
}
_SPILLS = ("vgpr_spill_count", "sgpr_spill_count")
_BYTES = 4
"""Of a register."""
_KERNEL = re.compile(r"^  - \.", re.MULTILINE)
_ENTRY = re.compile(r"^    \.(\w+): +(\S+)$", re.MULTILINE)


def read_amd_resources(assembly: str) -> dict[str, dict[str, int]]:
    """Read registers, spills in bytes and shared memory of each kernel.

    The format is LLVM's "Code Object V3 Metadata" in AMDGPUUsage.
    """
    metadata = assembly.partition("amdhsa.kernels:")[2].partition(".end_amdgpu_metadata")[0]
    kernels = {}
    for part in _KERNEL.split(metadata)[1:]:
        entries = dict(_ENTRY.findall(f"    .{part}"))
        spills = _BYTES * sum(int(entries[name]) for name in _SPILLS)
        kernels[entries["name"]] = {**{ours: int(entries[name]) for name, ours in _KEYS.items()}, "spills": spills}
    return kernels
