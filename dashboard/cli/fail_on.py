"""`--fail-on LEVEL`: turn the verdict of a night into an exit code."""

from __future__ import annotations

import argparse

from dashboard.cli.arguments import CANNOT_TELL, OK_CODE, TVM_WORSE
from tvmdash.dashboard_info import Home, Night
from tvmdash.errors import DashboardError
from tvmdash.verdict import Level, read_verdict

_LEVELS = (Level.REGRESSION, Level.SUSPECT, Level.CHANGED, Level.INCOMPLETE, Level.BLIND)
"""The gravest first."""


def add_fail_on(parser: argparse.ArgumentParser) -> None:
    """Let a verb that shows a night end with a code for its verdict."""
    help_text = (
        f"exit with {TVM_WORSE} if the night's verdict is this level or worse, or with {CANNOT_TELL} if there is no "
        "verdict"
    )
    parser.add_argument("--fail-on", choices=[str(level) for level in _LEVELS], metavar="LEVEL", help=help_text)


def judge_exit_code(home: Home, night: Night, code: int, fail_on: str | None) -> int:
    """`code`, or where that says that all is well and the verdict is to count, what the verdict comes to."""
    if code != OK_CODE or fail_on is None:
        return code
    try:
        verdict = read_verdict(home, night.stamp)
    except DashboardError:  # the night's words say what is wrong with it
        verdict = None
    if verdict is None or verdict.level == Level.NO_DATA:
        return CANNOT_TELL
    failing = _LEVELS[: _LEVELS.index(Level(fail_on)) + 1]
    return TVM_WORSE if verdict.level in failing else OK_CODE
