"""NVIDIA's cards, read by NVIDIA's own package from a library with NVML's entry points."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cards.stand_in import Driver, make_driver

READ = """
import json
from tvmdash.machine import nvml
cards = nvml.open_cards()
print(json.dumps(dict(cards()) if cards else None))
"""
LOSE = """
import json, pathlib, sys
from tvmdash.machine import nvml
cards, file = nvml.open_cards(), pathlib.Path(sys.argv[1])
before = dict(cards())
file.write_text(file.read_text() + sys.argv[2] + " 1\\n")
after = dict(cards())
cards.close()
print(json.dumps([before, after]))
"""
CARD = """
import json
from tvmdash.machine import nvml
card = nvml.find_card("0000:41:00.0")
found = [card.driver_version(), card.is_divided(), card.list_strangers(), nvml.find_card("0000:42:00.0") is None]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return make_driver(tmp_path_factory.mktemp("driver"))


def test_every_card_is_read_and_what_one_cannot_say_is_no_value(driver: Driver) -> None:
    driver.set(count=2, throttle=0x4)
    read = driver.run(READ)
    assert {name: value for name, value in read.items() if name.endswith(".0")} == {
        "gpu_temperature_c.0": 60.0,
        "gpu_mhz.0": 1980.0,
        "gpu_memory_mhz.0": 3201.0,
        "gpu_percent.0": 97.0,
        "gpu_memory_used_bytes.0": 2.0 * (1 << 30),
        "gpu_power_w.0": 250.0,
        "gpu_energy_j.0": read["gpu_energy_j.0"],
    }
    assert 0 <= read["gpu_energy_j.0"] < 250
    assert (read["gpu_temperature_c.1"], read["gpu_percent.1"]) == (61.0, None)
    assert {name: value for name, value in read.items() if name.startswith("gpu_throttled.0")} == {
        "gpu_throttled.0 its power limit": 1.0,
        "gpu_throttled.0 heat": 0.0,
        "gpu_throttled.0 its power supply": 0.0,
        "gpu_throttled.0 its hardware": 0.0,
    }


def test_a_card_without_a_counter_has_no_energy(driver: Driver) -> None:
    driver.set(energy_step_ms=0)
    read = driver.run(READ)
    assert read["gpu_energy_j.0"] is None
    assert read["gpu_power_w.0"] == 250.0


@pytest.mark.parametrize("then", ["lost", "driver_gone"])
def test_a_card_that_is_lost_in_the_middle_has_no_values_from_then_on(driver: Driver, then: str) -> None:
    driver.set()
    before, after = driver.run(LOSE, str(driver.folder / "cards"), then)
    assert None not in before.values()
    assert before.keys() == after.keys()
    assert set(after.values()) == {None}


@pytest.mark.parametrize("state", [{"driver_gone": 1}, {"count": 0}, {"count": 2, "lost": 3}])
def test_a_driver_that_does_not_run_or_names_no_card_is_none(driver: Driver, state: dict[str, int]) -> None:
    driver.set(**state)
    assert driver.run(READ) is None


def test_one_lost_card_hides_no_other(driver: Driver) -> None:
    driver.set(count=2, lost=1)
    read = driver.run(READ)
    assert (read["gpu_temperature_c.1"], "gpu_temperature_c.0" in read) == (61.0, False)


def test_a_machine_without_the_driver_has_no_cards(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("what hides a driver that is there\n" * 10)
    driver = Driver(tmp_path)
    driver.set()
    assert driver.run(READ) is None


def test_a_card_is_found_by_its_place_and_says_what_it_is_and_who_uses_it(driver: Driver) -> None:
    driver.set(pid=1)
    assert driver.run(CARD) == ["580.126.09", False, [1], True]
    driver.set(pid=os.getpid(), divided=1)
    assert driver.run(CARD) == ["580.126.09", True, [], True]
