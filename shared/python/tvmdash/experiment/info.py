"""Values that describe an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from tvmdash.config_util.fields import AXIS_COLUMNS
from tvmdash.errors import DashboardError
from tvmdash.experiment.engines import Engine
from tvmdash.machine.devices import CPU
from tvmdash.measure.capture import OperatorSpan
from tvmdash.records.metrics import COMPILE_CPU_TIME, Declared
from tvmdash.series.store import Series
from tvmdash.summary_util import Failure
from tvmdash.trial_util import Timer

Clock = Literal["cpu", "wall"]
"""The CPU time of the thread that times the point, or the wall clock."""
Config_contra = TypeVar("Config_contra", contravariant=True)


@dataclass(frozen=True)
class Axis:
    """A varied parameter and the record column that carries its value."""

    name: str
    column: str
    COLUMNS: ClassVar[tuple[str, ...]] = AXIS_COLUMNS

    def __post_init__(self) -> None:
        if self.column not in self.COLUMNS:
            raise DashboardError(f"axis {self.name}: {self.column!r} is not one of {', '.join(self.COLUMNS)}.")


@dataclass(frozen=True)
class Point:
    """One combination of axis values on one engine.

    `workload` is `domain.name`, as `network.resnet18`; `values` are by axis; `target` is what it runs on.
    Points of one `group` that have the same engine and environment are measured in the same processes. One with `once`
    has one process and one sample, whatever the config says: for calls that take many seconds. `device` is what it
    runs on, as the home's config names it: `cpu` is this machine's processor.
    """

    workload: str
    values: Mapping[str, Any]
    group: str
    target: str
    engine: str = "tvm"
    once: bool = False
    device: str = CPU

    @property
    def name(self) -> str:
        """Return the workload without its domain."""
        return self.workload.partition(".")[2]


@dataclass(frozen=True)
class Prepared:
    """A workload ready to be timed, and its facts.

    `timer(number, repeat)` gives `repeat` times in nanoseconds, each of `number` calls together. `check` compares an
    answer with the reference: it returns facts for the record (`max_error`, `tolerance`) or raises, which fails the
    point. `compile_ms` is wall time, in milliseconds; `memory_bytes` is what the program planned to need on the device.
    `compile_cpu_ms` is `compile_ms` by the CPU clock, by which it is compared with the reference's where it is known.
    `passes_ms` are compiler passes with their times. The record describes `inputs`, the arrays that it is called with,
    and `build`, how it was compiled. `layout` (as in NCHW) and `transfer_timed` (whether copying inputs and outputs
    lies between the clock reads) tell whether two engines did the same. `details` go into the record as they are.
    `profile` is asked in every process, once the point is timed; `operators` says what the operators in it are, by
    name: `hash`, `shapes`, `flop`, `bytes`. `after` gives facts in every process, found out once the point
    is timed, which they might disturb. `program` hashes what is timed: code, weights and inputs; where it is there, a
    night on which nothing of it changed measures the point once. `metrics` declares numbers of the experiment's own,
    which come under these names in `details`, from `check` or `after`, or from the experiment's `derive`.
    """

    timer: Timer
    check: Callable[[], Mapping[str, Any]] | None = None
    profile: Callable[[], Sequence[OperatorSpan]] | None = None
    compile_ms: float | None = None
    code_size_bytes: int | None = None
    memory_bytes: int | None = None
    passes_ms: Sequence[tuple[str, float]] = ()
    operators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    inputs: Sequence[Any] = ()
    build: Mapping[str, Any] = field(default_factory=dict)
    layout: str | None = None
    transfer_timed: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    program: Callable[[], str] | None = None
    after: Callable[[], Mapping[str, Any]] | None = None
    metrics: Mapping[str, Declared] = field(default_factory=dict)
    compile_cpu_ms: float | None = None

    def describe(self) -> dict[str, dict[str, Any]]:
        """Return values for the record's columns beside the point's own."""
        # torch calls its types torch.float32
        inputs = [{"shape": list(item.shape), "dtype": str(item.dtype).rpartition(".")[2]} for item in self.inputs]
        return {"workload_args": {"inputs": inputs, "layout": self.layout}, "build_config": dict(self.build)}

    def info(self) -> dict[str, Any]:
        known = {
            "compile_time": self.compile_ms,
            COMPILE_CPU_TIME: self.compile_cpu_ms,
            "code_size": self.code_size_bytes,
            "device_memory_usage": self.memory_bytes,
        }
        return {**{name: value for name, value in known.items() if value is not None}, **self.details}


class Measurable(Protocol[Config_contra]):
    """The part of an experiment that measuring needs; `exp_templates.Experiment` is one."""

    engines: tuple[Engine, ...]
    inputs_engine: str
    compiles_ahead: bool

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Return the axes of its points."""

    @property
    def folder(self) -> Path:
        """Return the folder of its files."""

    def points(self, config: Config_contra) -> list[Point]:
        """Return every point that the config asks for."""

    def packages(self, config: Config_contra) -> Sequence[Engine]:
        """Return engines to install besides those of its points."""

    def prepare(self, point: Point, config: Config_contra, seed: int) -> Prepared:
        """Return the point's workload, ready to be timed."""

    def environment(self, point: Point, config: Config_contra) -> dict[str, str]:
        """Return the environment variables of the processes that measure the point."""

    def is_paired(self, point: Point, config: Config_contra) -> bool:
        """Return True where the point can be measured beside a reference."""

    def runs_on_devices(self, point: Point, config: Config_contra) -> bool:
        """Return True where the point can run on other devices than this machine's processor."""

    def clock(self, point: Point, config: Config_contra) -> Clock:
        """Return the clock of the comparison with the reference."""


@dataclass(frozen=True)
class History:
    """All series of one experiment up to tonight; `stamps` of its nights ascending, tonight's `failures`.

    operators: the series of single operators, where the config asks for them. They are in no graph and comparison.
    """

    experiment: str
    axes: tuple[Axis, ...]
    series: tuple[Series, ...]
    stamps: tuple[str, ...]
    failures: tuple[Failure, ...]
    operators: tuple[Series, ...] = ()

    def values(self, series: Series) -> dict[str, Any]:
        """Return the series' axis values by axis name, the workload and, where it is known, the engine first."""
        workload = {"workload": str(series.labels.get("workload", series.labels.get("path", ""))).partition(".")[2]}
        engine = {"engine": series.labels["engine"]} if "engine" in series.labels else {}
        values = {axis.name: series.labels.get(axis.column, {}).get(axis.name) for axis in self.axes}
        return {**workload, **engine, **{name: value for name, value in values.items() if value is not None}}
