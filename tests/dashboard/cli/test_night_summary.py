"""The last words of a night: what failed is told once, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.cli import status
from tvmdash.dashboard_info import COMPLETE, FAILED, Home, JobResult, Night, StepResult

STAMP = "20261121T031500Z"
TRACEBACK = """warming up
Traceback (most recent call last):
  File "/tmp/x/code/train.py", line 31, in <module>
    main()
  File "/tmp/x/code/shapes.py", line 12, in pad
    return 1 / 0
           ~~^~~
ZeroDivisionError: division by zero
"""


def failure_told(message: str, log: str, **options: bool) -> str:
    """The line about an experiment whose run left this message and ended its log so."""
    step = StepResult("run", FAILED, message, STAMP, 1.0, log, **options)
    night = Night(STAMP, COMPLETE, jobs=(JobResult("experiment", "cnn", "CNN", "", (step,)),))
    return next(line for line in status.summarize_night(Home(Path("/nowhere")), night).splitlines() if "run: " in line)


def test_a_failure_that_the_log_holds_as_well_is_told_once() -> None:
    told = failure_told("no GPU here. Take another machine.", "an identifier\n", in_log=True)
    assert told == "  experiment cnn FAILED: run: no GPU here. Take another machine."


def test_whether_the_log_holds_a_failure_as_well_is_not_looked_for_in_its_words() -> None:
    assert failure_told("broken", "ValueError: broken\n").endswith("Last line of output: ValueError: broken")


@pytest.mark.parametrize(
    ("log", "end"),
    [
        (TRACEBACK, "shapes.py:12: ZeroDivisionError: division by zero"),
        (TRACEBACK + "going on\n", "going on"),
        ("out of cheese\n", "out of cheese"),
    ],
)
def test_the_end_of_the_log_is_told_with_the_place_of_a_python_failure(log: str, end: str) -> None:
    told = failure_told("run.sh exited with status 1. It wrote no status.json.", log)
    assert told.endswith(f"It wrote no status.json. Last line of output: {end}")


def test_a_state_that_only_a_newer_dashboard_knows_stands_in_the_table_as_it_is() -> None:
    steps = (StepResult("run", "postponed", "", STAMP),)
    night = Night(STAMP, COMPLETE, jobs=(JobResult("experiment", "cnn", "CNN", "", steps),))
    assert "postponed" in status.summarize_status(Home(Path("/nowhere")), night)
