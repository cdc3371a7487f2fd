"""The points of an experiment as the product of the axes that its fields.json declares."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tvmdash import config_util
from tvmdash.exp_templates import Axis, Engine, EngineFacts, Experiment, Point

NETWORKS = {"type": "list", "axis": "workload.network", "default": ["mlp", "dqn"], "doc": "Which."}
LEVELS = {"type": "list", "axis": "build_config.level", "default": [0, 3], "doc": "How."}
BATCH = {"type": "int", "axis": "workload_args", "default": 4, "doc": "Rows."}


def described(
    tmp_path: Path, fields: Mapping[str, Any], kind: type[Experiment] | None = None, **config: Any
) -> tuple[Experiment, list[Point]]:
    """An experiment in a folder with these fields, and the points that a config asks for."""
    (tmp_path / "fields.json").write_text(json.dumps(fields))
    folder = type("InFolder", (kind or Plain,), {"folder": tmp_path, "name": "toy@release"})
    experiment: Experiment = folder()
    known = {**config_util.EXPERIMENT_FIELDS, **config_util.read_fields(tmp_path / "fields.json")}
    return experiment, experiment.points(config_util.check({"active": True, **config}, known, "config.json"))


def engine(name: str) -> Engine:
    return Engine(name, facts=lambda: EngineFacts("1"))


class Plain(Experiment):
    """One engine, and nothing said about axes and points."""

    engines = (engine("tvm"),)


def test_points_are_the_product_of_the_axes_the_first_one_slowest(tmp_path: Path) -> None:
    experiment, points = described(tmp_path, {"networks": NETWORKS, "levels": LEVELS, "batch": BATCH})
    assert experiment.axes == (
        Axis("level", "build_config"),
        Axis("batch", "workload_args"),
        Axis("threads", "runtime_config"),
    )
    assert [(point.workload, point.values) for point in points] == [
        (f"network.{network}", {"level": level, "batch": 4, "threads": 1})
        for network in ("mlp", "dqn")
        for level in (0, 3)
    ]
    assert {(point.name, point.group, point.target, point.engine) for point in points} == {
        ("mlp", "mlp", "cpu", "tvm"),
        ("dqn", "dqn", "cpu", "tvm"),
    }


def test_without_an_axis_for_it_the_workload_is_the_experiments_own_whatever_tvm_it_is_measured_on(
    tmp_path: Path,
) -> None:
    _, points = described(tmp_path, {"batch": BATCH})
    assert [point.workload for point in points] == ["experiment.toy"]


def test_every_engine_measures_every_point_unless_the_config_names_some(tmp_path: Path) -> None:
    class Compared(Plain):
        engines = (engine("ours"), engine("theirs"))

    _, points = described(tmp_path, {"levels": LEVELS}, Compared)
    assert [(point.values["level"], point.engine) for point in points] == [
        (0, "ours"), (0, "theirs"), (3, "ours"), (3, "theirs")
    ]  # fmt: skip
    named = {"type": "list", "axis": "engine", "default": ["theirs"], "doc": "On what."}
    _, points = described(tmp_path, {"levels": LEVELS, "engines": named}, Compared)
    assert [(point.values["level"], point.engine) for point in points] == [(0, "theirs"), (3, "theirs")]


def test_threads_can_be_varied_as_any_other_axis(tmp_path: Path) -> None:
    threads = {"type": "list", "axis": "runtime_config", "default": [1, 2], "doc": "Threads."}
    experiment, points = described(tmp_path, {"threads": threads})
    assert [point.values["threads"] for point in points] == [1, 2]
    first, second = points
    config = {"threads": [1, 2]}
    assert experiment.environment(first, config)["OMP_NUM_THREADS"] == "1"
    assert experiment.environment(second, config)["OMP_NUM_THREADS"] == "2"


def test_a_target_that_depends_on_the_point_is_its_own(tmp_path: Path) -> None:
    class Levels(Plain):
        def target(self, point: Point, config: Mapping[str, Any]) -> Mapping[str, Any]:
            return {"kind": "llvm", "opt-level": point.values["level"]}

    _, points = described(tmp_path, {"levels": LEVELS}, Levels)
    assert [point.target for point in points] == [
        '{"kind": "llvm", "opt-level": 0}',
        '{"kind": "llvm", "opt-level": 3}',
    ]


def test_an_experiment_that_says_its_axes_and_points_itself_is_left_alone(tmp_path: Path) -> None:
    class Own(Plain):
        def points(self, config: Mapping[str, Any]) -> list[Point]:
            return [Point("own.work", {"threads": config["threads"]}, group="all", target="cpu")]

    bare, points = described(tmp_path, {"include": ["timing"]}, Own)
    assert (bare.axes, len(points)) == ((), 1)

    class WithAxes(Own):
        axes = (Axis("size", "workload_args"),)

    stated, _ = described(tmp_path, {"include": ["timing"]}, WithAxes)
    assert stated.axes == (Axis("size", "workload_args"),)
