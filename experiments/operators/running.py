"""One operator on each engine, ready to be timed on seeded inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvmdash import relax_util
from tvmdash.devices import CPU
from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Prepared
from tvmdash.experiment import on_cuda, reference_engines
from tvmdash.networks import accuracy
from tvmdash.networks.ops import Array
from tvmdash.records import description
from tvmdash.relax_util import CompileOptions, workloads
from tvmdash.relax_util.operators.kinds import Operator
from tvmdash.relax_util.operators.programs import hash_definition, make_arrays, relax_module
from tvmdash.trial_util import python_timer, waiting_timer

ONNXRUNTIME, ONNXRUNTIME_CUDA = map(
    reference_engines.with_onnx, (reference_engines.ONNXRUNTIME, reference_engines.ONNXRUNTIME_CUDA)
)
"""With onnx, which makes the graph of one node."""
OPSET, IR_VERSION = 20, 9
MANY = 1000
"""From so many products on, a sum kept in float16 may be beyond the tolerance."""


def reference(operator: Operator, arrays: Sequence[Array]) -> Array:
    """The operator's output in float64, from the very numbers that the engines get."""
    return operator.reference(*(array.astype(np.float64) for array in arrays))


def on_tvm(
    operator: Operator, dtype: str, options: CompileOptions, threads: int, seed: int, device: str = CPU
) -> Prepared:
    """Through Relax, a pipeline and LLVM, or what TVM compiles for the device with."""
    inputs, weights = make_arrays(operator, dtype, seed)
    module = relax_module(operator, dtype, weights)
    compiled = relax_util.compile_module(module, options)
    loaded = relax_util.load(compiled, threads, device)
    return workloads.make_prepared(
        compiled,
        loaded.timer(*inputs),
        _check(operator, lambda: loaded.run(*inputs), reference(operator, [*inputs, *weights]), dtype),
        layout=_layout(operator),
        details={
            "called_from": loaded.called_from,
            "taken_from": operator.source,
            description.DEFINITION: hash_definition(module),
        },
        inputs=inputs,
        on=loaded,
    )


def on_onnxruntime(operator: Operator, dtype: str, threads: int, seed: int, on: str = CPU) -> Prepared:
    """Through a graph of one node, its inputs and outputs bound before the clock starts."""
    import onnxruntime

    device = on_cuda.find_rival_device(on)
    inputs, weights = make_arrays(operator, dtype, seed)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    model = onnx_model(operator, dtype, weights).SerializeToString()
    session = on_cuda.open_onnx_session(model, options, device)
    binding, output = session.io_binding(), np.empty(operator.output, dtype)
    place = (device.kind, device.index)
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(array, *place) for array in (*inputs, output)]
    for index, value in enumerate(values[:-1]):
        binding.bind_ortvalue_input(f"x{index}", value)
    binding.bind_ortvalue_output("y", values[-1])

    def call() -> None:
        session.run_with_iobinding(binding)

    def run() -> Array:
        call()
        answer: Array = values[-1].numpy()
        return answer

    return Prepared(
        timer=waiting_timer(call, binding.synchronize_outputs) if device.card else python_timer(call),
        check=_check(operator, run, reference(operator, [*inputs, *weights]), dtype),
        inputs=inputs,
        layout=_layout(operator),
        details={"called_from": "Python", "taken_from": operator.source},
        after=functools.partial(device.watch, call, binding.synchronize_outputs),
    )


def onnx_model(operator: Operator, dtype: str, weights: Sequence[Array]) -> Any:
    """The onnx.ModelProto of one node."""
    from onnx import helper, numpy_helper

    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    arrays = {f"w{index}": weight for index, weight in enumerate(weights)}
    if operator.onnx.axes:
        arrays["axes"] = np.array(operator.onnx.axes, np.int64)
    names = [f"x{index}" for index in range(len(operator.inputs))]
    node = helper.make_node(operator.onnx.kind, [*names, *arrays], ["y"], **operator.onnx.attributes)
    values = [
        helper.make_tensor_value_info(name, element, shape)
        for name, shape in zip([*names, "y"], [*operator.inputs, operator.output], strict=True)
    ]
    initializers = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph([node], operator.kind, values[:-1], values[-1:], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def _check(
    operator: Operator, run: Callable[[], Array], expected: Array, dtype: str
) -> Callable[[], Mapping[str, float]]:
    def check() -> Mapping[str, float]:
        try:
            return accuracy.check_answer(run(), expected, dtype)
        except DashboardError as error:
            if dtype != "float16" or operator.terms < MANY:
                raise
            explanation = (
                f"Each number is a sum of {operator.terms} products; sums kept in float16 are as far off as that."
            )
            raise DashboardError(f"{error} {explanation}") from None

    return check


def _layout(operator: Operator) -> str | None:
    return "NCHW" if operator.kind.endswith("conv2d") else None
