"""A point that runs, byte for byte, what it ran on the night before is measured with one pair of processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.tvmdash.experiment.test_paired import Toy, Work

PAIRS = 2


def make_toy(root: Path, **config: Any) -> Toy:
    return Toy(root, **{"pairs": PAIRS, "max_pairs": PAIRS, **config})


def measure_night(toy: Toy, tonight: Work, measured: Mapping[str, int]) -> tuple[int, dict[str, Any]]:
    """How many pairs the point had, and what its record says."""
    assert toy.run(tonight, {}, measured)["success"]
    info = next(record for record in toy.analyze().records if record.engine == "tvm").additional_info
    return len(info["paired"]["ratios"]["run_time"]["log_ratios"]), dict(info)


def measured_in(info: Mapping[str, Any]) -> dict[str, int]:
    """What the night after is told of this one's record."""
    return {info["content"]["hash"]: info["content"]["pairs"]}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the record of a first night says."""
    count, info = measure_night(make_toy(tmp_path_factory.mktemp("first")), {}, {})
    assert (count, info["content"]["pairs"], info["ended_by"]) == (PAIRS, PAIRS, "max_processes")
    return info


def test_what_ran_the_night_before_is_measured_once(tmp_path: Path, first: dict[str, Any]) -> None:
    count, after = measure_night(make_toy(tmp_path), {}, measured_in(first))
    assert (count, after["ended_by"]) == (1, "unchanged")
    assert after["content"] == {"hash": first["content"]["hash"], "pairs": PAIRS + 1}


def edit_experiment(toy: Toy) -> None:
    file = toy.code / "toy.py"
    file.write_text(file.read_text() + "\n# the timed part is another\n")


def edit_config(toy: Toy) -> None:
    file = toy.config / "config.json"
    file.write_text(file.read_text().replace('"repeat": 4', '"repeat": 5'))


@pytest.mark.parametrize(
    ("edit", "tonight"),
    [(lambda _: None, {"net": 20001}), (edit_experiment, {}), (edit_config, {})],
    ids=["the program", "the experiment", "the config"],
)
def test_a_point_is_measured_in_full_when_something_of_it_is_another(
    tmp_path: Path, first: dict[str, Any], edit: Callable[[Toy], None], tonight: Work
) -> None:
    toy = make_toy(tmp_path)
    edit(toy)
    count, after = measure_night(toy, tonight, measured_in(first))
    assert count == PAIRS
    assert after["content"]["hash"] != first["content"]["hash"]
    assert after["content"]["pairs"] == PAIRS


def test_what_had_too_few_pairs_before_is_measured_in_full(tmp_path: Path, first: dict[str, Any]) -> None:
    count, after = measure_night(make_toy(tmp_path), {}, {first["content"]["hash"]: PAIRS - 1})
    assert (count, after["content"]["pairs"]) == (PAIRS, 2 * PAIRS - 1)


@pytest.mark.parametrize("fault", ["is_random", "has_no_program"])
def test_a_compiler_that_is_not_deterministic_or_shows_no_program_is_measured_in_full(
    tmp_path: Path, fault: str
) -> None:
    count, info = measure_night(make_toy(tmp_path), {fault: True}, {})
    assert count == PAIRS
    assert "content" not in info


def test_only_the_points_that_are_unchanged_are_done_with_one_pair(tmp_path: Path) -> None:
    toy = make_toy(tmp_path, names=["same", "other"], group="all")
    toy.run({}, {})
    toy.run({}, {}, measured_in(infos(toy)["toy.same"]))
    counts = {name: len(info["paired"]["ratios"]["run_time"]["log_ratios"]) for name, info in infos(toy).items()}
    assert counts == {"toy.same": 1, "toy.other": PAIRS}


def infos(toy: Toy) -> dict[str, dict[str, Any]]:
    """By workload, what the records of tonight's TVM say."""
    return {record.workload: dict(record.additional_info) for record in toy.analyze().records if record.engine == "tvm"}
