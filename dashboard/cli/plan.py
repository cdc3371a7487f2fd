"""`plan`: what a night would do."""

from __future__ import annotations

import argparse

from dashboard.cli import night_summary
from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb, find_code
from dashboard.cli.references import add_no_look_up, survey_tvms
from dashboard.plan.plan import make_plan
from tvmdash.dashboard_info import Home


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    add_no_look_up(add_home_verb(verbs, "plan", _plan, "print what a night would do without running anything"))


def _plan(arguments: argparse.Namespace) -> int:
    plan = make_plan(Home(arguments.home), find_code(arguments), seed=arguments.seed)
    print(night_summary.summarize_plan(plan, survey_tvms(plan, rebuild=not arguments.no_rebuild_tvm)))
    return SOME_FAILED if plan.rejected else OK_CODE
