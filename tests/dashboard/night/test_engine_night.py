"""A night of an experiment with rivals: two engines in wheels of their own, one of them broken, one never installed."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from dashboard.night import setup_cache
from tests.dashboard import homes
from tvmdash import records

SOURCE = """
import os, sys
from tvmdash.exp_templates import Axis, Engine, EngineFacts, Experiment, Point, Prepared
from tvmdash.trial_util import python_timer

WHEELS, OFFLINE = os.path.join(os.path.dirname(__file__), "wheels"), ("--no-index",)

class Sums(Experiment):
    axes = (Axis("size", "workload_args"), Axis("threads", "runtime_config"))
    engines = (
        Engine("tvm", facts=lambda: EngineFacts("1.0", tvm_hash="abc")),
        Engine("quick", (WHEELS + "/quick-1.0-py3-none-any.whl",), pip_options=OFFLINE),
        Engine("wrong", (WHEELS + "/wrong-2.0-py3-none-any.whl",), pip_options=OFFLINE),
        Engine("absent", ("nosuchpackage==1.0",), pip_options=OFFLINE),
    )
    inputs_engine = "quick"

    def points(self, config):
        return [Point("sum.range", {"size": size, "threads": 1}, group=str(size), target="cpu", engine=engine.name)
                for size in config["sizes"] for engine in self.engines]

    def make_inputs(self, config, folder, seed):
        import quick
        for size in config["sizes"]:
            (folder / f"{size}.txt").write_text(str(quick.total(size)))

    def prepare(self, point, config, seed):
        size, expected = point.values["size"], int((self.inputs / f"{point.values['size']}.txt").read_text())
        if point.engine == "tvm":
            assert not any(".engines" in path for path in sys.path), "an engine leaked into TVM's process"
            total = lambda size: sum(range(size))
        else:
            total = __import__(point.engine).total
        def check():
            if total(size) != expected:
                raise ArithmeticError(f"{total(size)} is not {expected}")
            return {"max_error": 0.0, "tolerance": 0.0}
        return Prepared(timer=python_timer(lambda: total(size)), check=check, layout="flat", transfer_timed=True)

if __name__ == "__main__":
    sys.exit(Sums().main())
"""
FIELDS = {
    "include": ["timing"],
    "sizes": {"type": "list", "of": {"type": "int"}, "default": [300], "smoke": [30], "doc": "How many."},
}
STAGES = ("setup", "run", "analyze", "visualize", "summarize")
SCRIPTS = {name: f'#!/usr/bin/env bash\nset -euo pipefail\nexec python3 sums.py {name} "$@"\n' for name in STAGES}


def wheels() -> ModuleType:
    path = Path(__file__).parents[2] / "tvmdash" / "experiment" / "test_engines.py"
    spec = importlib.util.spec_from_file_location("wheels_for_tests", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def home(tmp_path: Path, tvm_artifact_folder: Path) -> homes.HomeForTests:
    home = homes.make_home(tmp_path, tvm_artifact_folder)
    timing = {"number": 2, "repeat": 3, "processes": 2, "max_processes": 2}
    folder = home.experiment("sums", config=timing, **SCRIPTS)
    (folder / "sums.py").write_text(SOURCE)
    (folder / "fields.json").write_text(json.dumps(FIELDS))
    (folder / "wheels").mkdir()
    wheels().wheel(folder / "wheels", "quick", "1.0", "def total(size): return size * (size - 1) // 2\n")
    wheels().wheel(folder / "wheels", "wrong", "2.0", "def total(size): return size\n")
    return home


def test_an_engine_that_is_wrong_or_missing_costs_its_own_points_and_says_why(home: homes.HomeForTests) -> None:
    assert home.run().code == 1  # two engines' points failed
    states = home.states("sums")
    assert {states[stage] for stage in STAGES} == {"ok"}
    (path,) = home.home.data("sums").glob("data_*.json")
    night = records.read_data(path, "sums")
    assert night.tvm_hash == "abc"
    measured = {(record.engine, record.workload_args["size"]): record for record in night.records}
    assert set(measured) == {("tvm", 300), ("quick", 300)}
    quick = measured["quick", 300]
    assert quick.engine_version == "1.0"
    conditions = quick.additional_info["conditions"]
    assert (conditions["layout"], conditions["transfer_timed"]) == ("flat", True)
    assert quick.additional_info["processes"] == 2
    errors = {(failure.values["engine"], failure.values["size"]): failure.error for failure in night.failures}
    assert errors["wrong", 300] == "ArithmeticError: 300 is not 44850"
    assert errors["absent", 300].startswith("not started: the engine absent is not installed: pip install failed")
    summary = json.loads((home.home.summary("sums") / "summary.json").read_text())["value"]
    assert "TVM at its best against quick: " in summary
    assert "2 points failed" in summary
    assert any(home.home.graph("sums").glob("*.svg"))


def test_a_setup_that_lacks_an_engine_is_tried_again_and_keeps_what_is_there(home: homes.HomeForTests) -> None:
    home.experiment("sums", config={"size": "smoke"}, setup=SCRIPTS["setup"])
    home.run()
    before = {path: path.stat().st_mtime_ns for path in (home.root / "setup" / ".engines").glob("*/.complete")}
    assert len(before) == 2
    home.run()
    assert home.states("sums")["setup"] == "ok", "absent was tried again"
    assert {path: path.stat().st_mtime_ns for path in before} == before, "the others were not installed again"


def test_a_setup_that_asks_to_be_run_again_is_not_kept(tmp_path: Path) -> None:
    place = setup_cache.begin(tmp_path, "sums", "key", "20260101T000000Z")
    setup_cache.finish(place)
    assert setup_cache.find(tmp_path, "sums", "key") == place
    (place / "retry").write_text("no network\n")
    assert setup_cache.find(tmp_path, "sums", "key") is None
