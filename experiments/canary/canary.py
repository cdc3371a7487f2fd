"""The canary: machine code that never changes, so that what moves here is the machine's doing and not TVM's."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import workloads
from machine_code import Kernel, kernels, load
from workloads import last_level_cache_bytes, on_one_core

from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Axis, Engine, EngineFacts, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import plots
from tvmdash.machine import hardware
from tvmdash.series.store import Series
from tvmdash.summary_util import Summary, percent_change
from tvmdash.text import elide, format_list, format_percent
from tvmdash.trial_util import Timer, python_timer

VECTORS: Mapping[str, tuple[str, ...]] = {"x86_64": ("sse2", "avx2"), "aarch64": ("neon",)}


def facts() -> EngineFacts:
    """Return as version that of all kernels together; there is no TVM in it, so the night says which one it was."""
    code = b"".join(kernel.code for _, kernel in sorted(kernels().items()))
    return EngineFacts(version=hashlib.sha256(code).hexdigest()[:12])


MACHINE_CODE = Engine("machine code", facts=facts)


@dataclass(frozen=True, kw_only=True)
class CanaryConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

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
        return summary(history)


def variants(architecture: str) -> Iterator[tuple[str, str]]:
    """Yield each workload with the instruction sets that it is written for."""
    for workload in workloads.MAKERS:
        for instructions in VECTORS.get(architecture, ()) if workload == "multiply_add" else (workloads.BASE,):
            yield workload, instructions


def kernel_of(workload: str, instructions: str) -> Kernel:
    """Find the kernel; DashboardError where this machine has none for it."""
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


CYCLES_A_STEP = 4
"""A 64-bit multiply and an add that wait for each other: 3 + 1 cycles on x86-64 processors of the last ten years."""
MOVED_PERCENT = 2.0
"""Smaller moves since the last night are not named one by one; stat_alerts judges them over many nights."""


def summary(history: History) -> Summary:
    """Write what a person wants to know of the machine tonight."""
    tonight = {_name(series): series for series in plots.measured_tonight(history, {"run_time"})}
    lines = [
        "Machine code that never changes: what moves here is the machine, not TVM.",
        *_speeds(tonight),
        _moved(history, list(tonight.values())),
        *_small_buffer(tonight),
        *(f"Not measured: {elide(failure.label, 80)}: {elide(failure.reason, 200)}" for failure in history.failures),
    ]
    return Summary(f"{history.experiment}, night {history.stamps[-1]}", "\n".join(line for line in lines if line))


def _name(series: Series) -> str:
    """Name the workload, with its instructions where there are several kinds."""
    workload = str(series.labels["workload"]).partition(".")[2]
    instructions = str(series.labels["build_config"].get("instructions", "base"))
    return workload if instructions == "base" else f"{workload} {instructions}"


def _speeds(tonight: Mapping[str, Series]) -> list[str]:
    lines = []
    chain = tonight.get("integer_chain")
    if chain is not None:
        clock = CYCLES_A_STEP * _argument(chain, "steps") / _nanoseconds(chain)
        change = f" ({_change(chain)})" if _change(chain) else ""
        lines.append(f"Clock: like {clock:.2f} GHz, at {CYCLES_A_STEP} cycles a step of the integer chain{change}.")
    memory = [text for name in ("memory_read", "memory_fill", "memory_copy") for text in _bandwidth(tonight, name)]
    walk = tonight.get("memory_chase")
    if walk is not None:
        memory.append(f"{_nanoseconds(walk) / _argument(walk, 'steps'):.0f} ns for a random access")
    if memory:
        lines.append(f"Memory, one core: {format_list(memory, 5)}.")
    arithmetic = [
        f"{_flops(series) / _nanoseconds(series):.1f} GFLOP/s with {name.partition(' ')[2].upper()}"
        for name, series in tonight.items()
        if name.startswith("multiply_add")
    ]
    if arithmetic:
        lines.append(f"Multiply-adds of doubles, one core: {format_list(arithmetic, 3)}.")
    return lines


def _bandwidth(tonight: Mapping[str, Series], name: str) -> list[str]:
    series = tonight.get(name)
    if series is None:
        return []
    moved = _argument(series, "bytes") * (2 if name == "memory_copy" else 1)
    verb = {"memory_read": "read", "memory_fill": "filled", "memory_copy": "copied (read and written)"}[name]
    return [f"{moved / _nanoseconds(series):.1f} GB/s {verb}"]


def _flops(series: Series) -> float:
    return 2 * 12 * _argument(series, "lanes") * _argument(series, "steps")


def _argument(series: Series, name: str) -> int:
    return int(series.labels["workload_args"][name])


def _nanoseconds(series: Series) -> float:
    return series.values[-1] * 1e6


def _change(series: Series) -> str:
    """Write it as in `+0.3 % since the night before it ran`; empty on its first night."""
    if len(series.values) < 2:
        return ""
    change = percent_change(series.values[-2], series.values[-1])
    return f"its time {format_percent(change / 100)} since the last night"


def _moved(history: History, tonight: Sequence[Series]) -> str:
    before = history.stamps[-2] if len(history.stamps) > 1 else None
    changes = {
        _name(series): percent_change(series.values[-2], series.values[-1])
        for series in tonight
        if series.stamps[-2:-1] == (before,)
    }
    if not changes:
        return "No earlier night to compare with."
    moved = sorted(
        (name for name in changes if abs(changes[name]) > MOVED_PERCENT), key=lambda name: -abs(changes[name])
    )
    if not moved:
        return f"None of {len(changes)} times moved by more than {MOVED_PERCENT:g} % since the last night."
    changes_text = [f"{name} {format_percent(changes[name] / 100)}" for name in moved]
    return f"Times since the last night (not yet judged against noise): {format_list(changes_text, 12)}."


def _small_buffer(tonight: Mapping[str, Series]) -> list[str]:
    walk, cache = tonight.get("memory_read"), last_level_cache_bytes()
    if walk is None or cache is None or _argument(walk, "bytes") >= 2 * cache:
        return []
    size = _argument(walk, "bytes") >> 20
    return [
        f"The memory figures are a cache's: {size} MiB are walked through, and the last level holds {cache >> 20} MiB."
    ]


if __name__ == "__main__":
    raise SystemExit(Canary().main())
