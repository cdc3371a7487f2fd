"""The canary: machine code that never changes, so that what moves here is the machine's doing and not TVM's."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import canary_text
import workloads
from buffers import on_one_core
from machine_code import Kernel, kernels, load

from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Axis, Engine, EngineFacts, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.machine import hardware
from tvmdash.summary_util import Summary
from tvmdash.trial_util import Timer, python_timer

VECTORS: Mapping[str, tuple[str, ...]] = {"x86_64": ("sse2", "avx2"), "aarch64": ("neon",)}


def facts() -> EngineFacts:
    """The version is that of all kernels together; there is no TVM in it, so the night says which one it was."""
    code = b"".join(kernel.code for _, kernel in sorted(kernels().items()))
    return EngineFacts(version=hashlib.sha256(code).hexdigest()[:12])


MACHINE_CODE = Engine("machine code", facts=facts)


@dataclass(frozen=True, kw_only=True)
class CanaryConfig(ExperimentConfig):
    """As fields.json describes it."""

    buffer_mib: int
    shorter: int
    threads: int


class Canary(Experiment[CanaryConfig]):
    """Every workload once; those with instructions that a processor may lack in processes of their own."""

    engines = (MACHINE_CODE,)
    axes = (
        Axis("instructions", "build_config"),
        Axis("steps", "workload_args"),
        Axis("lanes", "workload_args"),
        Axis("bytes", "workload_args"),
        Axis("passes", "workload_args"),
    )

    def points(self, config: CanaryConfig) -> list[Point]:
        sizes = {"shorter": config.shorter, "buffer_mib": config.buffer_mib}
        return [
            Point(
                f"canary.{workload}",
                {"instructions": instructions, **workloads.arguments(workload, instructions, **sizes)},
                group="avx2" if instructions == "avx2" else "base",
                target=platform.machine(),
                engine=MACHINE_CODE.name,
            )
            for workload, instructions in variants(platform.machine())
        ]

    def prepare(self, point: Point, config: CanaryConfig, seed: int) -> Prepared:
        workload = point.workload.partition(".")[2]
        kernel = kernel_of(workload, point.values["instructions"])
        function = load(kernel)
        with on_one_core() as core:
            work = workloads.MAKERS[workload](function, point.values, seed)
            checked = dict(work.check())
        rates = {"operations_per_call": work.operations, "bytes_per_call": work.moved_bytes}
        details = {
            "module_hash": kernel.sha256,
            "code_bytes": len(kernel.code),
            "core": core,
            **{name: value for name, value in rates.items() if value},
        }
        return Prepared(timer=_timer(work), check=lambda: checked, details=details)

    def summary(self, history: History) -> Summary:
        return canary_text.summary(history)


def variants(architecture: str) -> Iterator[tuple[str, str]]:
    """Each workload with the instruction sets that it is written for."""
    for workload in workloads.MAKERS:
        for instructions in VECTORS.get(architecture, ()) if workload == "multiply_add" else (workloads.BASE,):
            yield workload, instructions


def kernel_of(workload: str, instructions: str) -> Kernel:
    """The kernel; DashboardError where this machine has none for it."""
    known = kernels()
    if not known:
        raise DashboardError(f"there are no kernels for this machine ({platform.machine()}). Switch the canary off.")
    kernel = known[workloads.KERNELS.get((workload, instructions), workload)]
    lacking = kernel.lacks(hardware.facts()["cpu_flags"])
    if lacking:
        raise DashboardError(f"this processor has no {', '.join(lacking)}")
    return kernel


def _timer(work: workloads.Work) -> Timer:
    def timed(number: int, repeat: int) -> list[int]:
        with on_one_core():
            return python_timer(work.call)(number, repeat)

    return timed


if __name__ == "__main__":
    raise SystemExit(Canary().main())
