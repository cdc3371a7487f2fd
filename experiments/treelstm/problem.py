"""Child-sum TreeLSTM (Tai, Socher, Manning 2015, section 3.1) in numpy: weights, words, and every node's answer."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from forest import Forest, ForestRun, ForestStep, read

from tvmdash.errors import DashboardError
from tvmdash.networks.ops import Array


@dataclass(frozen=True)
class TreeSize:
    """Trees, hidden size, and numbers that stand for a word."""

    trees: int
    hidden: int
    embedding: int


@dataclass(frozen=True)
class TreeProblem:
    """Weights and words in float32, answers in float64.

    `weights`: w (embedding, 4 * hidden) and b (4 * hidden,) for the input, output and forget gates and the new value
    in the order i, o, u, f; sums_u (hidden, 3 * hidden) for i, o, u of the children's sum; child_u (hidden, hidden) for
    f of each child. `x`: a row for each node. `expected`: a row of h and c, (nodes, 2 * hidden).
    """

    size: TreeSize
    forest: Forest
    weights: Mapping[str, Array]
    x: Array
    expected: Array


@functools.lru_cache(maxsize=2)
def problem(size: TreeSize, seed: int) -> TreeProblem:
    """The same for the same seed; a word is the same numbers wherever it stands."""
    forest, rng, wide = read(size.trees), np.random.default_rng([seed, 0]), 4 * size.hidden
    shapes = {
        "w": (size.embedding, wide),
        "b": (wide,),
        "sums_u": (size.hidden, 3 * size.hidden),
        "child_u": (size.hidden, size.hidden),
    }
    reach = 1 / np.sqrt(size.hidden)
    weights = {name: rng.uniform(-reach, reach, shape).astype(np.float32) for name, shape in shapes.items()}
    known = sorted(set(forest.words))
    vectors = dict(zip(known, rng.standard_normal((len(known), size.embedding)).astype(np.float32), strict=True))
    x = np.stack([vectors[word] for word in forest.words])
    return TreeProblem(size, forest, weights, x, reference(forest, weights, x))


def reference(forest: Forest, weights: Mapping[str, Array], x: Array) -> Array:
    """Every node's h and c in float64, by recursion, a node and a child at a time."""
    wide = {name: array.astype(np.float64) for name, array in weights.items()}
    hidden = len(wide["child_u"])
    h, c = np.zeros((2, len(x), hidden))
    for node in (node for root in forest.roots for node in forest.below(root)):
        below = list(forest.children[node])
        i, o, u, f = np.split(x[node].astype(np.float64) @ wide["w"] + wide["b"], 4)
        i_sum, o_sum, u_sum = np.split(h[below].sum(axis=0) @ wide["sums_u"], 3)
        kept = sum((_sigmoid(f + h[child] @ wide["child_u"]) * c[child] for child in below), np.zeros(hidden))
        c[node] = _sigmoid(i + i_sum) * np.tanh(u + u_sum) + kept
        h[node] = _sigmoid(o + o_sum) * np.tanh(c[node])
    return np.concatenate([h, c], axis=1)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def inputs(asked: TreeProblem, step: ForestStep) -> tuple[Array, ...]:
    """What a call is given beside the table: a row for each node and, but for leaves, their children's rows."""
    x = asked.x[list(step.nodes)]
    return (x,) if step.children is None else (x, step.children)


def empty_table(asked: TreeProblem) -> tuple[Array, Array]:
    """An h and a c with nothing but the row of zeros."""
    return np.zeros((1, asked.size.hidden), np.float32), np.zeros((1, asked.size.hidden), np.float32)


def answers(asked: TreeProblem, runs: list[ForestRun], tables: list[tuple[Array, Array]]) -> Array:
    """Every node's h and c from the tables that the runs ended with, in the order of `expected`."""
    states = np.full(asked.expected.shape, np.nan, np.float32)
    for run, (h, c) in zip(runs, tables, strict=True):
        if len(h) != len(run.nodes) + 1:
            raise DashboardError(f"wrong answer: a table of {len(h)} rows for {len(run.nodes)} nodes.")
        states[list(run.nodes)] = np.concatenate([h[1:], c[1:]], axis=1)
    return states
