"""The twenty edits that comparing was made with."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.planted_edits.planting import Edit, disable_rule, edit_pass, legalize, scaled

PREFILL = {"target": "cuda_sm80", "phase": "prefill", "length": 16}
MLP = {"target": "cuda_sm80", "batch": 1}


def _softmax(x: Any, *_: Any) -> Any:
    from tvm import topi

    return topi.nn.fast_softmax(x)


S, X = "tvm.s_tir.transform", "tvm.tirx.transform"
ATTENTION = "code.attention"
FIRST, SECOND, LAST = "fused_matmul_add_relu", "fused_matmul1_add1_relu1", "fused_matmul2_add2"
"""The layers of the MLP."""


def _in_pass(
    module: str, name: str, function: str, target: str, workload: str = "code.mlp", values: dict[str, Any] = MLP
) -> Edit:
    kind = "s_tir" if module == S else "tirx"
    return Edit(workload, {**values, "target": target}, function, f"{kind}.{name}", edit_pass(module, name, function))


EDITS: tuple[Edit, ...] = (
    Edit("code.mlp", MLP, "softmax", "LegalizeOps", legalize("relax.nn.softmax", _softmax)),
    Edit("code.mlp", MLP, "relu", "LegalizeOps", legalize("relax.nn.relu", scaled("nn.relu"))),
    Edit("code.mlp", MLP, "add", "LegalizeOps", legalize("relax.add", scaled("add"))),
    Edit(ATTENTION, PREFILL, "softmax", "LegalizeOps", legalize("relax.nn.softmax", _softmax)),
    Edit(ATTENTION, PREFILL, "multiply", "LegalizeOps", legalize("relax.multiply", scaled("multiply"))),
    Edit("code.mlp", MLP, "matmul", "ApplyDefaultSchedule", disable_rule("Reduction")),
    Edit(ATTENTION, PREFILL, "matmul", "ApplyDefaultSchedule", disable_rule("Matmul")),
    Edit("code.mlp", MLP, "softmax", "ApplyDefaultSchedule", disable_rule("GeneralReduction")),
    _in_pass(X, "VectorizeLoop", "softmax", "x86_64"),
    _in_pass(X, "FlattenBuffer", LAST, "cuda_sm80"),
    _in_pass(S, "LowerOpaqueBlock", SECOND, "cuda_sm90"),
    _in_pass(X, "StorageRewrite", "softmax", "aarch64"),
    _in_pass(X, "UnrollLoop", "softmax", "cuda_sm80"),
    _in_pass(S, "CompactBufferAllocation", FIRST, "cuda_sm80"),
    _in_pass(S, "LoopPartition", "softmax", "opencl"),
    _in_pass(S, "HoistIfThenElse", LAST, "opencl"),
    _in_pass(S, "InjectVirtualThread", LAST, "metal"),
    _in_pass(X, "RemoveNoOp", "layer_norm", "x86_64", ATTENTION, PREFILL),
    _in_pass(X, "NarrowDataType", "layer_norm", "rocm", ATTENTION, PREFILL),
    _in_pass(X, "VectorizeLoop", FIRST, "webgpu"),
)  # fmt: skip
