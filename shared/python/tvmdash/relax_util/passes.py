"""Pipelines by name, and a watch on every pass of one compilation: its time, whether it ran, the memory it plans."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import logging
import math
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tvmdash.errors import DashboardError

_log = logging.getLogger(__name__)
CODE_GENERATION = "LLVM"
"""Entry among the times of passes for machine code generation, which is no pass."""
PIPELINES: Mapping[str, tuple[str, ...]] = {
    "default": (),
    "zero": ("zero",),
    "zero_fold_bn": ("FoldBatchnormToConv2D", "zero"),
    "zero_decompose": ("DecomposeOpsForInference", "zero"),
}
"""Passes before `relax.build`, which lowers a module and plans its memory but neither fuses nor folds.

A step in lower case is a pipeline of relax.get_pipeline, any other a pass of relax.transform.
"""

_MAKE_OPERATORS = ("LegalizeOps", "FuseTIR")
"""After the last of these every operator is a function of its own, which no schedule has changed yet."""
_LAST_ON_MEMORY = "LowerAllocTensor"
"""After this pass every byte the program asks for stands in an alloc_storage."""


def unknown_name(kind: str, name: str, known: Collection[str]) -> DashboardError:
    """Return the error for a name that is not among `known`, with the nearest one."""
    near = difflib.get_close_matches(name, known, n=1)
    remedy = f"Did you mean {near[0]!r}?" if near else f"Use one of: {', '.join(sorted(known))}."
    return DashboardError(f"{kind} {name!r} is unknown. {remedy}")


def pipeline_steps(pipeline: str, added: Sequence[str] = ()) -> list[Any]:
    """Return the tvm.transform.Pass objects of a pipeline of `PIPELINES` or of TVM, after the `added` ones."""
    from tvm.relax.pipeline import PIPELINE_MAP

    if pipeline not in PIPELINES and pipeline not in PIPELINE_MAP:
        raise unknown_name("pipeline", pipeline, PIPELINES)
    return [_step(name) for name in (*added, *PIPELINES.get(pipeline, (pipeline,)))]


def _step(name: str) -> Any:
    from tvm import relax

    if name.islower():
        return relax.get_pipeline(name)
    known = [known for known in dir(relax.transform) if known[0].isupper()]
    if name not in known:
        raise unknown_name("the pass of relax.transform", name, known)
    try:
        return getattr(relax.transform, name)()
    except TypeError as error:
        raise DashboardError(f"pass {name!r} cannot be added by its name alone: {error}.") from error


class PassWatch:
    """Watches one compilation. `instrument` goes into its PassContext.

    A disabled pass is skipped wherever it is called; PassContext's own `disabled_pass` only skips it in a Sequential,
    and says nothing about a name that no pass has.
    """

    def __init__(self, disabled: Collection[str]) -> None:
        self._disabled = frozenset(disabled)
        self._own_ns: Counter[str] = Counter()
        self._running: list[tuple[int, int]] = []
        self._skipped: set[str] = set()
        self.planned_memory_bytes: int | None = None
        self.operators_of: Any = None
        """The module after `_MAKE_OPERATORS`; it is analyzed once the compilation has been timed."""

    @property
    def times_ms(self) -> tuple[tuple[str, float], ...]:
        """Return each pass with its own time in ms, longest first: all its runs together, without nested passes."""
        return tuple((name, own_ns / 1e6) for name, own_ns in self._own_ns.most_common())

    @contextlib.contextmanager
    def timing(self, name: str) -> Iterator[None]:
        """Time a step that is no pass like one, apart from the pass around it."""
        self._begun()
        yield
        self._ended(name)

    def leave_out(self, elapsed_ns: int) -> None:
        """Count the time that just elapsed for no pass."""
        if self._running:
            begun, so_far = self._running[-1]
            self._running[-1] = (begun, so_far + elapsed_ns)

    def check_disabled(self) -> None:
        """Raise for a disabled pass that this compilation has never come to."""
        for name in sorted(self._disabled - self._skipped):
            raise unknown_name("in this compilation, the pass", name, self._own_ns)

    def instrument(self) -> Any:
        """The pass instrument, a tvm.ir.instrument.PassInstrument."""
        from tvm.ir.instrument import PassInstrument

        watch = self

        class Watch(PassInstrument):  # type: ignore[misc, no-any-unimported, unused-ignore]
            def should_run(self, _module: Any, info: Any) -> bool:
                return watch._should_run(str(info.name))

            def run_before_pass(self, _module: Any, _info: Any) -> None:
                watch._begun()

            def run_after_pass(self, module: Any, info: Any) -> None:
                watch._ended(str(info.name))
                watch._look_at(module, str(info.name))

        return Watch()

    def _should_run(self, name: str) -> bool:
        if name in self._disabled:
            self._skipped.add(name)
            return False
        return True

    def _begun(self) -> None:
        self._running.append((time.perf_counter_ns(), 0))

    def _ended(self, name: str) -> None:
        begun, inside = self._running.pop()
        elapsed = time.perf_counter_ns() - begun
        self._own_ns[name] += elapsed - inside
        self.leave_out(elapsed)

    def _look_at(self, module: Any, name: str) -> None:
        if name in _MAKE_OPERATORS:
            self.operators_of = module
        if name == _LAST_ON_MEMORY:
            self.planned_memory_bytes = _storage_bytes(module)


def _storage_bytes(module: Any) -> int | None:
    """Return the bytes of every alloc_storage in the Relax functions of `module`; None where a size is unknown."""
    from tvm import ir, relax

    sizes: list[int | None] = []

    def visit(node: Any) -> None:
        is_call = isinstance(node, relax.Call) and isinstance(node.op, ir.Op)
        if is_call and node.op.name == "relax.memory.alloc_storage":
            size = node.args[0].values[0]
            sizes.append(int(size) if hasattr(size, "value") else None)

    for function in module.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return None if None in sizes else sum(size for size in sizes if size is not None)


def describe_operators(module: Any) -> dict[str, dict[str, Any]]:
    """Return each operator's structural hash, its buffers, and its arithmetic and bytes once through.

    The hash leaves the name aside, which the compiler numbers. Nothing where the running TVM's words for it are others:
    that is no fault of what is compiled.
    """
    from tvm import relax

    found: dict[str, dict[str, Any]] = {}
    for name, function in module.functions.items() if module is not None else ():
        if isinstance(function, relax.Function) or not hasattr(function, "params"):
            continue
        try:
            buffers = [getattr(function, "buffer_map", {}).get(each, each) for each in function.params]
            tensors = [each for each in buffers if hasattr(each, "shape")]
            shapes = [(str(each.dtype), [int(size) for size in each.shape]) for each in tensors]
            found[str(name.name_hint)] = {
                "hash": f"{_hash(function.without_attr('global_symbol')) & (1 << 64) - 1:016x}",
                "shapes": " ".join(f"{dtype}[{','.join(map(str, shape))}]" for dtype, shape in shapes),
                "flop": _count_arithmetic(function),
                "bytes": sum(math.prod(shape) * _count_bits(dtype) // 8 for dtype, shape in shapes),
            }
        # TVM raises anything, and what it calls these things changes from version to version.
        except Exception:  # noqa: BLE001
            _log.debug("%s is not described", name, exc_info=True)
    return found


def _hash(function: Any) -> int:
    home = importlib.import_module("tvm.ir")
    if not hasattr(home, "structural_hash"):  # since 0.26
        home = importlib.import_module("tvm_ffi")
    return int(home.structural_hash(function))


def _count_arithmetic(function: Any) -> float:
    from tvm import ir

    homes = ("tvm.s_tir.analysis", "tvm.tir.analysis")  # since 0.26, before
    home = next(home for home in homes if importlib.util.find_spec(home.rpartition(".")[0]) is not None)
    return float(importlib.import_module(home).estimate_tir_flops(ir.IRModule({"f": function})))


def _count_bits(dtype: str) -> int:
    digits = "".join(character for character in dtype.partition("x")[0] if character.isdecimal())
    return int(digits or 8)
