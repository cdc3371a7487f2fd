"""dashboard_job.sh with a repository of its own to follow."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from dashboard.schedule import refusal
from tvmdash.dashboard_info import Home

REPO = Path(__file__).resolve().parents[2]
SCRIPT = REPO / "dashboard_job.sh"
TIMEOUT_S = 60.0
_NIGHT = """#!/bin/sh
echo "night of version {version}"
for argument in "$@"; do echo "argument <$argument>"; done
echo "note <$TVMDASH_NOTE>"
flock -n "${{TVMDASH_VENV_DIR%/venv}}/.dashboard_job" true && echo "the folder is free"
exit {exit_code}
"""


def git(cwd: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    argv = ["git", *identity, "-c", "core.hooksPath=/dev/null", *arguments]
    return subprocess.run(argv, cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class Job:
    """A remote with one commit, and the places of a job that follows it."""

    remote: Path
    folder: Path
    home: Path
    env: Mapping[str, str]

    @property
    def settings(self) -> list[str]:
        return [f"REMOTE={self.remote}", f"FOLDER={self.folder}", f"DASHBOARD_HOME={self.home}"]

    def commit(self, version: int, exit_code: int = 0, **files: str) -> None:
        """Make the night of `version` the newest commit of the remote."""
        work = self.remote.parent / "work"
        (work / "run_dashboard.sh").write_text(_NIGHT.format(version=version, exit_code=exit_code))
        (work / "run_dashboard.sh").chmod(0o755)
        for name, text in files.items():
            (work / f"{name}.sh").write_text(text)
            (work / f"{name}.sh").chmod(0o755)
        git(work, "add", "-A")
        git(work, "commit", "-q", "-m", f"Version {version}")
        git(work, "push", "-q", str(self.remote), "HEAD:refs/heads/main")

    def run(self, *arguments: str, script: Path = SCRIPT) -> subprocess.CompletedProcess[str]:
        argv = [str(script), *(arguments or self.settings)]
        return subprocess.run(
            argv, env=self.env, cwd=self.remote.parent, check=False, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=TIMEOUT_S,
        )  # fmt: skip

    def log(self) -> str:
        """All logs, in order."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("logs/job_*.log")))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "work").mkdir()
    git(tmp_path / "work", "init", "-q")
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    made = Job(
        tmp_path / "remote.git",
        tmp_path / "jöb folder",
        tmp_path / "my home",
        {"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    made.commit(1)
    return made


def test_the_first_job_fetches_and_runs_a_night_with_the_given_options(job: Job) -> None:
    done = job.run(*job.settings, "OPTIONS=--no-rebuild-tvm  --x *", "--", "--dir", "a b")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    arguments = "".join(f"argument <{word}>\n" for word in (job.home, "--no-rebuild-tvm", "--x", "*", "--dir", "a b"))
    assert job.log() == f"night of version 1\n{arguments}note <>\n", "and the folder stays claimed while the night runs"


def test_a_later_job_runs_the_newest_commit_and_passes_its_exit_code_on(job: Job) -> None:
    assert job.run().returncode == 0
    job.commit(2, exit_code=75)
    (job.folder / "source" / "run_dashboard.sh").write_text("changed by hand")
    (job.folder / "source" / "stray.txt").touch()
    assert job.run().returncode == 75
    assert "night of version 2" in job.log()
    assert git(job.folder / "source", "status", "--porcelain") == ""


def test_a_failed_fetch_runs_the_last_good_commit_and_says_so_everywhere(job: Job) -> None:
    assert job.run().returncode == 0
    job.remote.rename(job.remote.parent / "gone.git")
    done = job.run()
    assert done.returncode == 0
    assert "could not update itself and ran from its last good commit" in done.stderr
    assert job.log().count("night of version 1") == 2
    assert "note <The dashboard could not update itself" in job.log()


def test_a_branch_that_is_not_there_runs_the_last_good_commit_says_so_and_ends_with_2(job: Job) -> None:
    assert job.run().returncode == 0
    done = job.run(*job.settings, "BRANCH=mian")
    assert done.returncode == 2
    assert "has no branch 'mian', so it is no longer updated" in done.stderr
    assert "note <The dashboard's repository has no branch 'mian'" in job.log()
    assert job.log().count("night of version 1") == 2
    job.commit(2, exit_code=1)
    assert job.run().returncode == 1
    assert job.run(*job.settings, "BRANCH=mian").returncode == 1, "the night's own failure comes first"


def test_what_a_night_that_did_not_go_well_said_last_is_printed_for_the_mail(job: Job) -> None:
    job.commit(2, exit_code=1)
    night = job.remote.parent / "work" / "run_dashboard.sh"
    words = "Night 20261121T031500Z: SOME FAILED, 1 of 2 experiments ok.\\n  experiment cnn FAILED: run: no data"
    night.write_text(f"#!/bin/sh\necho much\nprintf '{words}\\n'\nexit 1\n")
    git(night.parent, "commit", "-q", "-a", "-m", "words")
    git(night.parent, "push", "-q", str(job.remote), "HEAD:refs/heads/main")
    done = job.run()
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[:2] == words.split("\\n")
    assert lines[2].startswith(f"Full log: {job.folder}/logs/job_")
    job.commit(3, exit_code=3)
    assert "night of version 3" in job.run().stderr, "where there is no verdict, the end of what was printed"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_reaches_the_night_and_its_exit_code_comes_back(job: Job, number: signal.Signals) -> None:
    assert signalled(job, SCRIPT, number) == (130, 1)


def test_under_nohup_a_job_and_its_night_outlive_a_hangup(job: Job) -> None:
    with begun(job, SCRIPT, 'until test -e "$1.go"; do sleep 0.02; done', hangup=signal.SIG_IGN) as started:
        started.send_signal(signal.SIGHUP)
        Path(f"{job.home}.go").touch()
        started.communicate(timeout=TIMEOUT_S)
    assert started.returncode == 0
    assert "went on to its end" in job.log()


@pytest.mark.parametrize("line", ['"$@" >>"$log" 2>&1 </dev/null &\n', "child=$!\n"])
def test_a_signal_while_the_night_starts_ends_it_as_well(job: Job, tmp_path: Path, line: str) -> None:
    """The script with a moment of a second behind one of the lines that start the night."""
    slow = tmp_path / SCRIPT.name
    lines = SCRIPT.read_text(encoding="utf-8")
    assert lines.count(line) == 1
    slow.write_text(lines.replace(line, f"{line}  command sleep 1\n"), encoding="utf-8")
    slow.chmod(0o755)
    assert signalled(job, slow, signal.SIGINT) == (130, 1)


def signalled(job: Job, script: Path, number: signal.Signals) -> tuple[int, int]:
    """The exit code of a job that gets the signal once its night has begun, and how often it says it was stopped."""
    with begun(job, script, "sleep 60 & wait") as started:
        started.send_signal(number)
        _, stderr = started.communicate(timeout=TIMEOUT_S)
    return started.returncode, stderr.count("stopped")


START = "import os, signal, sys; signal.signal(signal.SIGHUP, int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"
"""Starts a program that heeds or ignores SIGHUP, however these tests themselves were started."""


@contextlib.contextmanager
def begun(
    job: Job, script: Path, waits: str, *, hangup: signal.Handlers = signal.SIG_DFL
) -> Iterator[subprocess.Popen[str]]:
    """A job whose night has begun and does `waits`; it does not outlive the block."""
    lines = (
        "#!/bin/sh",
        "trap 'kill $!; echo stopped; exit 130' TERM",
        'echo begun > "$1.begun"',
        waits,
        "echo went on to its end",
    )
    work = job.remote.parent / "work"
    (work / "run_dashboard.sh").write_text("\n".join(lines) + "\n")
    git(work, "commit", "-q", "-a", "-m", "waits")
    git(work, "push", "-q", str(job.remote), "HEAD:refs/heads/main")
    argv = [sys.executable, "-c", START, str(int(hangup)), str(script), *job.settings]
    with subprocess.Popen(argv, env=job.env, stderr=subprocess.PIPE, text=True) as started:
        try:
            deadline = time.monotonic() + TIMEOUT_S
            while not Path(f"{job.home}.begun").exists():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield started
        finally:
            started.kill()


def test_a_first_fetch_that_fails_ends_with_2(job: Job) -> None:
    done = job.run(*job.settings, "BRANCH=nothing")
    assert done.returncode == 2
    assert "could not fetch branch nothing of " in done.stderr
    assert job.run().returncode == 0


def test_a_folder_that_it_did_not_make_is_left_alone(job: Job) -> None:
    job.folder.mkdir()
    (job.folder / "thesis.txt").write_text("mine")
    done = job.run()
    assert done.returncode == 2
    assert "was not created by this script" in done.stderr
    assert [path.name for path in job.folder.iterdir()] == ["thesis.txt"]


def test_a_second_job_in_one_folder_is_turned_away_with_75(job: Job) -> None:
    assert job.run().returncode == 0
    argv = ["flock", job.folder / ".dashboard_job", "sh", "-c", "echo; read x"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        done = job.run()
        other.communicate(b"\n")
    assert done.returncode == 75
    assert "another job is using" in done.stderr


def test_what_a_killed_git_left_is_repaired(job: Job) -> None:
    assert job.run().returncode == 0
    (job.folder / "source" / ".git" / "index.lock").touch()
    (job.folder / "source" / "run_dashboard.sh").unlink()
    assert job.run().returncode == 0
    shutil.rmtree(job.folder / "source" / ".git")
    assert job.run().returncode == 0
    assert job.log().count("night of version 1") == 3


@pytest.mark.parametrize("file", ["index", "HEAD", "config", "refs/job/newest", "objects", "packed"])
def test_a_checkout_that_a_power_cut_damaged_is_fetched_anew_at_its_place(job: Job, file: str) -> None:
    (job.remote.parent / "work" / ".gitignore").write_text(".venv/\n")
    job.commit(1)
    assert job.run().returncode == 0
    kept = job.folder / "source" / ".venv"
    kept.mkdir()
    (job.folder / "source" / "run_dashboard.sh").write_bytes(b"")
    checkout = job.folder / "source" / ".git"
    if file == "packed":
        git(job.folder / "source", "gc", "-q")
    broken = [path for path in (checkout / "objects").rglob("*") if path.is_file()]
    for path in broken if file in {"objects", "packed"} else [checkout / file]:
        path.chmod(0o644)
        path.write_bytes(b"")
    done = job.run()
    assert done.returncode == 0, done.stderr
    assert job.log().count("night of version 1") == 2
    assert kept.is_dir()
    job.commit(2)
    assert job.run().returncode == 0
    assert "night of version 2" in job.log()


def test_a_damaged_checkout_inside_another_repository_does_not_touch_that_one(job: Job, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "outer.txt").write_text("committed")
    git(tmp_path, "add", "outer.txt")
    git(tmp_path, "commit", "-q", "-m", "outer")
    (tmp_path / "outer.txt").write_text("being edited")
    assert job.run().returncode == 0
    (job.folder / "source" / ".git" / "HEAD").write_text("damaged")
    job.run()
    assert (tmp_path / "outer.txt").read_text() == "being edited"


def test_the_update_may_replace_the_script_that_runs(job: Job) -> None:
    job.commit(2, dashboard_job=SCRIPT.read_text())
    assert job.run().returncode == 0
    job.commit(3, dashboard_job="#!/bin/sh\nexit 99\n" * 400)
    own = job.folder / "source" / "dashboard_job.sh"
    assert job.run(script=own).returncode == 0
    assert "night of version 3" in job.log()
    assert own.read_text().endswith("exit 99\n")


def test_old_logs_are_removed_and_other_files_kept(job: Job) -> None:
    assert job.run().returncode == 0
    old, note = job.folder / "logs" / "job_20200101T000000Z.log", job.folder / "logs" / "note.txt"
    for path in (old, note):
        path.touch()
        os.utime(path, (time.time() - 40 * 24 * 3600,) * 2)
    assert job.run().returncode == 0
    assert not old.exists()
    assert note.exists()


def test_a_settings_file_is_read_and_nothing_in_it_is_executed(job: Job, tmp_path: Path) -> None:
    file, trap = tmp_path / "job.conf", tmp_path / "trap"
    options = f"OPTIONS=$(touch {trap}) `touch {trap}`\r"
    file.write_text("\n".join(["# comment", "", *job.settings[:2], "DASHBOARD_HOME=~/my home  ", options]))
    done = job.run("--settings", str(file))
    assert done.returncode == 0, done.stderr
    assert f"argument <{tmp_path}/my home>" in job.log()
    assert "argument <$(touch>" in job.log()
    assert not trap.exists()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("HOME=/x", "unknown setting 'HOME'. Known settings:"),
        ("REMOTE", "'REMOTE' is not of the form KEY=value"),
        ("DASHBOARD_HOME=relative", "'relative' is not an absolute path"),
        ('REMOTE="https://x"', "remove the quotes; values are taken literally"),
        ("KEEP_LOGS_DAYS=many", "'many' is not a number of days"),
        ("REMOTE=--upload-pack=x", "begins with a dash"),
        ("a[$(touch trap)]=1", "unknown setting"),
    ],
)
def test_a_bad_setting_is_named_with_its_line(job: Job, tmp_path: Path, line: str, fault: str) -> None:
    file = tmp_path / "job.conf"
    file.write_text(f"# one\nBRANCH=main\n{line}\n")
    done = job.run("--settings", str(file))
    assert done.returncode == 2
    assert f"{file}:3: " in done.stderr
    assert fault in done.stderr
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("place", [0, 3])
def test_what_keeps_a_night_from_beginning_is_noted_in_its_home(job: Job, tmp_path: Path, place: int) -> None:
    (job.home / "config").mkdir(parents=True)
    file = tmp_path / "job.conf"
    lines = ["BRNCH=main", *job.settings]
    file.write_text("\n".join([*lines[1 : place + 1], lines[0], *lines[place + 1 :], ""]))
    assert job.run("--settings", str(file)).returncode == 2
    refused = refusal.read(Home(job.home))
    assert refused is not None
    assert refused.reason.startswith(f"dashboard_job.sh: {file}:{place + 1}: unknown setting 'BRNCH'.")


def test_the_note_of_a_failed_first_fetch_has_no_password(job: Job) -> None:
    (job.home / "config").mkdir(parents=True)
    remote = f"REMOTE=file://me:s3cr3tword@{job.remote}x"
    assert job.run(*job.settings, remote).returncode == 2
    note = (job.home / "results" / "refused_start.txt").read_text()
    assert "could not fetch branch main of file://" in note
    assert "s3cr3tword" not in note


def test_missing_settings_are_named(job: Job) -> None:
    done = job.run(*job.settings[:2])
    assert done.returncode == 2
    assert "DASHBOARD_HOME is required" in done.stderr
    assert job.run("--settings", "/nowhere").returncode == 2
    assert job.run("--settings").returncode == 2
