"""Generated code as text, cut into its functions, without what depends on the functions beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

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
    """The text of each function in what a module of that kind (`cuda`, `opencl`, `llvm`, ...) holds."""
    return dict(_SPLITTERS[kind](text))


def _split_cuda(text: str) -> Iterator[tuple[str, str]]:
    for found in _CUDA.finditer(text):
        yield found[1], found[0]


def _split_marked(text: str) -> Iterator[tuple[str, str]]:
    """`// Function: NAME` is before each of them, and may be there twice; OpenCL repeats all prototypes."""
    parts = _MARK.split(text)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        if body.strip():
            yield name, _PROTOTYPE.sub("", body).strip()


def _split_assembly(text: str) -> Iterator[tuple[str, str]]:
    """LLVM's assembly with the constants, jump tables and strings of each function; no label says which one it is."""
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
    """The memory of a work group that a function in OpenCL C, Metal or WGSL declares; None for any other language."""
    if kind in {"opencl", "metal"}:
        return sum(_bytes(name, count) * int(lanes or 1) for name, lanes, count in _SHARED[0].findall(text))
    if kind == "webgpu":
        return sum(_bytes(name, count) for name, count in _SHARED[1].findall(text))
    return None


def _bytes(name: str, count: str) -> int:
    return _BITS.get(name, 32) // 8 * int(count)
