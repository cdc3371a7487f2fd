"""Have the dashboard measure again: `python -m dashboard remeasure`, a program of its own, within this night."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

_PATIENCE_S = 90.0
"""Beyond the budget, for the analysis of the last run and for tidying up."""
_GRACE_S = 15.0
_log = logging.getLogger("stat_alerts")


def repository() -> Path | None:
    """The dashboard that this stage belongs to; None where no dashboard started it."""
    deps = os.environ.get("BENCHMARK_DEPS")
    return Path(deps).parent if deps and (Path(deps).parent / "dashboard").is_dir() else None


def measured(home: Home, request: Sequence[dict[str, Any]], budget_s: float) -> list[dict[str, Any]]:
    """What came of each round of the request, fewer where it was ended; DashboardError where there is nothing."""
    root = repository()
    if root is None:
        raise DashboardError("BENCHMARK_DEPS names no dashboard, so nothing can be measured again.")
    with tempfile.TemporaryDirectory() as scratch:
        question, answer = Path(scratch) / "request.json", Path(scratch) / "result.json"
        common.write_json(question, list(request), durable=False)
        verb = [sys.executable, "-m", "dashboard", "remeasure", str(home.root), str(question), str(answer)]
        code = _run([*verb, "--budget", f"{budget_s:.3f}"], root, budget_s + _PATIENCE_S)
        if not answer.is_file():
            raise DashboardError(f"dashboard remeasure ended with {code} and left nothing; the log above says why.")
        value: Any = common.read_json(answer)
    rounds: list[dict[str, Any]] = value["rounds"]
    return rounds


def _run(argv: Sequence[str], root: Path, timeout_s: float) -> int:
    """Its exit code; what it says goes to this stage's log. It is told to end where it takes too long."""
    paths = f"{root}:{root / 'shared' / 'python'}"
    _log.info("%s", " ".join(argv))
    with subprocess.Popen(list(argv), cwd=root, env={**os.environ, "PYTHONPATH": paths}) as process:
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            _log.warning("dashboard remeasure did not end within %.0f s and is ended", timeout_s)
            process.send_signal(signal.SIGTERM)  # so that it ends its own programs
        try:
            return process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
