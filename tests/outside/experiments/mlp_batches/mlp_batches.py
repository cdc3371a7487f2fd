"""How an MLP's run time grows with its batch, compiled and called by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvmdash.exp_templates import Experiment, Point, Prepared
from tvmdash.networks import accuracy
from tvmdash.relax_templates import make_program
from tvmdash.relax_util import (
    EXEC_MODES,
    Compiled,
    CompileOptions,
    Loaded,
    TvmFacts,
    compile_module,
    load,
    tvm_facts,
    use_threads,
    workloads,
)


@dataclass(frozen=True, kw_only=True)
class MlpBatchesConfig:
    batches: tuple[int, ...]
    threads: int
    tvm_remote: str | None


class MlpBatches(Experiment[MlpBatchesConfig]):
    engines = (workloads.TVM,)

    def target(self, point: Point, config: MlpBatchesConfig) -> Mapping[str, Any]:
        return workloads.make_target(point.values["threads"], "")

    def prepare(self, point: Point, config: MlpBatchesConfig, seed: int) -> Prepared:
        from tvm import relax  # not above: only measuring needs TVM

        facts: TvmFacts = tvm_facts()
        draw, batch, threads = np.random.default_rng(seed), point.values["batch"], point.values["threads"]
        x, w1, w2 = (draw.standard_normal(shape, "float32") for shape in ((batch, 16), (16, 8), (8, 4)))

        def mlp(data):
            hidden = relax.op.nn.relu(relax.op.matmul(data, relax.const(w1)))
            return relax.op.matmul(hidden, relax.const(w2))

        program = make_program(mlp, [x], expected=np.maximum(x @ w1, 0) @ w2)
        compiled: Compiled = compile_module(program.module, CompileOptions(json.loads(point.target)))
        assert compiled.exec_mode in EXEC_MODES
        use_threads(threads)
        loaded: Loaded = load(compiled, threads)
        return workloads.make_prepared(
            compiled,
            loaded.timer(x),
            lambda: accuracy.check_answer(loaded.run(x), program.expected),
            details={"with": facts.version, "from": config.tvm_remote or "the home's"},
            inputs=(x,),
        )


if __name__ == "__main__":
    raise SystemExit(MlpBatches().main())
