"""Twenty edits of other kinds, written without a look at how comparing works and first run when it was finished."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.planted_edits.planting import (
    CODE_GENERATION,
    Edit,
    Source,
    change_after,
    change_build,
    change_functions,
    configured,
    replace_pass,
)

PREFILL = {"phase": "prefill", "length": 16}
DECODE = {"phase": "decode", "length": 16}
NETWORK = {"batch": 1}
SCHEDULE, PIPELINE = "ApplyDefaultSchedule", "tvm/s_tir/pipeline.py"
RELAX, S, X = "tvm.relax.transform", "tvm.s_tir.transform", "tvm.tirx.transform"


def _keep(_made: Any, mod: Any) -> Any:
    """What a pass does that finds nothing to do."""
    return mod


def _opaque(function: Any) -> Any:
    """Something that fusion leaves alone."""
    return function.with_attr("op_pattern", 8)


def _select_instead_of_max(function: Any) -> Any:
    import tvm_ffi
    from tvm import tirx

    def rule(value: Any) -> Any:
        return tirx.Select(value.a > value.b, value.a, value.b)

    return function.with_body(tvm_ffi.structural_map(function.body, (tirx.Max, rule)))


def _without_first_assertion(function: Any) -> Any:
    import tvm_ffi
    from tvm import tirx

    seen: list[Any] = []

    def rule(value: Any) -> Any:
        seen.append(value)
        return tirx.Evaluate(0) if len(seen) == 1 else value

    return function.with_body(tvm_ffi.structural_map(function.body, (tirx.AssertStmt, rule)))


def _exp_as_power_of_two() -> None:
    import tvm
    from tvm import tirx

    def rule(call: Any) -> Any:
        x = call.args[0]
        return tirx.exp2(x * tirx.const(1.4426950408889634, "float32"))

    tvm.tirx.register_intrin_lowering("tirx.exp", "metal", f=rule, level=100)


def _concatenate_otherwise(mod: Any, target: Any) -> tuple[Any, Any]:
    import tvm_ffi
    from tvm import tirx

    def change(function: Any) -> Any:
        def rule(store: Any) -> Any:
            return tirx.BufferStore(store.buffer, store.value + store.value, store.indices)

        return function.with_body(tvm_ffi.structural_map(function.body, (tirx.BufferStore, rule)))

    return change_functions(mod, "concatenate2", change), target


def _without_optimization(mod: Any, target: Any) -> tuple[Any, Any]:
    import tvm

    return mod, tvm.target.Target({**dict(target.export()), "opt-level": 1})


EDITS: tuple[Edit, ...] = (
    # constants of schedules
    Edit("code.attention", {**PREFILL, "target": "rocm"}, "matmul", SCHEDULE, Source(
        "tvm/s_tir/dlight/gpu/matmul.py", "micro_size_k=16,\n                vector_size=2,",
        "micro_size_k=8,\n                vector_size=2,")),
    Edit("code.mlp", {**NETWORK, "target": "metal"}, "matmul", SCHEDULE, Source(
        "tvm/s_tir/dlight/gpu/gemv.py", "TS, TR = 128, 4", "TS, TR = 64, 4")),
    Edit("code.attention", {**DECODE, "target": "opencl"}, "softmax|layer_norm", SCHEDULE, Source(
        "tvm/s_tir/dlight/gpu/general_reduction.py", 'kind.name == "opencl":\n            len_tx = 256',
        'kind.name == "opencl":\n            len_tx = 128')),
    # legalization
    Edit("code.gelu", {"shape": "128x2048", "dtype": "float16", "target": "aarch64"}, "gelu", "LegalizeOps", Source(
        "tvm/relax/transform/legalize_ops/nn.py", "erf_inp = x * tirx.const(0.5**0.5, dtype)",
        "erf_inp = x / tirx.const(2**0.5, dtype)")),
    Edit("code.squeezenet", {**NETWORK, "target": "cuda_sm90"}, "mean", "LegalizeOps", Source(
        "tvm/relax/transform/legalize_ops/statistical.py",
        "res_sum = topi.sum(x, axis, keepdims)\n    return topi.divide(res_sum, shape_prod)",
        "return topi.sum(topi.divide(x, shape_prod), axis, keepdims)")),
    Edit("code.dqn", {**NETWORK, "target": "aarch64"}, "conv2d", "LegalizeOps", Source(
        "tvm/topi/nn/conv2d.py", "axis=np.array([rc, *rs])[data_permutation_from_reductions].tolist(),",
        "axis=np.array([*rs, rc]).tolist(),")),
    # fusion, layout, folding, memory
    Edit("code.dqn", {**NETWORK, "target": "x86_64"}, "conv2d|matmul|add|relu", "FuseOps", Source(
        "tvm/relax/pipeline.py", "transform.FuseOps(),", "transform.FuseOps(fuse_opt_level=0),")),
    Edit("code.dqn", {**NETWORK, "target": "webgpu"}, "^relu1_kernel$|conv2d1_add1_kernel$", "AnnotateTIROpPattern",
         change_after(RELAX, "AnnotateTIROpPattern", "relu1", _opaque)),
    Edit("code.dqn", {**NETWORK, "target": "opencl"}, "reshape|transpose", "FoldConstant",
         replace_pass(RELAX, "FoldConstant", _keep)),
    Edit("code.squeezenet", {**NETWORK, "target": "x86_64"}, "main", "StaticPlanBlockMemory",
         replace_pass(RELAX, "StaticPlanBlockMemory", _keep)),
    Edit("code.dqn", {**NETWORK, "target": "x86_64"}, "conv2d|transpose", "ConvertLayout", Source(
        "tvm/relax/pipeline.py",
        "transform.LegalizeOps(enable_warning=enable_warning),",
        'transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]}), '
        "transform.LegalizeOps(enable_warning=enable_warning),")),
    # constants, limits and rules of TIR's passes
    Edit("code.mlp", {**NETWORK, "target": "x86_64"}, "softmax|matmul2", "tirx.UnrollLoop",
         configured(X, "UnrollLoop", {"tirx.UnrollLoop": {"auto_max_extent": 16, "explicit_unroll": True}})),
    Edit("code.attention", {**PREFILL, "target": "cuda_sm80"}, "matmul", "tirx.VectorizeLoop", Source(
        PIPELINE, 'VectorizeLoop(not bool(config.get("tirx.disable_vectorize", False)))', "VectorizeLoop(False)")),
    Edit("code.layer_norm", {"shape": "128x512", "dtype": "float16", "target": "aarch64"}, "layer_norm",
         "tirx.NarrowDataType", Source(PIPELINE, "NarrowDataType(32)", "NarrowDataType(64)")),
    Edit("code.depthwise_conv2d", {"shape": "1x960x7x7", "other": "960x1x3x3", "stride": 1, "padding": 1,
                                   "dtype": "float32", "target": "x86_64"}, "conv2d", "tirx.CommonSubexprElim",
         Source(PIPELINE, 'if not bool(config.get("tirx.disable_cse_tir", False)):', "if False:")),
    Edit("code.squeezenet", {**NETWORK, "target": "cuda_sm80"}, "fused_conv2d7_add4_relu4", "s_tir.StmtSimplify",
         change_after(S, "StmtSimplify", "fused_conv2d7_add4_relu4", _select_instead_of_max)),
    Edit("code.attention", {**DECODE, "target": "metal"}, "softmax", "tirx.LowerIntrin", _exp_as_power_of_two),
    # code for the host alone, the code generator, its flags
    Edit("code.mlp", {**NETWORK, "target": "cuda_sm90"}, "softmax", "tirx.MakePackedAPI",
         change_after(X, "MakePackedAPI", "softmax", _without_first_assertion)),
    Edit("code.squeezenet", {**NETWORK, "target": "opencl"}, "concatenate2", CODE_GENERATION,
         change_build("opencl", _concatenate_otherwise)),
    Edit("code.softmax", {"shape": "8x128x128", "dtype": "float32", "target": "aarch64"}, "softmax", CODE_GENERATION,
         change_build("llvm", _without_optimization)),
)  # fmt: skip
