"""The output of each pass of a compilation on each function, as hashes, which show where two compilations part."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

FOLDING = "FoldConstant"
"""It compiles and runs pieces of the program; the passes in that are none of the program's own."""
INPUT = "(input)"
MAIN = "main"
"""The program itself."""
GONE = ""


class ExecutionTrace:
    """`steps`: after each pass, as `name #count`, the hash of every function that the pass made or changed, by name.

    Behind the hash of a Relax function are the names of the functions that it calls; GONE stands for a function that is
    no longer there. The first step is the input. spent_ns: what watching took.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[str, Mapping[str, str]]] = []
        self.spent_ns = 0
        self._counts: Counter[str] = Counter()
        self._running: list[str] = []
        self._hashes: dict[str, tuple[Any, str]] = {}
        self._last: dict[str, Any] = {}
        self._program: Any = None

    def start(self, module: Any) -> None:
        """Take the module that is compiled, before any pass."""
        self._take(INPUT, module)

    def instrument(self) -> Any:
        """Make the tvm.ir.instrument.PassInstrument that watches."""
        from tvm.ir.instrument import PassInstrument

        trace = self

        class TracingWatch(PassInstrument):  # type: ignore[misc, no-any-unimported, unused-ignore]
            def run_before_pass(self, _module: Any, info: Any) -> None:
                trace._running.append(str(info.name))

            def run_after_pass(self, module: Any, info: Any) -> None:
                trace._running.pop()
                if FOLDING not in trace._running:
                    trace._take(str(info.name), module)

        return TracingWatch()

    def read_texts(self) -> Mapping[str, str]:
        """Print the functions as code generation was given them."""
        return {name: function.script(show_meta=False) for name, function in sorted(self._last.items())}

    def read_program(self) -> str:
        """Print `main` as the last pass on Relax left it: calls of kernels, and the storage that they write to."""
        return "" if self._program is None else str(self._program.script(show_meta=False))

    def _take(self, name: str, module: Any) -> None:
        begun = time.process_time_ns()
        self._counts[name] += 1
        made = {}
        for variable, function in module.functions.items():
            own = str(variable.name_hint)
            known = self._hashes.get(own)
            if known is None or not known[0].same_as(function):
                text = " ".join([_hash(function), *_called(function)])
                if known is None or known[1] != text:
                    made[own] = text
                self._hashes[own] = (function, text)
            if name.startswith(_LATE):
                self._last[own] = function
            elif own == MAIN:
                self._program = function
        for own in self._hashes.keys() - {str(variable.name_hint) for variable in module.functions}:
            del self._hashes[own]
            made[own] = GONE
        self.steps.append((f"{name} #{self._counts[name]}", made))
        self.spent_ns += time.process_time_ns() - begun


_LATE = ("tirx.", "tir.")
"""The passes on functions that become code."""


def _hash(function: Any) -> str:
    """Hash the structure: the same in every process, whatever the variables are called."""
    import tvm
    import tvm_ffi

    compute = getattr(tvm_ffi, "structural_hash", None) or tvm.ir.structural_hash
    return f"{int(compute(function, map_free_vars=True)) & _MASK:016x}"


def _called(function: Any) -> list[str]:
    """List the functions that a Relax function calls."""
    from tvm import ir, relax

    names: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, ir.GlobalVar):
            names.add(str(node.name_hint))

    if isinstance(function, relax.Function):
        relax.analysis.post_order_visit(function, visit)
    return sorted(names)


_MASK = (1 << 64) - 1
