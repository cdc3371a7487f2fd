"""A small home, made of the sample's configs, for whoever wants to see a first page within minutes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from dashboard.plan.job import REPOSITORY, SAMPLE_HOME
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.dashboard_info.stages import EXPERIMENT, SUBSYSTEM
from tvmdash.errors import DashboardError

_SMALL = {"size": "smoke"}
_IN_TURN = {**_SMALL, "pairs": 5, "max_pairs": 5, "repeat": 5, "min_repeat_ms": 5.0, "max_seconds": 0.2}
"""More than a smoke test: fewer pairs prove nothing, and with 1 ms samples a pair scatters by 8 %."""
_JOBS: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    EXPERIMENT.kind: {"canary": _SMALL, "pass_comparison": _IN_TURN, "relax_opt": _IN_TURN},
    SUBSYSTEM.kind: {"stat_alerts": {}, "telemetry": {}, "website": {}},
}
"""Changes to the sample's config of each job."""


def make_quick_home(root: Path) -> None:
    """Write the configs of a small home into `root`; DashboardError where something is there already."""
    home, sample = Home(root), Home(SAMPLE_HOME)
    if home.config_file.exists():
        raise DashboardError(f"{root}: already a dashboard home. Leave out --quick to run another night on it.")
    if root.exists() and not (root.is_dir() and not any(root.iterdir())):
        raise DashboardError(f"{root}: folder is not empty. Give a new folder for the home.")
    for kind, jobs in _JOBS.items():
        for name, changes in jobs.items():
            config = common.read_json(sample.config(kind, name) / "config.json")
            home.config(kind, name).mkdir(parents=True)
            common.write_json(home.config(kind, name) / "config.json", {**config, **changes})
    common.write_json(home.config_file, common.read_json(sample.config_file))


def format_next_steps(root: Path) -> str:
    start, home, sample = (shlex.quote(str(path)) for path in (REPOSITORY / "run_dashboard.sh", root, SAMPLE_HOME))
    return f"See it:      {start} --command serve {home}\nNext night:  {start} {home}\nFull sample: {start} {sample}"
