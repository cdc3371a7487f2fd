"""Experiments and a subsystem that were written outside of this repository for its commit 67c9a73 run as they are.

`experiments/` and `subsystem/` beside this file ran at that commit. They stay byte for byte: what does not run any more
is mended in the product. tests/tvmdash/test_face.py has all names that were known there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

from tests.dashboard import homes
from tvmdash import records

HERE = Path(__file__).parent
EXPERIMENTS = ("copying", "mlp_batches", "sorting")
MODULES = (
    "tests.outside.experiments.copying.copying",
    "tests.outside.experiments.mlp_batches.mlp_batches",
    "tests.outside.experiments.sorting.sorting",
    "tests.outside.subsystem.digest.digest",
)
"""By these names tests/changed.py knows that this test runs them."""
AS_THEY_RAN = "2afa355a978fccb4089c4dd6a5d3e9cdaf0aba6390405526ea9d7f79b32ddf95"
"""Of the files that ran at 67c9a73."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, tvm_artifact_folder: Path) -> homes.HomeForTests:
    """A home of that time, after its first night, with one field that its config could have then."""
    made = homes.make_home(
        tmp_path_factory.mktemp("outside"),
        tvm_artifact_folder,
        experiment_dirs=[str(HERE / "experiments")],
        subsystem_dirs=[str(HERE / "subsystem")],
        bisect_when_idle=False,
    )
    made = dataclasses.replace(made, warm_stages=True)
    for name in EXPERIMENTS:
        config = {"active": True, "size": "smoke", "title": name.title()}
        homes.write(made.home.config("experiment", name) / "config.json", config)
    digest = {"active": True, "experiments": [*EXPERIMENTS], "timeouts": {"run": 600}}
    homes.write(made.home.config("subsystem", "digest") / "config.json", digest)
    checked = made.run(verb="check")
    assert checked.code == 0, checked.output
    assert not [name for name in (*EXPERIMENTS, "digest") if f"{name}:" in checked.output], "check warns of it"
    made.night()
    return made


def test_the_files_are_those_that_ran_at_that_commit() -> None:
    whole = hashlib.sha256()
    for folder in (homes.REPO.joinpath(*module.split(".")).parent for module in MODULES):
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            whole.update(path.relative_to(HERE).as_posix().encode() + b"\0" + path.read_bytes())
    assert whole.hexdigest() == AS_THEY_RAN


def test_every_stage_is_ok_and_the_night_has_nothing_to_note(home: homes.HomeForTests) -> None:
    night = home.last()
    states = {(job["name"], step["stage"]): step["state"] for job in night["jobs"] for step in job["steps"]}
    stages = {(name, stage) for name in EXPERIMENTS for stage in ("precheck", *homes.STAGES)}
    assert set(states) == stages | {("sorting", "setup"), ("digest", "precheck"), ("digest", "run")}
    assert set(states.values()) == {"ok"}
    assert night["notes"] == []
    assert not [step for job in night["jobs"] for step in job["steps"] if step["failed_points"]]


def test_records_are_what_the_experiments_measured(home: homes.HomeForTests) -> None:
    stamp = home.stamps()[-1]
    sorting, mlp = (records.read_data(home.home.data_file(n, stamp), n) for n in ("sorting", "mlp_batches"))
    assert {(record.workload, record.engine, record.workload_args["length"]) for record in sorting.records} == {
        (f"sorting.{order}", engine, length)
        for order in ("random", "ascending")
        for engine in ("python", "numpy")
        for length in (200, 800)
    }
    for record in sorting.records:
        facts = record.additional_info
        assert (facts["sorts"], facts["leftovers"], facts["max_error"]) == (1, 0, 0.0)
        assert facts["numbers_per_ms"] > 0
        assert facts["conditions"]["environment"]["SORTING_BESIDE"] == "Sorting"
    (compiled,) = mlp.records
    assert compiled.additional_info["from"] == "the home's"
    assert compiled.additional_info["max_error"] <= compiled.additional_info["tolerance"]
    assert compiled.additional_info["compile_time"] > 0
    copying = homes.read(home.home.data_file("copying", stamp))
    assert 3 < copying["4 KiB"]["samples"] <= 6, "as many as the time allows"
    assert copying["metrics"] == {"median": {"unit": "ms", "direction": "lower", "kind": "time"}}


def test_graphs_files_and_summaries_are_there(home: homes.HomeForTests) -> None:
    graphs = {name: {path.name for path in home.home.graph(name).iterdir()} for name in EXPERIMENTS}
    assert graphs["copying"] >= {"copying.svg", "course.png"}
    assert graphs["mlp_batches"] >= {"tonight.svg"}
    own = {f"{name}.svg" for name in ("slowest", "engines", "nights", "spread", "map")}
    assert graphs["sorting"] >= {"tonight.svg", "records.json", "records.png", "records.txt", *own}
    assert "1 value" in (home.home.graph("sorting") / "records.txt").read_text()
    assert homes.read(home.home.graph("sorting") / "records.json")["records"] == 8
    said = {name: home.home.read_summary(name) for name in EXPERIMENTS}
    assert "2.00x faster" in (said["sorting"] or ("", ""))[1]
    assert "1 GiB" in (said["copying"] or ("", ""))[1]
    assert said["mlp_batches"]


def test_the_subsystem_reads_the_night_and_reports(home: homes.HomeForTests) -> None:
    output = home.home.output("digest")
    page = homes.read(output / "page.json")
    assert page["records"] == {"copying": 0, "mlp_batches": 1, "sorting": 8}
    assert page["raw"] == {"mlp_batches": 1, "sorting": 8}
    assert page["failures"] == [0, 0, 0]
    assert all(page["series"][name] >= count for name, count in page["records"].items())
    assert page["may_measure_s"] == 30
    report = home.home.read_report("digest")
    assert report is not None
    assert report[0] == "The night in numbers"
    assert "9 records" in report[1]
    assert "sorting took" in (output / "message.txt").read_text()
    assert json.loads((output / "message.json").read_text())["blocks"]
    assert (output / "run.svg").is_file()
    assert (output / "sealed" / "catalogue.json").is_file()


def test_its_own_check_finds_what_the_home_lacks(home: homes.HomeForTests) -> None:
    config = home.home.config("subsystem", "digest") / "config.json"
    kept = homes.read(config)
    homes.write(config, {**kept, "experiments": ["sortin"]})
    told = home.run(verb="check")
    homes.write(config, kept)
    assert told.code == 2
    assert f"{config}: $.experiments: " in told.output
