"""Single operators at shapes of the networks: TVM against ONNX Runtime, and both against what this machine can do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import peaks
import roofline
import running

from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared, Record
from tvmdash.experiment.on_devices import AXIS
from tvmdash.plot_util.specs import Plot
from tvmdash.relax_util import CompileOptions, workloads
from tvmdash.relax_util.operators.table import chosen
from tvmdash.summary_util import Summary

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

    engines = (workloads.TVM, running.ONNXRUNTIME, running.ONNXRUNTIME_CUDA, peaks.NUMPY)
    axes = (*(Axis(name, "workload_args") for name in ARGUMENTS), Axis("threads", "runtime_config"), AXIS)

    def points(self, config: OperatorsConfig) -> list[Point]:
        target = workloads.target_text(config)
        targets = {workloads.TVM.name: target, running.ONNXRUNTIME.name: "cpu"}
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
        if point.engine in {running.ONNXRUNTIME.name, running.ONNXRUNTIME_CUDA.name}:
            return running.on_onnxruntime(operator, dtype, threads, seed, point.device)
        options = CompileOptions(json.loads(point.target))
        return running.on_tvm(operator, dtype, options, threads, seed, point.device)

    def derive(self, records: Sequence[Record]) -> Sequence[Mapping[str, Any]]:
        """GFLOP/s, GB/s and the percent of the roofline of each operator."""
        rates = [roofline.rate_of_record(record) for record in records]
        on_cpu = [AXIS.name not in record.runtime_config for record in records]
        return [roofline.facts(rate, rates if here else ()) for rate, here in zip(rates, on_cpu, strict=True)]

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Lines over nights, and by data type tonight's times and shares of the roofline."""
        usual = {name: plot for name, plot in super().plots(history).items() if name != "tonight"}
        return {**roofline.plots(history), **usual}

    def summary(self, history: History) -> Summary:
        """The usual words about operators, then what is farthest from the machine's peaks."""
        return roofline.summary(super().summary(roofline.without_machine(history)), history)


if __name__ == "__main__":
    raise SystemExit(Operators().main())
