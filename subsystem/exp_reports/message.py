"""A night's experiments as a message, for somebody who has just woken up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tvmdash.dashboard_info import BLOCKED, COMPLETE, FAILED, RUNNING, Home, JobResult, Night
from tvmdash.pages import read_telemetry
from tvmdash.slack_util.parts import (
    BAD,
    GOOD,
    NOTE,
    STOPPED,
    UNFINISHED,
    Notify,
    format_about,
    format_in_a_line,
    format_rest,
    is_unfinished,
    make_blocked_parts,
    make_failed_part,
    make_opening,
    note_parts,
    read_notify,
    website_url,
)
from tvmdash.slack_util.payloads import Message, Part, build, escape, format_bold
from tvmdash.text import describe_missing_backups, elide, format_list

_NAMED, _NAME, _SUMMARY = 3, 24, 400
_DISTURBED = "Possibly disturbed during the measurement:"


def of_night(home: Home, night: Night, whole: str) -> Message:
    """The message; `whole` is the file that holds it where Slack has no room for all of it."""
    jobs = [(job, read_notify(home, job.kind, job.name)) for job in _experiments(night)]
    website = website_url(home)
    headline, parts = make_opening(home, night, _icon(night), verdict(night))
    parts += [make_failed_part(job, notify) for job, notify in jobs if job.state == FAILED]
    parts += make_blocked_parts([item for item in jobs if item[0].state == BLOCKED])
    parts += [_unfinished_part(job, notify) for job, notify in jobs if is_unfinished(job)]
    parts += note_parts(night, [fault for _, notify in jobs for fault in notify.faults])
    measured = [job for job, _ in jobs if _is_good(job) or _is_partly_good(job)]
    telemetry = read_telemetry(home, night.stamp)
    troubled = telemetry.find_abnormal() if telemetry else {}
    parts += [_good_part(home, job, night.stamp, troubled.get(job.name, "")) for job in sorted(measured, key=_is_good)]
    return build(headline, format_about(night, website), parts, format_rest(night, website, whole))


def verdict(night: Night) -> str:
    """The night in one line, without a full stop: what failed by name, else that all is well."""
    jobs = _experiments(night)
    good = sum(_is_good(job) for job in jobs)
    groups = ((FAILED, "failed"), (BLOCKED, "did not run"))
    bad = [_named([job for job in jobs if job.state == state], text) for state, text in groups]
    bad.append(_named([job for job in jobs if is_unfinished(job)], "did not finish"))
    bad.append(_named([job for job in jobs if _is_partly_good(job)], "failed in part"))
    clauses = [text for text in bad if text]
    if not jobs:
        text = "No experiment ran"
    elif clauses:
        text = f"{'; '.join(clauses)}. {good} of {_count(len(jobs))} ok"
    else:
        text = f"All {_count(len(jobs))} ok" if len(jobs) > 1 else f"{elide(_title(jobs[0]), 60)} is ok"
    if backup := describe_missing_backups([backup.moment for backup in night.missing_backups]):
        text = f"{text}, but {backup}"
    return text if night.state in {RUNNING, COMPLETE} else f"The night was stopped early. {text}"


def _named(jobs: Sequence[JobResult], clause: str) -> str:
    """As in "ResNet and LSTM failed", or "5 experiments failed" where their names would hide the rest."""
    if len(jobs) > _NAMED:
        return f"{_count(len(jobs))} {clause}"
    width = _NAME if len(jobs) > 1 else 2 * _NAME
    return f"{format_list([elide(_title(job), width) for job in jobs], _NAMED)} {clause}" if jobs else ""


def _count(number: int) -> str:
    return f"{number} experiment{'' if number == 1 else 's'}"


def _icon(night: Night) -> str:
    jobs = _experiments(night)
    failed = any(job.state == FAILED for job in jobs) or night.state not in {RUNNING, COMPLETE} or not jobs
    blocked = any(job.state == BLOCKED for job in jobs)
    doubtful = any(map(_is_partly_good, jobs)) or bool(night.missing_backups)
    icons = ((BAD, failed), (STOPPED, blocked), (UNFINISHED, any(map(is_unfinished, jobs))), (NOTE, doubtful))
    return next((icon for icon, applies in icons if applies), GOOD)


def _experiments(night: Night) -> list[JobResult]:
    return sorted(night.experiments, key=lambda job: (_title(job).lower(), job.name))


def _title(job: JobResult) -> str:
    return job.title.strip() or job.name


def _is_good(job: JobResult) -> bool:
    return job.state not in {FAILED, BLOCKED} and not is_unfinished(job) and not job.failed_points


def _is_partly_good(job: JobResult) -> bool:
    """Whether its stages went well, but points failed or gave a wrong answer."""
    return job.state not in {FAILED, BLOCKED} and not is_unfinished(job) and job.failed_points > 0


def _unfinished_part(job: JobResult, notify: Notify) -> Part:
    done = [step.stage for step in job.steps]
    sentence = f"Last completed stage: {escape(done[-1], 60)}." if done else "It was not started."
    lines = (f"{UNFINISHED} {format_bold(_title(job))} did not finish. {sentence}", format_in_a_line(notify.pings))
    return Part("\n".join(filter(None, lines)), notify.pings)


def _good_part(home: Home, job: JobResult, stamp: str, trouble: str) -> Part:
    """One experiment that was measured, with what its summary says of tonight (its failed points first), cut short.

    `trouble`: what may have disturbed its run.
    """
    summary = home.read_summary(job.name) if home.stamp_of(home.summary(job.name)) == stamp else None
    text = "\n".join(_short(summary[1])) if summary else "It wrote no summary tonight."
    icon = NOTE if job.failed_points or trouble else GOOD
    doubt = escape(f"{_DISTURBED} {elide(trouble, _SUMMARY)}", 2 * _SUMMARY) if trouble else ""
    lines = (f"{icon} {format_bold(_title(job))}", doubt, escape(text, 2 * _SUMMARY))
    return Part("\n".join(filter(None, lines)).rstrip(), group=GOOD)


def _short(text: str) -> Iterator[str]:
    """The first lines of a summary, whole, up to some size; where there are more, that there are more."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    size = 0
    for index, line in enumerate(lines):
        size += len(line)
        if size > _SUMMARY and index:
            yield f"… and {len(lines) - index} more line{'' if len(lines) - index == 1 else 's'}"
            return
        yield elide(line, _SUMMARY)
