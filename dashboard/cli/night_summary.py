"""The summary of a night, and the output of `plan` and `status`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.artifacts.runtimes.survey import DeviceFinding
from dashboard.cli.references import summarize_references
from dashboard.night import estimate, progress, setup_cache
from dashboard.night.deadlines import NightDeadlines
from dashboard.plan.hosts import Launcher
from dashboard.plan.job import Job
from dashboard.plan.night_plan import Plan
from tvmdash import common
from tvmdash.dashboard_info import (
    COMPLETE,
    HOST_SIGN,
    INTERRUPTED,
    RUNNING,
    Home,
    HostNight,
    HostState,
    JobResult,
    Night,
)  # fmt: skip
from tvmdash.notify.state import format_fault, read_states
from tvmdash.text import align, describe_missing_backups, format_duration, format_list
from tvmdash.verdict.account import STATE_WORDS, list_failures, read_account


def summarize_night(home: Home, night: Night) -> str:
    """Summarize a night: what happened, what failed and why, which TVM was measured, where the page is."""
    took = f" It took {format_duration(night.elapsed_s)}." if night.elapsed_s else ""
    lines = [f"{_format_headline(home, night)}{took}"]
    if night.state == RUNNING:
        lines = [_format_headline(home, night), *_summarize_running(home, night)]
    lines += [f"  {line}" for line in list_failures(night)]
    lines += [f"  Note: {note}" for note in night.untold_notes]
    if night.artifacts:
        lines.append(f"Measured TVM: {format_list([_format_artifact(item, night) for item in night.artifacts], 5)}.")
    if night.pairs:
        lines.append(f"Measured in turn: {night.pairs} pairs of processes, {night.speed_of_pairs}.")
    if night.hosts:
        lines.append(f"Hosts: {', '.join(_format_host_night(host, night) for host in night.hosts)}.")
    if night.state == COMPLETE and (longest := [job for job in _sort_by_time(night)[:3] if job.elapsed_s]):
        lines.append(f"Longest: {format_list(list(map(_format_longest, longest)), 3)}.")
    lines += filter(None, map(format_fault, read_states(home)))
    page = home.page()
    if page:
        lines.append(f"{'Page' if night.state == COMPLETE else 'Last page written'}: {page.as_uri()}")
    elif night.state == COMPLETE:
        lines.append(f"No page was written; the results are in {home.root / 'results'}.")
    return "\n".join(lines)


def _summarize_running(home: Home, night: Night) -> list[str]:
    """Describe a running night: its current step, since when, and its progress."""
    now = progress.read_now(home, night.stamp)
    if now is None:
        return []
    doing = [
        f"  Now: {what}{_format_points(now.points.get(what))}, since {common.format_moment(since)}."
        f"{_format_usual(now.usual_s.get(what))}"
        for what, since in now.running
        if common.is_stamp(since)
    ]
    return [*(doing or ["  Now: between steps."]), f"  {now.done} of {now.total} steps done."]


def _format_points(points: tuple[int, int] | None) -> str:
    return f", {points[0]} of {points[1]} points measured" if points else ""


def _format_usual(usual_s: float | None) -> str:
    return f" Usual duration: {format_duration(usual_s)}." if usual_s is not None else ""


def _format_headline(home: Home, night: Night) -> str:
    if night.state in {INTERRUPTED, RUNNING}:
        state = (
            "was interrupted; the next night saves its measurements"
            if night.state == INTERRUPTED
            else "is still running"
        )
        return f"Night {night.stamp} {state}."
    if not night.jobs:
        backup = describe_missing_backups([backup.moment for backup in night.missing_backups])
        also = f" {backup[0].upper()}{backup[1:]}." if backup else ""
        return f"Night {night.stamp}: nothing to do; no experiment and no subsystem is active.{also}"
    account = read_account(home, night.stamp, night)
    return f"Night {night.stamp}: {'. '.join((account.headline, *account.clauses))}."


def _format_artifact(artifact: Mapping[str, Any], night: Night) -> str:
    commit = f" ({artifact['commit']})" if artifact.get("commit") else ""
    return " ".join(filter(None, (f"{artifact.get('version', '?')}{commit}", night.describe_references(artifact))))


def _format_host_night(host: HostNight, night: Night) -> str:
    if host.state is not HostState.MEASURED:
        return f"{host.name} did not ({host.state})"
    what = "measured" if night.has_run_on(host.name) else "measured nothing"
    return f"{host.name} {what} in {format_duration(host.elapsed_s)}"


def _sort_by_time(night: Night) -> list[JobResult]:
    return sorted(night.jobs, key=lambda job: -job.elapsed_s)


def _format_longest(job: JobResult) -> str:
    return f"{job.name} {format_duration(job.elapsed_s)}"


def summarize_status(home: Home, night: Night) -> str:
    """The night as a table: a row for each job, a column for each stage."""
    stages = list(dict.fromkeys(step.stage for job in night.jobs for step in job.steps))
    rows = [["", *stages, "time"]]
    for job in night.jobs:
        states = {step.stage: STATE_WORDS.get(step.state, step.state) for step in job.steps}
        rows.append(
            [f"{job.kind} {job.name}", *(states.get(stage, "-") for stage in stages), format_duration(job.elapsed_s)]
        )
    return "\n".join([summarize_night(home, night), "", *align(rows)])


def summarize_plan(plan: Plan, tvms: Sequence[DeviceFinding]) -> str:
    """Describe what a night would do, in order, on these TVMs, and which jobs are rejected and why."""
    seed = "drawn when the night starts; the order below is an example" if plan.drawn else f"seed {plan.seed}"
    order = f"in random order ({seed})" if plan.config.randomize else "by priority, then name"
    own = [job for job in plan.experiments if not job.variant]
    lines = [f"Home {plan.home.root}: {len(own)} experiments {order}, {len(plan.subsystems)} subsystems."]
    lines += [_format_host(plan, host) for host in dict.fromkeys(job.host for job in plan.away)]
    lines += [item.text for item in tvms]
    if (plan.experiments or plan.away) and not plan.artifacts:
        lines.append("TVM: none; no experiment needs it.")
    lines += summarize_references(plan)
    if len(own) < len(plan.experiments):
        lines.append("Experiments on several TVMs run on each TVM in turn; the first one rotates from night to night.")
    lines += _format_phases(plan)
    lines += estimate.summarize(plan)
    if plan.inactive:
        lines.append(f"Not active: {', '.join(plan.inactive)}")
    lines += plan.retired
    lines += plan.config.warnings
    for job in plan.rejected:
        lines += [f"Rejected: {job.kind} {job.name}", *(f"  {fault}" for fault in job.faults)]
    return "\n".join(lines)


def _format_host(plan: Plan, name: str) -> str:
    """Describe a host: its experiments, the way to it, and its time limit."""
    host = plan.config.hosts[name]
    jobs = [job.name.replace(f"{HOST_SIGN}{name}", "") for job in plan.away if job.host == name]
    way = (
        f"ssh {host.address}" if host.launcher is Launcher.SSH else f"Slurm{f', node {host.node}' if host.node else ''}"
    )
    return f"Host {name} ({way}): {', '.join(jobs)} (at most {format_duration(host.time_limit_s)})."


def _format_phases(plan: Plan) -> list[str]:
    lines = []
    deadlines = NightDeadlines(plan.home, plan.config)
    stages = dict.fromkeys(stage.name for job in plan.experiments for stage in job.stages)
    order = [name for name in ("setup", "run", "analyze", "visualize", "summarize") if name in stages]
    for name in order:
        names = [
            _format_step(job, plan, name, deadlines)
            for job in plan.experiments
            if any(stage.name == name for stage in job.stages)
        ]
        lines.append(f"{name + ':':<11}{', '.join(names)}")
    if plan.subsystems:
        lines.append(
            f"{'subsystem:':<11}{', '.join(_format_step(job, plan, 'run', deadlines) for job in plan.subsystems)}"
        )
    return lines


def _format_step(job: Job, plan: Plan, name: str, deadlines: NightDeadlines) -> str:
    stage = next(stage for stage in job.stages if stage.name == name)
    deadline = deadlines.find(job, stage, setup_cache.fingerprint(job.folder, job.config))
    usual = f", usually {format_duration(deadline.usual_s)}" if deadline.usual_s is not None else ""
    own_tvm = f" on TVM {job.tvm.branch}" if name == "run" and job.tvm and job.tvm != plan.config.tvm else ""
    return f"{job.name}{own_tvm} (at most {format_duration(deadline.seconds)}{usual})"
