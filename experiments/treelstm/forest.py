"""The trees of trees.json, and in which calls their nodes are computed: by depth, or one by one."""

from __future__ import annotations

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
        """The node's tree from its leaves up: what comes before what needs it, the node itself last."""
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


def read(count: int, file: Path = FILE) -> Forest:
    """The first `count` trees; DashboardError for one that is no tree."""
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
    """Of each place counted from 1, and of 0 above the root: the places from 0 of the words that depend on it."""
    return [[index for index, head in enumerate(heads) if head == above] for above in range(len(heads) + 1)]


def by_node(forest: Forest) -> list[ForestRun]:
    """A table for each tree, a call for each node, in the order of a recursion from the root."""
    return [_run(forest, [[node] for node in forest.below(root)]) for root in forest.roots]


def by_depth(forest: Forest) -> list[ForestRun]:
    """One table, and a call for all nodes of one height: first all leaves, last the root that is highest."""
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
