"""The identity of a home's machine: decided at its first night, kept, and what an older home had goes on."""

from __future__ import annotations

import datetime
import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dashboard.archive import archive
from dashboard.plan import home_machine
from dashboard.plan.home_config import read_home_config
from tests.dashboard import homes
from tvmdash import records
from tvmdash.common import structured
from tvmdash.dashboard_info import Home
from tvmdash.machine import hardware
from tvmdash.machine.identity import MachineIdentity, write
from tvmdash.series import store

RECORD = json.loads((homes.REPO / "tests" / "golden" / "data_v1.json").read_text())["records"][0]
TONIGHT = datetime.datetime(2026, 10, 25, 3, 15, tzinfo=datetime.UTC)
NIGHTS = [f"202610{day:02}T031500Z" for day in range(1, 26)]
MEASURES = homes.good("run").replace(homes.WORK["run"], 'sed "s/MACHINE/$TVMDASH_ENV_NAME/" told.json > "$2/raw.json"')
Ids = dict[str, tuple[str, Any, int]]


@pytest.fixture
def home(tmp_path: Path, tvm_artifact_folder: Path) -> homes.HomeForTests:
    return with_experiments(homes.make_home(tmp_path, tvm_artifact_folder))


def with_experiments(home: homes.HomeForTests) -> homes.HomeForTests:
    """Experiments that leave a record with the machine's name, and numbers without one."""
    folder = home.experiment("ours", run=MEASURES)
    homes.write(folder / "told.json", measured("MACHINE"))
    home.experiment("foreign")
    return home


def measured(env_name: str) -> dict[str, Any]:
    record = {**RECORD, "env_name": env_name, "hw_model": hardware.hw_model()}
    return {"schema_version": 1, "tvm_hash": "abc", "records": [record]}


def with_history(home: homes.HomeForTests, env_name: str = "default") -> homes.HomeForTests:
    """What nights left before homes kept the name of their machine."""
    for stamp in NIGHTS:
        night = {"stamp": stamp, "experiment": "x", "config": {}}
        homes.write(home.home.data_file("ours", stamp), {**measured(env_name), "timestamp": stamp, "night": night})
        foreign = {"value": 1.5, "tvm_hash": "abc", "timestamp": stamp, "night": night}
        homes.write(home.home.data_file("foreign", stamp), foreign)
    return home


def ids_of(home: Home) -> Ids:
    """By metric: the ID of each series, its machine, and on how many nights it has a value."""
    found = {}
    for name in ("ours", "foreign"):
        with store.open_for_reading(home.store_file, home.data(name), name) as opened:
            for one in opened.series(name):
                assert one.metric not in found, f"{one.metric} of {name} is two series"
                found[one.metric] = (one.id, one.labels.get("env_name"), len(one.stamps))
    return found


def bare_ids(env_name: str) -> dict[str, str]:
    """The IDs as they are made of what a data file says, without a home."""
    labels = {column: measured(env_name)["records"][0][column] for column in records.IDENTITY}
    names = [metric.name for metric, _ in records.Record.from_json(RECORD).metrics()]
    ours = {name: records.SeriesKey("ours", name, labels).id for name in names}
    return {**ours, "value": records.SeriesKey("foreign", "value", {"path": "$.value"}).id}


def test_the_first_night_decides_the_name_of_the_machine_and_all_numbers_carry_it(home: homes.HomeForTests) -> None:
    home.night()
    kept = homes.read(home.home.machine_file)
    jsonschema.validate(kept, homes.read(homes.REPO / "shared/python/tvmdash/schemas/machine_v1.json"))
    assert (kept["name"], kept["hw_model"], kept["formerly"]) == (socket.gethostname(), hardware.hw_model(), None)
    machine_id = Path("/etc/machine-id")
    if machine_id.is_file():
        assert machine_id.read_text().strip() not in home.home.machine_file.read_text()
    assert {labels for _, labels, _ in ids_of(home.home).values()} == {socket.gethostname()}
    assert home.last()["machine"]["name"] == socket.gethostname()
    assert home.last()["machine_changes"] == []


def test_a_name_once_kept_stays_and_another_machine_is_told_once(home: homes.HomeForTests) -> None:
    kept = MachineIdentity("lab7", "20260101T000000Z", "0123456789abcdef", "Other CPU x 4")
    home.home.machine_file.parent.mkdir()
    write(home.home.machine_file, kept)
    done = home.run()
    changes = {change["fact"]: (change["before"], change["now"]) for change in home.last()["machine_changes"]}
    assert changes["hw_model"] == ("Other CPU x 4", hardware.hw_model())
    assert f"The processor changed from Other CPU x 4 to {hardware.hw_model()}." in done.output
    if Path("/etc/machine-id").is_file():
        assert changes["machine_id"][0] == "0123456789abcdef"
        assert "This is a different machine" in done.output
    assert home.night()["machine_changes"] == []
    assert {labels for _, labels, _ in ids_of(home.home).values()} == {"lab7"}
    now = home.home.machine()
    assert now is not None
    assert (now.name, now.since) == ("lab7", "20260101T000000Z")


def test_a_name_in_the_config_is_the_one_and_a_change_of_it_is_told(home: homes.HomeForTests) -> None:
    home.configure(env_name="rack3")
    home.night()
    assert homes.read(home.home.machine_file)["name"] == "rack3"
    home.configure(env_name="rack4")
    assert home.night()["machine_changes"] == [{"fact": "env_name", "before": "rack3", "now": "rack4"}]
    assert homes.read(home.home.data_file("foreign", home.stamps()[-1]))["night"]["machine"] == "rack4"
    assert homes.read(home.home.machine_file)["name"] == "rack3"


def test_the_series_of_an_old_home_go_on_under_the_machines_name(home: homes.HomeForTests) -> None:
    with_history(home)
    with store.open_for_writing(home.home.store_file) as old:
        for name in ("ours", "foreign"):
            old.ingest(home.home.data(name), name)
        old.connection.execute("PRAGMA user_version = 4")
    old_ids = bare_ids("default")
    before = {path: path.read_bytes() for path in home.home.data("x").parent.rglob("data_*.json")}
    home.night()
    host = socket.gethostname()
    assert ids_of(home.home) == {metric: (name, host, 26) for metric, name in old_ids.items()}
    assert homes.read(home.home.machine_file)["formerly"] == "default"
    assert all(path.read_bytes() == content for path, content in before.items()), "data files are never rewritten"
    home.home.store_file.unlink()
    assert ids_of(home.home) == {metric: (name, host, 26) for metric, name in old_ids.items()}


def test_an_old_home_with_a_name_in_its_config_keeps_it_and_its_series(home: homes.HomeForTests) -> None:
    with_history(home, "rack3").configure(env_name="rack3")
    home.night()
    assert ids_of(home.home) == {metric: (name, "rack3", 26) for metric, name in bare_ids("rack3").items()}


def test_an_experiment_that_does_not_run_tonight_is_in_an_index_that_is_made_anew(home: homes.HomeForTests) -> None:
    with_history(home)
    homes.write(home.home.config("experiment", "ours") / "config.json", {"active": False})
    home.night()
    assert ids_of(home.home)["run_time"][2] == 25


def test_what_was_imported_keeps_what_it_says(home: homes.HomeForTests) -> None:
    with_history(home)
    night = {"imported": {"format": "records"}}
    homes.write(home.home.data_file("other", NIGHTS[0]), {**measured("default"), "night": night})
    homes.write(home.home.data_file("other2", NIGHTS[0]), {"value": 2, "night": night})
    home_machine.keep(home.home, "rack3", TONIGHT)
    own = records.read_data(home.home.data_file("ours", NIGHTS[0]), "ours")
    imported = records.read_data(home.home.data_file("other", NIGHTS[0]), "other")
    numbers = records.read_data(home.home.data_file("other2", NIGHTS[0]), "other2")
    assert (own.records[0].env_name, imported.records[0].env_name) == ("rack3", "default")
    # what can name no machine, and does not, is of this one
    assert [dict(one.key.labels) for one in numbers.values()] == [{"path": "$.value", "env_name": "rack3"}]


def test_two_homes_on_equal_machines_have_different_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the host's name is not the real one: a test has one machine."""
    found = []
    for host in ("node1", "node2"):
        monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
        home = homes.make_home(tmp_path / host, tmp_path / "artifacts").home
        config = read_home_config(home)
        home_machine.keep(home, config.env_name, TONIGHT)
        data = measured(config.env_name)
        homes.write(home.data_file("ours", NIGHTS[0]), data)
        homes.write(home.data_file("foreign", NIGHTS[0]), {"value": 1, "night": {"machine": config.env_name}})
        found.append({name for name, *_ in ids_of(home).values()})
    assert len(found[0]) == len(found[1]) >= 2
    assert found[0].isdisjoint(found[1])


def test_in_a_container_with_a_new_host_name_every_night_the_name_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the host's name is not the real one."""
    home = homes.make_home(tmp_path, tmp_path / "artifacts").home
    for host in ("3f2a9c", "77d01b"):
        monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
        kept, changes = home_machine.keep(home, read_home_config(home).env_name, TONIGHT)
        assert (kept.name, kept.since, changes) == ("3f2a9c", "20261025T031500Z", ())


def test_a_restored_home_keeps_its_name(home: homes.HomeForTests) -> None:
    home.configure(env_name="rack3")
    home.night()
    restored = Home(home.root / "again")
    archive.restore(home.root / "backup", None, restored.root)
    value = homes.read(restored.config_file)
    homes.write(restored.config_file, {name: item for name, item in value.items() if name != "env_name"})
    assert restored.machine() == home.home.machine()
    assert read_home_config(restored).env_name == "rack3"


@pytest.mark.parametrize("damage", [None, "{", '{"schema_version": 1, "name": 3}', '{"schema_version": 9}', "folder"])
def test_a_lost_or_damaged_file_is_mended_from_the_last_nights_record(tmp_path: Path, damage: str | None) -> None:
    home = homes.make_home(tmp_path, tmp_path / "artifacts").home
    kept = MachineIdentity("lab7", "20260101T000000Z", "0123456789abcdef", "Other CPU x 4", formerly="default")
    night = {"stamp": NIGHTS[0], "state": "complete", "notes": [], "artifacts": [], "jobs": []}
    homes.write(home.night_file(NIGHTS[0]), {**night, "machine": structured.to_json(kept)})
    if damage == "folder":
        home.machine_file.mkdir()
    elif damage is not None:
        home.machine_file.write_text(damage)
    assert read_home_config(home).env_name == "lab7"
    mended, _ = home_machine.keep(home, "lab7", TONIGHT)
    assert replace(mended, machine_id=kept.machine_id, hw_model=kept.hw_model) == kept
    assert home.machine() == mended


def test_the_ids_of_a_night_measured_apart_are_those_of_the_home(home: homes.HomeForTests, tmp_path: Path) -> None:
    """What `compare`, `bisect` and `remeasure` measure lies outside of the home."""
    with_history(home)
    kept, _ = home_machine.keep(home.home, "rack3", TONIGHT)
    apart = tmp_path / "apart" / "data_20261101T031500Z.json"
    homes.write(apart, measured("rack3"))
    found = {one.key.metric: one.key.id for one in records.read_data(apart, "ours", home=kept).values()}
    assert found.items() <= bare_ids("default").items()
