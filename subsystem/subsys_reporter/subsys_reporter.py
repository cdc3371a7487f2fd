"""The subsystems' night as one Slack message: failed ones first, then what each has to report of tonight."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.common import structured
from tvmdash.config_util import JobConfig
from tvmdash.dashboard_info import BLOCKED, FAILED, OK, Home, JobResult, Night
from tvmdash.errors import DashboardError
from tvmdash.notify.channel import ChannelSection, SlackConfig, find_slack_faults, open_slack, tell_section
from tvmdash.notify.night import make_blocked_parts, make_failed_part, make_fault_part, read_notify, website_url
from tvmdash.notify.payloads import GOOD, Part, escape, format_bold, link
from tvmdash.notify.state import IN_SLACK_FILE, InSlack
from tvmdash.subsys_templates import Report, Subsystem
from tvmdash.text import elide, format_list
from tvmdash.verdict.account import title_of

NAME = "subsys_reporter"
_NAMED, _NAME, _VALUE = 3, 40, 1200


@dataclass(frozen=True, kw_only=True)
class SubsysReporterConfig(SlackConfig, JobConfig):
    """Made from fields.json by tests/make_config_classes.py."""


class SubsysReporter(Subsystem[SubsysReporterConfig]):
    """Tells Slack, or where there is none its output folder, how the subsystems before it went."""

    def faults(self, config: SubsysReporterConfig, shown: str, home: Home) -> Sequence[str]:
        return find_slack_faults(config, home, shown)

    def work(self, config: SubsysReporterConfig, output: Path, home: Home, tonight: Night) -> Report:
        jobs = [job for job in tonight.subsystems if job.name != NAME]
        slack = open_slack(config, home, f"config/subsystem/{NAME}/config.json")
        text = tell_section(slack, home, output, tonight, of_night(home, tonight, jobs))
        return Report("Subsystems in Slack", f"{verdict(jobs)}. {text}")


def verdict(jobs: Sequence[JobResult]) -> str:
    """Sum up the subsystems in one line, without a full stop."""
    groups = ((FAILED, "failed"), (BLOCKED, "did not run"))
    clauses = [_named([job for job in jobs if job.state == state], clause) for state, clause in groups]
    if not jobs:
        return "No other subsystem ran"
    if not any(clauses):
        return f"All {len(jobs)} subsystems ok" if len(jobs) > 1 else f"{elide(title_of(jobs[0]), _NAME)} is ok"
    return "; ".join(clause for clause in clauses if clause)


def _named(jobs: Sequence[JobResult], clause: str) -> str:
    names = format_list([elide(title_of(job), _NAME) for job in jobs], _NAMED)
    return f"Subsystem{'' if len(jobs) == 1 else 's'} {names} {clause}" if jobs else ""


def of_night(home: Home, night: Night, jobs: Sequence[JobResult]) -> ChannelSection:
    """Write the section on the subsystems, below the account of the night."""
    notified = [(job, read_notify(home, job.kind, job.name)) for job in jobs]
    website = website_url(home)
    parts = [make_failed_part(job, notify) for job, notify in notified if job.state == FAILED]
    parts += make_blocked_parts([item for item in notified if item[0].state == BLOCKED])
    parts += [make_fault_part(fault) for _, notify in notified for fault in notify.faults]
    reports = [(job, report_of_tonight(home, job, night)) for job in jobs if job.state == OK]
    parts += [_report_part(job, report, in_threads(home, job, night, website)) for job, report in reports if report]
    quiet = [title_of(job) for job, report in reports if not report]
    parts += [Part(f"{GOOD} {escape(format_list(quiet, 20), 1500)}: nothing to report.", group=GOOD)] if quiet else []
    return ChannelSection(night.stamp, "Subsystems", tuple(parts))


def report_of_tonight(home: Home, job: JobResult, night: Night) -> tuple[str, str] | None:
    """Read the subsystem's report, where it was written since the night began."""
    path = home.output(job.name) / "report.json"
    if not path.is_file() or path.stat().st_mtime < common.parse_stamp(night.stamp).timestamp():
        return None
    return home.read_report(job.name)


def in_threads(home: Home, job: JobResult, night: Night, website: str) -> str:
    """Return markup in place of a report that the subsystem has told in Slack threads of its own; "" where it has not.

    It says so in in_slack.json.
    """
    try:
        in_slack = structured.read(InSlack, home.output(job.name) / IN_SLACK_FILE, max_bytes=1 << 20)
    except DashboardError:
        return ""
    if in_slack is None or in_slack.night != night.stamp:
        return ""
    address = f"{website.rstrip('/')}/{in_slack.page}"
    more = f" {link(address, in_slack.page.removesuffix('.html'))}" if website and in_slack.page else ""
    first, details = (in_slack.headline, in_slack.details) if in_slack.headline else (in_slack.words.strip(), "")
    return f"{escape(first, _VALUE)}{more}\n{escape(details, _VALUE)}".rstrip()


def _report_part(job: JobResult, report: tuple[str, str], elsewhere: str) -> Part:
    title, value = report
    own = job.title.strip() not in {"", job.name}
    name = job.title if own else f"{title.strip() or job.name} ({job.name})"
    return Part(f"{GOOD} {format_bold(name)}\n{elsewhere or escape(value.strip(), _VALUE)}".rstrip(), group=GOOD)


if __name__ == "__main__":
    sys.exit(SubsysReporter().main())
