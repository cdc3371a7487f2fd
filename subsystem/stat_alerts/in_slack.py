"""The night's incidents in threads of Slack, and what the subsystems' message says in place of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from report.report import ReportLine

from tvmdash import common
from tvmdash.common import structured
from tvmdash.dashboard_info import Home, Night
from tvmdash.errors import DashboardError
from tvmdash.incidents.ledger import Ledger, iso_of
from tvmdash.incidents.next_step import PAGE
from tvmdash.notify.channel import SlackConfig, open_slack
from tvmdash.notify.config import Route, RouteKind, read_what_is_good
from tvmdash.notify.message import opening_of
from tvmdash.notify.service import Told, tell_channels
from tvmdash.notify.state import IN_SLACK_FILE, InSlack, RouteState, RouteStates, write_states
from tvmdash.subsys_templates import Report
from tvmdash.verdict import Level

_WHERE = "config/subsystem/stat_alerts/config.json"


@dataclass(frozen=True, kw_only=True)
class ThreadsConfig(SlackConfig):
    """The subsystem's settings of threads; `threads`: the most new incidents of a night that get one each."""

    threads: int


def post_threads(
    report: Report,
    config: ThreadsConfig,
    output: Path,
    home: Home,
    tonight: Night,
    ledger: Ledger,
    lines: Sequence[ReportLine],
) -> Report:
    """Bring the threads up to date; the night's report, with what Slack did not take. Slack never fails the night."""
    (output / IN_SLACK_FILE).unlink(missing_ok=True)
    try:
        own = _make_own_route(config, home)
        routing = read_what_is_good(home)
        told = tell_channels(home, tonight.stamp, ledger, routing, own, config.threads)
    except DashboardError as error:
        return replace(report, value=f"{report.value}\nIncidents in Slack: {error}")
    states = tuple(each.state for each in told)
    write_states(output, RouteStates(tonight.stamp, states))
    if own is not None and not states[0].fault:
        _write_brief(output, tonight, ledger, told[0], lines)
    faults = [_describe(state, "" if own and state is states[0] else f"route {state.name}: ") for state in states]
    return replace(report, value="\n".join([report.value, *filter(None, faults)]))


def _describe(state: RouteState, name: str) -> str:
    """Describe a channel's fault in a sentence or two; "" where it has none."""
    waits = f" {state.waiting} message{'' if state.waiting == 1 else 's'} will be tried again the next night."
    return f"Incidents in Slack: {name}{state.fault.rstrip('.')}.{waits * bool(state.waiting)}" if state.fault else ""


def _make_own_route(config: ThreadsConfig, home: Home) -> Route | None:
    """Make a route of the subsystem's own channel, which tells everything; None where it has no bot token for it."""
    if not config.channel:
        return None
    slack = open_slack(config, home, _WHERE)
    if slack is None or not slack.can_edit:
        return None
    every = frozenset({Level.REGRESSION, Level.CHANGED, Level.IMPROVED})
    return Route(
        "",
        RouteKind.SLACK,
        at_once=every,
        channel=config.channel,
        secret_file=config.token_file,
        seconds=config.slack_seconds,
    )


def _write_brief(output: Path, tonight: Night, ledger: Ledger, told: Told, lines: Sequence[ReportLine]) -> None:
    threaded = frozenset(name for name in ledger.incidents if opening_of(name) in told.told)
    headline = _count(ledger, tonight.stamp, threaded)
    details = "\n".join(line.text for line in lines if not line.is_told_of(threaded))
    text = "\n".join(filter(None, (headline, details)))
    in_slack = InSlack(tonight.stamp, text, headline, details, PAGE)
    common.write_json(output / IN_SLACK_FILE, {"schema_version": 1, **structured.to_json(in_slack)})


def _count(ledger: Ledger, night: str, threaded: frozenset[str]) -> str:
    """Count the incidents that are new, changed and open, and say which of them have threads."""
    members = [ledger.incidents[name] for name in threaded]
    new = [incident for incident in members if incident.found == night]
    changed = [each for each in members if each not in new and any(one.at == iso_of(night) for one in each.changes[1:])]
    is_open = [incident.id for incident in ledger.open()]
    without = [name for name in is_open if name not in threaded]
    counts = [f"{len(new)} new incident{'' if len(new) == 1 else 's'}"] if new else []
    counts += [f"{len(changed)} changed"] if changed else []
    if is_open and not without:
        counts.append(f"{len(is_open)} open")
    sentences = [f"{', '.join(counts)}: reported in their own threads."] if counts else []
    how_many = "none" if len(without) == len(is_open) else f"{len(is_open) - len(without)} of them"
    sentences += [f"{len(is_open)} open, {how_many} with a thread."] if without else []
    return " ".join(sentences)
