"""Child-sum TreeLSTM (Tai, Socher, Manning 2015, section 3.1) in numpy: trees, weights, words, every node's answer.

Trees are read from trees.json; their nodes are computed in calls by depth, or one by one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.networks.ops import Array

FILE = Path(__file__).resolve().parent / "trees.json"


@dataclass(frozen=True)
class Forest:
    """The nodes of all trees, numbered through: their words, their children, and the root of each tree."""

    words: tuple[str, ...]
    children: tuple[tuple[int, ...], ...]
    roots: tuple[int, ...]

    def below(self, node: int) -> list[int]:
        """List the node's tree from its leaves up: what comes before what needs it, the node itself last."""
        return [*(lower for child in self.children[node] for lower in self.below(child)), node]


@dataclass(frozen=True)
class ForestStep:
    """One call: the nodes it computes, and their children as rows of a table of what is known: (nodes, most children).

    Row 0 of a table is zeros, and stands where a node has fewer children than another. Leaves have no rows at all.
    """

    nodes: tuple[int, ...]
    children: Array | None


@dataclass(frozen=True)
class ForestRun:
    """Calls that share a table: each adds the rows of its nodes, in order."""

    steps: tuple[ForestStep, ...]

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes in the order of the table's rows after row 0."""
        return tuple(node for step in self.steps for node in step.nodes)


def read_forest(count: int, file: Path = FILE) -> Forest:
    """Read the first `count` trees; DashboardError for one that is no tree."""
    words: list[str] = []
    children: list[tuple[int, ...]] = []
    roots = []
    for number, tree in enumerate(common.read_json(file)["trees"][:count], start=1):
        first, heads = len(words), tree["heads"]
        words += tree["words"]
        below = _children(heads)
        children += (tuple(first + child for child in below[index + 1]) for index in range(len(heads)))
        roots.append(first + below[0][0] if below[0] else first)
        forest = Forest(tuple(words), tuple(children), tuple(roots))
        if len(tree["words"]) != len(heads) or heads.count(0) != 1 or len(forest.below(roots[-1])) != len(heads):
            raise DashboardError(
                f"{file}: $.trees[{number - 1}] is not a tree. Give each word one head, and exactly "
                "one word the head 0."
            )
    return Forest(tuple(words), tuple(children), tuple(roots))


def _children(heads: Sequence[int]) -> list[list[int]]:
    """List for each place from 1, and for 0 above the root, the places (from 0) of the words that depend on it."""
    return [[index for index, head in enumerate(heads) if head == above] for above in range(len(heads) + 1)]


def by_node(forest: Forest) -> list[ForestRun]:
    """Plan a table for each tree, a call for each node, in the order of a recursion from the root."""
    return [_run(forest, [[node] for node in forest.below(root)]) for root in forest.roots]


def by_depth(forest: Forest) -> list[ForestRun]:
    """Plan one table, and a call for all nodes of one height: first all leaves, last the root that is highest."""
    heights: dict[int, int] = {}
    for node in (node for root in forest.roots for node in forest.below(root)):
        heights[node] = 1 + max((heights[child] for child in forest.children[node]), default=-1)
    levels = [[node for node in heights if heights[node] == height] for height in range(max(heights.values()) + 1)]
    return [_run(forest, levels)]


PLANS: Mapping[str, Callable[[Forest], list[ForestRun]]] = {"depth": by_depth, "node": by_node}


def _run(forest: Forest, levels: Iterable[Sequence[int]]) -> ForestRun:
    rows: dict[int, int] = {}
    steps = []
    for nodes in levels:
        steps.append(
            ForestStep(tuple(nodes), _rows([[rows[child] for child in forest.children[node]] for node in nodes]))
        )
        rows.update({node: len(rows) + index for index, node in enumerate(nodes, start=1)})
    return ForestRun(tuple(steps))


def _rows(children: Sequence[Sequence[int]]) -> Array | None:
    most = max(map(len, children))
    if not most:
        return None
    return np.array([[*row, *[0] * (most - len(row))] for row in children], dtype=np.int64)


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
    """Make the problem of a seed; a word is the same numbers wherever it stands."""
    forest, rng, wide = read_forest(size.trees), np.random.default_rng([seed, 0]), 4 * size.hidden
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
    """Compute every node's h and c in float64, by recursion, a node and a child at a time."""
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
    """Return a call's inputs beside the table: a row for each node and, but for leaves, their children's rows."""
    x = asked.x[list(step.nodes)]
    return (x,) if step.children is None else (x, step.children)


def empty_table(asked: TreeProblem) -> tuple[Array, Array]:
    """Make an h and a c with nothing but the row of zeros."""
    return np.zeros((1, asked.size.hidden), np.float32), np.zeros((1, asked.size.hidden), np.float32)


def answers(asked: TreeProblem, runs: list[ForestRun], tables: list[tuple[Array, Array]]) -> Array:
    """Read every node's h and c from the tables that the runs ended with, in the order of `expected`."""
    states = np.full(asked.expected.shape, np.nan, np.float32)
    for run, (h, c) in zip(runs, tables, strict=True):
        if len(h) != len(run.nodes) + 1:
            raise DashboardError(f"wrong answer: a table of {len(h)} rows for {len(run.nodes)} nodes.")
        states[list(run.nodes)] = np.concatenate([h[1:], c[1:]], axis=1)
    return states
