"""The dashboard's own verbs, called by a subsystem from within the night that it is a part of."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.config_util import JobConfig
from tvmdash.dashboard_info import Home, Night
from tvmdash.dashboard_info.stages import pipeline
from tvmdash.errors import DashboardError

SHARE = 0.75
"""Share of the stage's time limit for measuring: the rest is for judging, the last analysis, and cleanup."""
_GRACE_S = 15.0
_log = logging.getLogger("within_night")


def repository() -> Path | None:
    """Return the dashboard that this stage belongs to; None where no dashboard started it."""
    deps = os.environ.get("BENCHMARK_DEPS")
    return Path(deps).parent if deps and (Path(deps).parent / "dashboard").is_dir() else None


def allowed_s(wanted_s: float, config: JobConfig | Mapping[str, Any], home: Home, tonight: Night) -> tuple[float, str]:
    """Return how many of these seconds a subsystem with this config may measure tonight, and why none (else empty)."""
    if os.environ.get("TVMDASH_NIGHT") != tonight.stamp or repository() is None:
        return 0.0, "not within a night"
    own = config.timeouts if isinstance(config, JobConfig) else config.get("timeouts", {})
    return min(wanted_s, SHARE * _timeout_s(own, home)), ""


def _timeout_s(own: Mapping[str, int], home: Home) -> float:
    """Return the stage's own time limit, as the night takes it: the job's, else the home's, else the protocol's."""
    try:
        value = common.read_json(home.config_file)
    except DashboardError:  # the night has read it; what became of it meanwhile is not this stage's affair
        value = {}
    timeouts = value.get("timeouts", {}) if isinstance(value, dict) else {}
    run_s = own.get("run") or (timeouts.get("run") if isinstance(timeouts, dict) else None)
    if not isinstance(run_s, (int, float)) or not run_s:
        run_s = pipeline("subsystem").stage("run").timeout_s
    return float(run_s)


def call(*arguments: str, timeout_s: float) -> int:
    """Run `python -m dashboard ARGUMENTS` and return its exit code; its output goes to this stage's log.

    It is told to end where it takes too long. DashboardError where no dashboard started this stage.
    """
    root = repository()
    if root is None:
        raise DashboardError("BENCHMARK_DEPS does not point to a dashboard, so nothing can be remeasured.")
    argv = [sys.executable, "-m", "dashboard", *arguments]
    paths = f"{root}:{root / 'shared' / 'python'}"
    _log.info("%s", " ".join(argv))
    with subprocess.Popen(argv, cwd=root, env={**os.environ, "PYTHONPATH": paths}) as process:
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            _log.warning("dashboard %s timed out after %.0f s and was stopped", arguments[0], timeout_s)
            process.send_signal(signal.SIGTERM)  # so that it ends its own programs
        try:
            return process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
