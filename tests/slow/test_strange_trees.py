"""All that stages may leave: each shape by itself, in each stage, sandboxed and not, for three nights."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dashboard.process import sandbox
from tests.dashboard import homes
from tests.dashboard.night.test_strange_trees import NIGHTS, STAGES, add_planter, add_planting_subsystem
from tests.dashboard.strange_trees import INSTEAD, SHAPES
from tvmdash.common.files import trees

COPIED = ("visualize", "summarize")
"""What these leave is copied into the home every night."""
FAILING = {"deep", "long", "sparse", "pipe", "socket", "device"}
"""What cannot be copied; the other shapes are copied as they are."""


@pytest.fixture
def home(tmp_path: Path, tvm_artifact_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[homes.HomeForTests]:
    monkeypatch.setattr(homes, "DEADLINE_S", 1200.0)
    made = homes.make_home(tmp_path, tvm_artifact_folder, parallel_stages=4, telemetry_rate=0)
    made.experiment("innocent")
    made.subsystem("page")
    yield made
    trees.remove(tmp_path)  # pytest's own way ends at the depth of a thousand folders


@pytest.mark.parametrize("sandboxed", [False, True])
def test_each_shape_in_each_stage_for_three_nights(home: homes.HomeForTests, *, sandboxed: bool) -> None:
    if sandboxed and (obstacle := sandbox.find_obstacle()):
        pytest.skip(obstacle)
    planted: dict[str, tuple[str, str]] = {}
    for shape in (*SHAPES, *INSTEAD):
        for stage in STAGES:
            name = f"{stage}-{shape.replace(' ', '-')}"
            planted[name] = shape, stage
            add_planter(home, name, [stage], [shape], sandboxed=sandboxed)
        add_planting_subsystem(home, f"subsystem-{shape.replace(' ', '-')}", [shape])
    for night in range(1, NIGHTS + 1):
        done = home.run()
        assert done.code == 1, done.output
        assert home.last()["state"] == "complete"
        assert len(home.home.data_stamps("innocent")) == night
        states = {job["name"]: {step["stage"]: step["state"] for step in job["steps"]} for job in home.last()["jobs"]}
        assert set(states["innocent"].values()) == {"ok"}
        assert states["page"]["run"] == "ok"
        for name, (shape, stage) in planted.items():
            check_states(name, states[name], shape, stage, is_first=night == 1, sandboxed=sandboxed)
            measured = shape in SHAPES or stage in COPIED
            assert len(home.home.data_stamps(name)) == (night if measured else 0), name
        for shape in (*SHAPES, *INSTEAD):
            name = f"subsystem-{shape.replace(' ', '-')}"
            assert states[name]["run"] == ("failed" if shape in INSTEAD else "ok"), name
    print_table(states, sandboxed=sandboxed)


def check_states(
    name: str, states: Mapping[str, str], shape: str, stage: str, *, is_first: bool, sandboxed: bool
) -> None:
    """Only the stage that left it can fail, and only where what it left is needed or copied."""
    fails = shape in INSTEAD or (stage in COPIED and shape in FAILING | ({"locked"} if os.getuid() else set()))
    if shape == "device" and (sandboxed or os.getuid()):
        fails = False  # nobody may make one there
    kept = "skipped" if stage == "setup" and not is_first and not fails else "ok"
    assert states[stage] == ("failed" if fails else kept), (name, states)
    if not fails:
        assert set(states.values()) <= {"ok", kept}, (name, states)


def print_table(states: Mapping[str, Mapping[str, str]], *, sandboxed: bool) -> None:
    """The third night, as `pytest -s` shows it."""
    columns = [*STAGES, "subsystem"]
    print(f"\n| {'sandboxed' if sandboxed else 'not sandboxed'} | {' | '.join(columns)} |")
    print(f"|{'---|' * (len(columns) + 1)}")
    for shape in (*SHAPES, *INSTEAD):
        names = [f"{stage}-{shape.replace(' ', '-')}" for stage in columns]
        shown = [states[name]["run" if name.startswith("subsystem") else name.partition("-")[0]] for name in names]
        print(f"| {shape} | {' | '.join(shown)} |")
