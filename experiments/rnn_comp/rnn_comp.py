"""Recurrent layers and cells: TVM against PyTorch and ONNX Runtime, with the same weights and inputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from recurrence import Case, RecurrenceProblem, in_order, problem

from tvmdash import relax_util
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import configuration_text, reference_engines
from tvmdash.experiment.engines import Engine
from tvmdash.experiment.on_devices import AXIS
from tvmdash.measure import prebuilt
from tvmdash.networks import accuracy
from tvmdash.networks.ops import Array
from tvmdash.networks.to_onnx import IR_VERSION, OPSET
from tvmdash.plot_util.specs import Plot
from tvmdash.relax_util import CompileOptions, workloads
from tvmdash.summary_util import Summary
from tvmdash.trial_util import python_timer

GATES: Mapping[str, str] = {"rnn": "n", "lstm": "iofg", "gru": "zrn"}
"""ONNX's order of the gates."""
STATES = ("h", "c")


def make_onnx(problem: RecurrenceProblem) -> Any:
    """Make an onnx.ModelProto of one operator, its weights inside; inputs x and the state, outputs y and the state."""
    from onnx import TensorProto, helper, numpy_helper

    case, states = problem.case, STATES[: problem.case.states]
    arrays = [numpy_helper.from_array(array, name) for name, array in _arrays(problem).items()]
    # "" are the sequences' lengths, which are all the same
    inputs = ["x", "w", "r", "b", "", *states]
    # the reset gate after the product, as PyTorch and cuDNN have it
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


def _arrays(problem: RecurrenceProblem) -> dict[str, Array]:
    """Make ONNX's W, R and B, with one direction."""
    kind, order = problem.case.kind, GATES[problem.case.kind]
    w, r, b_ih, b_hh = (in_order(problem.weights[name], kind, order) for name in ("w_ih", "w_hh", "b_ih", "b_hh"))
    return {"w": w[None], "r": r[None], "b": np.concatenate([b_ih, b_hh])[None]}


def prepare_onnx(
    problem: RecurrenceProblem, threads: int
) -> tuple[Callable[[], object], Callable[[], tuple[Array, ...]]]:
    """Make a call on inputs that lie in ONNX Runtime's memory already, and one that gives the problem's answers."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(make_onnx(problem).SerializeToString(), options, ["CPUExecutionProvider"])
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


def prepare(problem: RecurrenceProblem, threads: int) -> tuple[Callable[[], object], Callable[[], tuple[Array, ...]]]:
    """Make a call on tensors that are there already, and one that gives the problem's answers."""
    import torch

    torch.set_num_threads(threads)
    case, layer = problem.case, problem.case.form == "layer"
    module = _module(problem)
    x = torch.from_numpy(problem.x if layer else problem.x[0])
    parts = [torch.from_numpy(part[None] if layer else part) for part in problem.state]
    state = tuple(parts) if case.kind == "lstm" else parts[0]

    def answers() -> tuple[Array, ...]:
        given = module(x, state)
        outputs, last = ([given[0].numpy()], given[1]) if layer else ([], given)
        states = [last] if case.kind != "lstm" else list(last)
        return (*outputs, *(part.numpy()[0] if layer else part.numpy() for part in states))

    return lambda: module(x, state), answers


def _module(problem: RecurrenceProblem) -> Any:
    """Make the torch.nn.Module with the problem's weights; it wants no gradients."""
    import torch

    case = problem.case
    names = {"rnn": "RNN", "lstm": "LSTM", "gru": "GRU"}
    suffix, ending = ("", "_l0") if case.form == "layer" else ("Cell", "")
    module = getattr(torch.nn, names[case.kind] + suffix)(case.hidden, case.hidden)
    held = {"w_ih": "weight_ih", "w_hh": "weight_hh", "b_ih": "bias_ih", "b_hh": "bias_hh"}
    weights = {held[name] + ending: torch.from_numpy(array) for name, array in problem.weights.items()}
    module.load_state_dict(weights)
    return module.requires_grad_(requires_grad=False).eval()


ONNXRUNTIME = Engine("onnxruntime", (*reference_engines.ONNXRUNTIME.requirements, "onnx==1.23.2"))
"""With the package that makes its models."""
RIVALS = {"onnxruntime": prepare_onnx, "torch": prepare}
LAYOUT = "TNC"
"""Length, batch, features: that of x and of a layer's outputs on every engine."""


@dataclass(frozen=True, kw_only=True)
class RnnCompConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    kinds: tuple[str, ...]
    forms: tuple[str, ...]
    hidden: tuple[int, ...]
    lengths: tuple[int, ...]
    batch: int
    engines: tuple[str, ...]
    threads: int
    mcpu: str
    device: tuple[str, ...]


class RnnComp(Experiment[RnnCompConfig]):
    """Every recurrence at every size on every engine; a process for the layers on an engine, one for the cells."""

    engines = (workloads.TVM, ONNXRUNTIME, reference_engines.TORCH)
    compiles_ahead = True
    axes = (
        Axis("hidden", "workload_args"),
        Axis("length", "workload_args"),
        Axis("batch", "workload_args"),
        Axis("lowering", "build_config"),
        Axis("threads", "runtime_config"),
        AXIS,
    )

    def points(self, config: RnnCompConfig) -> list[Point]:
        return [_point(case, engine, config) for case in _cases(config) for engine in config.engines]

    def prepare(self, point: Point, config: RnnCompConfig, seed: int) -> Prepared:
        asked, threads = prebuilt.keep("problem", lambda: problem(_case(point), seed)), config.threads
        if point.engine == "tvm":
            return _on_tvm(asked, CompileOptions(json.loads(point.target)), threads, point.device)
        call, answers = RIVALS[point.engine](asked, threads)
        inputs = (asked.x, *asked.state)
        return Prepared(python_timer(call), lambda: checked(answers(), asked), inputs=inputs, layout=LAYOUT)

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Draw tonight's engines by recurrence and size, and the lines over nights."""
        return {**super().plots(history), "tonight": configuration_text.plot(history)}

    def summary(self, history: History) -> Summary:
        """Add the fastest engine at each size to the default words."""
        return configuration_text.summary(super().summary(history), history)


def _cases(config: RnnCompConfig) -> list[Case]:
    return [
        Case(kind, form, hidden, length, config.batch)
        for kind in config.kinds
        for form in config.forms
        for hidden in config.hidden
        for length in (config.lengths if form == "layer" else [1])
    ]


def _point(case: Case, engine: str, config: RnnCompConfig) -> Point:
    length = {"length": case.length} if case.form == "layer" else {}
    values = {"hidden": case.hidden, **length, "batch": case.batch, "threads": config.threads}
    ours = {"lowering": "unrolled"} if engine == "tvm" else {}
    target = workloads.target_text(config) if engine == "tvm" else "cpu"
    return Point(f"rnn.{case.kind}_{case.form}", {**values, **ours}, f"{case.form}s", target, engine)


def _case(point: Point) -> Case:
    kind, _, form = point.workload.partition(".")[2].partition("_")
    return Case(kind, form, point.values["hidden"], point.values.get("length", 1), point.values["batch"])


def _on_tvm(asked: RecurrenceProblem, options: CompileOptions, threads: int, device: str) -> Prepared:
    compiled = relax_util.compile_module(lambda: lower(asked), options)
    loaded = relax_util.load(compiled, threads, device)
    inputs = (asked.x, *asked.state)
    timer = loaded.python_timer(*inputs)
    return workloads.make_prepared(
        compiled, timer, lambda: checked(loaded.outputs(*inputs), asked), layout=LAYOUT, inputs=inputs, on=loaded
    )


def checked(answers: tuple[Array, ...], asked: RecurrenceProblem) -> dict[str, float]:
    """Return the largest error of the outputs and of the last state, each of which must be right."""
    facts = [accuracy.check_answer(given, expected) for given, expected in zip(answers, asked.expected, strict=True)]
    return max(facts, key=lambda fact: fact["max_error"])


Expr = Any
"""A relax.Expr; TVM has no types of its own to offer."""


def lower(problem: RecurrenceProblem) -> Any:
    """Make an IRModule whose `main` takes x and the state and gives the answers as a tuple; weights are constants."""
    from tvm import relax

    case, builder = problem.case, relax.BlockBuilder()
    tensor = getattr(relax, "TensorStructInfo", None) or relax.TensorType  # the name up to 0.25, and since
    x = relax.Var("x", tensor(problem.x.shape, "float32"))
    state: list[Expr] = [
        relax.Var(f"s{index}", tensor(part.shape, "float32")) for index, part in enumerate(problem.state)
    ]
    with builder.function("main", [x, *state]):
        with builder.dataflow():
            constants = _constants(problem.weights)
            inner, outputs = _inner(builder, problem.x.shape, constants, x), []
            for step in range(case.length):
                state = _step(builder, case.kind, constants, inner(step), state)
                outputs.append(state[0])
            given = state if case.form == "cell" else [_stacked(outputs), *state]
            output = builder.emit_output(relax.Tuple(given))
        builder.emit_func_output(output)
    return builder.finalize()


def _constants(weights: Mapping[str, Array]) -> dict[str, Expr]:
    """Make the weights constants, matrices (hidden, gates * hidden). All steps share them: copies fill caches."""
    from tvm import relax

    return {name: relax.const(np.ascontiguousarray(array.T)) for name, array in weights.items()}


def _inner(builder: Any, shape: tuple[int, ...], constants: Mapping[str, Expr], x: Expr) -> Callable[[int], Expr]:
    """Compute what comes of the input at each step, (batch, gates * hidden)."""
    from tvm.relax import op

    length, batch, width = shape
    product = op.matmul(op.reshape(x, (length * batch, width)), constants["w_ih"])
    whole = builder.emit(op.add(product, constants["b_ih"]))
    if length == 1:
        return lambda _step: whole
    return lambda step: builder.emit(op.strided_slice(whole, [0], [step * batch], [(step + 1) * batch]))


def _step(builder: Any, kind: str, constants: Mapping[str, Expr], inner: Expr, state: Sequence[Expr]) -> list[Expr]:
    from tvm.relax import op

    outer = builder.emit(op.add(op.matmul(state[0], constants["w_hh"]), constants["b_hh"]))
    return [builder.emit(part) for part in STEPS[kind](inner, outer, state)]


def _stacked(outputs: Sequence[Expr]) -> Expr:
    from tvm import relax

    return relax.op.concat([relax.op.expand_dims(output, 0) for output in outputs], axis=0)


def _rnn(inner: Expr, outer: Expr, _state: Sequence[Expr]) -> list[Expr]:
    from tvm import relax

    return [relax.op.tanh(relax.op.add(inner, outer))]


def _lstm(inner: Expr, outer: Expr, state: Sequence[Expr]) -> list[Expr]:
    from tvm.relax import op

    i, f, g, o = _gates(op.add(inner, outer), 4)
    c = op.add(op.multiply(op.sigmoid(f), state[1]), op.multiply(op.sigmoid(i), op.tanh(g)))
    return [op.multiply(op.sigmoid(o), op.tanh(c)), c]


def _gru(inner: Expr, outer: Expr, state: Sequence[Expr]) -> list[Expr]:
    from tvm import relax
    from tvm.relax import op

    (r_in, z_in, n_in), (r_out, z_out, n_out) = _gates(inner, 3), _gates(outer, 3)
    z = op.sigmoid(op.add(z_in, z_out))
    n = op.tanh(op.add(n_in, op.multiply(op.sigmoid(op.add(r_in, r_out)), n_out)))
    return [op.add(op.multiply(op.subtract(relax.const(1.0, "float32"), z), n), op.multiply(z, state[0]))]


def _gates(value: Expr, count: int) -> list[Expr]:
    from tvm import relax

    parts = relax.op.split(value, count, axis=1)
    return [relax.TupleGetItem(parts, index) for index in range(count)]


STEPS: Mapping[str, Callable[[Expr, Expr, Sequence[Expr]], list[Expr]]] = {"rnn": _rnn, "lstm": _lstm, "gru": _gru}


if __name__ == "__main__":
    raise SystemExit(RnnComp().main())
