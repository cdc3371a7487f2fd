"""Single operators at shapes of the networks: TVM against ONNX Runtime, and both against what this machine can do."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import peaks
import roofline

from tvmdash import relax_util
from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared, Record
from tvmdash.experiment import on_cuda, reference_engines
from tvmdash.experiment.on_devices import AXIS
from tvmdash.machine.devices import CPU
from tvmdash.measure import prebuilt
from tvmdash.networks import accuracy
from tvmdash.networks.ops import Array
from tvmdash.plot_util.specs import Plot
from tvmdash.records import description
from tvmdash.relax_util import CompileOptions, workloads
from tvmdash.relax_util.operators.kinds import Operator
from tvmdash.relax_util.operators.programs import hash_definition, make_arrays, relax_module
from tvmdash.relax_util.operators.table import chosen
from tvmdash.summary_util import Summary
from tvmdash.trial_util import python_timer, waiting_timer

ONNXRUNTIME, ONNXRUNTIME_CUDA = map(
    reference_engines.with_onnx, (reference_engines.ONNXRUNTIME, reference_engines.ONNXRUNTIME_CUDA)
)
"""With onnx, which makes the graph of one node."""
OPSET, IR_VERSION = 20, 9
MANY = 1000
"""Products from which on a sum kept in float16 may be beyond the tolerance."""


def reference(operator: Operator, arrays: Sequence[Array]) -> Array:
    """Compute the operator's output in float64, from the very numbers that the engines get."""
    return operator.reference(*(array.astype(np.float64) for array in arrays))


def on_tvm(
    operator: Operator, dtype: str, options: CompileOptions, threads: int, seed: int, device: str = CPU
) -> Prepared:
    """Prepare through Relax, a pipeline and LLVM, or what TVM compiles for the device with."""
    make = functools.cache(lambda: _define(operator, dtype, seed))
    inputs, expected, definition = prebuilt.keep("operator", lambda: make()[1:])
    compiled = relax_util.compile_module(lambda: make()[0], options)
    loaded = relax_util.load(compiled, threads, device)
    return workloads.make_prepared(
        compiled,
        loaded.timer(*inputs),
        _check(operator, lambda: loaded.run(*inputs), expected, dtype),
        layout=_layout(operator),
        details={
            "called_from": loaded.called_from,
            "taken_from": operator.source,
            description.DEFINITION: definition,
        },
        inputs=inputs,
        on=loaded,
    )


def _define(operator: Operator, dtype: str, seed: int) -> tuple[Any, Sequence[Array], Array, str]:
    """Return the module, its inputs, the answer to them, and a hash of what it computes."""
    inputs, weights = make_arrays(operator, dtype, seed)
    module = relax_module(operator, dtype, weights)
    return module, inputs, reference(operator, [*inputs, *weights]), hash_definition(module)


def on_onnxruntime(operator: Operator, dtype: str, threads: int, seed: int, on: str = CPU) -> Prepared:
    """Prepare through a graph of one node, its inputs and outputs bound before the clock starts."""
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
    """Make the onnx.ModelProto of one node."""
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


ARGUMENTS = ("shape", "other", "stride", "padding", "axes", "dtype", "n", "kib")


@dataclass(frozen=True, kw_only=True)
class OperatorsConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    operators: tuple[str, ...]
    shapes: int
    dtypes: tuple[str, ...]
    matmul_size: int
    bandwidth_kib: tuple[int, ...]
    threads: int
    mcpu: str
    device: tuple[str, ...]


class Operators(Experiment[OperatorsConfig]):
    """Every operator on each engine; a process for each kind of operator and engine, and one for the machine."""

    engines = (workloads.TVM, ONNXRUNTIME, ONNXRUNTIME_CUDA, peaks.NUMPY)
    compiles_ahead = True
    axes = (*(Axis(name, "workload_args") for name in ARGUMENTS), Axis("threads", "runtime_config"), AXIS)

    def points(self, config: OperatorsConfig) -> list[Point]:
        target = workloads.target_text(config)
        targets = {workloads.TVM.name: target, ONNXRUNTIME.name: "cpu"}
        return self._machine(config) + [
            Point(
                f"topi.{operator.kind}",
                {**operator.args, "dtype": dtype, "threads": config.threads},
                group=operator.kind,
                target=target,
                engine=engine,
            )
            for operator in chosen(config.operators, config.shapes)
            for dtype in config.dtypes
            for engine, target in targets.items()
        ]

    def _machine(self, config: OperatorsConfig) -> list[Point]:
        wanted: list[tuple[str, dict[str, Any]]] = [
            (peaks.MATMUL, {"n": config.matmul_size, "dtype": "float32"}),
            *((workload, {"kib": kib}) for kib in config.bandwidth_kib for workload in peaks.ARRAYS),
        ]
        return [
            Point(workload, {**values, "threads": config.threads}, "machine", "cpu", peaks.NUMPY.name)
            for workload, values in wanted
        ]

    def prepare(self, point: Point, config: OperatorsConfig, seed: int) -> Prepared:
        if point.engine == peaks.NUMPY.name:
            return peaks.prepare(point.workload, point.values, seed)
        operator = roofline.operator_of(point.workload, point.values)
        dtype, threads = point.values["dtype"], config.threads
        if point.engine in {ONNXRUNTIME.name, ONNXRUNTIME_CUDA.name}:
            return on_onnxruntime(operator, dtype, threads, seed, point.device)
        options = CompileOptions(json.loads(point.target))
        return on_tvm(operator, dtype, options, threads, seed, point.device)

    def derive(self, records: Sequence[Record]) -> Sequence[Mapping[str, Any]]:
        """Derive GFLOP/s, GB/s and the percent of the roofline of each operator."""
        rates = [roofline.rate_of_record(record) for record in records]
        on_cpu = [AXIS.name not in record.runtime_config for record in records]
        return [roofline.facts(rate, rates if here else ()) for rate, here in zip(rates, on_cpu, strict=True)]

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Draw lines over nights, and by data type tonight's times and shares of the roofline."""
        usual = {name: plot for name, plot in super().plots(history).items() if name != "tonight"}
        return {**roofline.plots(history), **usual}

    def summary(self, history: History) -> Summary:
        """Add what is farthest from the machine's peaks to the usual words about operators."""
        return roofline.summary(super().summary(roofline.without_machine(history)), history)


if __name__ == "__main__":
    raise SystemExit(Operators().main())
