"""A start that an error of ours ended is told by every command until a night begins."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dashboard.homes import BEGIN, HomeForTests, environment, killed_at_end, make_home, wait_for

_PLACES = {
    "before it began": "dashboard.night.recovery as place; name = 'recover'",
    "in the middle": "dashboard.night.phases as place; place = place.Phases; name = '_precheck'",
    "after its end": "dashboard.cli.status as place; name = 'summarize_night'",
}
_COMMANDS = (("status",), ("check",), ("doctor", "--no-drill"))


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    made = make_home(tmp_path, tmp_path / "artifacts")
    made.subsystem()
    return made


def crash(home: HomeForTests, place: str, error: str) -> subprocess.CompletedProcess[str]:
    """Run a night in which this function raises."""
    code = (
        f"import sys\nimport {_PLACES[place]}\ndef broken(*_, **__): raise {error}\nsetattr(place, name, broken)\n"
        "from dashboard.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    )
    argv = [sys.executable, "-c", code, *home.command("run", "--no-rebuild-tvm")[3:]]
    return subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("place", _PLACES)
def test_a_start_that_ended_with_3_is_told_with_its_log_until_a_night_begins(home: HomeForTests, place: str) -> None:
    ended = crash(home, place, "RuntimeError('boom')")
    assert ended.returncode == 3
    log = ended.stderr.strip().rpartition("Please report it with this log: ")[2]
    assert "RuntimeError: boom" in Path(log).read_text()
    for verb, *options in _COMMANDS:
        done = home.run(*options, verb=verb)
        assert re.search(
            r"The start at 20.* UTC ended with an internal error, a bug in the dashboard: ", done.output
        ), verb
        assert f"RuntimeError: boom Log: {log}" in done.output
        assert done.code == (2 if verb == "check" else 1)
    home.night()
    for verb, *options in _COMMANDS:
        assert "internal error" not in home.run(*options, verb=verb).output
    Path(log).unlink()


def test_a_night_that_an_error_of_the_disk_ended_was_not_killed(home: HomeForTests) -> None:
    ended = crash(home, "in the middle", "OSError(28, 'No space left on device', '/x')")
    assert ended.returncode == 2
    for verb, *options in _COMMANDS:
        output = home.run(*options, verb=verb).output
        assert "UTC ended with an error: /x: No space left on device." in output
        assert "was killed" not in output


def test_a_night_that_was_killed_is_told_by_check_and_by_doctor_of_a_home_without_a_schedule(
    home: HomeForTests,
) -> None:
    began = home.root / "began"
    home.subsystem(run=f"{BEGIN}touch {began}\nsleep 300\n")
    with killed_at_end(home.start()) as night:
        wait_for(began.exists, "the subsystem")
        assert "was killed" not in home.run(verb="check").output
        night.send_signal(signal.SIGKILL)
        night.wait()
    for verb, *options in _COMMANDS[1:]:
        assert f"The night {home.stamps()[-1]} was killed or lost power." in home.run(*options, verb=verb).output


def test_a_start_that_was_refused_is_told_by_doctor_of_a_home_without_a_schedule(home: HomeForTests) -> None:
    home.configure(min_free_mb=1e12)
    assert home.run().code == 2
    home.configure(min_free_mb=1)
    for verb, *options in _COMMANDS:
        assert re.search(r"The start at 20.* UTC was refused: .* MB free", home.run(*options, verb=verb).output)
