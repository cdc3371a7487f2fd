"""The website made again of what the home holds, without a night: after a restore, or with another version of it."""

from __future__ import annotations

import re

from dashboard.night import engine, repository
from dashboard.night.context import Context
from dashboard.night.lock import night_lock
from dashboard.plan.job import REPOSITORY, Job
from dashboard.plan.night_plan import Plan
from dashboard.process import orphans, process
from dashboard.upkeep.indexes import update_index
from tvmdash.common.files import trees
from tvmdash.dashboard_info import WEBSITE, StepResult
from tvmdash.dashboard_info.stages import SUBSYSTEM
from tvmdash.errors import DashboardError

_FOLDER = "publish"
_ACTIVATE = 'Write {"active": true} there.'


def make_website(plan: Plan) -> StepResult:
    """Make the website of the newest night; DashboardError where there is no night, or no such subsystem.

    It measures nothing and tells nobody: no other subsystem runs.
    """
    home = plan.home
    job = _find_website(plan)
    orphans.become_subreaper()
    with night_lock(home, measures=False):
        stamps = home.night_stamps()
        if not stamps:
            raise DashboardError("no night has run yet.", place=home.root, remedy="Run one; it makes the website too.")
        name = re.sub(r"[^A-Za-z0-9]+", "-", str(home.root)).strip("-")[-80:]  # homes may share a tmp_data_dir
        folder = plan.config.tmp_data / f"{_FOLDER}-{name}"
        context = Context(home, plan, stamps[-1], folder, repository.describe(REPOSITORY))
        process.begin_night(context.mark)
        try:
            engine.take_copy(context, job)
            update_index(home)
            return engine.perform(context, job, job.stages[0])
        finally:
            trees.remove(folder)


def _find_website(plan: Plan) -> Job:
    kind = SUBSYSTEM.kind
    for job in (*plan.subsystems, *plan.rejected):
        if (job.kind, job.name) == (kind, WEBSITE):
            if job.faults:
                raise DashboardError("; ".join(job.faults))
            return job
    place = plan.home.config(kind, WEBSITE) / "config.json"
    raise DashboardError(f"{WEBSITE} is not an active subsystem of this home.", place=place, remedy=_ACTIVATE)
