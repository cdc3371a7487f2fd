"""Whatever stages leave behind: each job has its word, and nothing that was there is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.night import engine
from dashboard.process.process import ProcessOutcome
from tests import fuzzing
from tests.dashboard import homes, result_homes
from tests.fuzzing import files_like, the_same_each_time
from tvmdash import common, dashboard_info, records
from tvmdash.dashboard_info import stages
from tvmdash.errors import DashboardError
from tvmdash.series import store

STATUS = {"success": True, "message": "done", "blocked": False, "in_log": True}
SUMMARY = {"title": "t", "value": "v", "sections": [{"title": "s", "lines": ["a"]}]}
PAIRED = {"ratios": {"run_time": {"ratio": 1.1, "log_ratios": [0.1, 0.2], "low": 1.0, "high": 1.2}}, "reference": {}}
RECORD = result_homes.record(
    "cnn.net", 1.5, alike={"code_size": 3}, code_size=300, paired=PAIRED, content={"hash": "ab"}, max_error=0.1
)
OURS = {
    "schema_version": 1, "tvm_hash": "c0ffee", "environment": {"machine": result_homes.MACHINE},
    "records": [RECORD, result_homes.record("cnn.other", None, engine="torch")],
    "failures": [{"workload": "cnn.x", "values": {"a": 1}, "error": "boom"}],
}  # fmt: skip
FOREIGN = {
    "metrics": {"$.gpu.rate": {"unit": "t/s", "direction": "higher", "kind": "rate"}, "size": {"kind": "exact"}},
    "gpu": {"rate": 81.2, "ms": [1.0, 2.0]}, "size": 20480, "tvm_hash": "x",
}  # fmt: skip
LEFT: Mapping[str, tuple[str, Any]] = {
    "run": ("status.json", STATUS),
    "analyze": ("data.json", OURS),
    "foreign": ("data.json", FOREIGN),
    "summarize": ("summary.json", SUMMARY),
}
OF_EACH = 3
"""So many experiments leave something odd in each of these files in one night."""


@the_same_each_time(100, 5000)
@given(files_like(STATUS))
def test_a_status_is_read_or_refused_in_words(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / stages.STATUS_FILE).write_bytes(raw)
    outcome = ProcessOutcome(0, None, timed_out=False, elapsed_s=1.0, tail="", left_behind=0, left_out_bytes=0)
    try:
        message = engine.judge(outcome, folder, stages.EXPERIMENT.stage("run"), 1.0)
    except DashboardError as error:
        message = str(error)
        assert message
    message.encode()


@the_same_each_time(100, 5000)
@given(files_like(OURS) | files_like(FOREIGN))
def test_data_that_is_taken_is_indexed(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "cnn"
    folder.mkdir(exist_ok=True)
    try:
        value = common.parse_json(raw, "data.json")
        records.check_data(value)
    except DashboardError:
        return
    common.write_json(folder / "data_20261121T031500Z.json", value, durable=False)
    with store.open_for_reading(folder / "no.sqlite", folder, "cnn") as opened:
        assert opened.faults("cnn") == {}
        for series in opened.series("cnn"):
            assert list(series.values)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, tvm_artifact_folder: Path) -> homes.HomeForTests:
    """A good night of experiments whose stages leave what lies beside the home."""
    made = homes.make_home(tmp_path_factory.mktemp("left"), tvm_artifact_folder, parallel_stages=4)
    for what, (name, value) in LEFT.items():
        stage = "analyze" if what == "foreign" else what
        for number in range(OF_EACH):
            left = made.root / f"{what}-{number}"
            left.write_bytes(fuzzing.dump(value))
            copied = f"cp '{left}' \"{homes.DESTINATION[stage]}/{name}\""
            end = copied if stage == "run" else f"{copied}\n{homes.says(stage)}"
            made.experiment(left.name, **{stage: f"{homes.BEGIN}{homes.WORK[stage]}\n{end}\n"})
    made.experiment("good")
    made.subsystem("page")
    done = made.run()
    assert "10 of 13 experiments ok" in done.output, done.output  # those of OURS had a failure
    return made


@the_same_each_time(1, 25)
@given(st.tuples(*(st.lists(files_like(value), min_size=OF_EACH, max_size=OF_EACH) for _, value in LEFT.values())))
def test_each_job_has_its_word_and_the_rest_of_the_home_is_unharmed(
    home: homes.HomeForTests, left: Sequence[Sequence[bytes]]
) -> None:
    for what, files in zip(LEFT, left, strict=True):
        for number, raw in enumerate(files):
            (home.root / f"{what}-{number}").write_bytes(raw)
    before = read_data(home)
    done = home.run()
    assert done.code in {0, 1}, done.output
    night = home.last()
    assert night["state"] == "complete"
    for job in night["jobs"]:
        assert [step["stage"] for step in job["steps"]] == (
            ["precheck", *homes.STAGES] if job["kind"] == "experiment" else ["precheck", "run"]
        )
    assert set(home.states("good").values()) == {"ok"}
    assert home.status("page", "run", kind="subsystem")["stamp"] == night["stamp"]
    now = read_data(home)
    assert before.items() <= now.items()
    assert {path.parent.name for path in now.keys() - before.keys()} == {
        job["name"] for job in night["jobs"] if [step["state"] for step in job["steps"]][2:3] == ["ok"]
        and job["kind"] == "experiment"
    }  # fmt: skip
    for name in home.home.experiments_with_data():
        with store.open_for_reading(home.home.store_file, home.home.data(name), name) as opened:
            assert opened.stamps(name) == home.home.data_stamps(name)
    assert dashboard_info.Night.from_json(night, home.home.night_file(night["stamp"])).stamp == home.stamps()[-1]


def read_data(home: homes.HomeForTests) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.home.data("x").parent.rglob("data_*.json")}
