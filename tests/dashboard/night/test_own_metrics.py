"""Numbers of an experiment's own: declared in fields.json, in Python or in its data, they are series like any other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dashboard.authoring.skeletons import STAGE_SCRIPT
from tests.dashboard import homes
from tvmdash import records
from tvmdash.records import NightData, PointValue

TEMPLATE = """
from tvmdash.exp_templates import Axis, Declared, Engine, EngineFacts, Experiment, Point, Prepared
from tvmdash.trial_util import python_timer

class Toy(Experiment):
    engines = (Engine("python", facts=lambda: EngineFacts(version="3", tvm_hash="")),)
    axes = (Axis("size", "workload_args"),)

    def points(self, config):
        return [Point("toy.sum", {"size": size}, group="sums", target="cpu", engine="python") for size in (10, 20)]

    def prepare(self, point, config, seed):
        data = list(range(point.values["size"]))
        exact = Declared(unit="numbers", direction="lower", kind="exact")
        return Prepared(
            python_timer(lambda: sum(data)),
            details={"added": len(data), "beside": 7},
            metrics={"added": exact, "peak": Declared("peak memory", "bytes", "lower")},
            after=lambda: {"peak": 1000 + id(data) % 3},
        )

    def derive(self, records):
        return [{"tokens_per_second": 1e3 / record.execution_elapsed_ms_mean} for record in records]

if __name__ == "__main__":
    raise SystemExit(Toy().main())
"""
RATE = {"unit": "tokens/s", "direction": "higher", "kind": "rate"}
FIELDS: dict[str, Any] = {
    "include": ["timing"],
    "needs_tvm": False,
    "metrics": {"tokens_per_second": RATE, "never_there": {"unit": "J"}},
}
RECORD = {
    "timestamp": "2026-11-21T10:19:13+00:00",
    "schema_version": 1,
    "additional_info": {"docker_tag": None, "docker_hash": None, "execution_elapsed_ms_median": 2.0, "tokens": 80.5},
    "workload": "net.mlp",
    "workload_args": {},
    "engine": "mine",
    "engine_version": "1",
    "engine_config": {},
    "target": "cpu",
    "build_config": {},
    "env_name": "lab",
    "hw_model": "lab",
    "runtime_config": {},
    "execution_config": {},
    "execution_elapsed_ms_mean": 2.0,
    "execution_elapsed_ms_std": None,
}
DATA = {"schema_version": 1, "tvm_hash": "", "records": [RECORD]}


def analyze(value: dict[str, Any]) -> str:
    """An analyze.sh that leaves this data.json."""
    work = f"cat > \"$3/data.json\" <<'END'\n{json.dumps(value)}\nEND"
    return f"{homes.BEGIN}{work}\n{homes.says('analyze', 'analyzed')}\n"


@pytest.fixture
def home(tmp_path: Path) -> homes.HomeForTests:
    return homes.make_home(tmp_path, tmp_path / "empty")


def put(home: homes.HomeForTests, fields: dict[str, Any], value: dict[str, Any], name: str = "mine") -> None:
    """An experiment in shell that declares these fields and leaves this data.json."""
    homes.write(home.experiment(name, analyze=analyze(value)) / "fields.json", {"needs_tvm": False, **fields})


def data_of(home: homes.HomeForTests, name: str) -> NightData:
    return records.read_data(home.home.data_file(name, home.stamps()[-1]), name)


def own_of(data: NightData, metric: str) -> list[PointValue]:
    return [value for value in data.values() if value.key.metric == metric]


def test_a_template_declares_in_fields_json_and_in_python_and_smoke_says_what_came(home: homes.HomeForTests) -> None:
    folder = home.code / "experiments" / "toy"
    for stage in ("run", "analyze", "visualize", "summarize"):
        homes.script(folder / f"{stage}.sh", f'#!/usr/bin/env bash\n. "{STAGE_SCRIPT}"\n')
    (folder / "toy.py").write_text(TEMPLATE)
    homes.write(folder / "fields.json", FIELDS)
    config = {"active": True, "processes": 2, "max_processes": 2, "number": 1, "smoke": {"processes": 2}}
    homes.write(home.home.config("experiment", "toy") / "config.json", config)
    done = home.smoke("toy", str(home.path))
    assert done.code == 0, done.output
    assert "tokens_per_second (tokens/s, higher is better, rate)" in done.output
    assert "added (numbers, lower is better, exact)" in done.output
    assert "Note: toy declares never_there, but measured no such number." in done.output
    assert "toy: numbers that nothing declares, so that they are no series: beside." in done.output
    assert "Tokens per second" in done.output
    assert "Peak memory" in done.output
    stamp = max(path.stem for path in (home.root / "scratch" / "results" / "experiments" / "data" / "toy").iterdir())
    data = records.read_data(home.root / f"scratch/results/experiments/data/toy/{stamp}.json", "toy")
    rates, exact = own_of(data, "tokens_per_second"), own_of(data, "added")
    assert [(rate.unit, rate.direction, rate.kind) for rate in rates] == [("tokens/s", "higher", "rate")] * 2
    assert [(one.value, one.alike, one.kind) for one in exact] == [(10.0, 2, "exact"), (20.0, 2, "exact")]
    assert [(one.title, one.unit) for one in own_of(data, "peak")] == [("peak memory", "bytes")] * 2
    assert data.unmeasured == ["never_there"]


def test_records_of_a_script_are_declared_in_fields_json_or_in_data_json(home: homes.HomeForTests) -> None:
    put(home, {"metrics": {"tokens": RATE}}, DATA)
    put(home, {}, {**DATA, "metrics": {"tokens": RATE}}, "other")
    home.night()
    for name in ("mine", "other"):
        (value,) = own_of(data_of(home, name), "tokens")
        assert (value.value, value.unit, value.direction, value.kind) == (80.5, "tokens/s", "higher", "rate")


def test_check_says_what_is_declared_and_after_a_night_what_came_of_it(home: homes.HomeForTests) -> None:
    put(home, {"metrics": {"tokens": RATE, "joules": {}}}, DATA)
    put(home, {"metrics": {"$.a": RATE, "$.b*": {}}}, {"a": 1, "c": 2}, "other")
    said = home.run(verb="check").output
    assert "mine declares tokens (tokens/s, higher is better, rate) and joules (neither way is better, number)." in said
    night = home.night()
    said = home.run(verb="check").output
    assert "other: numbers that nothing declares, so that they have neither a unit nor a better direction: $.c." in said
    for words in ("mine declares joules, but measured no such number", "other declares $.b*, but measured no such"):
        assert words in said
        assert any(words in note for note in night["notes"]), "and the night says so"


def test_a_name_of_several_lines_or_of_any_length_is_told_in_one_short_line(home: homes.HomeForTests) -> None:
    put(home, {}, {"metrics": {"x\nnight: all ok": RATE, "y" * 5000: RATE}, "z\nhome: no problems found.": 1})
    (note,) = home.night()["notes"]
    assert " and x night: all ok, but measured no such number" in note
    assert len(note) < 500
    assert "$.z home: no problems found." in home.run(verb="check").output


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("compile_time", "'compile_time': records have a number of this name already. Choose another one."),
        ("max_error", "'max_error': records have a number of this name already."),
        ("$.tokens", "'$.tokens': names of a record's numbers have no $ and *. Use the name in additional_info."),
    ],
)
def test_a_name_that_cannot_be_declared_of_a_record_fails_the_stage(
    home: homes.HomeForTests, name: str, words: str
) -> None:
    put(home, {"metrics": {name: RATE}}, DATA)
    failed = home.run()
    assert failed.code != 0
    assert words in failed.output


def test_a_wrong_declaration_in_a_record_fails_the_stage(home: homes.HomeForTests) -> None:
    info = {**RECORD["additional_info"], "metrics": {"tokens": {"direction": "up"}}}  # type: ignore[dict-item]
    put(home, {}, {**DATA, "records": [{**RECORD, "additional_info": info}]})
    assert "$.metrics.tokens.direction: 'up' is not a valid choice" in home.run().output


def test_what_stands_under_metrics_in_old_records_is_read_as_it_was(tmp_path: Path) -> None:
    for odd in ([1, 2], "words", {"a": 1, "run_time": {"unit": "s"}}):
        record = {**RECORD, "additional_info": {**RECORD["additional_info"], "metrics": odd}}  # type: ignore[dict-item]
        path = tmp_path / "data_20260101T000000Z.json"
        path.write_text(json.dumps({**DATA, "records": [record]}))
        values = list(records.read_data(path, "mine").values())
        assert [(value.key.metric, value.unit) for value in values] == [("run_time", "ms")]
