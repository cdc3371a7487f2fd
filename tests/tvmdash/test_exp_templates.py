"""An experiment written on the template, run through its stages as scripts are."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tvmdash.stages_here import run_here
from tvmdash import records

SHARED = Path(__file__).resolve().parents[2] / "shared" / "python"
SOURCE = """
import os, signal, sys, time
from tvmdash.exp_templates import Axis, Engine, EngineFacts, Experiment, OperatorSpan, Point, Prepared
from tvmdash.trial_util import python_timer

def facts():
    if "BROKEN" in os.environ:
        raise ImportError("no module named tvm")
    return EngineFacts(version="3", tvm_hash="abc123")

class Toy(Experiment):
    engines = (Engine("python", facts=facts),)
    axes = (Axis("size", "workload_args"), Axis("threads", "runtime_config"))

    def points(self, config):
        names = config["groups"]
        return [Point("toy.sum", {"size": n, "threads": 1}, group=name, target="cpu", engine="python",
                      once=name == "slow")
                for i, name in enumerate(names) for n in (10 * (i + 1), 10 * (i + 1) + 1)]

    def prepare(self, point, config, seed):
        if point.group == "raises":
            raise ValueError("this engine cannot do that")
        if point.group == "hangs" and point.values["size"] % 2:
            time.sleep(3600)
        if point.group == "crashes" and point.values["size"] % 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        data = list(range(point.values["size"]))
        if point.group == "uneven":  # as long as no other process takes
            data *= 1000 * (1 + os.getpid() % 50)
        def check():
            if point.group == "wrong":
                raise ArithmeticError("error 0.5 is beyond the tolerance 1e-5")
            return {"max_error": 0.0, "tolerance": 1e-5}
        spans = [OperatorSpan(0, "add", 0, 5)]
        return Prepared(timer=python_timer(lambda: sum(data)), check=check, compile_ms=1.5, code_size_bytes=100,
                        layout="N", profile=lambda: spans)

    def derive(self, records):
        return [{"sums_per_second": 1e3 / r.additional_info["execution_elapsed_ms_median"]} for r in records]

if __name__ == "__main__":
    sys.exit(Toy().main())
"""
FIELDS = {
    "include": ["timing"],
    "groups": {"type": "list", "of": {"type": "str"}, "doc": "Names.", "default": ["good"]},
}


class Toy:
    """The experiment's folder with a config, and its stages."""

    def __init__(self, root: Path, groups: list[str], **config: object) -> None:
        self.code, self.config, self.data = root / "toy", root / "config", root / "data"
        for folder in (self.code, self.config, self.data):
            folder.mkdir()
        self.root = root
        (self.code / "toy.py").write_text(SOURCE)
        (self.code / "fields.json").write_text(json.dumps(FIELDS))
        timing = {"number": 1, "repeat": 7, "processes": 1, "max_processes": 1}
        (self.config / "config.json").write_text(json.dumps({"active": True, "groups": groups, **timing, **config}))

    def stage(self, verb: str, *folders: Path, **variables: str) -> dict[str, object]:
        """The status that a stage, done in this process, leaves."""
        folders[-1].mkdir(exist_ok=True)
        own = {"PYTHONPATH": str(SHARED), "TVMDASH_SEED": "3", **variables}
        run_here(self.code / "toy.py", [verb, str(self.config), *map(str, folders)], own)
        status: dict[str, object] = json.loads((folders[-1] / "status.json").read_text())
        return status

    def night(self, stamp: str) -> records.NightData:
        raw, analysis = self.root / f"raw_{stamp}", self.root / f"analysis_{stamp}"
        assert self.stage("run", raw)["success"]
        assert self.stage("analyze", raw, analysis)["success"]
        path = self.data / f"data_{stamp}.json"
        path.write_bytes((analysis / "data.json").read_bytes())
        return records.read_data(path, "toy")


def order_of(raw: Path) -> list[tuple[str, int]]:
    """Group and number of points of each measuring process, in the order of the processes."""
    folders = sorted(raw.glob("process_*"), key=lambda folder: int(folder.name.partition("_")[2]))
    tasks = [json.loads((folder / "task.json").read_text())["jobs"] for folder in folders]
    return [(jobs[0]["point"]["group"], len(jobs)) for jobs in tasks]


def test_points_become_records_graphs_and_a_summary(tmp_path: Path) -> None:
    toy = Toy(tmp_path, ["good", "other"])
    night = toy.night("20260101T000000Z")
    assert sorted(record.workload_args["size"] for record in night.records) == [10, 11, 20, 21]
    record = night.records[0]
    assert record.labels["runtime_config"] == {"threads": 1}
    assert record.runtime_config["kernel"] == f"{platform.system()} {platform.release()}"
    assert {"kernel", "libc", "os", "python"} <= set(record.additional_info["described"]["runtime_config"])
    assert record.additional_info["compile_time"] == 1.5
    assert record.additional_info["samples"] == 7
    assert night.tvm_hash == "abc123"
    toy.night("20260102T000000Z")
    assert toy.stage("visualize", toy.data, tmp_path / "graphs")["success"]
    assert {path.suffix for path in (tmp_path / "graphs").iterdir()} == {".svg", ".json"}
    assert toy.stage("summarize", toy.data, tmp_path / "summary")["success"]
    summary = json.loads((tmp_path / "summary" / "summary.json").read_text())
    assert "4 points measured" in summary["value"]


def test_what_an_experiment_derives_joins_its_records(tmp_path: Path) -> None:
    toy = Toy(tmp_path, ["good"])
    for verb, folders in (("run", [tmp_path / "raw"]), ("analyze", [tmp_path / "raw", tmp_path / "analysis"])):
        assert toy.stage(verb, *folders)["success"]
    for record in json.loads((tmp_path / "analysis" / "data.json").read_text())["records"]:
        info = record["additional_info"]
        assert info["sums_per_second"] * info["execution_elapsed_ms_median"] == pytest.approx(1e3)


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
    assert "killed during the measurement" in failures[21]
    measured = {record.workload_args["size"] for record in night.records}
    assert {10, 11} <= measured
    assert 20 in measured or failures[20] == "not started: its process was killed by SIGSEGV"


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
        orders.append(order_of(tmp_path / f"raw{number}"))
    assert orders[0] == orders[1] != orders[2]
    assert json.loads((tmp_path / "raw2" / "plan.json").read_text())["seed"] == 2


def test_a_point_that_is_measured_once_has_one_process_and_one_sample_and_says_so(tmp_path: Path) -> None:
    data = Toy(tmp_path, ["slow", "good"], processes=2, max_processes=2).night("20261121T000000Z")
    found = {record.workload_args["size"]: record.additional_info for record in data.records}
    assert [(found[size]["processes"], found[size]["samples"]) for size in (10, 11, 20, 21)] == [(1, 1)] * 2 + [
        (2, 14)
    ] * 2
    assert found[10]["ended_by"] == "once"
    assert found[20]["ended_by"] != "once"


def an_identity(size: int) -> dict[str, object]:
    named = {"workload": "toy.sum", "engine": "python", "target": "cpu", "engine_config": {}, "build_config": {}}
    return {**named, "workload_args": {"size": size}, "runtime_config": {"threads": 1}}


def test_a_run_asked_for_some_points_plans_and_measures_these_alone(tmp_path: Path) -> None:
    asked = tmp_path / "points.json"
    asked.write_text(json.dumps([an_identity(11), an_identity(20), an_identity(999)]))
    toy = Toy(tmp_path, ["good", "other", "raises"])
    status = toy.stage("run", tmp_path / "raw", TVMDASH_POINTS=str(asked))
    assert status["message"] == "2 of 2 points measured in 2 processes"
    assert toy.stage("analyze", tmp_path / "raw", tmp_path / "analysis")["success"]
    data = json.loads((tmp_path / "analysis" / "data.json").read_text())
    assert sorted(record["workload_args"]["size"] for record in data["records"]) == [11, 20]
    assert data["failures"] == []


@pytest.mark.parametrize(
    ("text", "words"), [("[]", "none of its 0 points"), ("{}", "expected a list"), ("[{}]", "expected a list")]
)
def test_a_run_asked_for_no_point_of_its_own_says_so(tmp_path: Path, text: str, words: str) -> None:
    asked = tmp_path / "points.json"
    asked.write_text(text)
    status = Toy(tmp_path, ["good"]).stage("run", tmp_path / "raw", TVMDASH_POINTS=str(asked))
    assert not status["success"]
    assert words in str(status["message"])


def test_a_misspelt_field_is_refused_with_the_right_one(tmp_path: Path) -> None:
    toy = Toy(tmp_path, ["good"])
    (toy.config / "config.json").write_text('{"active": true, "repaet": 3}')
    status = toy.stage("run", tmp_path / "raw")
    assert "$.repaet: unknown field. Did you mean 'repeat'?" in str(status["message"])


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["run", "/tmp"]])
def test_wrong_arguments_are_a_usage_error(tmp_path: Path, arguments: list[str]) -> None:
    toy = Toy(tmp_path, ["good"])
    environment = {**os.environ, "PYTHONPATH": str(SHARED)}
    done = subprocess.run(
        [sys.executable, "toy.py", *arguments], cwd=toy.code, env=environment, check=False, capture_output=True
    )
    assert done.returncode == 2
    assert b"usage" in done.stderr


def test_every_round_measures_every_group_in_a_new_order_and_each_process_counts(tmp_path: Path) -> None:
    toy = Toy(tmp_path, ["a", "b", "c", "d"], processes=3, max_processes=3)
    night = toy.night("20260101T000000Z")
    order = [name for name, _ in order_of(tmp_path / "raw_20260101T000000Z")]
    rounds = [order[:4], order[4:8], order[8:]]
    assert [sorted(names) for names in rounds] == [["a", "b", "c", "d"]] * 3
    assert len({tuple(names) for names in rounds}) > 1
    for record in night.records:
        info = record.additional_info
        assert (info["processes"], info["samples"]) == (3, 21)
        assert info.get("execution_elapsed_ms_low", 0.0) <= info["execution_elapsed_ms_median"]
        assert info["spread_between_percent"] >= 0
        assert info["ended_by"] in {"interval", "max_processes"}


@pytest.mark.parametrize(
    ("limits", "processes", "ended_by"),
    [
        ({"interval_percent": 1e15}, 2, "interval"),  # the times differ up to fiftyfold
        ({"interval_percent": 0}, 4, "max_processes"),
        ({"interval_percent": 0, "max_minutes": 0}, 1, "max_minutes"),
    ],
)
def test_rounds_end_when_the_interval_is_narrow_or_a_budget_is_spent(
    tmp_path: Path, limits: dict[str, float], processes: int, ended_by: str
) -> None:
    night = Toy(tmp_path, ["uneven"], processes=2, max_processes=4, **limits).night("20260101T000000Z")
    found = {(record.additional_info["processes"], record.additional_info["ended_by"]) for record in night.records}
    assert found == {(processes, ended_by)}


def test_a_wrong_or_crashing_point_is_not_measured_again_and_what_it_cost_is(tmp_path: Path) -> None:
    toy = Toy(tmp_path, ["good", "wrong", "crashes"], processes=3, max_processes=3)
    night = toy.night("20260101T000000Z")
    assert {failure.values["size"] for failure in night.failures} == {20, 21, 31}
    measured = {record.workload_args["size"]: record.additional_info["processes"] for record in night.records}
    assert measured[10] == measured[11] == 3
    assert measured[30] >= 2  # after the crash it is measured without the other one
    assert ("wrong", 2) in (order := order_of(tmp_path / "raw_20260101T000000Z"))
    assert sum(name == "wrong" for name, _ in order) == 1


def test_a_process_that_hangs_is_ended_and_costs_the_point_it_was_in(tmp_path: Path) -> None:
    toy = Toy(tmp_path, ["good", "hangs"], processes=2, max_processes=2, process_minutes=0.15)
    night = toy.night("20260101T000000Z")
    (failure,) = night.failures
    assert failure.values["size"] == 21
    assert "killed during the measurement" in failure.error
    assert {10, 11, 20} == {record.workload_args["size"] for record in night.records}
    ended = json.loads((tmp_path / "raw_20260101T000000Z" / "ended.json").read_text())
    assert ended == {"hangs": "its process exceeded process_minutes (0.15 min) and was stopped"}


def test_a_point_is_profiled_in_each_process_and_says_under_which_conditions_it_was_timed(tmp_path: Path) -> None:
    toy = Toy(tmp_path, ["good"], processes=2, max_processes=2, threads=1)
    record = toy.night("20260101T000000Z").records[0]
    conditions = record.additional_info["conditions"]
    assert (conditions["layout"], conditions["transfer_timed"], conditions["warmup_calls"]) == ("N", False, 1)
    assert conditions["environment"]["OMP_NUM_THREADS"] == "1"
    assert conditions["affinity"] == sorted(os.sched_getaffinity(0))
    profiled = [
        sqlite3.connect(path).execute("SELECT count(*) FROM runs").fetchone()[0]
        for path in sorted((tmp_path / "raw_20260101T000000Z").rglob("raw_*.db"))
    ]
    assert profiled == [2, 2]


def test_the_smoke_size_brings_its_own_defaults(tmp_path: Path) -> None:
    toy = Toy(tmp_path, ["good"])
    (toy.config / "config.json").write_text('{"active": true, "size": "smoke"}')
    record = toy.night("20260101T000000Z").records[0]
    assert record.additional_info["processes"] == 1
    assert record.execution_config["repeat"] == 3


def test_an_experiment_that_states_its_axes_and_points_runs_as_it_always_did(tmp_path: Path) -> None:
    """The example of the documentation before axes were fields: such experiments lie in private folders."""
    toy = Toy(tmp_path, [])
    (toy.code / "toy.py").write_text(STATED)
    (toy.code / "fields.json").write_text(json.dumps(STATED_FIELDS))
    (toy.config / "config.json").write_text('{"active": true, "size": "smoke"}')
    (record,) = toy.night("20260101T000000Z").records
    assert (record.workload, record.engine, record.workload_args) == ("topi.matmul", "numpy", {"size": 8})
    assert record.labels["runtime_config"] == {"threads": 1}


STATED = """
import sys

import numpy as np

from tvmdash.exp_templates import Axis, Engine, EngineFacts, Experiment, Point, Prepared
from tvmdash.trial_util import python_timer


class Matmul(Experiment):
    axes = (Axis("size", "workload_args"), Axis("threads", "runtime_config"))
    engines = (Engine("numpy", facts=lambda: EngineFacts(np.__version__)),)

    def points(self, config):
        return [
            Point(
                "topi.matmul", {"size": size, "threads": config["threads"]}, group="all", target="cpu", engine="numpy"
            )
            for size in config["sizes"]
        ]

    def prepare(self, point, config, seed):
        a = np.random.default_rng(seed).random((point.values["size"],) * 2, dtype="float32")
        return Prepared(timer=python_timer(lambda: a @ a))


if __name__ == "__main__":
    sys.exit(Matmul().main())
"""
STATED_FIELDS = {
    "include": ["timing"],
    "takes_minutes": {"smoke": 0.1, "nightly": 1},
    "sizes": {
        "type": "list",
        "of": {"type": "int", "min": 1},
        "default": [64, 256],
        "smoke": [8],
        "doc": "Rows and columns.",
    },
}
