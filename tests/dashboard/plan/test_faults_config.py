"""Configs and scripts that are wrong before anything runs: the job is rejected in words, the others run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.dashboard import homes
from tvmdash import records


def config_of(text: str) -> Callable[[homes.HomeForTests, str], None]:
    """Replaces the experiment's config by `text`."""
    return lambda home, name: put(home.home.config("experiment", name) / "config.json", text)


def fields_of(text: str) -> Callable[[homes.HomeForTests, str], None]:
    """Gives the experiment this fields.json."""
    return lambda home, name: put(home.code / "experiments" / name / "fields.json", text)


def put(path: Path, text: str) -> None:
    path.write_bytes(text.encode("latin-1"))


def remove(path: str) -> Callable[[homes.HomeForTests, str], None]:
    return lambda home, name: (home.code / "experiments" / name / path).unlink()


def lost_link(path: str) -> Callable[[homes.HomeForTests, str], None]:
    """What cp -r leaves of a script that is a link out of its folder."""

    def cause(home: homes.HomeForTests, name: str) -> None:
        script = home.code / "experiments" / name / path
        script.unlink(missing_ok=True)
        script.symlink_to("../../../../shared/bash/stage.sh")

    return cause


def not_executable(home: homes.HomeForTests, name: str) -> None:
    (home.code / "experiments" / name / "run.sh").chmod(0o644)


def without_first_line(home: homes.HomeForTests, name: str) -> None:
    homes.script(home.code / "experiments" / name / "run.sh", "echo\n")


def windows_lines(home: homes.HomeForTests, name: str) -> None:
    homes.script(home.code / "experiments" / name / "run.sh", "#!/bin/sh\r\necho\r\n")


def script_is_a_folder(home: homes.HomeForTests, name: str) -> None:
    remove("run.sh")(home, name)
    (home.code / "experiments" / name / "run.sh").mkdir()


def without_code(home: homes.HomeForTests, name: str) -> None:
    (home.code / "experiments" / name).rename(home.code / "elsewhere")


def stray_file(home: homes.HomeForTests, name: str) -> None:
    home.home.configs("experiment").joinpath("stray-file").write_text("notes")


def stray_folder(home: homes.HomeForTests, name: str) -> None:
    home.home.configs("experiment").joinpath("stray-folder").mkdir()


def config_is_a_folder(home: homes.HomeForTests, name: str) -> None:
    path = home.home.config("experiment", name) / "config.json"
    path.unlink()
    path.mkdir()


def config_is_a_pipe(home: homes.HomeForTests, name: str) -> None:
    path = home.home.config("experiment", name) / "config.json"
    path.unlink()
    os.mkfifo(path)


def folder_named_setup(home: homes.HomeForTests, name: str) -> None:
    home.experiment(name, setup=homes.good("setup"))
    (home.code / "experiments" / name / "setup").mkdir()


def pipe_in_code(home: homes.HomeForTests, name: str) -> None:
    os.mkfifo(home.code / "experiments" / name / "pipe")


@dataclass(frozen=True)
class Fault:
    name: str
    cause: Callable[[homes.HomeForTests, str], None]
    words: tuple[str, ...]


OWN_FIELDS = '{"batch": {"type": "int", "doc": "Images at once.", "min": 1}}'
METRICS = {"value": {"unit": "tokens/s", "direction": "higher", "kind": "rate"}}
FAULTS = (
    Fault("not-json", config_of('{"active": true,}'), ("not JSON at line 1",)),
    Fault("empty", config_of(""), ("empty",)),
    Fault("not-utf8", config_of('{"active": true, "title": "\xff"}'), ("not UTF-8",)),
    Fault("half-a-pair", config_of('{"active": true, "title": "\\ud800"}'), ("unpaired surrogate",)),
    Fault("list", config_of("[]"), ("$: [] is not an object",)),
    Fault("no-active", config_of("{}"), ("$.active: required field is missing",)),
    Fault("active-text", config_of('{"active": "yes"}'), ("$.active: 'yes' is not true or false",)),
    Fault("misspelt", config_of('{"active": true, "priorty": 1}'), ("$.priorty", "Did you mean 'priority'?")),
    Fault("misspelt-active", config_of('{"actve": true}'), ("$.actve", "Did you mean 'active'?")),
    Fault(
        "no-such-stage",
        config_of('{"active": true, "timeouts": {"rnu": 5}}'),
        ("$.timeouts.rnu", "Did you mean 'run'?"),
    ),
    Fault("timeout-zero", config_of('{"active": true, "timeouts": {"run": 0}}'), ("$.timeouts.run: 0 is less than 1",)),
    Fault("env-name", config_of('{"active": true, "env": {"A=B": "x"}}'), ("$.env.A=B",)),
    Fault("env-nul", config_of('{"active": true, "env": {"A": "x\\u0000"}}'), ("$.env.A", "NUL")),
    Fault("notify", config_of('{"active": true, "notify": "U012"}'), ("$.notify: 'U012' is not a list",)),
    Fault("remote", config_of('{"active": true, "tvm_remote": "nowhere"}'), ("nowhere",)),
    Fault("own-missing", fields_of(OWN_FIELDS), ("$.batch: required field is missing", "Images at once.")),
    Fault("own-include", fields_of('{"include": 5}'), ("$.include: 5 is not a list",)),
    Fault("own-include-list", fields_of('{"include": [["x"]]}'), ("$.include",)),
    Fault("own-type", fields_of('{"x": {"type": []}}'), ("$.x.type",)),
    Fault("own-min", fields_of('{"x": {"type": "int", "min": "a"}}'), ("$.x.min",)),
    Fault("own-choices", fields_of('{"x": {"type": "choice", "choices": 5}}'), ("$.x.choices",)),
    Fault(
        "own-metrics",
        fields_of('{"metrics": {"value": {"direction": "up"}}}'),
        ("fields.json: $.metrics.value.direction: 'up' is not a valid choice. Use one of: lower, higher, none.",),
    ),
    Fault("own-not-json", fields_of("nonsense"), ("fields.json", "not JSON")),
    Fault("no-script", remove("run.sh"), ("run.sh: no such script",)),
    Fault("lost-link", lost_link("run.sh"), ("run.sh: broken link to ../../../../shared/bash/stage.sh", "cp -rL")),
    Fault(
        "lost-setup-link",
        lost_link("setup.sh"),
        ("setup.sh: broken link to ../", "Copy the original folder again with cp -rL"),
    ),
    Fault("not-executable", not_executable, ("run.sh: not executable", "chmod +x")),
    Fault("windows-lines", windows_lines, ("run.sh: has Windows line endings (CR LF)", "Run: sed -i 's/\\r$//' /")),
    Fault("no-first-line", without_first_line, ("does not start with #!",)),
    Fault("script-folder", script_is_a_folder, ("run.sh: no such script",)),
    Fault("no-code", without_code, ("no such experiment", "experiment_dirs")),
    Fault("stray-file", stray_file, ("not a folder", "move this away")),
    Fault("stray-folder", stray_folder, ("config.json is missing",)),
    Fault("config-folder", config_is_a_folder, ("cannot be read",)),
    Fault("config-pipe", config_is_a_pipe, ("not a regular file",)),
    Fault("setup-folder", folder_named_setup, ("reserved for the output of setup.sh", "Rename")),
    Fault("code-pipe", pipe_in_code, ("could not be copied",)),
)


@dataclass(frozen=True)
class Tried:
    home: homes.HomeForTests
    done: homes.Finished
    checked: homes.Finished


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory, tvm_artifact_folder: Path) -> Tried:
    """One night with every fault; the experiments had a good night before, except those that stray."""
    home = homes.make_home(tmp_path_factory.mktemp("configs"), tvm_artifact_folder)
    names = [fault.name for fault in FAULTS if not fault.name.startswith("stray")]
    for name in (*names, "good"):
        home.experiment(name)
    home.subsystem("site")
    home.subsystem("bad")
    home.night()
    for fault in FAULTS:
        fault.cause(home, fault.name)
    fields_of(f'{{"metrics": {json.dumps(METRICS)}}}')(home, "good")
    put(home.home.config("subsystem", "bad") / "config.json", '{"activ": true}')
    checked = home.run(verb="check")
    done = home.run()
    assert done.code == 1, done.output
    return Tried(home, done, checked)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_rejects_its_job_in_words(tried: Tried, fault: Fault) -> None:
    status = tried.home.status(fault.name, "precheck")
    assert status["state"] == "failed"
    for word in fault.words:
        assert word in status["message"], status["message"]
    if not fault.name.startswith("stray"):
        assert len(tried.home.home.data_stamps(fault.name)) == 1
        assert tried.home.home.read_summary(fault.name) is not None
        assert tried.home.states(fault.name)["run"] == "blocked"
    if fault.name != "code-pipe":
        for word in fault.words:
            assert word in tried.checked.output


def test_what_fields_json_says_of_the_numbers_is_in_the_data(tried: Tried) -> None:
    home = tried.home.home
    (point,) = records.read_data(home.data_file("good", home.data_stamps("good")[-1]), "good").values()
    assert (point.unit, point.direction, point.kind) == ("tokens/s", "higher", "rate")


def test_the_other_jobs_run(tried: Tried) -> None:
    assert set(tried.home.states("good").values()) == {"ok"}
    assert tried.home.status("bad", "precheck", kind="subsystem")["state"] == "failed"
    assert tried.home.status("site", "run", kind="subsystem")["state"] == "ok"
    assert tried.checked.code == 2


TOP = {
    "not-json": ("{", ("not JSON",)),
    "list": ("[]", ("is not an object",)),
    "missing": (
        '{"backup_dir": "b"}',
        ("$.tmp_data_dir: required field is missing", "$.setup_dir: required field is missing"),
    ),
    "misspelt": ('{"tmp_data_dri": "t", "backup_dir": "b", "setup_dir": "s"}', ("Did you mean 'tmp_data_dir'?",)),
    "type": ('{"tmp_data_dir": 1, "backup_dir": "b", "setup_dir": "s"}', ("$.tmp_data_dir: 1 is not a string",)),
    "nul": ('{"tmp_data_dir": "a\\u0000", "backup_dir": "b", "setup_dir": "s"}', ("$.tmp_data_dir", "NUL")),
    "overlap": ('{"tmp_data_dir": "results", "backup_dir": "b", "setup_dir": "s"}', ("overlaps",)),
    "same": ('{"tmp_data_dir": "b", "backup_dir": "b", "setup_dir": "s"}', ("overlaps tmp_data_dir",)),
    "stage": (
        '{"tmp_data_dir": "t", "backup_dir": "b", "setup_dir": "s", "timeouts": {"analyse": 3}}',
        ("$.timeouts.analyse", "Did you mean 'analyze'?"),
    ),
    "branch": ('{"tmp_data_dir": "t", "backup_dir": "b", "setup_dir": "s", "tvm_branch": "0.x"}', ("0.x",)),
}


@pytest.mark.parametrize("name", TOP)
def test_a_bad_top_level_config_stops_the_night_before_anything_is_touched(
    tmp_path: Path, tvm_artifact_folder: Path, name: str
) -> None:
    home = homes.make_home(tmp_path, tvm_artifact_folder)
    home.experiment("good")
    put(home.home.configs("experiment") / "good" / "config.json", '{"active": 1}')
    text, words = TOP[name]
    home.home.config_file.write_text(text)
    before = sorted(home.root.rglob("*"))
    done = home.run()
    assert done.code == 2, done.output
    for word in words:
        assert word in done.output
    assert str(home.home.config_file) in done.output
    note = home.path / "results" / "refused_start.txt"
    assert sorted({*home.root.rglob("*")} - {note, note.parent}) == before
    assert str(home.home.config_file) in note.read_text()
    checked = home.run(verb="check")
    assert (checked.code, "$.active: 1 is not true or false" in checked.output) == (2, True), "each fault at once"


def test_a_home_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = homes.HomeForTests(tmp_path).run()
    assert (done.code, "no such folder" in done.output) == (2, True)
