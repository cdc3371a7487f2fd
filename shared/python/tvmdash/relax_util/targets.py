"""Targets of TVM."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

from tvmdash.errors import DashboardError

OPT_LEVELS = (0, 1, 2, 3)
_X86_64_V3 = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}


def default_target(threads: int, flags: Sequence[str]) -> dict[str, Any]:
    """Return the LLVM target for this machine; `flags` are its CPU's, from /proc/cpuinfo.

    A level of the x86-64 psABI rather than the very processor: it is the same on most machines, and untuned code was
    slower for the own name of a new processor (znver5).
    """
    target: dict[str, Any] = {"kind": "llvm", "num-cores": threads}
    if platform.machine() == "x86_64":
        target["mcpu"] = "x86-64-v3" if set(flags) >= _X86_64_V3 else "x86-64"
    return target


def make_target(target: Mapping[str, Any] | str) -> Any:
    """Make the tvm.target.Target; raise for what TVM would silently take for something else."""
    import tvm

    try:
        made = tvm.target.Target(dict(target) if isinstance(target, Mapping) else target)
    except (ValueError, TypeError, RuntimeError) as error:
        raise DashboardError(f"target {target!r}: {error}".splitlines()[0]) from error
    level, mcpu = made.attrs.get("opt-level"), made.attrs.get("mcpu")
    if level is not None and level not in OPT_LEVELS:
        raise DashboardError(f"target {target!r}: opt-level {level} does not exist. Use 0, 1, 2 or 3.")
    if mcpu and made.kind.name == "llvm" and not _is_cpu(str(mcpu), str(made.attrs.get("mtriple") or "")):
        raise DashboardError(
            f"target {target!r}: this LLVM does not support mcpu {str(mcpu)!r}. Try x86-64-v3 or x86-64."
        )
    return made


def _is_cpu(mcpu: str, triple: str) -> bool:
    from tvm.target import codegen

    return bool(codegen.llvm_is_valid_cpu(mcpu, triple or codegen.llvm_get_system_triple()))
