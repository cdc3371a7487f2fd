"""A home from before homes kept the name of their machine: its alerts go on where they were."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.subsystem.stat_alerts.alert_homes import EXPERIMENT, AlertHome, Truth, stamp_of
from tvmdash.machine import identity
from tvmdash.machine.identity import MachineIdentity
from tvmdash.series import store

NAMED = 36
"""The first night of which the records say the machine's name."""
LAST = 44


@dataclass
class Renamed(Truth):
    """`default` at first, then the name that the home keeps."""

    def record(self, workload: str, level: int, night: int, noise: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {**super().record(workload, level, night, noise), "env_name": "lab7" if night >= NAMED else "default"}


def series_of(home: AlertHome) -> dict[str, int]:
    with store.open_for_reading(home.home.store_file, home.home.data(EXPERIMENT), EXPERIMENT) as opened:
        return {one.id: len(one.stamps) for one in opened.series(EXPERIMENT)}


def fleets_of(home: AlertHome) -> dict[str, set[str]]:
    after = json.loads((home.output / "state.json").read_text())["after"]
    return {name: set(fleet["series"]) for name, fleet in after["fleets"].items()}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> tuple[AlertHome, dict[str, Any]]:
    """The home one night before its machine gets a name, judged, and then nine nights on."""
    home = AlertHome(tmp_path_factory.mktemp("old"))
    truth = Renamed(LAST + 1).step("mlp", 3, "run", 26, 1.12)
    truth.machine[30:40] *= 1.08
    home.fill(truth, stop=NAMED).run(NAMED - 1)
    before = {"series": series_of(home), "incidents": home.incidents(), "fleets": fleets_of(home)}
    kept = MachineIdentity("lab7", stamp_of(NAMED), None, "AMD EPYC x 2", formerly="default")
    identity.write(home.home.machine_file, kept)
    home.home.store_file.unlink()
    home.fill(truth).run(LAST)
    return home, before


def test_no_series_is_new_and_none_has_ended(old: tuple[AlertHome, dict[str, Any]]) -> None:
    home, before = old
    assert set(before["series"].values()) == {NAMED}
    assert series_of(home) == dict.fromkeys(before["series"], LAST + 1)
    assert fleets_of(home) == before["fleets"]


def test_the_open_incident_of_a_series_stays_the_same(old: tuple[AlertHome, dict[str, Any]]) -> None:
    home, before = old
    (was,) = (one for one in before["incidents"] if one["moved"])
    (now,) = (one for one in home.incidents() if one["moved"])
    assert (now["id"], now["begin"], now["open"]) == (was["id"], was["begin"], True)
    assert [one["series"] for one in now["moved"]] == [one["series"] for one in was["moved"]]


def test_an_incident_of_the_machine_ends_when_the_named_machine_moves_back(
    old: tuple[AlertHome, dict[str, Any]],
) -> None:
    home, before = old
    (was,) = (one for one in before["incidents"] if one["kind"] == "machine")
    assert was["open"]
    assert "default" in was["fleet_name"]
    first, back = (one for one in home.incidents() if one["kind"] == "machine")
    assert (first["id"], first["state"]) == (was["id"], "fixed")
    assert (back["begin"], back["fleet"]) == (stamp_of(40), was["fleet"])
    assert "lab7" in back["fleet_name"]
