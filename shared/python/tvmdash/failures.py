"""What failed in a night, in a line each: for the night's summary and for messages about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tvmdash.dashboard_info import BLOCKED, FAILED, OK, SKIPPED, JobResult, Night
from tvmdash.text import elide, format_list

_NAMED = 8
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^ +File "(?:[^"\n]*/)?([^"/\n]+)", line (\d+)', re.MULTILINE)
STATE_WORDS = {OK: "ok", SKIPPED: "kept", FAILED: "FAILED", BLOCKED: "blocked"}
"""What readers are told of a step's or a job's state."""


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
    log = "" if step.in_log or not last else f" Last line of output: {_place(step.log_tail)}{elide(last, 200)}"
    return f"{job.kind} {job.name} {STATE_WORDS[job.state]}: {step.stage}: {elide(step.message, 400)}{log}"


def _place(log: str) -> str:
    """The innermost file and line of the Python traceback that ends a log, to stand before words; empty without one."""
    _, begin, end = log.strip().rpartition(_TRACEBACK)
    frames, others = _FRAME.findall(end), [line for line in end.splitlines() if line and not line.startswith(" ")]
    return f"{frames[-1][0]}:{frames[-1][1]}: " if begin and frames and len(others) == 1 else ""
