"""Child-sum TreeLSTM over parse trees: all nodes of one height in one call, or a call for each node."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from problem import PLANS, ForestRun, TreeProblem, TreeSize, answers, empty_table, inputs, problem

from tvmdash import relax_util
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import configuration_text, reference_engines
from tvmdash.networks import accuracy
from tvmdash.networks.ops import Array
from tvmdash.relax_util import Compiled, CompileOptions, workloads
from tvmdash.summary_util import Summary
from tvmdash.text import format_quantity
from tvmdash.trial_util import python_timer


@dataclass(frozen=True, kw_only=True)
class TreeLstmConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    ways: tuple[str, ...]
    trees: int
    hidden: int
    embedding: int
    threads: int
    mcpu: str


class TreeLstm(Experiment[TreeLstmConfig]):
    """Every way of computing the same trees; one process for each engine."""

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
            call, tables = make_torch(asked, runs, config.threads)
            return Prepared(python_timer(call), lambda: checked(asked, runs, tables()), details=_work(runs))
        made = make(asked, runs, CompileOptions(json.loads(point.target)), config.threads)
        compiled = made.compiled
        return Prepared(
            timer=python_timer(made.call),
            check=lambda: checked(asked, runs, made.tables()),
            compile_ms=compiled.compile_ms,
            compile_cpu_ms=compiled.compile_cpu_ms,
            code_size_bytes=compiled.code_size_bytes,
            passes_ms=compiled.pass_times_ms,
            details=_work(runs),  # no module_hash: symbolic shapes give other bytes at each compilation
        )

    def summary(self, history: History) -> Summary:
        """Add the fastest way, and what a node costs in each, to the default words."""
        summary = configuration_text.summary(super().summary(history), history)
        costs = [
            f"{way} {format_quantity(series.values[-1] * 1e6 / series.labels['workload_args']['nodes'], 'ns')}"
            for ways in configuration_text.group_cases(history).values()
            for way, series in ways.items()
        ]
        return summary.with_lines([f"- a node takes: {'; '.join(costs)}"])


def checked(asked: TreeProblem, runs: list[ForestRun], tables: list[tuple[Array, Array]]) -> dict[str, float]:
    """Return the largest error of any node's h and c, and the share of nodes whose strongest unit is right."""
    states = answers(asked, runs, tables)
    same = states.argmax(axis=1) == asked.expected.argmax(axis=1)
    return {**accuracy.check_answer(states, asked.expected), "validation_accuracy": float(same.mean())}


def _work(runs: list[ForestRun]) -> dict[str, int]:
    """Count the calls, and the rows that stand for children, those of zeros among them."""
    steps = [step for run in runs for step in run.steps]
    return {"calls": len(steps), "child_rows": sum(step.children.size for step in steps if step.children is not None)}


def _problem(config: TreeLstmConfig, seed: int) -> TreeProblem:
    return problem(TreeSize(config.trees, config.hidden, config.embedding), seed)


def _point(way: str, shared: Mapping[str, Any], config: TreeLstmConfig) -> Point:
    engine, batching = way.split()
    target = workloads.target_text(config) if engine == "tvm" else "cpu"
    return Point("treelstm.forest", {**shared, "batching": batching}, "forest", target, engine)


TABLE = 'R.Tensor(("m", {hidden}), "float32")'
WEIGHTS = """
        w: R.Tensor(({embedding}, {wide}), "float32"), b: R.Tensor(({wide},), "float32"),"""
SOURCE = """
@I.ir_module
class TreeLstm:
    @R.function
    def leaves(
        x: R.Tensor(("n", {embedding}), "float32"), h: TABLE, c: TABLE, WEIGHTS
    ):
        with R.dataflow():
            gates = R.split(R.add(R.matmul(x, w), b), 4, axis=1)
            c_new = R.multiply(R.sigmoid(gates[0]), R.tanh(gates[2]))
            h_new = R.multiply(R.sigmoid(gates[1]), R.tanh(c_new))
            table = (R.concat([h, h_new], axis=0), R.concat([c, c_new], axis=0))
            R.output(table)
        return table

    @R.function
    def level(
        x: R.Tensor(("n", {embedding}), "float32"), children: R.Tensor(("n", "k"), "int64"), h: TABLE, c: TABLE, WEIGHTS
        sums_u: R.Tensor(({hidden}, {sums}), "float32"), child_u: R.Tensor(({hidden}, {hidden}), "float32"),
    ):
        with R.dataflow():
            h_below = R.take(h, children, axis=0)
            c_below = R.take(c, children, axis=0)
            parts = R.split(R.add(R.matmul(x, w), b), [{sums}], axis=1)
            gates = R.split(R.add(parts[0], R.matmul(R.sum(h_below, axis=[1]), sums_u)), 3, axis=1)
            forget = R.sigmoid(R.add(R.matmul(h_below, child_u), R.expand_dims(parts[1], axis=1)))
            kept = R.sum(R.multiply(forget, c_below), axis=[1])
            c_new = R.add(R.multiply(R.sigmoid(gates[0]), R.tanh(gates[2])), kept)
            h_new = R.multiply(R.sigmoid(gates[1]), R.tanh(c_new))
            table = (R.concat([h, h_new], axis=0), R.concat([c, c_new], axis=0))
            R.output(table)
        return table
"""


def module(asked: TreeProblem) -> Any:
    """Make a module of `leaves` and `level`, which give the table with their nodes' rows; weights are constants."""
    import tvm.script
    from tvm import relax
    from tvm.script import ir

    hidden = asked.size.hidden
    sizes = {"embedding": asked.size.embedding, "hidden": hidden, "wide": 4 * hidden, "sums": 3 * hidden}
    source = SOURCE.replace("TABLE", TABLE).replace("WEIGHTS", WEIGHTS).format(**sizes)
    parsed = tvm.script.from_source(source, {"I": ir, "R": tvm.script.relax})
    for function, names in (("leaves", ("w", "b")), ("level", tuple(asked.weights))):
        parsed = relax.transform.BindParams(function, {name: asked.weights[name] for name in names})(parsed)
    return parsed


@dataclass(frozen=True)
class CompiledTrees:
    """The compiled module, a call that computes all trees, and one that gives the tables of its runs as well."""

    compiled: Compiled
    call: Callable[[], object]
    tables: Callable[[], list[tuple[Array, Array]]]


def make(asked: TreeProblem, runs: list[ForestRun], options: CompileOptions, threads: int) -> CompiledTrees:
    """Compile the runs as one module. What the calls are given lies on the device already."""
    import tvm
    from tvm import relax

    compiled = relax_util.compile_module(module(asked), options)
    relax_util.use_threads(threads)
    machine, tensor = relax.VirtualMachine(compiled.executable, tvm.cpu()), tvm.runtime.tensor
    empty = tuple(map(tensor, empty_table(asked)))
    functions = {1: machine["leaves"], 2: machine["level"]}
    prepared = [
        [(functions[len(given)], tuple(map(tensor, given))) for given in (inputs(asked, step) for step in run.steps)]
        for run in runs
    ]

    def run_forest(calls: list[tuple[Any, tuple[Any, ...]]]) -> Any:
        table: Any = empty
        for function, given in calls:
            table = function(*given, *table)
        return table

    def call() -> list[Any]:
        return [run_forest(calls) for calls in prepared]

    return CompiledTrees(compiled, call, lambda: [(h.numpy(), c.numpy()) for h, c in call()])


Table = tuple[Any, Any]
"""h and c, torch.Tensor of (rows, hidden)."""


def make_torch(
    asked: TreeProblem, runs: list[ForestRun], threads: int
) -> tuple[Callable[[], list[Table]], Callable[[], list[tuple[Array, Array]]]]:
    """Make a call that computes all trees on tensors that are there already, and one that gives the tables as well."""
    import torch

    torch.set_num_threads(threads)
    weights = {name: torch.from_numpy(array) for name, array in asked.weights.items()}
    h, c = map(torch.from_numpy, empty_table(asked))
    prepared = [[tuple(map(torch.from_numpy, inputs(asked, step))) for step in run.steps] for run in runs]

    def run_forest(steps: list[tuple[Any, ...]]) -> Table:
        table = h, c
        for given in steps:
            x, *children = given
            table = _level(weights, x, children[0], table) if children else _leaves(weights, x, table)
        return table

    def call() -> list[Table]:
        return [run_forest(steps) for steps in prepared]

    return call, lambda: [(h.numpy(), c.numpy()) for h, c in call()]


def _leaves(weights: dict[str, Any], x: Any, table: Table) -> Table:
    import torch

    i, o, u, _ = torch.addmm(weights["b"], x, weights["w"]).chunk(4, 1)
    c = i.sigmoid() * u.tanh()
    return torch.cat((table[0], o.sigmoid() * c.tanh())), torch.cat((table[1], c))


def _level(weights: dict[str, Any], x: Any, children: Any, table: Table) -> Table:
    import torch

    h_below, c_below = table[0][children], table[1][children]
    hidden = h_below.shape[-1]
    gates, f = torch.addmm(weights["b"], x, weights["w"]).split((3 * hidden, hidden), 1)
    i, o, u = torch.addmm(gates, h_below.sum(1), weights["sums_u"]).chunk(3, 1)
    forget = (h_below @ weights["child_u"] + f[:, None]).sigmoid()
    c = i.sigmoid() * u.tanh() + (forget * c_below).sum(1)
    return torch.cat((table[0], o.sigmoid() * c.tanh())), torch.cat((table[1], c))


if __name__ == "__main__":
    raise SystemExit(TreeLstm().main())
