"""Histories that asv, pyperf, Google Benchmark and relay-bench measured, imported into homes that go on from there."""

from __future__ import annotations

import dataclasses
import datetime
import json
import random
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import homes
from tests.dashboard.homes import HomeForTests
from tests.dashboard.importing.test_importing import write
from tests.slow import every_kind
from tvmdash.incidents import file, ledger
from tvmdash.verdict import Level, NightVerdict, read_verdict

HISTORY = Path(__file__).resolve().parents[2] / "golden" / "import_history"
PLANTED, UNCHANGED = 25, 22
"""The first night with a change, and the first of those that are imported one by one."""
TOLD = 4
"""A change that nothing confirms is told on its fourth night at the earliest."""
WAITING, TELLING = [Level.SUSPECT] * (TOLD - 1), {Level.SUSPECT, Level.REGRESSION}


@pytest.fixture
def place(tmp_path: Path) -> HomeForTests:
    """A home that measures nothing and imports."""
    made = homes.make_home(tmp_path, tmp_path / "artifacts")
    every_kind.add_real(made, "stat_alerts")
    return dataclasses.replace(made, warm_stages=True)


def night(place: HomeForTests, source: Path | None = None) -> NightVerdict:
    """The verdict of a night before which the source was imported."""
    if source is not None:
        done = homes.call("import", str(place.path), str(source))
        assert done.code == 0, done.output
    place.night()
    verdict = read_verdict(place.home, place.stamps()[-1])
    assert verdict is not None
    return verdict


@dataclass(frozen=True)
class Tool:
    """A tool's files: those of each night, and what stands beside them. levels: of the nights with the change."""

    name: str
    levels: tuple[Level, ...]
    beside: tuple[str, ...] = ()

    def unpack(self, folder: Path) -> list[Path]:
        """The files by night, below the folder."""
        with tarfile.open(HISTORY / f"{self.name}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
            names = [name for name in archive.getnames() if Path(name).name not in self.beside]
        return [folder / name for name in names]


TOOLS = (
    # One of its nights before was 19 % slower: one more that is slow says nothing yet, and four are too few.
    Tool("asv", (Level.BLIND, *WAITING, Level.SUSPECT, Level.REGRESSION), ("benchmarks.json", "machine.json")),
    Tool("pyperf", (*WAITING, Level.REGRESSION)),
    Tool("google_benchmark", (*WAITING, Level.REGRESSION)),
)


def tell(place: HomeForTests, verdict: NightVerdict) -> tuple[Level, frozenset[str]]:
    """The night's level, and the names of all that it says may have moved."""
    known = ledger.fold(file.read(file.file_of(place.home))).incidents
    told = {moved.name for name in (*verdict.new, *verdict.open, *verdict.improved) for moved in known[name].moved}
    return verdict.level, frozenset(told | {suspect.name for suspect in verdict.suspects})


@pytest.mark.parametrize(
    "tool",
    # the others' files are read by tests/dashboard/importing; what happens then is the same, in seconds each
    [pytest.param(tool, id=tool.name, marks=() if tool.name == "asv" else pytest.mark.slow) for tool in TOOLS],
)
def test_a_history_goes_on_and_the_change_alone_is_told(tool: Tool, place: HomeForTests, tmp_path: Path) -> None:
    files = tool.unpack(tmp_path / "results")
    later = [(path, path.rename(tmp_path / path.name)) for path in files[UNCHANGED:]]
    told = [tell(place, night(place, tmp_path / "results"))]
    for path, aside in later:
        aside.rename(path)
        told.append(tell(place, night(place, path)))
    quiet, planted = told[: PLANTED - UNCHANGED + 1], told[PLANTED - UNCHANGED + 1 :]
    assert {names for _, names in quiet} == {frozenset()}
    assert {level for level, _ in quiet} <= {Level.STEADY, Level.BLIND}
    assert [level for level, _ in planted] == list(tool.levels)
    assert [len(names) for _, names in planted] == [level in TELLING for level in tool.levels]
    assert all("checksum" in name for _, names in planted for name in names)
    (incident,) = ledger.fold(file.read(file.file_of(place.home))).incidents.values()
    (moved,) = incident.moved
    stamps = place.home.data_stamps(place.home.experiments_with_data()[0])
    assert incident.begin == stamps[PLANTED]
    assert moved.effect == pytest.approx(0.5, abs=0.1)


def relay_bench(day: int, rng: random.Random) -> dict[str, Any]:
    """What relay-bench's analysis leaves of a night."""
    times = {"relay": 0.01, "pytorch": 0.02}
    return {"resnet-18": {name: {"mean": time * rng.gauss(1, 0.004)} for name, time in times.items()}, "success": True}


def test_relay_benchs_history_is_that_of_the_experiment_that_goes_on_here(place: HomeForTests, tmp_path: Path) -> None:
    rng, first, tonight = random.Random(1), datetime.date(2026, 9, 1), tmp_path / "tonight.json"
    for day in range(40):
        stamp = f"{first + datetime.timedelta(days=day):%m-%d-%Y}-0315"
        write(tmp_path / "cnn_comp", f"data_{stamp}.json", json.dumps({"timestamp": stamp, **relay_bench(day, rng)}))
    run = f'{homes.BEGIN}cp {tonight} "$2/raw.json"\n{homes.says("run")}\n'
    homes.write(place.experiment("cnn_comp", run=run) / "fields.json", {"needs_tvm": False})
    told = []
    for number in range(2 + TOLD):
        value = relay_bench(number, rng)
        value["resnet-18"]["relay"]["mean"] *= 1.0 if number < 2 else 1.25
        homes.write(tonight, value)
        verdict = night(place, None if number else tmp_path / "cnn_comp")
        assert (verdict.expected, verdict.seen, verdict.appeared) == (2, 2, ())
        told.append(tell(place, verdict))
    names = frozenset({"cnn_comp $.resnet-18.relay.mean"})
    assert told[:2] == [(Level.STEADY, frozenset())] * 2
    assert told[2:] == [(Level.SUSPECT, names)] * (TOLD - 1) + [(Level.REGRESSION, names)]
