"""A small home, made of the sample's configs, for whoever wants to see a first page within minutes."""

from __future__ import annotations

import shlex
from pathlib import Path

from dashboard.authoring.smoke import SAMPLE_HOME
from dashboard.plan.job import REPOSITORY
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.stages import EXPERIMENT, SUBSYSTEM

_JOBS = {
    EXPERIMENT.kind: ("canary", "pass_comparison", "relax_opt"),
    SUBSYSTEM.kind: ("stat_alerts", "telemetry", "website"),
}


def make_quick_home(root: Path) -> None:
    """Write the configs of a small home into `root`; DashboardError where something is there already."""
    home, sample = Home(root), Home(SAMPLE_HOME)
    if home.config_file.exists():
        raise DashboardError(f"{root}: already a dashboard home. Leave out --quick to run another night on it.")
    if root.exists() and not (root.is_dir() and not any(root.iterdir())):
        raise DashboardError(f"{root}: folder is not empty. Give a new folder for the home.")
    for kind, names in _JOBS.items():
        for name in names:
            config = common.read_json(sample.config(kind, name) / "config.json")
            smaller = {**config, "size": "smoke"} if kind == EXPERIMENT.kind else config
            home.config(kind, name).mkdir(parents=True)
            common.write_json(home.config(kind, name) / "config.json", smaller)
    common.write_json(home.config_file, common.read_json(sample.config_file))


def format_next_steps(root: Path) -> str:
    """What to do after its first night, as commands."""
    start, home, sample = (shlex.quote(str(path)) for path in (REPOSITORY / "run_dashboard.sh", root, SAMPLE_HOME))
    return f"See it:      {start} --command serve {home}\nNext night:  {start} {home}\nFull sample: {start} {sample}"
