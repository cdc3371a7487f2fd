"""An experiment written on the template, run through its stages as scripts are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tvmdash import records

SHARED = Path(__file__).resolve().parents[2] / "shared" / "python"
SOURCE = """
import os, signal, sys
from tvmdash.exp_templates import Axis, EngineFacts, Experiment, Point, Prepared
from tvmdash.trial_util import python_timer

class Toy(Experiment):
    axes = (Axis("size", "workload_args"), Axis("threads", "runtime_config"))

    def points(self, config):
        names = config["groups"]
        return [Point("toy.sum", {"size": n, "threads": 1}, group=name, target="cpu", engine="python")
                for i, name in enumerate(names) for n in (10 * (i + 1), 10 * (i + 1) + 1)]

    def prepare(self, point, config, seed):
        if point.group == "raises":
            raise ValueError("this engine cannot do that")
        if point.group == "crashes" and point.values["size"] % 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        data = list(range(point.values["size"]))
        def check():
            if point.group == "wrong":
                raise ArithmeticError("error 0.5 is beyond the tolerance 1e-5")
            return {"max_error": 0.0, "tolerance": 1e-5}
        return Prepared(timer=python_timer(lambda: sum(data)), check=check, compile_ms=1.5, code_size_bytes=100)

    def engine_facts(self):
        if "BROKEN" in os.environ:
            raise ImportError("no module named tvm")
        return EngineFacts(version="3", tvm_hash="abc123")

if __name__ == "__main__":
    sys.exit(Toy().main())
"""
FIELDS = {
    "include": ["timing"],
    "groups": {"type": "list", "of": {"type": "str"}, "doc": "Names.", "default": ["good"]},
}


class Toy:
    """The experiment's folder with a config, and its stages."""

    def __init__(self, root: Path, groups: list[str]) -> None:
        self.code, self.config, self.data = root / "toy", root / "config", root / "data"
        for folder in (self.code, self.config, self.data):
            folder.mkdir()
        self.root = root
        (self.code / "toy.py").write_text(SOURCE)
        (self.code / "fields.json").write_text(json.dumps(FIELDS))
        config = {"active": True, "groups": groups, "number": 1, "repeat": 7}
        (self.config / "config.json").write_text(json.dumps(config))

    def stage(self, verb: str, *folders: Path, **variables: str) -> dict[str, object]:
        folders[-1].mkdir(exist_ok=True)
        argv = [sys.executable, "toy.py", verb, str(self.config), *map(str, folders)]
        environment = {**os.environ, "PYTHONPATH": str(SHARED), "TVMDASH_SEED": "3", **variables}
        subprocess.run(argv, cwd=self.code, env=environment, check=False, capture_output=True)
        status: dict[str, object] = json.loads((folders[-1] / "status.json").read_text())
        return status

    def night(self, stamp: str) -> records.NightData:
        raw, analysis = self.root / f"raw_{stamp}", self.root / f"analysis_{stamp}"
        assert self.stage("run", raw)["success"]
        assert self.stage("analyze", raw, analysis)["success"]
        path = self.data / f"data_{stamp}.json"
        path.write_bytes((analysis / "data.json").read_bytes())
        return records.read_data(path, "toy")


def test_points_become_records_graphs_and_a_summary(tmp_path: Path) -> None:
    toy = Toy(tmp_path, ["good", "other"])
    night = toy.night("20260101T000000Z")
    assert sorted(record.workload_args["size"] for record in night.records) == [10, 11, 20, 21]
    record = night.records[0]
    assert record.runtime_config == {"threads": 1}
    assert record.additional_info["compile_time"] == 1.5
    assert record.additional_info["samples"] == 7
    assert night.tvm_hash == "abc123"
    toy.night("20260102T000000Z")
    assert toy.stage("visualize", toy.data, tmp_path / "graphs")["success"]
    assert {path.suffix for path in (tmp_path / "graphs").iterdir()} == {".svg", ".json"}
    assert toy.stage("summarize", toy.data, tmp_path / "summary")["success"]
    summary = json.loads((tmp_path / "summary" / "summary.json").read_text())
    assert "4 points measured" in summary["value"]


def test_a_point_that_raises_or_is_wrong_is_a_failure_and_the_others_go_on(tmp_path: Path) -> None:
    night = Toy(tmp_path, ["good", "raises", "wrong"]).night("20260101T000000Z")
    assert len(night.records) == 2
    errors = {failure.error for failure in night.failures}
    assert errors == {
        "ValueError: this engine cannot do that",
        "ArithmeticError: error 0.5 is beyond the tolerance 1e-5",
    }


def test_a_crash_costs_the_points_it_did_not_come_to_and_is_said(tmp_path: Path) -> None:
    night = Toy(tmp_path, ["good", "crashes"]).night("20260101T000000Z")
    failures = {failure.values["size"]: failure.error for failure in night.failures}
    assert "ended while it was being measured" in failures[21]
    measured = {record.workload_args["size"] for record in night.records}
    assert {10, 11} <= measured
    assert 20 in measured or failures[20] == "not begun: its process was ended by SIGSEGV"


def test_an_engine_that_is_missing_fails_the_stage_with_its_reason(tmp_path: Path) -> None:
    status = Toy(tmp_path, ["good"]).stage("run", tmp_path / "raw", BROKEN="1")
    assert status["success"] is False
    assert "no module named tvm" in str(status["message"])


def test_every_point_failing_fails_the_stage(tmp_path: Path) -> None:
    status = Toy(tmp_path, ["raises"]).stage("run", tmp_path / "raw")
    assert status["success"] is False
    assert "None of 2 points could be measured: ValueError" in str(status["message"])


def test_the_order_follows_the_nights_seed(tmp_path: Path) -> None:
    toy = Toy(tmp_path, [f"g{number}" for number in range(5)])
    orders = []
    for number, seed in enumerate(("1", "1", "2")):
        toy.stage("run", tmp_path / f"raw{number}", TVMDASH_SEED=seed)
        orders.append(json.loads((tmp_path / f"raw{number}" / "plan.json").read_text())["groups"])
    assert orders[0] == orders[1] != orders[2]


def test_a_misspelt_field_is_refused_with_the_right_one(tmp_path: Path) -> None:
    toy = Toy(tmp_path, ["good"])
    (toy.config / "config.json").write_text('{"active": true, "repaet": 3}')
    status = toy.stage("run", tmp_path / "raw")
    assert "$.repaet: there is no such field. Did you mean 'repeat'?" in str(status["message"])


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["run", "/tmp"]])
def test_wrong_arguments_are_a_usage_error(tmp_path: Path, arguments: list[str]) -> None:
    toy = Toy(tmp_path, ["good"])
    environment = {**os.environ, "PYTHONPATH": str(SHARED)}
    done = subprocess.run(
        [sys.executable, "toy.py", *arguments], cwd=toy.code, env=environment, check=False, capture_output=True
    )
    assert done.returncode == 2
    assert b"usage" in done.stderr
