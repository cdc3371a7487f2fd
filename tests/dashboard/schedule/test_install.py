"""`install`: what starts nights is shown, written when asked for, found by `watch`, replaced and removed; no more."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from dashboard.cli.main import main
from dashboard.schedule.schedule import find_started
from tests.dashboard.homes import HomeForTests, make_home
from tvmdash.dashboard_info import Home

PATH = "/usr/bin:/bin"
CRONTAB = """#!/bin/sh
# As Debian's: -l prints, or says that there is none; - takes lines that end with a newline.
tab="$HOME/tab"
case $1 in
  -l) [ -e "$tab" ] || { echo "no crontab for $(id -un)" >&2; exit 1; }; cat "$tab" ;;
  -) cat >"$tab.new"; [ ! -s "$tab.new" ] || [ -z "$(tail -c 1 "$tab.new")" ] || exit 1; mv "$tab.new" "$tab" ;;
  *) exit 1 ;;
esac
"""
SYSTEMCTL = """#!/bin/sh
echo "$*" >>"$HOME/calls"
case "$2" in
  is-active) cat "$HOME/active" 2>/dev/null || { echo inactive; exit 3; } ;;
  show-environment) [ ! -e "$HOME/no-bus" ] || { echo "Failed to connect to bus" >&2; exit 1; } ;;
esac
"""
FOREIGN = ["MAILTO=ada@example.org", "# of the person", "5 4 * * * echo 100\\%"]


class Done(NamedTuple):
    code: int
    output: str


class Installing:
    """A home with an awkward path, and a user with a crontab and a systemd of her own."""

    def __init__(self, root: Path) -> None:
        self.made: HomeForTests = make_home(root / '50 % of $5 Ann\'s "é"', root / "artifacts")
        self.user = root / "user"
        self.tools = self.user / "bin"
        self.tools.mkdir(parents=True)
        for name, text in (("crontab", CRONTAB), ("systemctl", SYSTEMCTL)):
            (self.tools / name).write_text(text)
            (self.tools / name).chmod(0o755)
        self.tab = self.user / "tab"

    @property
    def home(self) -> Home:
        return self.made.home

    def install(self, *options: str) -> Done:
        words, said = ["install", str(self.home.root), *options], io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                code = main(words)
            except SystemExit as ended:
                code = int(str(ended.code))
        return Done(code, said.getvalue())

    def read_tab(self) -> list[str]:
        return self.tab.read_text().splitlines() if self.tab.exists() else []


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installing:
    made = Installing(tmp_path)
    monkeypatch.setenv("PATH", f"{made.tools}:{PATH}")
    monkeypatch.setenv("HOME", str(made.user))
    return made


def test_without_yes_it_shows_what_it_would_write_and_writes_nothing(there: Installing) -> None:
    done = there.install()
    assert done.code == 0, done.output
    assert "0 3 * * *  " in done.output
    assert re.search(r"run_dashboard\.sh'? --command watch ", done.output)
    assert done.output.endswith("Nothing was changed. Pass --yes to apply the changes.\n")
    assert not there.tab.exists()


def test_cron_gets_lines_that_its_shell_reads_as_the_home(there: Installing) -> None:
    there.tab.write_text("".join(f"{line}\n" for line in FOREIGN))
    assert there.install("--at", "4:05", "--yes").code == 0
    lines = there.read_tab()
    assert lines[:3] == FOREIGN
    night = lines[4].split(None, 5)
    assert night[:5] == ["5", "4", "*", "*", "*"]
    assert "%" not in night[5].replace("\\%", "")
    words = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {night[5].replace(chr(92) + '%', '%')}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert words[1] == str(there.home.root)
    assert [found.times.text for found in find_started(there.home)] == ["5 4 * * *"]


def test_a_second_time_replaces_and_remove_leaves_what_was_there(there: Installing) -> None:
    there.tab.write_text("".join(f"{line}\n" for line in FOREIGN))
    assert there.install("--yes").code == 0
    assert there.install("--at", "23:30", "--yes").code == 0
    assert [line.split()[:2] for line in there.read_tab() if "run_dashboard" in line] == [["30", "23"], ["*/20", "*"]]
    assert "Your crontab already has these lines" in there.install("--at", "23:30", "--yes").output
    assert there.install("--remove").output.endswith("Nothing was changed. Pass --yes to apply the changes.\n")
    assert there.install("--remove", "--yes").code == 0
    assert there.read_tab() == FOREIGN
    assert "`install` has written nothing" in there.install("--remove", "--yes").output


def test_what_starts_nights_already_is_not_doubled(there: Installing, tmp_path: Path) -> None:
    conf = tmp_path / "nightly.conf"
    conf.write_text(f"DASHBOARD_HOME={there.home.root}\n")
    there.tab.write_text(f"0 1 * * * /opt/dashboard/dashboard_job.sh --settings {conf}\n")
    done = there.install("--yes")
    assert done.code == 2
    assert "already starts nights for" in done.output
    assert len(there.read_tab()) == 1
    there.tab.unlink()
    assert there.install("--yes").code == 0
    done = there.install("--with", "systemd", "--yes")
    assert done.code == 2
    assert "`install --remove` removes what `install` wrote" in done.output


def test_dashboard_job_may_be_what_is_started(there: Installing, tmp_path: Path) -> None:
    conf = tmp_path / "nightly.conf"
    conf.write_text(f"DASHBOARD_HOME={there.home.root}\n")
    assert there.install("--settings", str(conf), "--yes").code == 0
    assert re.search(rf"dashboard_job\.sh'? --settings {conf}", there.tab.read_text())
    assert len(list(find_started(there.home))) == 1
    assert there.install("--settings", str(conf / "no"), "--yes").code == 2


def test_systemd_gets_units_that_it_reads_and_that_are_known(there: Installing) -> None:
    assert there.install("--with", "systemd", "--at", "02:30", "--yes").code == 0
    folder = there.user / ".config" / "systemd" / "user"
    units = sorted(folder.iterdir())
    assert len(units) == 4
    timer = next(path for path in units if path.suffix == ".timer" and not path.stem.endswith("-watch"))
    assert "OnCalendar=*-*-* 02:30:00" in timer.read_text()
    calls = (there.user / "calls").read_text().splitlines()
    calls.remove("--user show-environment")
    assert calls[0] == "--user daemon-reload"
    assert calls[1].startswith("--user enable --now ")
    assert [found.times.text for found in find_started(there.home)] == ["*-*-* 02:30:00"]
    if shutil.which("systemd-analyze"):
        done = subprocess.run(
            ["systemd-analyze", "verify", "--user", "--man=no", "--recursive-errors=no", *units],
            capture_output=True, text=True, check=False, env={"PATH": PATH, "XDG_RUNTIME_DIR": str(there.user)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert there.install("--remove", "--yes").code == 0
    assert list(folder.iterdir()) == []


def test_a_time_that_is_none_is_refused(there: Installing) -> None:
    done = there.install("--at", "25:00")
    assert done.code == 2
    assert "use HH:MM, e.g. 03:00" in done.output


def test_units_are_not_removed_under_a_night_that_runs(there: Installing) -> None:
    assert there.install("--with", "systemd", "--yes").code == 0
    units = sorted(path.name for path in (there.user / ".config" / "systemd" / "user").glob("tvm-dashboard-*"))
    (there.user / "active").write_text("activating\n")
    done = there.install("--remove", "--yes")
    assert done.code == 2
    assert "a night is running, and removing its unit would end it. Wait for its end" in done.output
    assert sorted(path.name for path in (there.user / ".config" / "systemd" / "user").glob("tvm-dashboard-*")) == units


def test_without_a_systemd_of_the_user_nothing_is_written_and_the_remedy_is_named(there: Installing) -> None:
    (there.user / "no-bus").touch()
    done = there.install("--with", "systemd", "--yes")
    assert done.code == 2
    assert "Install libpam-systemd and dbus-user-session" in done.output
    assert not (there.user / ".config" / "systemd" / "user").exists()
