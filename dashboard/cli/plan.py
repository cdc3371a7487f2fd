"""`plan`: print what a night would do, on which TVMs and against which references."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.provide import Lookup, look_up
from dashboard.artifacts.runtimes.survey import DeviceFinding
from dashboard.artifacts.spec import LATEST, WHEEL, provider_of
from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb, find_code
from dashboard.night import setup_cache
from dashboard.night.deadlines import NightDeadlines, is_shortened
from dashboard.plan.job import Alone, Job, Plan
from dashboard.plan.plan import make_plan
from dashboard.plan.reference import (
    ExpectedReference,
    Forecast,
    find_named,
    forecast_references,
    format_spec,
    list_paired,
)
from dashboard.plan.settings import Launcher, ReferenceRule
from tvmdash import common, config_util
from tvmdash.dashboard_info import HOST_SIGN, Home, JobResult
from tvmdash.errors import DashboardError
from tvmdash.records import data_stamps
from tvmdash.text import format_duration, format_list

_NIGHTS_BACK = 30
"""Nights searched for one that measured in full."""
_LOOK_UP_S = 30.0
"""The limit for all TVMs of a home together: people wait, and pip gives up a silent index after minutes only."""
_NAMED = 8
_WHY_ALONE: Mapping[Alone, str] = MappingProxyType(
    {
        Alone.NO_TVM: "needs no TVM",
        Alone.OWN_TVM: "has a TVM of its own",
        Alone.NOT_PAIRED: "paired is false",
        Alone.UNDECLARED: "does not declare beside_reference",
    }
)


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    add_no_look_up(add_home_verb(verbs, "plan", _plan, "print what a night would do without running anything"))


def _plan(arguments: argparse.Namespace) -> int:
    plan = make_plan(Home(arguments.home), find_code(arguments), seed=arguments.seed)
    print(summarize_plan(plan, survey_tvms(plan, rebuild=not arguments.no_rebuild_tvm)))
    return SOME_FAILED if plan.rejected else OK_CODE


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
    lines += _summarize_durations(plan)
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


def add_no_look_up(parser: argparse.ArgumentParser) -> None:
    """Add the option of who would rather know what is at hand than ask where TVM comes from."""
    text = "do not look up TVM; tell what a night with this option would use"
    parser.add_argument("--no-rebuild-tvm", action="store_true", help=text)


def survey_tvms(plan: Plan, *, rebuild: bool) -> list[DeviceFinding]:
    """Describe each TVM and named reference of a night that began now; a fault where it would have none.

    rebuild: the night may fetch one, so the sources are asked.
    """
    deadline, config = LockDeadline(_LOOK_UP_S), plan.config
    findings = []
    named = dict.fromkeys(find_named(tvm, config) for tvm in list_paired(plan.experiments, config))
    for spec in dict.fromkeys((*plan.artifacts, *filter(None, named))):
        found = look_up(spec, config.artifacts, deadline, rebuild=rebuild, fallback=config.fallback)
        text = f"TVM: {format_spec(spec)}{_format_names(plan, spec)}{_format_found(spec, found)}"
        findings.append(DeviceFinding(text, is_fault=bool(found.fault) and not found.version))
    return findings


def _format_names(plan: Plan, spec: ArtifactSpec) -> str:
    names = dict.fromkeys(job.variant for job in plan.experiments if job.tvm == spec and job.variant)
    return f", as {', '.join(names)}" if names else ", as reference" if spec not in plan.artifacts else ""


def _format_found(spec: ArtifactSpec, found: Lookup) -> str:
    asked = f" (asked at {common.utc_now():%H:%M} UTC)" if found.is_asked else ""
    if not found.version:
        none = f"a night that began now would have none{asked}: {found.fault}"
        return f": {none if found.fault else 'none is at hand.'}"
    version = f": {found.version}, " if spec.branch == LATEST else ": "
    if found.fault:
        return f"{version}at hand; the source does not say what is newest{asked}: {found.fault}"
    if found.is_at_hand:
        return f"{version}at hand{asked}."
    return f"{version}to be downloaded{asked}." if provider_of(spec) == WHEEL else "."


def summarize_references(plan: Plan) -> list[str]:
    """Write a line for each TVM, and one for the experiments that are measured alone."""
    if plan.config.reference is ReferenceRule.NONE:
        return ["Reference: none (disabled in the config)."] if plan.artifacts else []
    lines = [f"Reference of TVM {format_spec(item.tvm)}: {_describe(item)}." for item in forecast_references(plan)]
    alone = [f"{job.name} ({_WHY_ALONE[job.alone]})" for job in plan.experiments if job.alone]
    return [*lines, *([f"Measured alone: {format_list(alone, _NAMED)}."] if lines and alone else [])]


_UNKNOWN: Mapping[ExpectedReference, str] = MappingProxyType(
    {
        ExpectedReference.ITSELF: "itself (an A/A test)",
        ExpectedReference.RELEASE_BEFORE: "the previous release, which the night looks up in the package index",
        ExpectedReference.NIGHTLY_BEFORE: "the version before it, which the night looks up where the wheels come from",
        ExpectedReference.FIRST_BUILD: "none; no earlier night built it",
    }
)
"""Descriptions of references that have no name before the night begins."""


def _describe(item: Forecast) -> str:
    match item.expected:
        case ExpectedReference.NAMED:
            return item.reference
        case ExpectedReference.KEPT:
            newer = f"; if tonight's TVM is no longer {item.last}, the release before it" if item.last else ""
            return f"TVM {item.reference}, as on previous nights{newer}"
        case ExpectedReference.BUILD_BEFORE:
            return f"the last build before it that differs; the last night measured {item.last}"
        case _:
            return _UNKNOWN[item.expected]


@dataclass(frozen=True)
class DurationEstimate:
    """Seconds of all stages of a job together, None where nothing tells; `source` says whose word that is."""

    job: Job
    seconds: float | None
    source: str

    def __str__(self) -> str:
        size = f" ({self.job.config['size']})" if "size" in self.job.config else ""
        duration = format_duration(self.seconds) if self.seconds is not None else "unknown"
        return f"{self.job.name}{size}: {duration}{', ' if self.source else ''}{self.source}"


def _summarize_durations(plan: Plan) -> list[str]:
    """Format a line for each job, and the sum."""
    estimated = [_estimate(plan.home, job) for job in (*plan.experiments, *plan.away, *plan.subsystems)]
    if not estimated:
        return []
    hosts = dict.fromkeys(item.job.host for item in estimated)
    together = [_sum_up([item for item in estimated if item.job.host == host], host) for host in hosts]
    return ["Time:", *(f"  {item}" for item in estimated), *together]


def _sum_up(estimated: Sequence[DurationEstimate], host: str) -> str:
    known = [item.seconds for item in estimated if item.seconds is not None]
    unknown = len(estimated) - len(known)
    rest = f", and {unknown} of {len(estimated)} jobs whose time is unknown" if unknown else ""
    total = format_duration(sum(known)) if known else "unknown"
    return f"  Together{f' on {host}, at the same time,' if host else ''} {total}{rest}; without the time to get TVM."


def _estimate(home: Home, job: Job) -> DurationEstimate:
    for name in dict.fromkeys((job.name, job.experiment)):  # one that is new on a TVM: as on the home's own
        stamps = _find_alike(home, job, name) if job.measures else _find_newest(home)
        results = {stamp: _read_result(home, job.kind, name, stamp) for stamp in dict.fromkeys(stamps)}
        went_well = {stamp: result.elapsed_s for stamp, result in results.items() if result and _is_whole(result)}
        if went_well:
            return _describe_nights(job, name, went_well)
    stated = config_util.read_takes_minutes(job.folder / config_util.FIELDS_FILE) if job.measures else {}
    minutes = stated.get(job.config.get("size", ""))
    bound = job.config.get("max_minutes")
    if minutes and isinstance(bound, (int, float)) and bound < minutes:
        return DurationEstimate(job, bound * 60, "by its max_minutes")
    return DurationEstimate(job, minutes and minutes * 60, "by its author with its defaults" if minutes else "")


def _is_whole(result: JobResult) -> bool:
    return bool(result.steps) and all(step.success for step in result.steps)


def _describe_nights(job: Job, name: str, seconds: Mapping[str, float]) -> DurationEstimate:
    """Estimate by the first of the nights; the second one, if any, had less to measure."""
    (stamp, elapsed_s), *shorter = seconds.items()
    source = f"as {f'{name} ' if name != job.name else ''}on {stamp}"
    for other, less_s in shorter:
        source += f"; {format_duration(less_s)} where TVM is unchanged, as on {other}"
    return DurationEstimate(job, elapsed_s, source)


def _find_newest(home: Home) -> list[str]:
    return list(home.night_stamps())[-1:]


def _find_alike(home: Home, job: Job, name: str) -> list[str]:
    """Nights of `name` with the files and config of today: the newest that measured in full, and the newest."""
    now, found = setup_cache.fingerprint(job.folder, job.config), list[str]()
    for stamp in data_stamps(home.data(name))[: -_NIGHTS_BACK - 1 : -1]:
        try:
            value = common.read_json(home.data_file(name, stamp))
        except DashboardError:
            break
        if common.object_in(value, "night").get("fingerprint") != now:
            break
        found.append(stamp)
        if not is_shortened(value):
            return [stamp, found[0]]
    return found[:1]


def _read_result(home: Home, kind: str, name: str, stamp: str) -> JobResult | None:
    try:
        night = home.read_night(stamp)
    except DashboardError:
        return None
    return next((item for item in night.jobs if (item.kind, item.name) == (kind, name)), None)
