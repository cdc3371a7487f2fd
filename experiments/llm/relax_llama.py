"""The decoder in relax.frontend.nn with TVM's paged KV cache: what is compiled. Importing it imports TVM.

`default` is what a newcomer writes and gets: nn.Linear and TVM's default pipeline, which transposes the weights in each
call. `recipe` is what TVM's LLM stacks do: one product with the weights as they lie, and operators fused. `ours` is
`recipe` with a schedule of our own.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import Any

import tvm
from network import EPSILON, FLOATS, GROUP, THETA, ZERO, Llama
from tvm import relax, s_tir, te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op
from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache, RopeMode, TIRPagedKVCache

_PACKED, _NONE = ({"param_mode": mode, "effect_mode": "none"} for mode in ("packed", "none"))


@dataclass(frozen=True)
class ModuleKind:
    """The module to compile: its network, its numbers, the way it is written, its target."""

    model: Llama
    dtype: str
    variant: str
    target: Any

    @property
    def floats(self) -> str:
        return FLOATS[self.dtype]

    @property
    def is_packed(self) -> bool:
        return self.dtype.startswith("q4")


def lower(kind: ModuleKind) -> Any:
    """Make the IRModule, whose parameters are `network.list_arrays` in their order.

    `prefill` takes a prompt (1, n), `decode` a token (1, 1), `batch_decode` one of each sequence (b, 1); with the cache
    and the parameters they give float32 logits of the last tokens. `fill` puts the same queries, keys and values into
    every layer of the cache, so that a depth costs no prefill. `create_cache` takes sequences, tokens in all, tokens of
    the longest prompt, and tokens of a page.
    """
    _register_own_pipeline()
    decoder, model = _Decoder(kind), kind.model
    decoder.to(None)
    for name, parameter in decoder.named_parameters():
        if "norm" in name:
            parameter.to(kind.floats)
    cache = nn.spec.Object(object_type=PagedKVCache)
    qkv = nn.spec.Tensor([1, "n", model.qkv_heads, model.head_width], kind.floats)
    spec: dict[str, Any] = {
        "prefill": {"ids": nn.spec.Tensor([1, "n"], "int32"), "cache": cache, "$": _PACKED},
        "decode": {"ids": nn.spec.Tensor([1, 1], "int32"), "cache": cache, "$": _PACKED},
        "batch_decode": {"ids": nn.spec.Tensor(["b", 1], "int32"), "cache": cache, "$": _PACKED},
        "fill": {"qkv": qkv, "cache": cache, "$": _NONE},
        "create_cache": {"sequences": int, "tokens": int, "longest": int, "page": int, "$": _NONE},
    }
    module, _ = decoder.export_tvm(spec=nn.spec.ModuleSpec.from_raw(spec, decoder))
    return module


class _Product(nn.Module):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """A product with a matrix (outputs, inputs)."""

    def __init__(self, kind: ModuleKind, inputs: int, outputs: int, out: str) -> None:
        self._kind, self._out = kind, out
        if kind.is_packed:
            self.weight = nn.Parameter((outputs, inputs // 8), "uint32")
            self.scales = nn.Parameter((outputs, inputs // GROUP), kind.floats)
        else:
            self.weight = nn.Parameter((outputs, inputs), kind.floats)

    def forward(self, x: Any) -> Any:
        parts = [self.weight, self.scales] if self._kind.is_packed else [self.weight]
        if self._kind.variant == "default":  # nn.Linear's: a matrix that is transposed in each call
            matrix = op.tensor_expr_op(self._matrix, UNPACKED, parts) if self._kind.is_packed else self.weight
            return op.matmul(x, op.permute_dims(matrix), out_dtype=self._out)
        return op.tensor_expr_op(self._multiply, PRODUCT, [x, *parts])

    def _matrix(self, *parts: Any) -> Any:
        if not self._kind.is_packed:
            return parts[0]
        words, scales = parts
        floats = self._kind.floats

        def unpack(row: Any, at: Any) -> Any:
            shifted = tirx.shift_right(words[row, at // 8], (at % 8 * 4).astype("uint32"))
            number = tirx.bitwise_and(shifted, tirx.const(15, "uint32"))
            return (number.astype(floats) - tirx.const(ZERO, floats)) * scales[row, at // GROUP]

        return te.compute((words.shape[0], words.shape[1] * 8), unpack, name=UNPACKED)

    def _multiply(self, x: Any, *parts: Any) -> Any:
        """Multiply with the weights as they lie, summed in float32."""
        matrix, at = self._matrix(*parts), te.reduce_axis((0, x.shape[-1]), "k")
        shape = (x.shape[0], x.shape[1], matrix.shape[0])

        def multiply(row: Any, m: Any, n: Any) -> Any:
            return te.sum(x[row, m, at].astype("float32") * matrix[n, at].astype("float32"), axis=at)

        summed = te.compute(shape, multiply, name=PRODUCT)
        if self._out == "float32":
            return summed
        return te.compute(shape, lambda *place: summed(*place).astype(self._out), name="cast")


class _Layer(nn.Module):  # type: ignore[misc, no-any-unimported, unused-ignore]
    def __init__(self, kind: ModuleKind) -> None:
        model = self._model = kind.model
        self.attention_norm = nn.RMSNorm(model.hidden, -1, EPSILON, bias=False)
        self.inner_norm = nn.RMSNorm(model.hidden, -1, EPSILON, bias=False)
        self.qkv = _Product(kind, model.hidden, model.qkv_heads * model.head_width, kind.floats)
        self.out = _Product(kind, model.hidden, model.hidden, kind.floats)
        self.gate_up = _Product(kind, model.hidden, 2 * model.inner, kind.floats)
        self.down = _Product(kind, model.inner, model.hidden, kind.floats)

    def forward(self, x: Any, cache: Any, index: int) -> Any:
        (rows, count, _), model = x.shape, self._model
        qkv = op.reshape(self.qkv(self.attention_norm(x)), (rows, count, model.qkv_heads, model.head_width))
        mixed = cache.attention_with_fused_qkv(index, qkv, model.heads, sm_scale=model.scale)
        x = x + self.out(op.reshape(mixed, (rows, count, model.hidden)))
        gate, up = op.split(self.gate_up(self.inner_norm(x)), 2, axis=-1)
        return x + self.down(op.silu(gate) * up)


class _Decoder(nn.Module):  # type: ignore[misc, no-any-unimported, unused-ignore]
    def __init__(self, kind: ModuleKind) -> None:
        self._kind, model = kind, kind.model
        self.embedding = nn.Parameter((model.vocabulary, model.hidden), kind.floats)
        self.layers = nn.ModuleList([_Layer(kind) for _ in range(model.layers)])
        self.norm = nn.RMSNorm(model.hidden, -1, EPSILON, bias=False)
        self.head = _Product(kind, model.hidden, model.vocabulary, "float32")

    def _run(self, ids: Any, cache: Any) -> Any:
        rows, count = ids.shape
        taken = op.take(self.embedding, op.reshape(ids, (rows * count,)), axis=0)
        x = op.reshape(taken, (rows, count, self._kind.model.hidden))
        for index, layer in enumerate(self.layers):
            x = layer(x, cache, index)
        return x

    def prefill(self, ids: Any, cache: Any) -> Any:
        last = op.tensor_expr_op(_take_last, "last", [self._run(ids, cache)])
        return self.head(self.norm(last)), cache

    def decode(self, ids: Any, cache: Any) -> Any:
        return self.head(self.norm(self._run(ids, cache))), cache

    def batch_decode(self, ids: Any, cache: Any) -> Any:
        return self.decode(ids, cache)

    def fill(self, qkv: Any, cache: Any) -> Any:
        model = self._kind.model
        mixed = [cache.attention_with_fused_qkv(at, qkv, model.heads, model.scale) for at in range(model.layers)]
        return functools.reduce(operator.add, mixed), cache  # TVM drops layers whose result is not used

    def create_cache(self, sequences: Any, tokens: Any, longest: Any, page: Any) -> Any:
        model = self._kind.model
        return TIRPagedKVCache(
            attn_kind="mha",
            max_batch_size=sequences,
            max_total_seq_len=tokens,
            prefill_chunk_size=longest,
            page_size=page,
            support_sliding_window=0,
            layer_partition=relax.ShapeExpr([0, model.layers]),
            num_hidden_layers=model.layers,
            num_attention_heads=model.heads,
            num_key_value_heads=model.kv_heads,
            qk_head_dim=model.head_width,
            v_head_dim=model.head_width,
            mla_original_qk_head_dim=0,
            mla_original_v_head_dim=0,
            rope_mode=RopeMode.NORMAL,
            rope_scale=1,
            rope_theta=int(THETA),
            rope_scaling={},
            rope_ext_factors=relax.prim_value(0),
            rotary_dim=model.head_width,
            enable_disaggregation=False,
            dtype=self._kind.floats,
            target=self._kind.target,
        )


def _take_last(x: Any) -> Any:
    return te.compute((x.shape[0], 1, x.shape[2]), lambda row, _, at: x[row, x.shape[1] - 1, at], name="last")


PIPELINE = "llm_ours"
LANES, COLUMNS = 16, 4
"""Partial sums of a column, and columns that are computed at once."""
PRODUCT, UNPACKED = "NT_matmul", "dequantize"
_SCHEDULED = "tirx.is_scheduled"


def _register_own_pipeline() -> None:
    """Let TVM know the pipeline: `zero`, whose products are then scheduled, as TVM's dlight does a vector's alone."""
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
    # columns in parallel, each as the sum of LANES partial sums, so that LLVM multiplies vectors
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
