"""`check`: report all configuration errors of a home at once, before a night hits them one by one."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.cli.arguments import OK_CODE, USAGE, Verbs, add_home_verb, find_code
from dashboard.cli.devices import survey_devices
from dashboard.cli.plan import add_no_look_up, summarize_references, survey_tvms
from dashboard.hosts import launcher
from dashboard.night import folders, lock
from dashboard.night.context import stage_environment
from dashboard.night.publish import describe_own
from dashboard.plan.home_config import read_home_config
from dashboard.plan.job import CodeFolders, Job, Plan
from dashboard.plan.plan import find_jobs, make_plan
from dashboard.process import process
from dashboard.schedule import refusal
from dashboard.schedule.refusal import Ending
from dashboard.upkeep.finding import HomeFinding, Severity, make_fault, make_warning
from tvmdash import config_util, records
from tvmdash.common.files import trees
from tvmdash.config_util import CONFIG_FILE, ConfigError
from tvmdash.dashboard_info import RUNNING, Home
from tvmdash.errors import DashboardError
from tvmdash.notify.state import SUBSYSTEM, THREADS
from tvmdash.records.metrics import Declarations

OWN_CHECK = "check.sh"
"""A job's script that `check` calls with its config folder and the home; each line that it prints is a fault."""
_CHECK_S = 60


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    add_no_look_up(add_home_verb(verbs, "check", _check, "report every problem in a home's configuration at once"))


def _check(arguments: argparse.Namespace) -> int:
    home, code = Home(arguments.home), find_code(arguments)
    faults, found = find_faults(home, code), []
    with contextlib.suppress(DashboardError):  # what keeps the home from having a plan is among the faults
        plan = make_plan(home, code)
        found = [*survey_tvms(plan, rebuild=not arguments.no_rebuild_tvm), *survey_devices(plan)]
    faults += [line.text for line in found if line.is_fault]
    good = [line.text for line in found if not line.is_fault] + list_set_aside(home)
    if (start := judge_last_start(home)) is not None:  # what was refused may have been mended since
        (faults if start.severity is Severity.FAULT else good).append(f"{start.text} {start.remedy}")
    if not faults:
        plan = make_plan(home, code)
        said = [f"{arguments.home}: no problems found.", *summarize_references(plan), *plan.retired]
        good = [*said, *_describe_metrics(plan), *good]
    print("\n".join([*faults, *good]))
    return USAGE if faults else OK_CODE


def judge_last_start(home: Home) -> HomeFinding | None:
    """Return a finding where the last start led to no complete night; None where it did well, or a night runs."""
    last = next(home.last_nights(1), None)
    if lock.is_held(home):
        return None
    if (ended := refusal.read(home)) is not None:
        make = make_warning if ended.ending is Ending.REFUSED else make_fault
        return make("last start", str(ended), f"The next night that begins clears this: ./run_dashboard.sh {home.root}")
    if last is not None and last.state == RUNNING:
        text = f"The night {last.stamp} was killed or lost power."
        return make_warning("last start", text, "The next night saves what it had measured.")
    return None


def list_set_aside(home: Home) -> list[str]:
    """Describe each thing that nights could not tidy and moved aside."""
    with contextlib.suppress(DashboardError):  # what is wrong with the config is among the faults
        paths = folders.list_set_aside(read_home_config(home).tmp_data)
        return [
            f"{path}: a night could not tidy this and moved it aside. Delete it once nobody needs it." for path in paths
        ]
    return []


def find_faults(home: Home, code: CodeFolders) -> list[str]:
    """Find the faults of configs, scripts, folders, disk space and tools, one sentence each."""
    try:
        plan = make_plan(home, code)
    except DashboardError as error:
        listed = find_jobs(home, code, ArtifactSpec("pypi", "latest"))
        own = [*error.faults] if isinstance(error, ConfigError) else [str(error)]
        return [*own, *(fault for job in listed for fault in job.faults)]
    rejected = [fault for job in plan.rejected for fault in job.faults]
    jobs = [job for job in (*plan.experiments, *plan.away, *plan.subsystems) if not job.variant]
    jobs = list({(job.kind, job.experiment): job for job in jobs}.values())
    own = [fault for job in jobs for fault in _find_own_faults(job, plan)]
    elsewhere = [*_find_folder_faults(plan), *_find_tool_faults(), *_report_empty(plan)]
    return [*plan.config.warnings, *rejected, *own, *elsewhere, *_find_route_faults(plan), *_find_host_faults(plan)]


def _describe_metrics(plan: Plan) -> Iterator[str]:
    """Describe each experiment's own metrics as declared and as in its last data."""
    for job in plan.experiments:
        declared = Declarations(config_util.read_metrics(job.folder / config_util.FIELDS_FILE))
        data, stamps = None, records.data_stamps(plan.home.data(job.name))
        if stamps:
            with contextlib.suppress(DashboardError):  # `doctor` says what is wrong with it
                data = records.read_data(plan.home.data_file(job.name, stamps[-1]), job.name)
        yield from describe_own(job.name, dict(declared), data)


def _find_own_faults(job: Job, plan: Plan) -> Iterator[str]:
    """Yield the faults that the job's own check.sh finds in its config, beyond what fields.json can express."""
    script = job.folder / OWN_CHECK
    if not script.is_file():
        return
    with trees.scratch_folder() as scratch:
        log = scratch / "log"
        env = stage_environment(
            job,
            home_root=plan.home.root,
            stamp="",
            seed=plan.seed,
            env_name=plan.config.env_name,
            scratch=scratch,
            cache=scratch,
            artifact=None,
            added=plan.config.env,
        )
        argv = [str(script), str(job.config_folder), str(plan.home.root)]
        try:
            outcome = process.run(argv, cwd=job.folder, env=env, timeout_s=_CHECK_S, log=log)
        except DashboardError as error:
            yield str(error)
            return
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    if outcome.exit_code == 0 and not outcome.timed_out:
        yield from lines
    else:
        ended = f"exit status {outcome.exit_code}" if outcome.signal is None else f"signal {outcome.signal}"
        how = f"did not end in {_CHECK_S} s" if outcome.timed_out else f"failed ({ended})"
        yield f"{script}: {how}, so {job.name}'s config was not checked: {' '.join(lines[-1:])}"


def _find_folder_faults(plan: Plan) -> Iterator[str]:
    for folder in (plan.home.root, *plan.config.folders):
        existing = _find_first_existing(folder)
        if not existing.is_dir():
            yield f"{folder}: {existing} is not a folder. Move it away, or choose another folder."
            continue
        if not os.access(existing, os.W_OK | os.X_OK):
            yield f"{existing}: this user has no write permission. Change the owner, or choose another folder."
            continue
        free = shutil.disk_usage(existing).free
        if free < plan.config.min_free_bytes:
            yield f"{folder}: only {free / 1e6:.0f} MB free, less than min_free_mb. Free some space there."


def _find_route_faults(plan: Plan) -> Iterator[str]:
    """Routes that nobody serves, or that cannot be opened; other faults of one the subsystem's own check finds."""
    from tvmdash.notify.config import RouteKind, read_what_is_good  # the detector's imports cost the other verbs time
    from tvmdash.notify.service import SENDERS

    active = {job.name for job in plan.subsystems}
    for route in read_what_is_good(plan.home).routes.values():
        try:
            SENDERS[route.kind](route, plan.home.root)
        except DashboardError as error:
            yield f"{plan.home.config_file}: $.routes.{route.name}: {error}"
        subsystem = THREADS if route.kind is RouteKind.SLACK else SUBSYSTEM
        if subsystem not in active:
            config = plan.home.configs("subsystem") / subsystem / CONFIG_FILE
            yield (
                f"{plan.home.config_file}: $.routes.{route.name}: no active subsystem sends messages on this route. "
                f"Set active to true in {config}."
            )


def _find_host_faults(plan: Plan) -> Iterator[str]:
    """Yield the obstacles to measuring on each host that has something to measure."""
    names = {job.host for job in plan.away}
    hosts = [host for name, host in plan.config.hosts.items() if name in names]
    # All at once: a host that does not answer takes a minute.
    with ThreadPoolExecutor(max(1, len(hosts))) as pool:
        for faults in pool.map(launcher.find_faults, hosts):
            yield from faults


def _find_first_existing(path: Path) -> Path:
    """Find the nearest folder above `path` that exists; one that this user may not look into counts."""
    return next(candidate for candidate in (path, *path.parents) if os.path.lexists(candidate))


def _find_tool_faults() -> Iterator[str]:
    if shutil.which("bash", path="/usr/local/bin:/usr/bin:/bin") is None:
        yield "bash: not found in /usr/local/bin, /usr/bin or /bin. Install it; the stage scripts need it."
    if not Path("/proc/self/environ").exists():
        yield "/proc is not mounted. The dashboard needs Linux with /proc."


def _report_empty(plan: Plan) -> Iterator[str]:
    if not plan.experiments and not plan.away and not plan.rejected:
        yield (
            f"{plan.home.configs('experiment')}: no experiment is active. Set active to true in an experiment's "
            "config.json."
        )
