"""A night as its readers see it: states that tell what did not run, a verdict in words, failures grouped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tvmdash import common, dashboard_info
from tvmdash.dashboard_info import JobResult, Night, StepResult
from tvmdash.dashboard_info.stages import PRECHECK
from tvmdash.text import describe_missing_backups, format_duration, format_list
from tvmdash.verdict.account import is_unfinished

OK, FAILED, BLOCKED, SKIPPED = "ok", "failed", "blocked", "skipped"
UNFINISHED, ABSENT, PARTIAL = "unfinished", "absent", "partial"
"""Partial: the stages are ok, but points failed, which only the data tells."""
ICONS = {OK: "✓", PARTIAL: "!", FAILED: "✗", BLOCKED: "⊘", SKIPPED: "↷", UNFINISHED: "…", ABSENT: "\u2013"}
STATE_WORDS = {
    OK: "ok",
    PARTIAL: "partly failed",
    FAILED: "failed",
    BLOCKED: "blocked",
    SKIPPED: "kept",
    UNFINISHED: "not finished",
    ABSENT: "not run",
}


@dataclass(frozen=True)
class NightFailure:
    """One thing that went wrong, for one job, or for all `jobs` that are blocked by the same."""

    state: str
    jobs: tuple[JobResult, ...]
    step: StepResult


@dataclass(frozen=True)
class NightVerdictView:
    """A night in words; `counts` are of its experiments by state, in the order in which they are told."""

    state: str
    headline: str
    completeness: str
    counts: Mapping[str, int]
    elapsed: str
    versions: tuple[str, ...]


def job_state(job: JobResult) -> str:
    """Return its state; not finished where a stage that it must go through has no outcome and nothing stopped it."""
    if job.state != dashboard_info.OK:
        return job.state
    return UNFINISHED if is_unfinished(job) else OK


def cell(job: JobResult) -> str:
    """Return the state of an experiment on a night; partial where its stages are ok and points failed."""
    state = job_state(job)
    return PARTIAL if state == OK and job.failed_points else state


def subsystems(night: Night) -> list[JobResult]:
    """Sort the night's subsystems by title."""
    return sorted(night.subsystems, key=lambda job: (job.title.lower(), job.name))


def judge(night: Night, *, is_tonight: bool = False) -> NightVerdictView:
    """Judge a night; tonight may be at work on its subsystems yet."""
    counts = Counter(job_state(job) for job in night.experiments)
    failed = sum(job_state(job) == FAILED for job in night.subsystems)
    at_work = night.state == dashboard_info.RUNNING and is_tonight
    elapsed_s = _measure_so_far(night) if at_work else night.elapsed_s
    return NightVerdictView(
        state=_state(night, counts, failed, at_work),
        headline=_headline(night, counts, failed),
        completeness=_completeness(night, counts, at_work),
        counts={state: counts[state] for state in ICONS if counts[state]},
        elapsed=format_duration(elapsed_s) if elapsed_s > 0 else "unknown",
        versions=tuple(format_measured(item, night) for item in night.artifacts),
    )


def _measure_so_far(night: Night) -> float:
    """Return the seconds until its last step ended."""
    ends = [step.started_ns / 1e9 + step.elapsed_s for job in night.jobs for step in job.steps if step.started_ns]
    # no clock is read: a night that was killed may be published months later
    return max(ends) - common.parse_stamp(night.stamp).timestamp() if ends else night.elapsed_s


def _state(night: Night, counts: Mapping[str, int], failed_subsystems: int, at_work: bool) -> str:  # noqa: FBT001
    ended = night.state == dashboard_info.COMPLETE or at_work
    if counts.get(FAILED) or not ended or failed_subsystems or night.missing_backups:
        return FAILED
    return next((state for state in (BLOCKED, UNFINISHED, OK) if counts.get(state)), ABSENT)


def _headline(night: Night, counts: Mapping[str, int], failed_subsystems: int) -> str:
    total = sum(counts.values())
    bad = [f"{counts[state]} {STATE_WORDS[state]}" for state in (FAILED, BLOCKED, UNFINISHED) if counts.get(state)]
    if not total:
        text = "No experiment ran"
    elif bad:
        text = f"Of {_count(total, 'experiment')}, {format_list(bad, 3)}"
    else:
        text = f"All {total} experiments ok" if total > 1 else "The experiment is ok"
    subsystems_failed = f"{_count(failed_subsystems, 'subsystem')} failed" if failed_subsystems else ""
    backup = describe_missing_backups([backup.moment for backup in night.missing_backups])
    return "; ".join(filter(None, (text, subsystems_failed, backup)))


def _completeness(night: Night, counts: Mapping[str, int], at_work: bool) -> str:  # noqa: FBT001
    if night.state == dashboard_info.COMPLETE:
        return "The night is complete."
    if at_work:
        if counts.get(UNFINISHED):
            return "The night was still running when this page was written."
        return "All experiments have ended."
    return "The night is incomplete because it was stopped early."


def format_version(artifact: object) -> str:
    """Format a TVM as in "0.27.0.post1, commit 7b5acb32b"."""
    facts: Mapping[str, Any] = artifact if isinstance(artifact, dict) else {}
    parts = [str(facts["version"])] if facts.get("version") else []
    return (
        ", ".join(parts + ([f"commit {str(facts['commit'])[:12]}"] if facts.get("commit") else []))
        or "of an unknown version"
    )


def format_measured(artifact: Mapping[str, Any], night: Night) -> str:
    """Format a TVM with what it was measured against, as in "0.27.0, measured against TVM 0.26.0"."""
    against = night.describe_references(artifact)
    return f"{format_version(artifact)}, measured {against}" if against else format_version(artifact)


def failures(jobs: Iterable[JobResult]) -> list[NightFailure]:
    """List what failed, each with its step, then what is blocked, all that is blocked by the same as one."""
    failed: list[NightFailure] = []
    blocked: dict[tuple[str, tuple[str, str]], list[JobResult]] = {}
    for job in jobs:
        step = job.first_failure
        if step is None:
            continue
        if job.state == dashboard_info.FAILED:
            failed.append(NightFailure(FAILED, (job,), next(item for item in job.steps if item.state == FAILED)))
        else:
            blocked.setdefault((step.stage, step.cause), []).append(job)
    together = [
        NightFailure(BLOCKED, tuple(group), group[0].first_failure)
        for group in blocked.values()
        if group[0].first_failure
    ]
    return failed + together


def select_steps(job: JobResult) -> tuple[StepResult, ...]:
    """Drop a precheck that found nothing from its steps."""
    return tuple(step for step in job.steps if step.stage != PRECHECK or not step.success)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
