"""Published numbers measured again: what is set up as it was, what is told, when a number holds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dashboard import receipt, reproduce_code
from dashboard.plan import CodeFolders
from tests.dashboard import homes
from tests.dashboard.remeasure_homes import NAME, Lab, make_lab, put_artifact
from tvmdash.comparison import repeated
from tvmdash.dashboard_info import Home


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


def result(lab: Lab) -> Any:
    return homes.read(max((lab.home.path / "results" / "reproductions").iterdir()))


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
    assert "Code and config as they are here" in done.output, "the config of then, with the code that is here"
    runs = lab.runs()
    assert {run["build"].split("-")[1] for run in runs} == {"0.27.0"}
    assert len({run["seed"] for run in runs}) == 1
    assert len(runs) == 1 + 5
    assert sorted(lab.home.home.data(NAME).iterdir()) == before
    assert result(lab)["is_same_code"]


def test_a_number_that_the_machine_does_not_give_any_more_is_outside_the_noise(lab: Lab) -> None:
    lab.change(machine=1.3)
    done = reproduce(lab, name_of(lab), "mlp")
    assert done.code == 1
    (line,) = result(lab)["lines"]
    assert line["found"]["effect"] == pytest.approx(0.3, abs=0.03)
    assert "OUTSIDE the noise" in done.output
    assert "0 of 1 hold." in done.output
    assert {tuple(run["points"]) for run in lab.runs() if run["points"]} == {("mlp",)}


def test_which_machine_it_was_is_said_where_the_receipt_knows(lab: Lab) -> None:
    assert "is not known" in reproduce(lab, name_of(lab), "--rounds", "3").output
    machine = {"host": "elsewhere", "hw_model": "Z80 x 1", "governor": "powersave"}
    edit_night(lab, environment={"machine": machine})
    said = reproduce(lab, name_of(lab), "--rounds", "3").output
    assert "NOT the same machine as then." in said
    assert "host: elsewhere then, " in said


def test_code_that_is_gone_is_said_and_todays_is_measured(lab: Lab) -> None:
    script = lab.home.code / "experiments" / NAME / "analyze.sh"
    script.write_text(script.read_text() + "# changed\n")
    done = reproduce(lab, name_of(lab), "--rounds", "3")
    assert "NOT that of then" in done.output
    assert not result(lab)["is_same_code"]


def test_an_artifact_that_is_gone_is_told_with_what_would_have_to_be_built(lab: Lab) -> None:
    for path in (lab.home.root / "shelf").glob("wheel-0.27*"):
        shutil.rmtree(path)
    done = reproduce(lab, name_of(lab))
    assert done.code == 2
    assert "holds no proven TVM for 0.27.0 of pypi" in done.output


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
        (("NAME", "lstm"), "holds no series 'lstm'"),
        (("NAME", "--rounds", "1"), "--rounds 1"),
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
    assert "does not say its config and seed and artifact and fingerprint: imported" in done.output


def test_code_that_changed_since_is_taken_from_the_repositorys_history(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    folder = repository / "experiments" / NAME
    shutil.copytree(lab.home.code / "experiments" / NAME, folder)
    (repository / "shared" / "python").mkdir(parents=True)
    (repository / "shared" / "python" / "old.py").write_text("then = True\n")

    def git(*words: str) -> str:
        argv = ["git", "-c", "user.name=Ada", "-c", "user.email=a@example.org", *words]
        return subprocess.run(argv, cwd=repository, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    git("add", "-A")
    git("commit", "--quiet", "-m", "Then")
    commit = git("rev-parse", "HEAD")
    (folder / "analyze.sh").write_text("#!/bin/sh\n")
    night = homes.read(lab.home.home.data_file(NAME, lab.home.stamps()[0]))["night"]
    edit_night(lab, night={**night, "repository": {"commit": commit, "dirty": False}})
    monkeypatch.setattr(reproduce_code, "REPOSITORY", repository)
    found = reproduce_code.find(
        receipt.read(Home(lab.home.path), name_of(lab)), None, CodeFolders(repository / "experiments"), tmp_path / "x"
    )
    assert found.is_same
    assert found.words == f"code of commit {commit[:12]} of this repository, with its library"
    assert found.shared is not None
    assert (found.shared / "python" / "old.py").read_text() == "then = True\n"
    assert (found.job.folder / "analyze.sh").read_text() != "#!/bin/sh\n"
    assert homes.read(found.job.config_folder / "config.json") == night["config"]


def test_old_values_hold_inside_the_spread_of_the_new_ones_and_nowhere_else() -> None:
    inside, outside, few, negative = repeated([1.01, 1.5, 1.0, -1.0], [[1.0, 1.02, 0.99, 1.01]] * 2 + [[1.0]] * 2)
    assert inside
    assert inside.holds
    assert inside.low < 1.01 < inside.high
    assert outside
    assert not outside.holds
    assert (few, negative) == (None, None)
    exact, larger = repeated([100.0, 100.0], [[100.0] * 3, [104.0] * 3])
    assert exact
    assert exact.holds
    assert larger
    assert not larger.holds
