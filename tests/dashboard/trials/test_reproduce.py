"""Published numbers measured again: what is set up as it was, what is told, when a number holds."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dashboard.plan.job import CodeFolders
from dashboard.trials import receipt
from dashboard.trials import reproduce as plan
from tests.dashboard import homes
from tests.dashboard.remeasure_homes import NAME, Lab, make_lab, make_lab_for_tries, put_artifact
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.machine import hardware
from tvmdash.records import exchange as records_exchange
from tvmdash.trials.trial import (
    Reproduced,
    ReproducedSeries,
    Reproduction,
    Trial,
    TrialSeries,
    TrialState,
    TrialTvm,
)


@pytest.fixture(scope="module")
def one_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lab after a night on 0.27.0; a newer wheel came since."""
    root = tmp_path_factory.mktemp("one") / "lab"
    lab = make_lab(root)
    put_artifact(root / "shelf", "0.27.0")
    lab.home.night()
    put_artifact(root / "shelf", "0.28.0")
    return root


@pytest.fixture
def lab(tmp_path: Path, one_night: Path) -> Lab:
    """The same in a folder of its own."""
    shutil.copytree(one_night, tmp_path / "lab", symlinks=True)
    return Lab(homes.HomeForTests(tmp_path / "lab"))


def name_of(lab: Lab) -> str:
    return f"{NAME}/{lab.home.stamps()[0]}"


def reproduce(lab: Lab, *words: str) -> homes.Finished:
    return lab.home.run(*words, "--no-rebuild-tvm", verb="reproduce")


def trial(lab: Lab) -> Any:
    """The newest of the home."""
    return homes.read(max((lab.home.path / "results" / "tries").glob("*.json")))


def result(lab: Lab) -> Any:
    return trial(lab)["reproduction"]


def lines(lab: Lab) -> list[Any]:
    return list(result(lab)["lines"].values())


def edit_night(lab: Lab, **changes: Any) -> None:
    """Change what the night's data says."""
    path = lab.home.home.data_file(NAME, lab.home.stamps()[0])
    homes.write(path, {**homes.read(path), **changes})


def test_a_number_holds_with_the_artifact_the_seed_and_the_config_of_then(lab: Lab) -> None:
    config = lab.home.home.config("experiment", NAME) / "config.json"
    homes.write(config, {**homes.read(config), "title": "Another title since"})
    before = sorted(lab.home.home.data(NAME).iterdir())
    done = reproduce(lab, name_of(lab))
    assert done.code == 0, done.output
    assert "2 of 2 hold." in done.output
    assert "Current code and config" in done.output, "the config of then, with the code that is here"
    runs = lab.runs()
    assert {run["build"].split("-")[1] for run in runs} == {"0.27.0"}
    assert len({run["seed"] for run in runs}) == 1
    assert len(runs) == 1 + 5
    assert sorted(lab.home.home.data(NAME).iterdir()) == before
    assert result(lab)["is_same_code"]


def export(lab: Lab, file: Path) -> list[str]:
    rows = records_exchange.records_in(lab.home.home.data_file(NAME, lab.home.stamps()[0]))
    records_exchange.write_records(file, rows, records_exchange.find_format(file))
    return file.read_text(errors="replace").splitlines(keepends=True)


def test_one_exported_line_is_measured_again_in_a_home_that_knows_nothing_of_it(lab: Lab, tmp_path: Path) -> None:
    edit_night(lab, environment={"machine": hardware.facts()})
    lines = export(lab, tmp_path / "all.jsonl")
    (tmp_path / "one.jsonl").write_text(next(line for line in lines if "net.bert" in line))
    shutil.rmtree(lab.home.path / "results")
    shutil.rmtree(lab.home.home.config("experiment", NAME))
    done = reproduce(lab, str(tmp_path / "one.jsonl"))
    assert done.code == 0, done.output
    done_as = result(lab)
    assert (done_as["is_same_machine"], done_as["is_same_code"], done_as["verdict"]) == (True, True, Reproduced.HOLDS)
    assert "1 of 1 hold" in done.output
    assert {tuple(run["points"]) for run in lab.runs() if run["points"]} == {("bert",)}
    assert {run["seed"] for run in lab.runs()} == {lab.runs()[0]["seed"]}


@pytest.mark.parametrize("style", records_exchange.FORMATS)
def test_a_file_of_records_pins_what_its_data_file_pins(style: str, lab: Lab, tmp_path: Path) -> None:
    if style == "parquet":
        pytest.importorskip("duckdb", reason="duckdb is not installed: Parquet cannot be written")
    export(lab, tmp_path / f"all.{style}")
    of_file = receipt.read(Home(tmp_path), str(tmp_path / f"all.{style}"))
    of_night = receipt.read(lab.home.home, name_of(lab))
    assert [value.key.id for value in of_file.values] == [value.key.id for value in of_night.values]
    assert replace(of_file, source="", values=()) == replace(of_night, source="", values=())


def test_a_line_may_lie_in_a_file_of_any_name(lab: Lab, tmp_path: Path) -> None:
    lines = export(lab, tmp_path / "all.jsonl")
    (tmp_path / "record.json").write_text(lines[0])
    assert len(receipt.read(Home(tmp_path), str(tmp_path / "record.json")).values) == 1


def test_records_of_two_nights_or_of_one_that_pins_nothing_are_refused(lab: Lab, tmp_path: Path) -> None:
    line = json.loads(export(lab, tmp_path / "all.jsonl")[0])
    other = {**line, "night": "20261122T031500Z"}
    (tmp_path / "two.jsonl").write_text(f"{json.dumps(line)}\n{json.dumps(other)}\n")
    with pytest.raises(DashboardError, match="records of 2 nights"):
        receipt.read(Home(tmp_path), str(tmp_path / "two.jsonl"))
    (tmp_path / "old.jsonl").write_text(json.dumps({**line, "pins": {}}))
    with pytest.raises(DashboardError, match="artifact and fingerprint"):
        receipt.read(Home(tmp_path), str(tmp_path / "old.jsonl"))
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(DashboardError, match="contains no records"):
        receipt.read(Home(tmp_path), str(tmp_path / "none.jsonl"))


def test_a_number_that_this_machine_does_not_give_any_more_does_not_hold(lab: Lab) -> None:
    edit_night(lab, environment={"machine": hardware.facts()})
    lab.change(machine=1.3)
    done = reproduce(lab, name_of(lab), "mlp")
    assert done.code == 1
    (line,), (series,) = lines(lab), trial(lab)["series"]
    assert series["change"]["effect"] == pytest.approx(0.3, abs=0.03)
    assert line["verdict"] == result(lab)["verdict"] == Reproduced.DOES_NOT_HOLD
    assert result(lab)["is_same_machine"]
    assert "DOES NOT HOLD" in done.output
    assert {tuple(run["points"]) for run in lab.runs() if run["points"]} == {("mlp",)}


def test_a_difference_where_the_machine_of_then_is_not_known_cannot_be_told(lab: Lab) -> None:
    lab.change(machine=1.3)
    done = reproduce(lab, name_of(lab), "--rounds", "4")
    assert done.code == 4
    assert result(lab)["is_same_machine"] is None
    assert [line["verdict"] for line in lines(lab)] == [Reproduced.CANNOT_TELL] * 2
    assert "CANNOT TELL" in done.output


def test_rounds_that_scatter_more_than_what_matters_tell_nothing(lab: Lab) -> None:
    lab.change(sigma=0.1)
    done = reproduce(lab, name_of(lab), "mlp", "bert", "--rounds", "4")
    assert done.code == 4
    assert [line["verdict"] for line in lines(lab)] == [Reproduced.CANNOT_TELL] * 2
    assert reproduce(lab, name_of(lab), "--rounds", "4", "--matters", "900").code == 0


def test_on_another_machine_no_time_is_judged_and_what_differs_is_said(lab: Lab) -> None:
    reproduce(lab, name_of(lab), "--rounds", "3")
    assert result(lab)["is_same_machine"] is None
    other = {"host": "elsewhere", "hw_model": "Z80 x 1", "governor": "powersave"}
    edit_night(lab, environment={"machine": other})
    done = reproduce(lab, name_of(lab), "--rounds", "3")
    assert done.code == 4
    assert result(lab)["is_same_machine"] is False
    assert "host: elsewhere then, " in done.output
    assert [line["why"] for line in lines(lab)] == ["another machine"] * 2


def test_code_that_is_gone_is_said_and_what_differs_with_todays_is_laid_on_it(lab: Lab) -> None:
    script = lab.home.code / "experiments" / NAME / "analyze.sh"
    script.write_text(script.read_text() + "# changed\n")
    edit_night(lab, environment={"machine": hardware.facts()})
    lab.change(machine=1.3)
    done = reproduce(lab, name_of(lab), "--rounds", "4")
    assert "NOT the original code" in done.output
    assert (result(lab)["is_same_code"], result(lab)["is_same_machine"]) == (False, True)
    assert done.code == 4
    assert Reproduced.CANNOT_TELL in {line["verdict"] for line in lines(lab)}


def test_an_experiment_whose_code_is_nowhere_is_refused(lab: Lab) -> None:
    shutil.rmtree(lab.home.code / "experiments" / NAME)
    done = reproduce(lab, name_of(lab))
    assert done.code == 2
    assert "folder not found; " in done.output


def test_a_budget_that_is_over_leaves_it_open(lab: Lab) -> None:
    done = reproduce(lab, name_of(lab), "--rounds", "1000", "--budget", "2s")
    assert "Stopped early" in done.output
    assert 0 < trial(lab)["runs"][NAME] < 100


def test_an_artifact_that_is_gone_is_told_with_what_would_have_to_be_built(lab: Lab) -> None:
    for path in (lab.home.root / "shelf").glob("wheel-0.27*"):
        shutil.rmtree(path)
    done = reproduce(lab, name_of(lab))
    assert done.code == 2
    assert "no tested TVM" in done.output


def test_a_receipt_of_the_website_will_do_on_another_machine(lab: Lab, tmp_path: Path) -> None:
    stamp = lab.home.stamps()[0]
    path = lab.home.home.data_file(NAME, stamp)
    data = homes.read(path)
    whole = {
        "schema_version": 1,
        "stamp": stamp,
        "experiment": NAME,
        "night": data["night"],
        "data_file": "gone",
        "records": [{"series": {}, "record": record, "samples": []} for record in data["records"]],
    }
    file = tmp_path / "receipt.json"
    homes.write(file, whole)
    path.unlink()
    done = reproduce(lab, str(file), "--rounds", "3")
    assert done.code == 0, done.output
    assert "2 of 2 hold." in done.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nobody/20260101T000000Z",), "data_20260101T000000Z.json"),
        (("/dev/null",), "/dev/null"),
        (("NAME", "lstm"), "no series 'lstm'"),
        (("NAME", "--rounds", "1"), "--rounds 1"),
        (("NAME", "--matters", "0"), "--matters 0"),
    ],
)
def test_what_is_no_receipt_is_refused(lab: Lab, words: tuple[str, ...], said: str) -> None:
    done = reproduce(lab, *(name_of(lab) if word == "NAME" else word for word in words))
    assert done.code == 2
    assert said in done.output


def test_a_night_that_was_imported_pins_nothing_and_is_refused(lab: Lab) -> None:
    edit_night(lab, night={"stamp": lab.home.stamps()[0], "experiment": NAME, "imported": {}})
    done = reproduce(lab, name_of(lab))
    assert done.code == 2
    assert "fingerprint: imported" in done.output


class Repository:
    """A git repository in place of the dashboard's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "shared" / "python").mkdir(parents=True)
        (folder / "shared" / "python" / "old.py").write_text("then = True\n")
        self.git("init", "--quiet")

    def git(self, *words: str) -> str:
        argv = ["git", "-c", "user.name=Ada", "-c", "user.email=a@example.org", *words]
        return subprocess.run(argv, cwd=self.folder, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", "Then")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setattr(receipt, "REPOSITORY", tmp_path / "repository")
    return Repository(tmp_path / "repository")


def find_code(lab: Lab, experiments: Path, scratch: Path, **of_repository: Any) -> receipt.Code:
    """The code for the lab's night, where the night says this of its repository."""
    night = homes.read(lab.home.home.data_file(NAME, lab.home.stamps()[0]))["night"]
    edit_night(lab, night={**night, "repository": of_repository})
    return receipt.find_code(receipt.read(Home(lab.home.path), name_of(lab)), None, CodeFolders(experiments), scratch)


def test_code_that_changed_since_is_taken_from_the_repositorys_history(
    lab: Lab, tmp_path: Path, repository: Repository
) -> None:
    folder = repository.folder / "experiments" / NAME
    shutil.copytree(lab.home.code / "experiments" / NAME, folder)
    commit = repository.commit()
    (folder / "analyze.sh").write_text("#!/bin/sh\n")
    found = find_code(lab, folder.parent, tmp_path / "x", commit=commit, dirty=False)
    assert found.is_same
    assert commit[:12] in found.text
    assert found.shared is not None
    assert (found.shared / "python" / "old.py").read_text() == "then = True\n"
    assert (found.job.folder / "analyze.sh").read_text() != "#!/bin/sh\n"
    config = homes.read(lab.home.home.data_file(NAME, lab.home.stamps()[0]))["night"]["config"]
    assert homes.read(found.job.config_folder / "config.json") == config


def test_code_that_the_repository_lacks_is_told_with_the_reason(
    lab: Lab, tmp_path: Path, repository: Repository
) -> None:
    folder = lab.home.code / "experiments" / NAME
    (folder / "analyze.sh").write_text("#!/bin/sh\n")
    commit = repository.commit()
    told = {
        reason: find_code(lab, folder.parent, tmp_path / str(number), commit=named, dirty=False).text
        for number, (reason, named) in enumerate([("outside", commit), ("unknown", "0" * 40), ("none", None)])
    }
    assert f"of commit {commit[:12]}" in told["outside"]
    assert f"no experiments/{NAME}" in told["outside"]
    assert "fetch it" in told["unknown"]
    assert "names no commit" in told["none"]


TIME = TrialSeries("a", "e", "run_time", {}, name="e run time", unit="ms")
SIZE = TrialSeries("b", "e", "code_size", {}, unit="bytes", kind="exact")
STEADY = (1.0, 1.002, 0.999, 1.001)


def judged(
    wanted: TrialSeries, old: float, new: tuple[float, ...], *, machine: bool | None = True, matters: float = 0.05
) -> ReproducedSeries:
    """What is said of one number that was measured again."""
    part = Reproduction(
        Reproduced.CANNOT_TELL, lines={wanted.id: ReproducedSeries(Reproduced.CANNOT_TELL, old)},
        is_same_machine=machine, is_same_code=True, matters=matters,
    )  # fmt: skip
    nothing = TrialTvm("", "", "")
    trial = Trial("", TrialState.DONE, nothing, nothing, 0.0, "", {}, reproduction=part)
    for value in new:
        trial = plan.add_values(trial, [wanted], {wanted.id: value}, {})
    return plan.settle(trial, [wanted]).reproduction.lines[wanted.id]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wanted", "old", "new", "options", "verdict", "why"),
    [
        (TIME, 1.001, STEADY, {}, Reproduced.HOLDS, ""),
        (TIME, 1.02, STEADY, {}, Reproduced.HOLDS, ""),
        (TIME, 1.06, STEADY, {}, Reproduced.CANNOT_TELL, "a change of 5 % could hide in the noise"),
        (TIME, 1.15, STEADY, {}, Reproduced.DOES_NOT_HOLD, ""),
        (TIME, 1.15, STEADY, {"matters": 0.2}, Reproduced.HOLDS, ""),
        (TIME, 1.001, STEADY, {"machine": False}, Reproduced.CANNOT_TELL, "another machine"),
        (SIZE, 100.0, (100.0,) * 3, {"machine": False}, Reproduced.HOLDS, ""),
        (SIZE, 100.0, (101.0,) * 3, {}, Reproduced.DOES_NOT_HOLD, ""),
        (SIZE, 100.0, (101.0,) * 3, {"machine": False}, Reproduced.CANNOT_TELL, "another machine"),
        (SIZE, 100.0, (100.0, 101.0), {}, Reproduced.CANNOT_TELL, "it differs from run to run"),
        (TIME, 1.0, (1.0, 1.2, 0.9), {}, Reproduced.CANNOT_TELL, "a change of 5 % could hide in the noise"),
        (TIME, 1.0, (1.0,), {}, Reproduced.CANNOT_TELL, "it was measured only 1 time"),
        (TIME, 0.0, STEADY, {}, Reproduced.CANNOT_TELL, "a value is not above 0"),
    ],
)
def test_a_verdict_needs_a_noise_smaller_than_what_matters(
    wanted: TrialSeries, old: float, new: tuple[float, ...], options: Any, verdict: str, why: str
) -> None:
    line = judged(wanted, old, new, **options)
    assert (line.verdict, line.why) == (verdict, why)


def test_over_all_series_the_worst_counts() -> None:
    holds, not_told = (judged(TIME, 1.0, new) for new in (STEADY, (1.0,)))
    fails = judged(TIME, 2.0, STEADY)
    assert plan.conclude([holds]) == Reproduced.HOLDS
    assert plan.conclude([holds, not_told]) == Reproduced.CANNOT_TELL
    assert plan.conclude([holds, fails, not_told]) == Reproduced.DOES_NOT_HOLD
    assert plan.conclude([]) == Reproduced.CANNOT_TELL


def test_where_nothing_can_be_measured_the_result_says_why(lab: Lab, tmp_path: Path) -> None:
    done = reproduce(lab, f"{NAME}/20200101T000000Z", "--result", str(tmp_path / "result.json"))
    assert done.code == 2
    kept = homes.read(tmp_path / "result.json")["reproduction"]
    assert kept["verdict"] == Reproduced.CANNOT_TELL
    assert "data_20200101T000000Z.json" in kept["why"]


@pytest.fixture
def paired(tmp_path: Path) -> Lab:
    """A lab after a night that measured 0.27.0 in turn with 0.26.0, three pairs of each number."""
    made = make_lab_for_tries(tmp_path / "lab", pairs=3)
    made.change(sigma=0.002)
    made.home.night()
    here = {name: hardware.facts()[name] for name in ("host", "hw_model")}
    edit_night(made, environment={"machine": here})
    return made


def test_what_was_measured_in_turn_is_measured_in_turn_again_and_its_machine_cancels(paired: Lab) -> None:
    ratios = [value for value in receipt.read(paired.home.home, name_of(paired)).values if value.kind == "ratio"]
    assert len(ratios) == 2
    before = len(paired.runs())
    paired.change(machine=1.3)  # all of it is slower now: the TVM and its reference
    done = reproduce(paired, name_of(paired))
    assert done.code == 0, done.output
    assert "2 of 2 hold." in done.output
    assert "Measured in turn with " in done.output
    builds = {run["build"] for run in paired.runs()[before:]}
    assert builds == {paired.state["new"], paired.state["old"]}
    assert [sum(run["pairs"] for run in one["runs"]) for one in trial(paired)["series"]] == [15, 15]
    named = reproduce(paired, name_of(paired), ratios[0].key.id)
    assert named.code == 0, named.output
    assert "1 of 1 hold" in named.output


def test_a_ratio_that_is_another_one_now_does_not_hold(paired: Lab) -> None:
    slow = {**paired.state["slow"], paired.state["old"]: {"mlp": 1.2}}
    paired.change(slow=slow)
    done = reproduce(paired, name_of(paired))
    assert done.code == 1, done.output
    assert Counter(line["verdict"] for line in lines(paired)) == {Reproduced.DOES_NOT_HOLD: 1, Reproduced.HOLDS: 1}
    assert "times the reference then" in done.output


def test_without_its_reference_it_is_measured_alone_and_that_is_said(paired: Lab) -> None:
    shutil.rmtree(paired.home.root / "shelf" / paired.state["old"])
    done = reproduce(paired, name_of(paired))
    assert "0.26.0 then, not available" in done.output
    assert {run["build"] for run in paired.runs()[-5:]} == {paired.state["new"]}
    assert done.code == 0, done.output


def test_one_that_was_killed_goes_on_with_what_it_had(paired: Lab) -> None:
    done = reproduce(paired, name_of(paired), "--rounds", "1000", "--budget", "3s")
    assert "Stopped early" in done.output
    first = trial(paired)
    assert first["runs"][NAME] >= 1
    wanted = max(3, first["runs"][NAME] + 1)
    again = reproduce(paired, name_of(paired), "--rounds", str(wanted))
    assert again.code == 0, again.output
    assert trial(paired)["stamp"] == first["stamp"]
    assert trial(paired)["runs"][NAME] == wanted


def test_one_that_was_stopped_on_another_day_begins_anew(paired: Lab) -> None:
    reproduce(paired, name_of(paired), "--rounds", "1000", "--budget", "2s")
    (path,) = (paired.home.path / "results" / "tries").glob("*.json")
    old = "20260101T000000Z"
    homes.write(path.with_stem(old), {**homes.read(path), "stamp": old})
    path.unlink()
    assert reproduce(paired, name_of(paired), "--rounds", "3").code == 0
    assert (trial(paired)["stamp"] > old, trial(paired)["runs"][NAME]) == (True, 3)
