"""The recurrences on ONNX Runtime: ONNX's own operators RNN, LSTM and GRU. It has no cells: a cell is one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from recurrence import Case, Problem, in_order

from tvmdash.networks.ops import Array
from tvmdash.networks.to_onnx import IR_VERSION, OPSET

GATES: Mapping[str, str] = {"rnn": "n", "lstm": "iofg", "gru": "zrn"}
"""ONNX's order of the gates."""
STATES = ("h", "c")


def lower(problem: Problem) -> Any:
    """An onnx.ModelProto of one operator, with the weights inside; inputs x and the state, outputs y and the state."""
    from onnx import TensorProto, helper, numpy_helper

    case, states = problem.case, STATES[: problem.case.states]
    arrays = [numpy_helper.from_array(array, name) for name, array in _arrays(problem).items()]
    inputs = ["x", "w", "r", "b", "", *states]
    attributes = {"linear_before_reset": 1} if case.kind == "gru" else {}
    node = helper.make_node(case.kind.upper(), inputs, _outputs(case), hidden_size=case.hidden, **attributes)
    state_shape, y_shape = (1, case.batch, case.hidden), (case.length, 1, case.batch, case.hidden)
    ends = {"x": problem.x.shape, **dict.fromkeys(states, state_shape)}
    given = {"y": y_shape, **dict.fromkeys(_outputs(case)[1:], state_shape)}
    described = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in group.items()]
        for group in (ends, given)
    ]
    graph = helper.make_graph([node], case.kind, described[0], described[1], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def _outputs(case: Case) -> list[str]:
    return ["y", *(f"{name}_last" for name in STATES[: case.states])]


def _arrays(problem: Problem) -> dict[str, Array]:
    """ONNX's W, R and B, with one direction."""
    kind, order = problem.case.kind, GATES[problem.case.kind]
    w, r, b_ih, b_hh = (in_order(problem.weights[name], kind, order) for name in ("w_ih", "w_hh", "b_ih", "b_hh"))
    return {"w": w[None], "r": r[None], "b": np.concatenate([b_ih, b_hh])[None]}


def prepare(problem: Problem, threads: int) -> tuple[Callable[[], object], Callable[[], tuple[Array, ...]]]:
    """A call on inputs that lie in ONNX Runtime's memory already, and a call that gives the problem's answers."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(lower(problem).SerializeToString(), options, ["CPUExecutionProvider"])
    binding = session.io_binding()
    state = {name: part[None] for name, part in zip(STATES, problem.state, strict=False)}
    for name, value in {"x": problem.x, **state}.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
    for name in _outputs(problem.case):
        binding.bind_output(name)

    def answers() -> tuple[Array, ...]:
        session.run_with_iobinding(binding)
        y, *last = binding.copy_outputs_to_cpu()
        states = tuple(part[0] for part in last)
        return states if problem.case.form == "cell" else (y[:, 0], *states)

    return lambda: session.run_with_iobinding(binding), answers
