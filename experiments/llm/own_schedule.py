"""A schedule of matrix products for processors: ours, because TVM's dlight has none but for a vector's product.

Columns are computed in parallel, each as the sum of 16 lanes, so that LLVM multiplies vectors.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax, s_tir, tirx

PIPELINE = "llm_ours"
LANES, COLUMNS = 16, 4
"""Partial sums of a column, and columns that are computed at once."""
PRODUCT, UNPACKED = "NT_matmul", "dequantize"
_SCHEDULED = "tirx.is_scheduled"


def register() -> None:
    """Let TVM know the pipeline: `zero`, whose products are then scheduled."""
    if PIPELINE not in relax.pipeline.PIPELINE_MAP:
        schedule = tvm.transform.module_pass(_schedule_module, opt_level=0, name="OwnSchedule")
        relax.register_pipeline(PIPELINE)(lambda: tvm.transform.Sequential([relax.get_pipeline("zero"), schedule]))


def _schedule_module(module: Any, _context: Any) -> Any:
    for name, function in module.functions_items():
        if isinstance(function, tirx.PrimFunc) and _SCHEDULED not in (function.attrs or {}):
            schedule = s_tir.Schedule(function)
            found = schedule.get_child_blocks(schedule.get_sblock("root"))
            blocks = {schedule.get(block).name_hint: block for block in found}
            if PRODUCT in blocks:
                _schedule(schedule, blocks)
                made = schedule.mod["main"].with_attrs(dict(function.attrs.items()))
                module.update_func(name, made.with_attr(_SCHEDULED, True))
    return module


def _schedule(schedule: Any, blocks: dict[str, Any]) -> None:
    product = blocks.pop(PRODUCT)
    if UNPACKED in blocks:
        schedule.compute_inline(blocks.pop(UNPACKED))
    *between, last = blocks.values() or [None]
    for block in between:
        schedule.compute_inline(block)
    *_, inner = schedule.get_loops(product)
    _, lane = schedule.split(inner, [None, LANES])
    partial = schedule.rfactor(lane, 3)
    row, m, n, lane = schedule.get_loops(product)
    columns, column = schedule.split(n, [None, COLUMNS])
    schedule.reorder(columns, row, m, column, lane)
    schedule.parallel(columns)
    schedule.unroll(lane)
    schedule.compute_at(partial, m)
    schedule.set_scope(partial, 0, "local")
    *_, column, lane, step = schedule.get_loops(partial)
    schedule.reorder(step, column, lane)
    _unroll(schedule, partial)
    _unroll(schedule, schedule.decompose_reduction(partial, step))
    if last is not None:
        schedule.reverse_compute_at(last, m)


def _unroll(schedule: Any, block: Any) -> None:
    *_, column, lane = schedule.get_loops(block)
    schedule.vectorize(lane)
    schedule.unroll(column)
