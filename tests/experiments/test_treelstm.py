"""treelstm: the trees are trees, each way computes every node of them once and as numpy does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.experiments.trying import EXPERIMENTS, Tried, modules
from tvmdash import config_util, records
from tvmdash.errors import DashboardError

pytestmark = pytest.mark.usefixtures("tvm_artifact")
OWN = modules("treelstm")
FOREST = OWN.problem.read_forest(20)


def small(trees: int = 3) -> Any:
    return OWN.problem.problem(OWN.problem.TreeSize(trees, 8, 6), 3)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tried, records.NightData]:
    tried = Tried(tmp_path_factory.mktemp("treelstm"), "treelstm", {"number": 1})
    return tried, tried.night()


def test_tvm_computes_every_node_as_numpy_does_by_depth_and_one_by_one(night: tuple[Tried, records.NightData]) -> None:
    found = {record.build_config["batching"]: record for record in night[1].records}
    assert set(found) == {"depth", "node"}
    for record in found.values():
        assert 0 < record.additional_info["max_error"] <= record.additional_info["tolerance"]
    (nodes,) = {record.workload_args["nodes"] for record in found.values()}
    assert found["node"].additional_info["calls"] == nodes
    assert found["node"].additional_info["child_rows"] == nodes - 6
    assert found["depth"].additional_info["calls"] < 10
    assert found["depth"].additional_info["child_rows"] > nodes - 6


def test_without_torch_its_points_fail_and_the_words_tell_what_a_node_takes(
    night: tuple[Tried, records.NightData],
) -> None:
    assert len(night[1].failures) == 2
    assert all("never installed" in failure.error for failure in night[1].failures)
    text = night[0].told()
    assert "- forest: fastest tvm, " in text
    assert re.search("^- a node takes: tvm, (depth|node) .*; tvm, ", text, re.MULTILINE)
    assert (night[0].root / "graph" / "tonight.svg").exists()


def test_the_trees_are_real_sentences_with_depth() -> None:
    assert len(FOREST.roots) == 20
    found = json.loads((EXPERIMENTS / "treelstm" / "trees.json").read_text())
    assert found["licence"] == "CC0-1.0"
    assert len(FOREST.words) == sum(len(tree["words"]) for tree in found["trees"]) > 150
    assert len(OWN.problem.by_depth(FOREST)[0].steps) >= 5


@pytest.mark.parametrize("plan", ["depth", "node"])
def test_a_plan_computes_each_node_once_and_its_children_before_it(plan: str) -> None:
    runs = OWN.problem.PLANS[plan](FOREST)
    assert sorted(node for run in runs for node in run.nodes) == list(range(len(FOREST.words)))
    for run in runs:
        table: list[int | None] = [None]
        for step in run.steps:
            rows = step.children if step.children is not None else np.zeros((len(step.nodes), 1), int)
            for node, row in zip(step.nodes, rows, strict=True):
                below = [table[place] for place in row if place]
                assert tuple(below) == FOREST.children[node]
            table += step.nodes


@pytest.mark.parametrize("heads", [[0, 0], [2, 1], [0, 3, 2], [0, 1, 1]])
def test_what_is_no_tree_is_refused(tmp_path: Path, heads: list[int]) -> None:
    file = tmp_path / "trees.json"
    good = {"words": ["birds", "sing"], "heads": [2, 0]}
    file.write_text(json.dumps({"trees": [good, {"words": ["a", "b"], "heads": heads}]}))
    assert OWN.problem.read_forest(1, file).children == ((), (0,))
    with pytest.raises(DashboardError, match=r"\$\.trees\[1\] is not a tree"):
        OWN.problem.read_forest(2, file)


def test_a_wrong_node_anywhere_fails() -> None:
    asked = small()
    runs = OWN.problem.by_node(asked.forest)
    wide = asked.expected.astype(np.float32)
    zeros = np.zeros((1, 8), np.float32)
    tables = [
        tuple(np.concatenate([zeros, part[list(run.nodes)]]) for part in (wide[:, :8], wide[:, 8:])) for run in runs
    ]
    assert OWN.treelstm.checked(asked, runs, tables)["max_error"] < 1e-6
    tables[1][0][2, 3] += 0.01
    with pytest.raises(DashboardError, match="wrong answer"):
        OWN.treelstm.checked(asked, runs, tables)
    tables[1] = tuple(part[:-1] for part in tables[1])
    with pytest.raises(DashboardError, match="wrong answer: a table"):
        OWN.treelstm.checked(asked, runs, tables)


def test_the_order_of_children_does_not_matter_but_whose_they_are_does() -> None:
    asked = small(1)
    forest = asked.forest
    turned = OWN.problem.Forest(forest.words, tuple(row[::-1] for row in forest.children), forest.roots)
    np.testing.assert_allclose(OWN.problem.reference(turned, asked.weights, asked.x), asked.expected)
    (root,) = forest.roots
    flat = tuple(tuple(n for n in range(len(forest.words)) if n != root) if n == root else () for n in range(7))
    other = OWN.problem.reference(OWN.problem.Forest(forest.words, flat, forest.roots), asked.weights, asked.x)
    assert np.abs(other[root] - asked.expected[root]).max() > 0.01


def test_the_configs_ways_and_trees_are_those_that_exist() -> None:
    fields = config_util.read_fields(EXPERIMENTS / "treelstm" / "fields.json")
    assert set(fields["ways"].of.choices) == {
        f"{engine} {plan}" for engine in ("tvm", "torch") for plan in OWN.problem.PLANS
    }
    assert fields["trees"].max == fields["trees"].default == len(FOREST.roots)


@pytest.mark.slow
def test_torch_computes_the_same_both_ways(tmp_path: Path) -> None:
    tried = Tried(tmp_path, "treelstm", {"number": 1})
    tried.set_up()
    data = tried.measured()
    assert not data.failures
    assert {(record.engine, record.build_config["batching"]) for record in data.records} == {
        (engine, plan) for engine in ("tvm", "torch") for plan in ("depth", "node")
    }
    assert "TVM at its best against torch: " in tried.told()
