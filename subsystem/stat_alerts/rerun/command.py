"""Have the dashboard measure again: `python -m dashboard remeasure`, a program of its own, within this night."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.measure import within_night

_PATIENCE_S = 90.0
"""Beyond the budget, for the analysis of the last run and for tidying up."""


def measured(home: Home, request: Sequence[dict[str, Any]], budget_s: float) -> list[dict[str, Any]]:
    """What came of each round of the request, fewer where it was ended; DashboardError where there is nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        question, answer = Path(scratch) / "request.json", Path(scratch) / "result.json"
        common.write_json(question, list(request), durable=False)
        arguments = ("remeasure", str(home.root), str(question), str(answer), "--budget", f"{budget_s:.3f}")
        code = within_night.call(*arguments, timeout_s=budget_s + _PATIENCE_S)
        if not answer.is_file():
            raise DashboardError(
                f"dashboard remeasure exited with status {code} and wrote no result; see the log above."
            )
        value: Any = common.read_json(answer)
    rounds: list[dict[str, Any]] = value["rounds"]
    return rounds
