"""A compiler's own nightly: how long import, frontend, passes and code generation take, and how much memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilation import (
    IMPORT,
    INSIDE,
    LOAD,
    PHASES,
    TOTAL,
    CompilationCost,
    ModelSource,
    compile_once,
    import_tvm,
    timed_facts,
)

from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import engine_store
from tvmdash.experiment import plots as series_plots
from tvmdash.experiment.engines import Engine
from tvmdash.plot_util.specs import Estimate, GroupedBar, Plot
from tvmdash.relax_util import CompileOptions, workloads
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary, format_ratio, geometric_mean_ratio
from tvmdash.text import format_list, format_quantity

TVM = Engine("tvm", facts=timed_facts)
ONNX = Engine("onnx", requirements=("onnx==1.23.2", "protobuf==7.36.2"))
"""It measures nothing: setup installs it, and TVM's ONNX frontend reads models with it."""


@dataclass(frozen=True, kw_only=True)
class CompileTimeConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    networks: tuple[str, ...]
    frontends: tuple[str, ...]
    pipeline: str
    batch: int
    threads: int
    mcpu: str


class CompileTime(Experiment[CompileTimeConfig]):
    """Every phase of every network's compilation; a process for each compilation, so that each is its first."""

    engines = (TVM,)
    axes = (
        Axis("phase", "build_config"),
        Axis("frontend", "build_config"),
        Axis("pipeline", "build_config"),
        Axis("batch", "workload_args"),
        Axis("threads", "runtime_config"),
    )

    def packages(self, config: CompileTimeConfig) -> Sequence[Engine]:
        return (ONNX,) if "onnx" in config.frontends else ()

    def points(self, config: CompileTimeConfig) -> list[Point]:
        target = workloads.target_text(config)
        shared = {"threads": config.threads}
        imported = Point("compile.import_tvm", {"phase": IMPORT, **shared}, group=IMPORT, target=target)
        more = {"pipeline": config.pipeline, "batch": config.batch, **shared}
        return [imported] + [
            Point(
                f"compile.{network}",
                {"phase": phase, "frontend": frontend, **more},
                group=f"{network} from {frontend}",
                target=target,
            )
            for network in config.networks
            for frontend in config.frontends
            for phase in PHASES
        ]

    def prepare(self, point: Point, config: CompileTimeConfig, seed: int) -> Prepared:
        """Make the process's one compilation, when its first phase is asked for; the timer tells what it took."""
        phase = point.values["phase"]
        if phase == IMPORT:
            return _make_prepared(phase, import_tvm())
        if point.values["frontend"] == "onnx":
            self._see_onnx()
        source = ModelSource(point.workload.partition(".")[2], point.values["frontend"], config.batch, seed)
        options = CompileOptions(json.loads(point.target), config.pipeline)
        done = compile_once(source, options, config.threads)
        if phase != TOTAL:
            return _make_prepared(phase, CompilationCost(done.cost.phases_ms, {}, {}), check=done.check)
        return _make_prepared(
            phase,
            done.cost,
            check=done.check,
            code_size_bytes=done.compiled.code_size_bytes,
            memory_bytes=done.compiled.planned_memory_bytes,
            passes_ms=done.compiled.pass_times_ms,
        )

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Draw each network's lines over nights, the totals of tonight, and what they consist of."""
        return {**super().plots(history), **plots(history)}

    def summary(self, history: History) -> Summary:
        """Tell of each compilation what it consisted of instead of its shortest phase."""
        return summary(super().summary(history), history)

    def _see_onnx(self) -> None:
        """Let this process import onnx, from where setup installed it."""
        engine = engine_store.find(self.folder / "setup", ONNX)
        if engine.reason:
            raise DashboardError(f"the package onnx, which TVM's ONNX frontend needs, is not here: {engine.reason}")
        if engine.path not in sys.path:
            sys.path.insert(0, engine.path)


def _make_prepared(phase: str, cost: CompilationCost, **known: Any) -> Prepared:
    """Make one sample, taken already: a process has only one first time."""
    elapsed_ns = round(cost.phases_ms[phase] * 1e6)
    return Prepared(
        timer=lambda _number, repeat: [elapsed_ns] * max(1, repeat), details={**cost.memory, **cost.told}, **known
    )


Compilations = Mapping[tuple[str, str], Mapping[str, Series]]
"""Tonight's phases by network and frontend."""


def compilations(history: History) -> Compilations:
    """Group tonight's phases by compilation; the import is not among them."""
    phases_of: dict[tuple[str, str], dict[str, Series]] = {}
    for series in series_plots.measured_tonight(history, {"run_time"}):
        values = series.labels["build_config"]
        if values["phase"] != IMPORT:
            key = (str(series.labels["workload"]).partition(".")[2], values["frontend"])
            phases_of.setdefault(key, {})[values["phase"]] = series
    return phases_of


def plots(history: History) -> dict[str, Plot]:
    """Draw totals by network and frontend; for each frontend the phases of each network."""
    phases_of = compilations(history)
    frontends = tuple(dict.fromkeys(frontend for _, frontend in phases_of))
    drawn = {"tonight": _bars(history, "to machine code", phases_of, TOTAL, frontends)}
    for frontend in frontends:
        networks = tuple(network for network, other in phases_of if other == frontend)
        rows = tuple(
            tuple(_estimate(phases_of[network, frontend].get(name)) for name in INSIDE) for network in networks
        )
        title = f"{history.experiment}, night {history.stamps[-1]}: phases from {frontend}"
        drawn[f"phases_from_{frontend}"] = GroupedBar(title, "ms", networks, tuple(INSIDE), rows, lower_is_better=True)
    return dict(drawn)


def _bars(history: History, what: str, phases_of: Compilations, phase: str, frontends: tuple[str, ...]) -> GroupedBar:
    networks = tuple(dict.fromkeys(network for network, _ in phases_of))
    rows = tuple(
        tuple(_estimate(phases_of.get((name, frontend), {}).get(phase)) for frontend in frontends) for name in networks
    )
    title = f"{history.experiment}, night {history.stamps[-1]}: {what}"
    return GroupedBar(
        title, "ms", networks, tuple(f"from {frontend}" for frontend in frontends), rows, lower_is_better=True
    )


def _estimate(series: Series | None) -> Estimate | None:
    return None if series is None else Estimate(series.values[-1], series.low[-1], series.high[-1])


def summary(usual: Summary, history: History) -> Summary:
    """Replace the fastest and slowest of `usual` by what each compilation consisted of."""
    return usual.without(SectionKind.EXTREMES).with_lines(summarize_history(history))


def summarize_history(history: History) -> list[str]:
    """Write a line for the import, one for each compilation, and how the frontends compare."""
    phases_of = compilations(history)
    imports = [
        f"- import of TVM: {_ms(series)}"
        for series in series_plots.measured_tonight(history, {"run_time"})
        if series.labels["build_config"]["phase"] == IMPORT
    ]
    lines = [
        f"- {network} from {frontend}: {_ms(phases[TOTAL])} to machine code ({_shares(phases)})"
        for (network, frontend), phases in phases_of.items()
        if TOTAL in phases
    ]
    return [*imports, *lines, *_frontends(phases_of)]


def _shares(phases: Mapping[str, Series]) -> str:
    total = phases[TOTAL].values[-1]
    parts = [name for name in INSIDE if name in phases and name != LOAD]
    return format_list(
        [f"{name.replace('_', ' ')} {phases[name].values[-1] / total:.0%}".replace("%", " %") for name in parts], 9
    )


def _frontends(phases_of: Compilations) -> list[str]:
    """Compare ONNX with the network's own description, over the networks that were compiled from both."""
    pairs = [
        (phases[TOTAL].values[-1], phases_of[network, "onnx"][TOTAL].values[-1])
        for (network, frontend), phases in phases_of.items()
        if frontend == "relax" and TOTAL in phases and TOTAL in phases_of.get((network, "onnx"), {})
    ]
    return [f"- from onnx against from relax: {format_ratio(geometric_mean_ratio(pairs))}"] if pairs else []


def _ms(series: Series) -> str:
    return format_quantity(series.values[-1], "ms")


if __name__ == "__main__":
    raise SystemExit(CompileTime().main())
