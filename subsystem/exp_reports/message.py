"""A night's experiments as a message, for somebody who has just woken up."""

from __future__ import annotations

from collections.abc import Iterator

from tvmdash.dashboard_info import BLOCKED, FAILED, Home, JobResult, Night
from tvmdash.dashboard_info.pages import read_telemetry
from tvmdash.notify.channel import ChannelSection
from tvmdash.notify.night import Notify, make_blocked_parts, make_failed_part, note_parts, read_notify
from tvmdash.notify.payloads import GOOD, NOTE, UNFINISHED, Part, escape, format_bold, format_pings
from tvmdash.text import elide
from tvmdash.verdict.account import is_good, is_partly_good, is_unfinished, sort_experiments, title_of

_SUMMARY = 400
_DISTURBED = "Possibly disturbed during the measurement:"


def of_night(home: Home, night: Night) -> ChannelSection:
    """Write the section on the experiments, below the account of the night."""
    jobs = [(job, read_notify(home, job.kind, job.name)) for job in sort_experiments(night)]
    parts = [make_failed_part(job, notify) for job, notify in jobs if job.state == FAILED]
    parts += make_blocked_parts([item for item in jobs if item[0].state == BLOCKED])
    parts += [_unfinished_part(job, notify) for job, notify in jobs if is_unfinished(job)]
    parts += note_parts(night, [fault for _, notify in jobs for fault in notify.faults])
    measured = [job for job, _ in jobs if is_good(job) or is_partly_good(job)]
    telemetry = read_telemetry(home, night.stamp)
    troubled = telemetry.find_abnormal() if telemetry else {}
    parts += [_good_part(home, job, night.stamp, troubled.get(job.name, "")) for job in sorted(measured, key=is_good)]
    return ChannelSection(night.stamp, "Experiments", tuple(parts))


def _unfinished_part(job: JobResult, notify: Notify) -> Part:
    done = [step.stage for step in job.steps]
    sentence = f"Last completed stage: {escape(done[-1], 60)}." if done else "It was not started."
    lines = (f"{UNFINISHED} {format_bold(title_of(job))} did not finish. {sentence}", format_pings(notify.pings))
    return Part("\n".join(filter(None, lines)), notify.pings)


def _good_part(home: Home, job: JobResult, stamp: str, trouble: str) -> Part:
    """Write one experiment that was measured, with its summary of tonight (its failed points first), cut short.

    `trouble`: what may have disturbed its run.
    """
    summary = home.read_summary(job.name) if home.stamp_of(home.summary(job.name)) == stamp else None
    text = "\n".join(_short(summary[1])) if summary else "It wrote no summary tonight."
    icon = NOTE if job.failed_points or trouble else GOOD
    doubt = escape(f"{_DISTURBED} {elide(trouble, _SUMMARY)}", 2 * _SUMMARY) if trouble else ""
    lines = (f"{icon} {format_bold(title_of(job))}", doubt, escape(text, 2 * _SUMMARY))
    return Part("\n".join(filter(None, lines)).rstrip(), group=GOOD)


def _short(text: str) -> Iterator[str]:
    """Yield the first lines of a summary, whole, up to some size; where there are more, that there are more."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    size = 0
    for index, line in enumerate(lines):
        size += len(line)
        if size > _SUMMARY and index:
            yield f"… and {len(lines) - index} more line{'' if len(lines) - index == 1 else 's'}"
            return
        yield elide(line, _SUMMARY)
