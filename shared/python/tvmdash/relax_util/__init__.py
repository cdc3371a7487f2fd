"""TVM: compile with Relax, load, run and profile. Importing it imports no TVM."""

from __future__ import annotations

from tvmdash.relax_util.build import (
    EXEC_MODES,
    Compiled,
    CompileOptions,
    Loaded,
    TvmFacts,
    compile_module,
    load,
    tvm_facts,
    use_threads,
)

__all__ = [
    "EXEC_MODES",
    "CompileOptions",
    "Compiled",
    "Loaded",
    "TvmFacts",
    "compile_module",
    "load",
    "tvm_facts",
    "use_threads",
]
