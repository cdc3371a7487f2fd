"""Each incident's threads in Slack: in the channel of the subsystem's config, and in those of routes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from report.line import Line

from threads import files as thread_files
from threads.keeper import Done, Keeper
from threads.text import Setting
from tvmdash import common, structured
from tvmdash.contracts.in_slack import IN_SLACK_FILE, InSlack
from tvmdash.contracts.routes import RouteState, RouteStates, write_states
from tvmdash.dashboard_info import Home, Night
from tvmdash.errors import DashboardError
from tvmdash.incidents.ledger import Incident, Ledger
from tvmdash.incidents.next_step import PAGE
from tvmdash.routes.config import Kind, Owner, Route, Routing, read_what_is_good
from tvmdash.routes.owners import find_level, find_owners, is_for, is_pinged_by, list_people
from tvmdash.slack_util.delivery import SlackConfig, open_slack
from tvmdash.slack_util.parts import website_url
from tvmdash.slack_util.payloads import format_mention
from tvmdash.subsys_templates import Report

_CHANNELS = "channels"
"""The folder with one folder for each route of kind slack."""


@dataclass(frozen=True, kw_only=True)
class ThreadsConfig(SlackConfig):
    """What the subsystem's config says of threads; `threads`: how many new incidents of a night get one each."""

    threads: int


def post_threads(
    report: Report,
    config: ThreadsConfig,
    output: Path,
    home: Home,
    tonight: Night,
    ledger: Ledger,
    lines: Sequence[Line],
) -> Report:
    """Bring the threads up to date; the night's report, with what Slack did not take. Slack never fails the night."""
    routing = read_what_is_good(home)
    (output / IN_SLACK_FILE).unlink(missing_ok=True)
    states, faults = list[RouteState](), list[str]()
    for channel in _list_channels(config, routing, output):
        done = _keep_channel(channel, home, tonight, ledger)
        if done is None:
            continue
        fault = " ".join(dict.fromkeys(done.faults))
        states.append(RouteState(channel.name or Kind.SLACK, Kind.SLACK, fault=fault))
        faults += [f"Incidents in Slack: {f'route {channel.name}: ' * bool(channel.name)}{fault}"] if fault else []
        if channel.route is None and not fault:
            _write_brief(output, tonight, ledger, done, lines)
    write_states(output, RouteStates(tonight.stamp, tuple(states)))
    return replace(report, value="\n".join([report.value, *faults]))


@dataclass(frozen=True)
class _Channel:
    """A channel with threads: that of the subsystem's own config, which tells everything, or that of a route."""

    config: ThreadsConfig
    folder: Path
    where: str
    find_pings: Callable[[Incident], tuple[str, ...]]
    route: Route | None = None
    owners: tuple[Owner, ...] = ()

    @property
    def name(self) -> str:
        return self.route.name if self.route else ""

    def select(self, ledger: Ledger) -> Ledger:
        """The ledger with the incidents that are told there."""
        route = self.route
        if route is None:
            return ledger
        told = {
            name: incident
            for name, incident in ledger.incidents.items()
            if find_level(incident) in route.at_once and is_for(route, self.owners, incident)
        }
        return replace(ledger, incidents=told)


def _list_channels(config: ThreadsConfig, routing: Routing, output: Path) -> Iterator[_Channel]:
    def find_pings(route: str, incident: Incident) -> tuple[str, ...]:
        owners = [
            owner
            for owner in find_owners(routing.owners, incident)
            if is_pinged_by(owner, Kind.SLACK, route, routing, main=bool(config.channel))
        ]
        return tuple(filter(None, map(format_mention, list_people(owners, Kind.SLACK))))

    if config.channel:
        where = "config/subsystem/stat_alerts/config.json"
        yield _Channel(config, output / thread_files.FOLDER, where, functools.partial(find_pings, ""))
    for name, route in routing.routes.items():
        if route.kind is Kind.SLACK:
            own = ThreadsConfig(
                channel=route.channel,
                token_file=route.secret_file,
                slack_seconds=route.seconds,
                env=config.env,
                threads=config.threads,
            )
            where = f"config/config.json: $.routes.{name}"
            pings = functools.partial(find_pings, name)
            yield _Channel(own, output / _CHANNELS / name, where, pings, route, routing.owners)


def _keep_channel(channel: _Channel, home: Home, tonight: Night, ledger: Ledger) -> Done | None:
    """What the threads there told tonight; None where the subsystem's own config has no bot token for them."""
    try:
        slack = open_slack(channel.config, home, channel.where)
        if slack is not None and slack.can_edit:
            setting = Setting(website_url(home), str(home.root), channel.find_pings)
            told = channel.select(ledger)
            return Keeper(slack, channel.folder, tonight.stamp, told, channel.config.threads, setting).keep()
        if channel.route is None:
            return None
        remedy = "Put the app's Bot User OAuth Token into it; a webhook cannot post threads."
        raise DashboardError("no bot token found.", place=channel.config.token_file, remedy=remedy)
    except DashboardError as error:
        return Done(faults=(str(error),))


def _write_brief(output: Path, tonight: Night, ledger: Ledger, done: Done, lines: Sequence[Line]) -> None:
    """What the subsystems' message says in place of the report."""
    headline, details = _counts(done, [incident.id for incident in ledger.open()]), _others(lines, done.threaded)
    text = "\n".join(filter(None, (headline, details)))
    in_slack = InSlack(tonight.stamp, text, headline, details, PAGE)
    common.write_json(output / IN_SLACK_FILE, {"schema_version": 1, **structured.to_json(in_slack)})


def _others(lines: Sequence[Line], threaded: frozenset[str]) -> str:
    """The report without what the threads say."""
    return "\n".join(line.text for line in lines if not line.is_told_of(threaded))


def _counts(done: Done, is_open: Sequence[str]) -> str:
    """How many incidents are new, changed, open, and which of them have threads."""
    counts = [f"{len(done.new)} new incident{'' if len(done.new) == 1 else 's'}"] if done.new else []
    counts += [f"{len(done.changed)} changed"] if done.changed else []
    without = [name for name in is_open if name not in done.threaded]
    if is_open and not without:
        counts.append(f"{len(is_open)} open")
    sentences = [f"{', '.join(counts)}: reported in their own threads."] if counts else []
    how_many = "none" if len(without) == len(is_open) else f"{len(is_open) - len(without)} of them"
    sentences += [f"{len(is_open)} open, {how_many} with a thread."] if without else []
    return " ".join(sentences)
