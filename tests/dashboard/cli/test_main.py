"""The command line: exit codes, and verbs that run nothing."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import io
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from dashboard.cli import main as cli
from dashboard.cli import plan, status
from dashboard.cli.status import judge_exit_code
from tests.dashboard import homes
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, Home, Night


@pytest.fixture
def home(tmp_path: Path, tvm_artifact_folder: Path) -> homes.HomeForTests:
    return homes.make_home(tmp_path, tvm_artifact_folder)


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


def dashboard(*words: str) -> Done:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(words)
        except SystemExit as error:  # argparse
            code = int(str(error.code))
    return Done(code, out.getvalue(), err.getvalue())


def test_0_says_that_all_is_well_and_1_that_a_job_failed(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    assert home.run().code == 0
    assert home.run(verb="status").code == 0
    home.experiment("cnn", run=f"{homes.BEGIN}exit 1\n")
    assert home.run().code == 1
    shown = home.run(verb="status")
    assert shown.code == 1
    assert [line.split() for line in shown.output.splitlines() if line.startswith("experiment cnn")] == [
        ["experiment", "cnn", "ok", "FAILED", "blocked", "blocked", "blocked", *shown.output.split()[-2:]]
    ]


def judged_as(level: str) -> str:
    """A script that leaves this verdict on the night that runs it."""
    verdict = f'{{"night": "%s", "level": "{level}", "headline": "so it is"}}'
    return homes.good("subsystem", f"""printf '{verdict}' "$TVMDASH_NIGHT" > "$2/verdict.json\"""")


def test_the_verdict_is_an_exit_code_only_where_that_is_asked_for(home: homes.HomeForTests) -> None:
    home.subsystem("stat_alerts", run=judged_as("regression"))
    assert home.run("--fail-on", "regression").code == 5
    assert home.run("--fail-on", "regression", verb="status").code == 5
    assert home.run(verb="status").code == 0


@pytest.mark.parametrize(
    ("level", "fail_on", "code"),
    [
        ("suspect", "regression", 0),
        ("regression", "incomplete", 5),
        ("blind", "incomplete", 0),
        ("improved", "blind", 0),
        ("no_data", "blind", 4),
        ("marvellous", "regression", 4),
        ("", "regression", 4),
    ],
)
def test_a_verdict_fails_from_the_level_on_that_is_named(tmp_path: Path, level: str, fail_on: str, code: int) -> None:
    home, night = Home(tmp_path), Night("20260501T000000Z", COMPLETE)
    file = home.output("stat_alerts") / "verdict.json"
    file.parent.mkdir(parents=True)
    if level:
        common.write_json(file, {"night": night.stamp, "level": level, "headline": "so it is"})
    assert judge_exit_code(home, night, 0, fail_on) == code


def test_a_job_that_failed_comes_before_the_verdict(home: homes.HomeForTests) -> None:
    home.subsystem("stat_alerts", run=judged_as("regression"))
    home.subsystem("score", run=f"{homes.BEGIN}exit 1\n")
    assert home.run("--fail-on", "regression").code == 1


@pytest.mark.parametrize(
    "words", [[], ["nonsense"], ["run"], ["run", "/nowhere"], ["plan", "/nowhere"], ["run", "x", "--no"]]
)
def test_2_says_that_the_command_or_the_top_level_config_is_wrong(words: list[str]) -> None:
    done = dashboard(*words)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_3_says_that_it_is_a_bug_of_ours_and_where_its_log_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(plan, "make_plan", broken)
    done = dashboard("plan", "/")
    assert done.returncode == 3
    place = Path(done.stderr.strip().rpartition("Please report it with this log: ")[2])
    assert "RuntimeError: boom" in place.read_text()
    place.unlink()


def test_a_reader_that_has_seen_enough_is_no_bug(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    argv = " ".join(f"'{word}'" for word in home.command("plan"))
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {argv} | true"],
        env=homes.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_plan_prints_what_would_run_in_order_and_what_is_rejected(home: homes.HomeForTests) -> None:
    home.experiment("slow", config={"priority": 9, "tvm_branch": "0.26.0", "timeouts": {"run": 600}})
    home.experiment("cnn", setup=homes.good("setup"))
    home.experiment("off", config={"active": False})
    home.experiment("wrong", config={"active": 1})
    home.subsystem("website")
    before = sorted(home.root.rglob("*"))
    done = home.run(verb="plan")
    assert done.code == 1
    assert "2 experiments by priority, then name, 1 subsystems" in done.output
    assert "run:       slow on TVM 0.26.0 (at most 10 min), cnn (at most 2 h)" in done.output
    assert "setup:     cnn (at most 1 h)" in done.output
    assert "Not active: experiment off" in done.output
    assert "Rejected: experiment wrong" in done.output
    assert "$.active: 1 is not true or false" in done.output
    assert sorted(home.root.rglob("*")) == before, "plan writes nothing"


def test_plan_tells_a_seed_only_where_the_night_will_use_it(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    home.configure(randomize=True)
    drawn = home.run(verb="plan").output
    assert "in random order (drawn when the night starts; the order below is an example)" in drawn
    assert "(seed" not in drawn
    assert "in random order (seed 7)" in home.run("--seed", "7", verb="plan").output
    home.configure(seed=8)
    assert "in random order (seed 8)" in home.run(verb="plan").output


@pytest.mark.parametrize("module", cli.COMMANDS)
def test_a_module_adds_the_verbs_that_it_is_imported_for(module: str) -> None:
    verbs = argparse.ArgumentParser().add_subparsers()
    importlib.import_module(module).add_verbs(verbs)
    assert tuple(verbs.choices) == cli.COMMANDS[module]


def test_plan_imports_nothing_heavy(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    heavy = ("tvm", "numpy", "matplotlib", "requests", "sqlite3", "dashboard.night.night", "dashboard.cli.doctor")
    code = (
        f"import atexit, sys\natexit.register(lambda: print([name for name in {heavy!r} if name in sys.modules]))\n"
        "from dashboard.cli.main import main; sys.exit(main())"
    )
    argv = [sys.executable, "-c", code, "plan", str(home.path), "--experiments-dir", f"{home.code}/experiments"]
    done = subprocess.run(argv, env=homes.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("[]\n")


def test_check_says_every_fault_at_once(home: homes.HomeForTests) -> None:
    home.experiment("a", config={"active": 1, "tvm_remot": "x"})
    home.experiment("b").joinpath("run.sh").chmod(0o644)
    home.subsystem("s", config={"notify": "U1"})
    home.configure(randomise=True, backup_dir=5)
    done = home.run(verb="check")
    assert done.code == 2
    for word in (
        "$.randomise: unknown field. Did you mean 'randomize'?",
        "$.backup_dir: 5 is not a string",
        "experiments/a/config.json: $.tvm_remot: Did you mean 'tvm_remote'?",
        "b/run.sh: not executable",
        "subsystem/s/config.json: $.notify: 'U1' is not a list",
    ):
        assert word in done.output


def test_check_finds_nothing_in_a_good_home_and_too_little_room_in_a_full_one(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    good = home.run(verb="check")
    assert (good.code, "no problems found" in good.output) == (0, True), good.output
    home.configure(min_free_mb=10**9)
    full = home.run(verb="check")
    assert (full.code, "less than min_free_mb" in full.output) == (2, True)


def test_check_finds_faults_inside_the_scores_and_deadlines_of_a_config(home: homes.HomeForTests) -> None:
    home.experiment("relax_opt")
    scores = [
        {"title": "A", "experiment": "relax_op", "kind": "geomean_time"},
        {"title": "B", "kind": "speedupp"},
        {"title": "C", "experiment": "relax_opt@release", "kind": "geomean_time"},
    ]
    homes.write(home.home.config("subsystem", "score") / "config.json", {"active": True, "scores": scores})
    deadlines = {"cgo": {"date": "2027-13-01"}, "pldi": {"date": "2027-01-01", "ping": ["ann"]}}
    homes.write(home.home.config("subsystem", "deadline") / "config.json", {"active": True, "deadlines": deadlines})
    done = home.run(verb="check")
    assert done.code == 2
    for words in (
        "score/config.json: score 'A': this home has no experiment 'relax_op'. Did you mean 'relax_opt'?",
        "score/config.json: $.scores[1].experiment: required field is missing",
        "deadline/config.json: $.deadlines.cgo.date: '2027-13-01'",
        "deadline/config.json: $.deadlines.pldi.ping: 'ann' is not a Slack ID",
    ):
        assert words in done.output
    assert "relax_opt@release" not in done.output, "an experiment on another TVM is one of the home's"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('echo "$1/config.json: $.x: wrong"; echo "home $2"', "subsystem/s/config.json: $.x: wrong"),
        ("echo broken; exit 3", "check.sh: failed (exit status 3), so s's config was not checked: broken"),
        ("kill -9 $$", "check.sh: failed (signal 9)"),
    ],
)
def test_what_a_jobs_own_check_prints_is_a_fault_and_its_failure_too(
    home: homes.HomeForTests, lines: str, words: str
) -> None:
    home.experiment("good")
    home.subsystem("s")
    homes.script(home.code / "subsystem/s/check.sh", f"{homes.BEGIN}{lines}\n")
    done = home.run(verb="check")
    assert done.code == 2
    assert words in done.output
    homes.script(home.code / "subsystem/s/check.sh", f"{homes.BEGIN}exit 0\n")
    assert home.run(verb="check").code == 0


def test_check_misses_an_active_experiment(home: homes.HomeForTests) -> None:
    home.path.joinpath("config/experiments").mkdir()
    assert "no experiment is active" in home.run(verb="check").output


@pytest.mark.parametrize(
    ("route", "subsystem"),
    [
        ({"kind": "webhook", "secret_file": "/nowhere", "url": "https://pager.example.org"}, "routes"),
        ({"kind": "slack", "channel": "C0NIGHTLY01"}, "stat_alerts"),
    ],
)
def test_check_misses_what_serves_a_route(home: homes.HomeForTests, route: dict[str, str], subsystem: str) -> None:
    home.experiment("good")
    home.configure(routes={"mine": route})
    place = home.path / "config/subsystem" / subsystem / "config.json"
    fault = f"$.routes.mine: no active subsystem sends messages on this route. Set active to true in {place}."
    assert fault in home.run(verb="check").output
    home.subsystem(subsystem)
    assert fault not in home.run(verb="check").output


def test_status_of_a_home_without_nights_says_so(home: homes.HomeForTests) -> None:
    done = home.run(verb="status")
    assert (done.code, "no night has run yet" in done.output) == (0, True)


def test_what_is_wrong_with_a_file_is_told_as_that_and_not_as_a_bug(
    home: homes.HomeForTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.experiment("cnn")
    home.night()
    folder = home.home.root / "results" / "annotations.jsonl"
    folder.mkdir()
    done = dashboard("annotate", str(home.path), "add", "night", home.stamps()[0], "words")
    assert (done.returncode, done.stderr) == (2, f"{folder}: Is a directory.\n")

    def fill(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(status, "_status", fill)
    done = dashboard("status", str(home.path))
    assert (done.returncode, done.stderr) == (2, "A file could not be read or written: No space left on device.\n")


@pytest.mark.parametrize("verb", ["status", "serve"])
def test_a_folder_that_is_no_home_is_not_treated_as_one(tmp_path: Path, verb: str) -> None:
    done = dashboard(verb, str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"{tmp_path}: not a dashboard home: config/config.json is missing. Give the path of a home, or create one: "
    )


@pytest.mark.parametrize("verb", ["restore", "verify"])
def test_a_home_in_place_of_its_backup_is_an_error_that_names_the_backup(home: homes.HomeForTests, verb: str) -> None:
    done = dashboard(verb, str(home.path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(
        f"{home.path}: this is a home, not a backup folder. Give its backup_dir: {home.root / 'backup'}.\n"
    )


@pytest.mark.parametrize("verb", ["restore", "verify"])
def test_a_folder_without_archives_is_an_error(tmp_path: Path, verb: str) -> None:
    done = dashboard(verb, str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{tmp_path}: no archive found. Give the backup_dir of a home.\n"


def test_names_that_are_not_utf8_are_rejected_and_shown(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    home.home.configs("experiment").joinpath("b\udcffd").mkdir()
    done = home.run()
    assert done.code == 1, done.output
    assert "the folder name is not valid UTF-8" in done.output
    assert set(home.states("cnn").values()) == {"ok"}
    assert home.run(verb="status").code == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everywhere")
@pytest.mark.parametrize("verb", ["run", "check", "status"])
def test_a_home_that_may_not_be_looked_into_is_named(home: homes.HomeForTests, verb: str) -> None:
    home.path.chmod(0)
    try:
        done = home.run(verb=verb)
    finally:
        home.path.chmod(0o755)
    assert done.code == 2
    assert f"{home.path}/config" in done.output
    assert "Permission denied" in done.output


def test_a_path_that_is_not_utf8_is_refused_in_words(tmp_path: Path) -> None:
    home = os.fsencode(tmp_path) + b"/h\xff"
    os.mkdir(home)
    for argv, place in ((os.fsdecode(home), tmp_path), (".", os.fsdecode(home))):
        with contextlib.chdir(place):
            done = dashboard("run", argv)
        assert (done.returncode, os.listdir(home)) == (2, [])
        assert f"{tmp_path}/h\\xff: the path is not valid UTF-8. Use a folder with a UTF-8 path." in done.stderr


def test_a_relative_home_and_a_link_to_a_home_are_the_same_home(home: homes.HomeForTests, tmp_path: Path) -> None:
    home.experiment("cnn")
    home.night()
    (tmp_path / "link").symlink_to(home.path)
    for name in ("home", "link", "./link/../home"):
        with contextlib.chdir(tmp_path):
            done = dashboard("status", name)
        assert (done.returncode, str(home.path) in done.stdout) == (0, True)


def test_the_last_words_are_said_on_a_terminal_that_knows_only_ascii(home: homes.HomeForTests) -> None:
    home.experiment("cnn", config={"title": "größer"}, run=f"{homes.BEGIN}{homes.says('run', 'µs', success=False)}\n")
    done = home.run_cold({"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.code, "is a bug" in done.output) == (1, False)


def test_the_lock_is_free_once_a_night_has_ended(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    begun = time.monotonic()
    home.night()
    home.night()
    assert time.monotonic() - begun < homes.DEADLINE_S


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("incidents", ("list", "show", "explain", "ack", "expect", "close", "bisected", "silence", "unsilence")),
        ("annotate", ("list", "add", "remove")),
        ("explain", ("INCIDENT",)),
    ],
)
def test_the_help_of_a_verb_names_what_can_be_done_with_it(verb: str, words: tuple[str, ...]) -> None:
    shown = dashboard(verb, "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"usage: python3 -m dashboard {verb} [-h] HOME ")
    named = {line.split()[0] for line in shown.stdout.splitlines() if line.startswith("  ")}
    assert set(words) <= named


def test_traces_and_records_are_passed_on_with_all_their_options_and_exit_codes(tmp_path: Path) -> None:
    shown = dashboard("traces", "--help")
    assert shown.returncode == 0
    assert "usage: traces" in shown.stdout
    missing = dashboard("traces", "query", "SELECT 1", str(tmp_path / "none"), "--format", "csv")
    assert (missing.returncode, "no such file" in missing.stderr) == (1, True)
    assert "export" in dashboard("records", "--help").stdout
    assert dashboard("records", "export", str(tmp_path / "none"), "--to", str(tmp_path / "x")).returncode == 2
