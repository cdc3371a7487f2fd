"""Points measured again with the artifacts of several nights: what is held fixed, what is told, what is left behind."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from dashboard.trials import remeasure
from tests.dashboard import homes
from tests.dashboard.remeasure_homes import NAME, Lab, make_lab, point, put_artifact


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lab after two nights: the first on 0.27.0, the second on 0.28.0, which is 8 % slower in one workload."""
    root = tmp_path_factory.mktemp("two") / "lab"
    lab = make_lab(root)
    put_artifact(root / "shelf", "0.27.0")
    lab.home.night()
    newer = put_artifact(root / "shelf", "0.28.0")
    lab.change(slow={newer.key: {"mlp": 1.08}})
    lab.home.night()
    return root


@pytest.fixture
def lab(tmp_path: Path, two_nights: Path) -> Lab:
    """The same in a folder of its own."""
    shutil.copytree(two_nights, tmp_path / "lab", symlinks=True)
    return Lab(homes.HomeForTests(tmp_path / "lab"))


def rounds_of(lab: Lab, *nights: int, points: tuple[str, ...] = ("mlp",)) -> list[dict[str, Any]]:
    stamps = lab.home.stamps()
    return [{"experiment": NAME, "stamp": stamps[at], "points": [point(name) for name in points]} for at in nights]


def first_build(lab: Lab) -> str:
    """The artifact of the first night."""
    key: str = homes.read(lab.home.home.data_file(NAME, lab.home.stamps()[0]))["night"]["artifact"]["key"]
    return key


def everything(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_only_the_artifact_differs_and_only_the_points_asked_for_are_measured(lab: Lab) -> None:
    before = everything(lab.home.path)
    done, rounds = lab.remeasure(rounds_of(lab, 1, 0, 1, 0), "--seed", "7")
    assert done.code == 0, done.output
    assert [one["state"] for one in rounds] == ["measured"] * 4
    assert [one["round"] for one in rounds] == [0, 1, 2, 3]
    (key,) = rounds[0]["values"]
    new, old = ([one["values"][key] for one in rounds[at::2]] for at in (0, 1))
    assert sum(new) / sum(old) == pytest.approx(1.08, abs=0.02)
    runs = lab.runs()[2:]
    assert [run["build"].split("-")[1] for run in runs] == ["0.28.0", "0.27.0"] * 2
    assert {(tuple(run["points"]), run["seed"], run["setup"]) for run in runs} == {(("mlp",), "7", True)}
    assert (lab.home.root / "setups").read_text().split() == ["setup"], "the setup of the first night is kept"
    assert everything(lab.home.path) == before, "nothing of it is published"
    assert [path.name for path in (lab.home.root / "tmp").iterdir() if "remeasure" in path.name] == []


def test_what_was_not_asked_for_is_left_out_of_an_experiment_that_measures_all(lab: Lab) -> None:
    lab.change(ignores_points=True)
    _, rounds = lab.remeasure(rounds_of(lab, 0))
    assert len(rounds[0]["values"]) == 1
    _, rounds = lab.remeasure(rounds_of(lab, 0, points=()))
    assert len(rounds[0]["values"]) == 2, "without points, all of them"


def test_a_foreign_experiments_numbers_are_asked_for_by_their_path(lab: Lab) -> None:
    lab.change(foreign=True, ignores_points=True)
    request = [{"experiment": NAME, "stamp": lab.home.stamps()[0], "points": [{"path": "$.bert"}]}]
    _, rounds = lab.remeasure(request)
    assert rounds[0]["error"] == ""
    (value,) = rounds[0]["values"].values()
    assert value == pytest.approx(2.0, rel=0.03)


def test_a_removed_artifact_is_told_as_gone_and_the_other_rounds_go_on(lab: Lab) -> None:
    old = first_build(lab)
    shutil.rmtree(lab.home.root / "shelf" / old)
    done, rounds = lab.remeasure(rounds_of(lab, 0, 1))
    assert done.code == 1
    assert (rounds[0]["state"], rounds[0]["artifact"]) == ("gone", old)
    assert rounds[1]["state"] == "measured"
    assert "no longer exists" in rounds[0]["error"]
    assert len(lab.runs()) == 3, "nothing was run for it"


def test_a_night_whose_data_names_no_artifact_is_told_as_unknown(lab: Lab) -> None:
    stamp = "20200101T000000Z"
    homes.write(lab.home.home.data_file(NAME, stamp), {"mlp": 1.0})
    _, rounds = lab.remeasure([{"experiment": NAME, "stamp": stamp, "points": []}])
    assert rounds[0]["state"] == "unknown"
    assert "imported" in rounds[0]["error"]


def test_an_inactive_experiment_is_told_as_such(lab: Lab) -> None:
    homes.write(lab.home.home.config("experiment", NAME) / "config.json", {"active": False})
    _, rounds = lab.remeasure(rounds_of(lab, 0))
    assert rounds[0]["state"] == "inactive"


def test_a_run_that_fails_costs_its_own_round(lab: Lab) -> None:
    old = first_build(lab)
    lab.change(broken=[old])
    _, rounds = lab.remeasure(rounds_of(lab, 0, 1))
    assert [one["state"] for one in rounds] == ["failed", "measured"]
    assert rounds[0]["error"].startswith("run: ")


def test_the_budget_ends_a_run_and_all_that_come_after(lab: Lab) -> None:
    lab.change(hang=True)
    done, rounds = lab.remeasure(rounds_of(lab, 1, 0), "--budget", "2")
    assert [one["state"] for one in rounds] == ["budget", "budget"]
    assert done.seconds < 20
    assert lab.home.processes() == []


def test_without_any_time_nothing_is_measured(lab: Lab) -> None:
    before = lab.runs()
    done, rounds = lab.remeasure(rounds_of(lab, 1), "--budget", "0.000")
    assert (done.code, [one["state"] for one in rounds]) == (1, ["budget"])
    assert lab.runs() == before


def test_an_artifact_in_use_is_not_removed_by_another_night(lab: Lab) -> None:
    lab.change(hang=True)
    request, result = lab.home.root / "q.json", lab.home.root / "r.json"
    homes.write(request, rounds_of(lab, 0))
    old = lab.home.root / "shelf" / first_build(lab)
    from dashboard.artifacts import artifact_store

    with homes.killed_at_end(lab.home.start(str(request), str(result), verb="remeasure")) as process:
        homes.wait_for((lab.home.root / "hangs").exists, "the run begins")
        assert old.name not in artifact_store.prune(lab.home.root / "shelf", 0, ()).removed
        assert lab.home.run(verb="run").code == 75, "a night cannot begin meanwhile"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 130
    assert lab.home.processes() == []
    assert homes.read(result)["rounds"] == []


def test_a_killed_one_leaves_no_process_and_the_next_one_clears_its_folder(lab: Lab) -> None:
    lab.change(hang=True)
    request, result = lab.home.root / "q.json", lab.home.root / "r.json"
    homes.write(request, rounds_of(lab, 0))
    with homes.killed_at_end(lab.home.start(str(request), str(result), verb="remeasure")) as process:
        homes.wait_for((lab.home.root / "hangs").exists, "the run begins")
        process.send_signal(signal.SIGKILL)
    homes.wait_for(lambda: not lab.home.processes(), "the watchdog ends what is left")
    lab.change(hang=False)
    assert lab.remeasure(rounds_of(lab, 0))[0].code == 0
    assert [path.name for path in (lab.home.root / "tmp").iterdir() if "remeasure" in path.name] == []


CALLS = """from_night="$TVMDASH_HOME/../request.json"
cd {repo} && PYTHONPATH={path} python3 -m dashboard remeasure \
    "$TVMDASH_HOME" "$from_night" "$TVMDASH_HOME/../result.json" {options} > "$TVMDASH_HOME/../said" 2>&1"""


def calling(options: str = "") -> str:
    path = shlex.quote(f"{homes.REPO}:{homes.REPO}/shared/python")
    return homes.good("subsystem", CALLS.format(repo=shlex.quote(str(homes.REPO)), path=path, options=options))


def test_within_a_night_it_is_part_of_that_night(lab: Lab) -> None:
    homes.write(lab.home.root / "request.json", rounds_of(lab, 1, 0))
    lab.home.subsystem("again", run=calling())
    homes.write(lab.home.home.config("experiment", NAME) / "config.json", {"active": True, "title": "changed"})
    record = lab.home.night()
    assert [one["state"] for one in homes.read(lab.home.root / "result.json")["rounds"]] == ["measured"] * 2
    *_, tonight, first, second = lab.runs()
    assert tonight["points"] is None
    assert {run["night"] for run in (tonight, first, second)} == {record["stamp"]}
    assert {run["seed"] for run in (tonight, first, second)} == {str(record["seed"])}
    assert f"{record['stamp']}/remeasure/" in first["tmp"]
    assert (lab.home.root / "setups").read_text().split() == ["setup"] * 2, "tonight's setup serves"
    assert lab.home.home.data_stamps(NAME) == lab.home.stamps()


def test_an_edit_during_the_night_does_not_reach_what_is_measured_again(lab: Lab) -> None:
    folder = lab.home.code / "experiments" / NAME
    homes.write(lab.home.root / "request.json", rounds_of(lab, 0))
    lab.home.subsystem("again", run=calling())
    late = (
        f'#!/bin/sh\nset -eu\necho "exit 9" > "{folder}/run.sh"\n{homes.WORK["visualize"]}\n{homes.says("visualize")}\n'
    )
    homes.script(folder / "visualize.sh", late)
    lab.home.night()
    assert homes.read(lab.home.root / "result.json")["rounds"][0]["state"] == "measured"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_night_that_ends_takes_its_re_measuring_along(lab: Lab, number: signal.Signals) -> None:
    homes.write(lab.home.root / "request.json", rounds_of(lab, 0))
    lab.home.subsystem("again", run=calling())
    lab.change(hang=True)
    with homes.killed_at_end(lab.home.start()) as process:
        homes.wait_for((lab.home.root / "hangs").exists, "the run begins")
        os.kill(process.pid, number)
        homes.wait_for(lambda: not lab.home.processes(), "nothing of it is left")


def test_a_subsystem_that_times_out_takes_its_re_measuring_along(lab: Lab) -> None:
    homes.write(lab.home.root / "request.json", rounds_of(lab, 0))
    lab.home.subsystem("again", run=calling(), config={"timeouts": {"run": 3}})
    lab.change(hang=True)
    assert lab.home.run().code == 1
    assert "timed out after 3 s" in lab.home.status("again", "run", kind="subsystem")["message"]
    assert (lab.home.root / "hangs").exists()
    assert lab.home.processes() == []


def test_a_stage_that_only_says_it_is_in_a_night_waits_for_nobodys_lock(lab: Lab) -> None:
    """The environment of a night alone does not open a home that another night holds."""
    lab.change(hang=True)
    homes.write(lab.home.root / "request.json", rounds_of(lab, 0))
    first = lab.home.start(str(lab.home.root / "request.json"), str(lab.home.root / "a.json"), verb="remeasure")
    with homes.killed_at_end(first):
        homes.wait_for((lab.home.root / "hangs").exists, "the run begins")
        env = {"TVMDASH_NIGHT": lab.home.stamps()[-1], "TVMDASH_HOME": str(lab.home.path)}
        names = (str(lab.home.root / "request.json"), str(lab.home.root / "b.json"))
        assert lab.home.run_with(env, *names, verb="remeasure").code == 75
    homes.wait_for(lambda: not lab.home.processes(), "the watchdog ends what is left")


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({}, "$: not a list of rounds"),
        ([{"experiment": 3, "stamp": "20200101T000000Z"}], "$[0].experiment"),
        ([{"experiment": "x", "stamp": "yesterday"}], "$[0].stamp"),
        ([{"experiment": "x", "stamp": "20200101T000000Z", "points": [3]}], "$[0].points"),
        ([{"experiment": "x", "stamp": "20200101T000000Z", "metrics": "compile_time"}], "$[0].metrics"),
        ([{"experiment": "x", "stamp": "20200101T000000Z", "metrics": ["two words"]}], "$[0].metrics"),
        ([{"experiment": "x", "stamp": "20200101T000000Z", "layout": 256}], "$[0].layout"),
        ([{"experiment": "x", "stamp": "20200101T000000Z", "pionts": []}], "$[0]"),
    ],
)
def test_a_request_that_is_none_is_refused_with_its_place(tmp_path: Path, request_: Any, words: str) -> None:
    done, rounds = make_lab(tmp_path).remeasure(request_)
    assert done.code == 2
    assert words in done.output
    assert rounds == []


def test_an_experiment_that_is_not_there_is_inactive(lab: Lab) -> None:
    stamp = lab.home.stamps()[0]
    _, rounds = lab.remeasure([{"experiment": name, "stamp": stamp, "points": []} for name in ("nobody", f"../{NAME}")])
    assert [each["state"] for each in rounds] == ["inactive"] * 2
    assert json.dumps(rounds)


def test_a_round_beside_nothing_may_say_so(tmp_path: Path) -> None:
    asked = {"experiment": "x", "stamp": "20200101T000000Z"}
    homes.write(tmp_path / "request.json", [asked, {**asked, "beside": None}])
    plain, said = remeasure.read_rounds(tmp_path / "request.json")
    assert plain == said
    assert said.beside is None
