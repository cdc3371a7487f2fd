"""TreeLSTM on Relax: a function for leaves and one for what has children, of symbolic shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from forest import Run
from problem import Problem, empty_table, inputs

from tvmdash import relax_util
from tvmdash.networks.ops import Array
from tvmdash.relax_util import Compiled, CompileOptions

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


def module(asked: Problem) -> Any:
    """An IRModule with `leaves` and `level`, which give the table with their nodes' rows; weights are constants."""
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
class Made:
    """The compiled module, a call that computes all trees, and one that gives the tables of its runs as well."""

    compiled: Compiled
    call: Callable[[], object]
    tables: Callable[[], list[tuple[Array, Array]]]


def make(asked: Problem, runs: list[Run], options: CompileOptions, threads: int) -> Made:
    """The runs on one compiled module. What the calls are given lies on the device already."""
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

    return Made(compiled, call, lambda: [(h.numpy(), c.numpy()) for h, c in call()])
