"""A night's jobs as parts of a message, in the words that a failure deserves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvmdash import common, config_util
from tvmdash.dashboard_info import BLOCKED, FAILED, Home, JobResult, Night, StepResult
from tvmdash.dashboard_info.stages import PRECHECK
from tvmdash.errors import DashboardError
from tvmdash.notify.payloads import (
    BAD,
    GOOD,
    NOTE,
    STOPPED,
    Part,
    code,
    escape,
    format_bold,
    format_mention,
    format_pings,
    link,
)
from tvmdash.text import elide, format_duration, format_list
from tvmdash.verdict.account import NightSeverity, read_account

SEVERITY_ICONS = dict(zip(NightSeverity, ("🔴", NOTE, "❔", GOOD), strict=True))
_REASON, _TAIL, _LISTED = 700, 1500, 8


@dataclass(frozen=True)
class Notify:
    """Whom a job's config wants pinged: markup for each, and in words what is not a Slack ID."""

    pings: tuple[str, ...]
    faults: tuple[str, ...] = ()


def read_notify(home: Home, kind: str, name: str) -> Notify:
    """Read whom the job's config pings."""
    try:
        config = common.read_json(home.config(kind, name) / config_util.CONFIG_FILE, max_bytes=4 << 20)
    except DashboardError:
        # The night tells by itself that it cannot be read.
        return Notify(())
    given = config.get("notify", []) if isinstance(config, dict) else []
    return notify_of([item for item in given if isinstance(item, str)] if isinstance(given, list) else [], name)


def notify_of(identities: Sequence[str], name: str) -> Notify:
    """The pings of a list of Slack IDs; `name` is whose list it is."""
    mentioned = [(identity, format_mention(identity)) for identity in dict.fromkeys(identities)]
    faults = [
        f"{elide(name, 60)}: $.notify: {elide(identity, 40)!r} is not a Slack ID (U..., W..., S...): it pings nobody."
        for identity, ping in mentioned
        if ping is None
    ]
    return Notify(tuple(ping for _, ping in mentioned if ping), tuple(faults))


def make_opening(home: Home, night: Night) -> tuple[str, list[Part]]:
    """A message's headline, and why: the night's account."""
    account = read_account(home, night.stamp, night)
    reasons = "\n".join(f"• {escape(clause, 1000)}" for clause in account.clauses)
    return f"{SEVERITY_ICONS[account.severity]} {account.headline}", [Part(reasons)] if reasons else []


def make_failed_part(job: JobResult, notify: Notify) -> Part:
    """A failed job: which stage, after how long, why, the end of its output, whom it concerns."""
    step = find_failed_step(job)
    lines = [
        f"{BAD} {format_bold(job.title or job.name)}{_format_also(job)} {_format_where(step)}",
        escape(step.message, _REASON),
    ]
    tail = code(step.log_tail, _TAIL) if step.log_adds else ""
    return Part("\n".join(filter(None, (*lines, tail, format_pings(notify.pings)))), notify.pings)


def find_failed_step(job: JobResult) -> StepResult:
    return next(step for step in job.steps if step.state == FAILED)


def make_blocked_parts(jobs: Sequence[tuple[JobResult, Notify]]) -> list[Part]:
    """Blocked jobs, all that are blocked by the same as one part."""
    groups: dict[tuple[str, str], list[tuple[JobResult, Notify]]] = {}
    reasons: dict[tuple[str, str], str] = {}
    for job, notify in jobs:
        step = next((step for step in job.steps if step.state == BLOCKED), None)
        cause = step.cause if step else ("", "")
        groups.setdefault(cause, []).append((job, notify))
        reasons.setdefault(cause, step.message if step else "")
    return [_make_blocked_part(reasons[cause], group) for cause, group in groups.items()]


def _make_blocked_part(reason: str, group: Sequence[tuple[JobResult, Notify]]) -> Part:
    names = format_list([format_bold(job.title or job.name, 80) for job, _ in group], _LISTED)
    pings = tuple(dict.fromkeys(ping for _, notify in group for ping in notify.pings))
    text = f"{STOPPED} {names} did not run: {escape(reason, _REASON)}"
    return Part("\n".join(filter(None, (text, format_pings(pings)))), pings)


def _format_also(job: JobResult) -> str:
    """Name the folder, where the title does not tell it: it is what one looks for on the machine."""
    return f" ({escape(elide(job.name, 80), 400)})" if job.title not in {"", job.name} else ""


def _format_where(step: StepResult) -> str:
    if step.stage == PRECHECK:
        return "was not started because its config or scripts have errors."
    after = f" after {format_duration(step.elapsed_s)}" if step.elapsed_s >= 0.05 else ""
    return f"failed in {escape(step.stage, 60)}{after}."


def note_parts(night: Night, faults: Sequence[str]) -> list[Part]:
    """List the night's notes that no job's failure tells, and the faults of lists of whom to ping."""
    return [make_fault_part(note) for note in (*night.untold_notes, *faults)]


def make_fault_part(text: str) -> Part:
    """Make the part of a sentence that readers should see."""
    return Part(f"{NOTE} {escape(' '.join(text.split()), _REASON)}", group=NOTE)


def format_about(night: Night, website: str) -> str:
    """The line under the verdict: when, which TVM, where more is told."""
    when = f"Night of {common.format_moment(night.stamp)}"
    versions = format_list([format_version_of(artifact) for artifact in night.artifacts], 3)
    page = link(find_page(night, website), "website") if website else ""
    return " · ".join(filter(None, (when, f"TVM {escape(versions, 300)}" if versions else "no TVM", page)))


def format_version_of(artifact: object) -> str:
    """Name a TVM as in "0.27.0.post1 (7b5acb32b)"."""
    facts = artifact if isinstance(artifact, dict) else {}
    version, commit = str(facts.get("version") or ""), str(facts.get("commit") or "")[:12]
    return f"{version} ({commit})" if version and commit else version or commit or "of an unknown version"


def find_page(night: Night, website: str) -> str:
    """The night's own page, which stays when the next one has run."""
    return f"{website.rstrip('/')}/nights/{night.stamp}.html"


def format_rest(night: Night, website: str, whole: str) -> str:
    """Say where all of it is told, for a message that had to be cut: on the website, else as `whole` says."""
    return f"All of it: {link(find_page(night, website), 'website')}." if website else whole


def website_url(home: Home) -> str:
    """Return where the website is served; empty where that is not configured, or the config cannot be read."""
    try:
        return str(config_util.read_config(home.config_file, config_util.HOME_FIELDS)["website_url"])
    except DashboardError:
        return ""
