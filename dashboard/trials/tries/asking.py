"""Requests for tries: checked before they wait, and asked once more."""

from __future__ import annotations

from dataclasses import replace

from dashboard.plan.artifact_names import spec_of
from dashboard.plan.job import CodeFolders
from dashboard.plan.plan import make_plan
from dashboard.trials.tries.listing import Row, Standing
from dashboard.trials.workspace import select_experiments
from tvmdash.common import stamp_of, utc_now
from tvmdash.contracts.tries import Try, TryRequest
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents.annotations import name_user
from tvmdash.tries import files


def make_request(candidate: str, base: str | None) -> TryRequest:
    """A request of whoever runs this, made now."""
    return TryRequest(candidate, name_user(), stamp_of(utc_now()), base)


def put_into_queue(home: Home, request: TryRequest, code: CodeFolders) -> str:
    """Let it wait; its ID. DashboardError where it is known already that it cannot be measured."""
    plan = make_plan(home, code)
    select_experiments(plan, request.experiments)
    for name in filter(None, (request.candidate, request.base)):
        spec_of(name, plan.config)
    return files.add(home, request)


def ask_again(home: Home, row: Row, *, until: float | None = None, budget_s: float | None = None) -> str:
    """Have it in the queue, to go on where it stopped; its ID there. DashboardError where it cannot go on."""
    if row.standing is Standing.RUNNING:
        raise DashboardError(f"{row.id} is already being measured.")
    if row.standing is Standing.BROKEN:
        raise DashboardError(row.fault)
    request = row.request or _ask_for_the_same(row.result)
    wanted = replace(request, failed="", until=until or request.until, budget_s=budget_s or request.budget_s)
    return files.put_back(home, row.id, wanted) if row.request else files.add(home, wanted)


def _ask_for_the_same(done: Try | None) -> TryRequest:
    assert done is not None, "a row without a request is that of a try"
    request = make_request(done.candidate.exact_name, done.base.exact_name)
    return replace(request, experiments=tuple(done.experiments), until=done.until, goes_on=done.stamp)
