"""What a card takes and what throttles it while it repeats a call, by NVIDIA's package and a stand-in of its driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cards.stand_in import Driver, make_driver
from tvmdash.errors import DashboardError
from tvmdash.measure.reduction import DoubtKind, find_doubts, reduce_processes
from tvmdash.measure.under_load import LoadReading, find_energy

WATCH = """
import json, sys, time
from tvmdash.machine import cuda, nvml
from tvmdash.measure import under_load
under_load.LEAST_S = 0.6
calls = []
def call():
    calls.append(time.monotonic())
    time.sleep(0.002)
card = nvml.find_card(cuda.find_cuda_card(0).pci_bus_id)
found = under_load.watch_card(card, call, lambda: None)
print(json.dumps([found, (calls[-1] - calls[0]) / (len(calls) - 1)]))
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return make_driver(tmp_path_factory.mktemp("driver"))


def test_a_call_takes_the_cards_power_times_its_time(driver: Driver) -> None:
    driver.set()
    found, seconds = driver.run(WATCH)
    assert found == {"energy": pytest.approx(250_000 * seconds, rel=0.15)}


def test_what_throttled_the_card_is_a_doubt_of_the_point(driver: Driver) -> None:
    driver.set(throttle=0x4 | 0x8)
    found, _ = driver.run(WATCH)
    assert found["throttled"] == {"its power limit": 1.0, "its hardware": 1.0}
    facts = {"cores": 2, "load_before": {"load_1_min": 0.0}, "load_after": {}}
    processes = [[1.0] * 10] * 3
    doubts = find_doubts(reduce_processes(processes), processes, [{**facts, **found}, {**facts, **found}, facts])
    assert [(doubt.kind, doubt.words) for doubt in doubts] == [
        (DoubtKind.THROTTLED, "its device was throttled by its power limit for 100% of the time"),
        (DoubtKind.THROTTLED, "its device was throttled by its hardware for 100% of the time"),
    ]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"energy_step_ms": 0}, "the card has no counter of its energy"),
        ({"energy_step_ms": 400}, "too coarse"),
        ({"divided": 1}, "the card is divided (MIG)"),
        ({"pid": 1}, "other programs use the card (process 1)"),
    ],
)
def test_where_the_counter_would_not_be_honest_there_is_no_energy_and_a_word_why(
    driver: Driver, state: dict[str, int], words: str
) -> None:
    driver.set(**state)
    found, _ = driver.run(WATCH)
    assert "energy" not in found
    assert words in found["energy_unknown"]


def readings(*counted: int | None) -> list[LoadReading]:
    return [LoadReading(calls, energy, None) for calls, energy in enumerate(counted)]


def test_energy_is_counted_from_step_to_step() -> None:
    assert find_energy(readings(5, 5, *range(6, 106, 10), 96, 96)) == 10.0


@pytest.mark.parametrize(
    ("counted", "words"),
    [([1, 2, None], "did not tell it"), ([*range(20), 3, *range(4, 20)], "was set back"), ([7] * 50, "moved 0 times")],
)
def test_a_counter_that_stops_or_goes_back_says_nothing(counted: list[Any], words: str) -> None:
    with pytest.raises(DashboardError, match=words):
        find_energy(readings(*counted))


def test_a_machine_without_cudas_driver_has_no_cuda_card(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("what hides a driver that is there\n" * 10)
    driver = Driver(tmp_path)
    driver.set()
    script = "import json; from tvmdash.machine import cuda; print(json.dumps(cuda.find_cuda_card(0) is None))"
    assert driver.run(script) is True
