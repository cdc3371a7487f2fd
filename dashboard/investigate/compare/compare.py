"""`compare`: two artifacts measured in alternation on one machine. Nothing is published among the home's data."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from dashboard.artifacts.provide import Provided
from dashboard.investigate.compare.result import Comparison, Side
from dashboard.investigate.request import MeasuringRequest
from dashboard.investigate.rounds import Round
from dashboard.investigate.session import MeasuringSession, open_session
from dashboard.investigate.workspace import MeasuringWorkspace
from dashboard.night import repository
from dashboard.plan.job import REPOSITORY, CodeFolders
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.machine import hardware

FOLDER = "comparisons"
_log = logging.getLogger("compare")


def compare(home: Home, request: MeasuringRequest, *, code: CodeFolders) -> tuple[Comparison, Path]:
    """Measure both TVMs and judge; the comparison, and the file below results/ that holds it.

    DashboardError where an artifact cannot be had or no experiment is left; HeldError where a night holds the home.
    """
    begun = time.monotonic()
    with open_session(home, request, code) as session:
        names = session.workspace.select_experiments(request.experiments)
        a, b = (session.lease(session.finder.find(name)) for name in request.tvms)
        comparison = _begin(session.workspace, request, a, b)
        path = session.workspace.result_file(FOLDER)
        session.budget.restart()
        for number in range(request.rounds):
            for name in names:
                if not comparison.has_ended(name):
                    _measure(comparison, session, Round(name, (a.artifact, b.artifact), number=number))
            comparison.judge()
            comparison.elapsed_s = round(time.monotonic() - begun, 3)
            common.write_json(path, comparison.to_json())
            if all(map(comparison.has_ended, names)):
                break
    return comparison, path


def _begin(workspace: MeasuringWorkspace, request: MeasuringRequest, *both: Provided) -> Comparison:
    a, b = (
        Side(asked, provided.artifact.identity(), provided.note)
        for asked, provided in zip(request.tvms, both, strict=True)
    )
    seed = workspace.plan.seed
    return Comparison(workspace.stamp, a, b, seed, hardware.facts(), repository.describe(REPOSITORY))


def _measure(comparison: Comparison, session: MeasuringSession, asked: Round) -> None:
    outcome = session.measure(asked)
    comparison.add(outcome)
    if outcome.is_measured:
        comparison.fingerprints[asked.experiment] = session.runner.fingerprint(asked.experiment)
        _log.info("%s: round %d", asked.experiment, comparison.rounds[asked.experiment])
    else:
        _log.info("%s: %s", asked.experiment, outcome.error)
