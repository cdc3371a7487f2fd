"""Child-sum TreeLSTM over parse trees: all nodes of one height in one call, or a call for each node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import on_relax
import on_torch
from forest import PLANS, Run
from problem import Problem, Size, answers, problem

from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import configuration_text, reference_engines
from tvmdash.networks import accuracy
from tvmdash.networks.ops import Array
from tvmdash.relax_util import CompileOptions, workloads
from tvmdash.summary_util import Summary
from tvmdash.text import format_quantity
from tvmdash.trial_util import python_timer


@dataclass(frozen=True, kw_only=True)
class TreeLstmConfig(ExperimentConfig):
    """As fields.json describes it."""

    ways: tuple[str, ...]
    trees: int
    hidden: int
    embedding: int
    threads: int
    mcpu: str


class TreeLstm(Experiment[TreeLstmConfig]):
    """The same trees in every way; one process for each engine."""

    engines = (workloads.TVM, reference_engines.TORCH)
    axes = (
        *(Axis(name, "workload_args") for name in ("trees", "nodes", "hidden", "embedding")),
        Axis("batching", "build_config"),
        Axis("threads", "runtime_config"),
    )

    def points(self, config: TreeLstmConfig) -> list[Point]:
        asked = _problem(config, config.data_seed)
        sizes = {"trees": config.trees, "hidden": config.hidden, "embedding": config.embedding}
        shared = {**sizes, "nodes": len(asked.forest.words), "threads": config.threads}
        return [_point(way, shared, config) for way in config.ways]

    def prepare(self, point: Point, config: TreeLstmConfig, seed: int) -> Prepared:
        asked, runs = _problem(config, seed), PLANS[point.values["batching"]](_problem(config, seed).forest)
        if point.engine == "torch":
            call, tables = on_torch.make(asked, runs, config.threads)
            return Prepared(python_timer(call), lambda: checked(asked, runs, tables()), details=_work(runs))
        made = on_relax.make(asked, runs, CompileOptions(json.loads(point.target)), config.threads)
        compiled = made.compiled
        return Prepared(
            timer=python_timer(made.call),
            check=lambda: checked(asked, runs, made.tables()),
            compile_ms=compiled.compile_ms,
            code_size_bytes=compiled.code_size_bytes,
            passes_ms=compiled.pass_times_ms,
            details=_work(runs),  # no module_hash: symbolic shapes give other bytes at each compilation
        )

    def summary(self, history: History) -> Summary:
        """The default words, the fastest way, and what a node costs in each."""
        summary = configuration_text.summary(super().summary(history), history)
        costs = [
            f"{way} {format_quantity(series.values[-1] * 1e6 / series.labels['workload_args']['nodes'], 'ns')}"
            for ways in configuration_text.group_cases(history).values()
            for way, series in ways.items()
        ]
        return summary.with_lines([f"- a node takes: {'; '.join(costs)}"])


def checked(asked: Problem, runs: list[Run], tables: list[tuple[Array, Array]]) -> dict[str, float]:
    """The largest error of any node's h and c."""
    return accuracy.check_answer(answers(asked, runs, tables), asked.expected)


def _work(runs: list[Run]) -> dict[str, int]:
    """How many calls there are, and how many rows stand for children, those of zeros among them."""
    steps = [step for run in runs for step in run.steps]
    return {"calls": len(steps), "child_rows": sum(step.children.size for step in steps if step.children is not None)}


def _problem(config: TreeLstmConfig, seed: int) -> Problem:
    return problem(Size(config.trees, config.hidden, config.embedding), seed)


def _point(way: str, shared: Mapping[str, Any], config: TreeLstmConfig) -> Point:
    engine, batching = way.split()
    target = workloads.target_text(config) if engine == "tvm" else "cpu"
    return Point("treelstm.forest", {**shared, "batching": batching}, "forest", target, engine)


if __name__ == "__main__":
    raise SystemExit(TreeLstm().main())
