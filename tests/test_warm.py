"""Programs that a warm process runs end as those of a Python of their own do, and leave nothing for the next."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.warm import Order, Warm, spent_s

WARM = Warm(["json"], [])
PROGRAM = """
import os, signal, sys, time
print(sys.argv[1:], os.getcwd(), os.environ.get("X"), "json" in sys.modules, "left" in sys.modules, flush=True)
sys.modules["left"] = os
{end}
"""


def run(folder: Path, end: str, *words: str, timeout_s: float = 60.0, **variables: str) -> tuple[int, str]:
    """The exit code and the output of the program with this last line."""
    script = folder / "program.py"
    script.write_text(PROGRAM.format(end=end))
    with tempfile.TemporaryFile() as output:
        code = WARM.run(Order([str(script), *words], variables, str(folder)), output, timeout_s=timeout_s)
        output.seek(0)
        return code, output.read().decode()


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("", 0, ""),
        ("sys.exit(7)", 7, ""),
        ("raise ValueError('so it is')", 1, "ValueError: so it is"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", -11, ""),
    ],
)
def test_a_program_ends_as_it_would_alone(tmp_path: Path, end: str, code: int, said: str) -> None:
    ended, output = run(tmp_path, end, "a", "b c", X="1")
    assert ended == code
    assert output.splitlines()[0] == f"['a', 'b c'] {tmp_path} 1 True False"
    assert said in output


def test_one_that_does_not_end_is_ended_and_the_next_one_runs(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run(tmp_path, "time.sleep(600)", timeout_s=0.2)
    assert run(tmp_path, "")[0] == 0


def test_one_that_has_ended_can_be_asked_for_by_its_number_until_that_was_heard(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("")
    with tempfile.TemporaryFile() as output:
        running = WARM.begin(Order([str(script)], {}, str(tmp_path)), output)
    select.select([running.server], [], [])
    os.close(os.pidfd_open(running.pid))
    assert running.wait() == 0
    with pytest.raises(ProcessLookupError):
        os.pidfd_open(running.pid)


def test_what_a_program_costs_is_counted(tmp_path: Path) -> None:
    before = spent_s()
    run(tmp_path, "while time.process_time() < 0.1: pass")
    assert spent_s() - before >= 0.09
