"""An operator's seeded inputs and weights, and the Relax module that computes it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmdash.networks.ops import Array
from tvmdash.relax_util.operators.kinds import Operator


def make_arrays(operator: Operator, dtype: str, seed: int) -> tuple[list[Array], list[Array]]:
    """Make inputs and weights; weights are scaled so that outputs are about as large as inputs."""
    rng = np.random.default_rng([seed, 3])
    inputs = [rng.standard_normal(shape).astype(dtype) for shape in operator.inputs]
    scales = [math.sqrt(math.prod(shape[1:])) for shape in operator.weights]
    weights = [
        (rng.standard_normal(shape) / scale).astype(dtype)
        for shape, scale in zip(operator.weights, scales, strict=True)
    ]
    return inputs, weights


def hash_definition(module: Any) -> str:
    """Return the SHA-256 of the operators' TensorIR before any schedule, the definition of their computation."""
    from tvm import relax

    lowered = relax.transform.LegalizeOps()(module)
    functions = {
        variable.name_hint: function.script(show_meta=False)
        for variable, function in lowered.functions_items()
        if not isinstance(function, relax.Function)
    }
    return hashlib.sha256(json.dumps(functions, sort_keys=True).encode()).hexdigest()


def relax_module(operator: Operator, dtype: str, weights: Sequence[Array]) -> Any:
    """Return a module whose `main` has the operator's inputs as arguments and its weights as constants."""
    from tvm import relax

    builder = relax.BlockBuilder()
    tensor = getattr(relax, "TensorStructInfo", None) or relax.TensorType  # the name up to 0.25, and since
    inputs = [relax.Var(f"x{index}", tensor(shape, dtype)) for index, shape in enumerate(operator.inputs)]
    with builder.function("main", inputs):
        with builder.dataflow():
            value = builder.emit(operator.relax(*inputs, *map(relax.const, weights)))
            output = builder.emit_output(value)
        builder.emit_func_output(output)
    return builder.finalize()
