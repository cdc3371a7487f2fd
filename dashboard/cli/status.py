"""`status`: print the outcome of the last night, or the progress of the current one."""

from __future__ import annotations

import argparse
import dataclasses

from dashboard.cli import night_summary
from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb, find_home
from dashboard.cli.fail_on import add_fail_on, judge_exit_code
from dashboard.investigate.backfill import folder
from dashboard.night import lock
from dashboard.upkeep import strays
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED, RUNNING


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    add_fail_on(add_home_verb(verbs, "status", _status, "print the outcome of the last night", code=False))


def _status(arguments: argparse.Namespace) -> int:
    home = find_home(arguments)
    stamps = home.night_stamps()
    if not stamps:
        print(f"{home.root}: no night has run yet. Run one with ./run_dashboard.sh {home.root}")
        return OK_CODE
    ahead = frozenset(strays.list_ahead(home, common.utc_now()))
    night = home.read_night(([stamp for stamp in stamps if stamp not in ahead] or stamps)[-1])
    if night.state == RUNNING and not lock.is_held(home):
        night = dataclasses.replace(night, state=INTERRUPTED)
    print("\n".join(filter(None, (night_summary.summarize_status(home, night), folder.summarize(home)))))
    if ahead:
        print(f"{len(ahead)} nights are dated in the future. Check with python3 -m dashboard doctor {home.root}")
    code = OK_CODE if night.state in {COMPLETE, RUNNING} and night.well else SOME_FAILED
    return judge_exit_code(home, night, code, arguments.fail_on)
