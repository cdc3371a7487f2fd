"""`status`: print the outcome of the last night, or the progress of the current one."""

from __future__ import annotations

import argparse
import dataclasses

from dashboard.cli import night_summary
from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb, find_home
from dashboard.cli.fail_on import add_fail_on, judge_exit_code
from dashboard.night import lock
from dashboard.schedule import refusal
from dashboard.trials import backfill
from dashboard.upkeep import strays
from tvmdash import common
from tvmdash.common.files import lock as locks
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED, RUNNING


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    add_fail_on(add_home_verb(verbs, "status", _status, "print the outcome of the last night", code=False))


def _status(arguments: argparse.Namespace) -> int:
    home = find_home(arguments)
    stamps = home.night_stamps()
    refused = refusal.read(home)
    if refused is not None:
        print(refused)
    if not stamps:
        begins = lock.is_held(home) or locks.is_held(home.waiting_file)
        run = f"Run one with ./run_dashboard.sh {home.root}"
        print(f"{home.root}: no night has run yet. {'One is about to begin.' if begins else run}")
        return OK_CODE if refused is None else SOME_FAILED
    ahead = frozenset(strays.list_ahead(home, common.utc_now()))
    night = home.read_night(([stamp for stamp in stamps if stamp not in ahead] or stamps)[-1])
    if night.state == RUNNING and not lock.is_held(home):
        night = dataclasses.replace(night, state=INTERRUPTED)
    print("\n".join(filter(None, (night_summary.summarize_status(home, night), backfill.describe(home)))))
    if ahead:
        print(f"{len(ahead)} nights are dated in the future. Check with python3 -m dashboard doctor {home.root}")
    is_well = refused is None and night.state in {COMPLETE, RUNNING} and night.well
    code = OK_CODE if is_well else SOME_FAILED
    return judge_exit_code(home, night, code, arguments.fail_on)
