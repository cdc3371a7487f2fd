"""The account of a night: how grave it is, in a headline, in reasons, and what failed. Whoever tells it prints this."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvmdash.dashboard_info import BLOCKED, COMPLETE, FAILED, OK, RUNNING, SKIPPED, Home, JobResult, Night
from tvmdash.dashboard_info.pages import TelemetryPage, read_telemetry
from tvmdash.dashboard_info.stages import EXPERIMENT, pipeline
from tvmdash.errors import DashboardError
from tvmdash.text import describe_missing_backups, elide, format_list
from tvmdash.verdict import MOST_TITLE, SUBSYSTEM, Level, NightVerdict, read_verdict


class NightSeverity(enum.StrEnum):
    """The severity of a night, the gravest first; unknown: of TVM nothing can be said."""

    BAD = "bad"
    WARN = "warn"
    UNKNOWN = "unknown"
    GOOD = "good"


@dataclass(frozen=True)
class Account:
    """The account of a night, in the same words on every page, in every message and in the terminal.

    headline: at most 60 characters. reasons: at most three clauses, the gravest first, without a full stop. jobs: how
    the night's jobs went, as a clause; is_whole: all of them went well. level: the verdict's, None where there is none.
    failures: what failed, in a line each.
    """

    severity: NightSeverity
    headline: str
    reasons: tuple[str, ...]
    jobs: str
    is_whole: bool
    level: Level | None
    failures: tuple[str, ...] = ()

    @property
    def clauses(self) -> tuple[str, ...]:
        """The reasons, and that all jobs went well, where they did and the headline does not say so."""
        return (*self.reasons, self.jobs) if self.is_whole and self.jobs != self.headline else self.reasons


def read_account(home: Home, stamp: str, night: Night | None) -> Account:
    """Give the account of the night `stamp`, from its record, the verdict on it and the machine's telemetry."""
    try:
        verdict, fault = read_verdict(home, stamp), ""
    except DashboardError as error:
        verdict, fault = None, str(error)
    return make_account(night, verdict, read_telemetry(home, stamp), fault)


def make_account(
    night: Night | None, verdict: NightVerdict | None, telemetry: TelemetryPage | None = None, fault: str = ""
) -> Account:
    """Give the account. night: None where its record cannot be read; fault: why the verdict cannot be."""
    jobs, disturbed = _tell_jobs(night), describe_disturbed(telemetry)
    of_tvm, title, reasons = _tell_of_tvm(night, verdict, fault)
    if jobs.severity is NightSeverity.UNKNOWN and verdict is not None and verdict.level is not Level.NO_DATA:
        jobs = replace(jobs, severity=NightSeverity.GOOD)  # what was imported was judged, and needs no experiment
    severity = min((of_tvm, jobs.severity), key=list(NightSeverity).index)
    if jobs.severity != NightSeverity.GOOD:
        # Failed jobs are the news, unless TVM itself is worse; then they stand second.
        if of_tvm in {NightSeverity.GOOD, NightSeverity.UNKNOWN}:
            reasons, title = [jobs.rest, title, *reasons], jobs.title
        else:
            reasons = [*reasons[:1], jobs.words, *reasons[1:]]
    elif disturbed and severity is NightSeverity.GOOD:
        severity = NightSeverity.WARN
        reasons = [disturbed, *reasons]
    elif disturbed:
        reasons = [*reasons[:2], disturbed]
    title = title or jobs.title
    told = tuple(dict.fromkeys(reason for reason in reasons if reason not in {"", title}))[:_REASONS]
    whole = jobs.severity is NightSeverity.GOOD
    failures = tuple(list_failures(night)) if night else ()
    level = verdict.level if verdict else None
    return Account(severity, elide(title, MOST_TITLE), told, jobs.words, whole, level, failures)


def _tell_of_tvm(night: Night | None, verdict: NightVerdict | None, fault: str) -> tuple[NightSeverity, str, list[str]]:
    """Return the severity of what is known of TVM, a title for it, and the reasons."""
    if verdict is None:
        job = next((job for job in night.subsystems if job.name == SUBSYSTEM), None) if night else None
        if night and not fault and job is None:
            return NightSeverity.GOOD, "", ["TVM was not judged, since the subsystem stat_alerts did not run"]
        why = f"The verdict on TVM cannot be read: {fault}" if fault else _explain_unjudged(job) if job else ""
        return NightSeverity.UNKNOWN, "TVM was not judged", [why]
    if verdict.level is Level.REGRESSION:
        severity = NightSeverity.BAD if verdict.new else NightSeverity.WARN
    elif verdict.level in {Level.BLIND, Level.NO_DATA}:
        severity = NightSeverity.UNKNOWN
    else:
        severity = NightSeverity.GOOD if verdict.is_green else NightSeverity.WARN
    return severity, verdict.title or verdict.lead or verdict.headline, list(verdict.reasons or (verdict.headline,))


def describe_disturbed(telemetry: TelemetryPage | None) -> str:
    """Say which of the runs the machine may have disturbed; "" where none."""
    names = [run.experiment for run in telemetry.runs if run.abnormal] if telemetry else []
    if not telemetry or not names:
        return ""
    were = "was" if len(names) == 1 else "were"
    shown = format_list([elide(name, 60) for name in names], _MOST_NAMES)
    return f"{len(names)} of {_count(len(telemetry.runs), 'run')} {were} possibly disturbed: {shown}"


def _explain_unjudged(job: JobResult) -> str:
    step = job.first_failure
    why = f"did not report: {step.message.rstrip('.')}" if step else "has not reported on this night"
    return f"{title_of(job)} {why}"


@dataclass(frozen=True)
class _Jobs:
    """The jobs of a night in words: the first clause, the rest, and all."""

    severity: NightSeverity
    title: str
    rest: str
    words: str


def _tell_jobs(night: Night | None) -> _Jobs:
    """Tell of a night whose experiments have all had their turn; its subsystems may not."""
    if night is None:
        return _Jobs(NightSeverity.WARN, _UNREADABLE, "", _UNREADABLE)
    experiments = sort_experiments(night)
    groups = (
        ([job for job in experiments if job.state == FAILED], "failed"),
        ([job for job in experiments if job.state == BLOCKED], "did not run"),
        ([job for job in experiments if is_unfinished(job)], "did not finish"),
        ([job for job in experiments if is_partly_good(job)], "failed in part"),
        ([job for job in night.subsystems if job.state == FAILED], "failed"),
        ([job for job in night.subsystems if job.state == BLOCKED], "did not run"),
    )
    good = [job for job in experiments if is_good(job)]
    backup = describe_missing_backups([backup.moment for backup in night.missing_backups])
    early = "" if night.state in {RUNNING, COMPLETE} else "the night was stopped early"
    trouble = [early, *(_name(jobs, clause) for jobs, clause in groups if jobs), backup]
    count = f"{len(good)} of {_count(len(experiments), 'experiment')} ok"
    if not experiments:
        count = "no experiment ran"
    elif len(experiments) == len(good):
        count = f"all {len(good)} experiments ok" if len(good) > 1 else f"{elide(title_of(good[0]), 60)} ok"
    if early or (experiments and not any(is_good(job) or is_partly_good(job) for job in experiments)):
        severity = NightSeverity.BAD
    elif any(trouble):
        severity = NightSeverity.WARN
    else:
        severity = NightSeverity.GOOD if experiments else NightSeverity.UNKNOWN
    title, *rest = filter(None, (*trouble, count))
    return _Jobs(severity, _begin(title), _begin("; ".join(rest)), _begin("; ".join((title, *rest))))


def is_good(job: JobResult) -> bool:
    """Return True where all of the job's stages went well, and no point of it failed."""
    return job.state not in {FAILED, BLOCKED} and not is_unfinished(job) and not job.failed_points


def is_partly_good(job: JobResult) -> bool:
    """Return True where its stages went well, but points failed or gave a wrong answer."""
    return job.state not in {FAILED, BLOCKED} and not is_unfinished(job) and job.failed_points > 0


def is_unfinished(job: JobResult) -> bool:
    """Return True where nothing stopped it, and yet it has not been through all its stages."""
    return job.state not in {FAILED, BLOCKED} and not _list_needed(job.kind) <= {step.stage for step in job.steps}


@functools.cache
def _list_needed(kind: str) -> frozenset[str]:
    """The stages that a job of this kind must go through: a site asks it of every job of its nights."""
    return frozenset(stage.name for stage in pipeline(kind).stages if not stage.optional)


def sort_experiments(night: Night) -> list[JobResult]:
    """The night's experiments in the order in which people look for them."""
    return sorted(night.experiments, key=lambda job: (title_of(job).lower(), job.name))


def title_of(job: JobResult) -> str:
    return job.title.strip() or job.name


def _begin(text: str) -> str:
    """The text as the begin of a sentence, where it does not begin with a name."""
    return text[:1].upper() + text[1:] if text.startswith(("all ", "no ", "the ", "subsystem")) else text


def _name(jobs: Sequence[JobResult], clause: str) -> str:
    """Name the jobs, as in "ResNet and LSTM failed", or "5 experiments failed" where names would hide the rest."""
    kind = "" if jobs[0].kind == EXPERIMENT.kind else f"subsystem{'' if len(jobs) == 1 else 's'} "
    if len(jobs) > _MOST_NAMES:
        return f"{_count(len(jobs), jobs[0].kind)} {clause}"
    width = _WIDTH if len(jobs) > 1 else 2 * _WIDTH
    return f"{kind}{format_list([elide(title_of(job), width) for job in jobs], _MOST_NAMES)} {clause}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


_REASONS, _MOST_NAMES, _WIDTH = 3, 3, 24
_UNREADABLE = "The record of the night cannot be read"
_NAMED = 8
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^ +File "(?:[^"\n]*/)?([^"/\n]+)", line (\d+)', re.MULTILINE)
STATE_WORDS = {OK: "ok", SKIPPED: "kept", FAILED: "FAILED", BLOCKED: "blocked"}
"""Words for the state of a step or a job."""


def list_failures(night: Night) -> list[str]:
    """One line per failed job; jobs of a kind that were blocked by the same cause share a line."""
    groups: dict[tuple[str, ...], list[JobResult]] = {}
    for job in night.jobs:
        step = job.first_failure
        is_blocked = step is not None and step.state == BLOCKED
        if not job.well:
            groups.setdefault((job.kind, *(step.cause if step and is_blocked else (job.name,))), []).append(job)
    return [_format_failure(jobs[0]) if len(jobs) == 1 else _format_stopped(jobs) for jobs in groups.values()]


def _format_stopped(jobs: Sequence[JobResult]) -> str:
    names, step = format_list([job.name for job in jobs], _NAMED), jobs[0].first_failure
    return f"{jobs[0].kind}s {names} {STATE_WORDS[BLOCKED]}: {elide(step.message if step else '', 400)}"


def _format_failure(job: JobResult) -> str:
    step = job.first_failure
    if step is None:
        points = "point" if job.failed_points == 1 else "points"
        return f"{job.kind} {job.name}: {job.failed_points} {points} FAILED; see its summary for which and why"
    last = step.log_tail.strip().rpartition("\n")[2]
    is_told = step.in_log or last in step.message
    log = "" if is_told else f". Last line of output: {_place(step.log_tail)}{elide(last, 200)}"
    said = elide(step.message, 400)
    return f"{job.kind} {job.name} {STATE_WORDS[job.state]}: {step.stage}: {said.rstrip('.') if log else said}{log}"


def _place(log: str) -> str:
    """The innermost file and line of the Python traceback that ends a log, to stand before words; empty without one."""
    _, begin, end = log.strip().rpartition(_TRACEBACK)
    frames, others = _FRAME.findall(end), [line for line in end.splitlines() if line and not line.startswith(" ")]
    return f"{frames[-1][0]}:{frames[-1][1]}: " if begin and frames and len(others) == 1 else ""
