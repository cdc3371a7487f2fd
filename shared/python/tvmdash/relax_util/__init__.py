"""TVM: compile with Relax, load, run and profile. Importing it imports no TVM."""

from __future__ import annotations

from tvmdash.relax_util.build import (
    EXEC_MODES,
    Compiled,
    CompileOptions,
    TvmFacts,
    compile_module,
    tvm_facts,
)
from tvmdash.relax_util.loading import Loaded, load, use_threads

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
