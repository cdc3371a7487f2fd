"""The paths of a home, and what nights left there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tvmdash import common, dashboard_info
from tvmdash.dashboard_info import BLOCKED, COMPLETE, FAILED, OK, SKIPPED, Home, JobResult, Night, StepResult
from tvmdash.errors import DashboardError

STAMPS = ("20261119T031500Z", "20261120T031500Z", "20261121T031500Z")


def night(stamp: str = STAMPS[0], *states: str) -> Night:
    steps = tuple(StepResult(f"s{index}", state, f"m{index}", stamp, 1.5, "tail") for index, state in enumerate(states))
    job = JobResult("experiment", "cnn", "CNN", "about", steps)
    return Night(
        stamp, COMPLETE, seed=3, repository={"commit": "c"}, artifacts=({"key": "k"},), notes=("n",), jobs=(job,)
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.nights.mkdir(parents=True)
    return made


def test_a_night_is_read_as_it_was_written(home: Home) -> None:
    wanted = night(STAMPS[0], OK, FAILED)
    common.write_json(home.night_file(STAMPS[0]), wanted.to_json())
    assert home.read_night(STAMPS[0]) == wanted


def test_a_night_of_a_later_dashboard_with_more_fields_is_read(home: Home) -> None:
    value = night(STAMPS[0], OK).to_json()
    value["more"] = value["jobs"][0]["steps"][0]["more"] = 1
    common.write_json(home.night_file(STAMPS[0]), value)
    assert home.read_night(STAMPS[0]).jobs[0].steps[0].state == OK


@pytest.mark.parametrize(
    "value", [[], {}, {"jobs": 3}, {"jobs": [3]}, {"jobs": [], "notes": None}, 5, {"jobs": [{"steps": [5]}]}]
)
def test_what_is_no_night_is_an_error_for_people(home: Home, value: Any) -> None:
    home.night_file(STAMPS[0]).write_text(json.dumps(value))
    with pytest.raises(DashboardError, match="not a night's record"):
        home.read_night(STAMPS[0])


@pytest.mark.parametrize(
    ("damage", "fault"),
    [({"elapsed_s": "long"}, r"\$\.jobs\[0\]\.steps\[1\]\.elapsed_s: 'long' is not a number"),
     ({"stage": None}, r"\$\.jobs\[0\]\.steps\[1\]\.stage: None is not a text")],
)  # fmt: skip
def test_a_record_with_a_wrong_value_names_file_place_and_value(home: Home, damage: Any, fault: str) -> None:
    value = night(STAMPS[0], OK, OK).to_json()
    value["jobs"][0]["steps"][1].update(damage)
    common.write_json(home.night_file(STAMPS[0]), value)
    with pytest.raises(DashboardError, match=rf"{STAMPS[0]}\.json: {fault}"):
        home.read_night(STAMPS[0])


def test_one_broken_record_hides_no_other_night(home: Home) -> None:
    for stamp in STAMPS:
        common.write_json(home.night_file(stamp), night(stamp).to_json())
    home.night_file(STAMPS[1]).write_text("{")
    for stray in ("1.bak", "2026.json", "notes.txt", ".x.tmp"):
        (home.nights / stray).write_text("")
    assert home.night_stamps() == list(STAMPS)
    assert [found.stamp for found in home.last_nights(3)] == [STAMPS[2], STAMPS[0]]
    assert [found.stamp for found in home.last_nights(1)] == [STAMPS[2]]
    assert Home(home.root / "nowhere").night_stamps() == []


@pytest.mark.parametrize(
    ("states", "state", "first"),
    [((OK, SKIPPED), OK, None), ((OK, FAILED, BLOCKED), FAILED, 1), ((OK, BLOCKED), BLOCKED, 1), ((), OK, None)],
)
def test_a_job_is_as_good_as_its_worst_step(states: tuple[str, ...], state: str, first: int | None) -> None:
    (job,) = night(STAMPS[0], *states).jobs
    assert job.state == state
    assert job.first_failure == (job.steps[first] if first is not None else None)
    assert job.elapsed_s == 1.5 * len(states)


def test_paths_are_those_of_the_design(home: Home) -> None:
    root = home.root
    assert home.config("experiment", "cnn") == root / "config/experiments/cnn"
    assert home.config("subsystem", "web") == root / "config/subsystem/web"
    assert home.status("subsystem", "web") == root / "results/subsystem/status/web"
    assert home.data_file("cnn", STAMPS[0]) == root / f"results/experiments/data/cnn/data_{STAMPS[0]}.json"
    assert home.graph("cnn") == root / "results/experiments/graph/cnn"
    assert home.output("web") == root / "results/subsystem/output/web"


def test_a_home_is_found_from_a_data_folder_of_it(home: Home, tmp_path: Path) -> None:
    home.data("cnn").mkdir(parents=True)
    assert Home.of_data_dir(home.data("cnn")) == home
    assert Home.of_data_dir(tmp_path) is None
    assert Home.of_data_dir(Path("/")) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"title": 1, "value": ""}', '{"title": ""}'])
def test_a_summary_that_is_none_is_none(home: Home, text: str) -> None:
    home.summary("cnn").mkdir(parents=True)
    (home.summary("cnn") / "summary.json").write_text(text)
    assert home.read_summary("cnn") is None


def test_summaries_and_reports_are_title_and_value(home: Home) -> None:
    for folder, name in ((home.summary("cnn"), "summary.json"), (home.output("web"), "report.json")):
        folder.mkdir(parents=True)
        (folder / name).write_text('{"title": "T", "value": "v", "more": 1}')
    assert home.read_summary("cnn") == home.read_report("web") == ("T", "v")
    with pytest.raises(DashboardError, match=r"\$\.title: 3 is not a string"):
        dashboard_info.check_summary({"title": 3, "value": ""})


def test_an_experiment_has_one_config_for_all_tvms_and_results_for_each(home: Home) -> None:
    assert home.config("experiment", "cnn@release") == home.config("experiment", "cnn")
    assert home.data("cnn@release") != home.data("cnn")
    assert [dashboard_info.experiment_of(name) for name in ("cnn", "cnn@release")] == ["cnn", "cnn"]
    assert [dashboard_info.variant_of(name) for name in ("cnn", "cnn@release")] == ["", "release"]
    assert home.config("subsystem", "a@b").name == "a@b"


@pytest.mark.parametrize("text", ["", "\u00e4", "yesterday", "20260230T031500Z"])
def test_a_damaged_stamp_beside_a_summary_is_of_no_night(tmp_path: Path, text: str) -> None:
    (tmp_path / ".stamp").write_text(text)
    assert Home(tmp_path).stamp_of(tmp_path) is None


def test_a_record_that_was_written_again_is_read_again_also_without_its_jobs(home: Home) -> None:
    stamp = STAMPS[0]
    for note in ("one", "two"):
        common.write_json(home.night_file(stamp), Night(stamp, COMPLETE, notes=(note,)).to_json())
        assert [night.notes for night in home.last_nights(1, jobs=False)] == [(note,)]
