"""The run time of a small network, by its batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tvmdash.exp_templates import Point
from tvmdash.relax_templates import Program, RelaxExperiment, make_program


class Example(RelaxExperiment):
    """Two dense layers at every batch."""

    def program(self, point: Point, config: Mapping[str, Any], seed: int) -> Program:
        from tvm import relax  # here: the stages that measure nothing need no TVM

        draw, batch = np.random.default_rng(seed), point.values["batch"]
        x, w1, w2 = (draw.standard_normal(shape, "float32") for shape in ((batch, 784), (784, 128), (128, 10)))

        def mlp(data: Any) -> Any:
            hidden = relax.op.nn.relu(relax.op.matmul(data, relax.const(w1)))
            return relax.op.matmul(hidden, relax.const(w2))

        return make_program(mlp, [x], expected=np.maximum(x @ w1, 0) @ w2)


if __name__ == "__main__":
    raise SystemExit(Example().main())
