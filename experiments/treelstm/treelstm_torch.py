"""TreeLSTM on PyTorch, eager: the same calls on the same tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forest import Run
from problem import Problem, empty_table, inputs

from tvmdash.networks.ops import Array

Table = tuple[Any, Any]
"""h and c, torch.Tensor of (rows, hidden)."""


def make(
    asked: Problem, runs: list[Run], threads: int
) -> tuple[Callable[[], list[Table]], Callable[[], list[tuple[Array, Array]]]]:
    """A call that computes all trees on tensors that are there already, and one that gives the tables as well."""
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
