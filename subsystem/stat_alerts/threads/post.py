"""Each incident's threads in Slack: in the channel of the subsystem's config, and in those of routes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from report.line import Line

from threads import files as thread_files
from threads import text as thread_words
from threads.files import Thread, ThreadMemory, ToldInThread
from threads.text import Setting
from tvmdash import common, structured
from tvmdash.dashboard_info import Home, Night
from tvmdash.errors import DashboardError
from tvmdash.incidents.ledger import SETTLED, Incident, Ledger, iso_of
from tvmdash.incidents.next_step import PAGE
from tvmdash.routes.config import Owner, Route, RouteKind, Routing, read_what_is_good
from tvmdash.routes.owners import find_level, find_owners, is_for, is_pinged_by, list_people
from tvmdash.routes.state import IN_SLACK_FILE, InSlack, RouteState, RouteStates, write_states
from tvmdash.slack_util import Slack
from tvmdash.slack_util.delivery import SlackConfig, deliver, open_slack
from tvmdash.slack_util.ledger import QUEUED, SENT
from tvmdash.slack_util.parts import website_url
from tvmdash.slack_util.payloads import format_mention
from tvmdash.slack_util.threads import Reply, entry_of, reply
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
        states.append(RouteState(channel.name or RouteKind.SLACK, RouteKind.SLACK, fault=fault))
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
            if is_pinged_by(owner, RouteKind.SLACK, route, routing, main=bool(config.channel))
        ]
        return tuple(filter(None, map(format_mention, list_people(owners, RouteKind.SLACK))))

    if config.channel:
        where = "config/subsystem/stat_alerts/config.json"
        yield _Channel(config, output / thread_files.FOLDER, where, functools.partial(find_pings, ""))
    for name, route in routing.routes.items():
        if route.kind is RouteKind.SLACK:
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
    followed = done.changed - done.new
    counts += [f"{len(followed)} changed"] if followed else []
    without = [name for name in is_open if name not in done.threaded]
    if is_open and not without:
        counts.append(f"{len(is_open)} open")
    sentences = [f"{', '.join(counts)}: reported in their own threads."] if counts else []
    how_many = "none" if len(without) == len(is_open) else f"{len(is_open) - len(without)} of them"
    sentences += [f"{len(is_open)} open, {how_many} with a thread."] if without else []
    return " ".join(sentences)


_NEW_DAYS, _FOLLOWED_DAYS = 7, 30
"""How old an incident may be to be told as new, and how long a settled one is looked after."""
_REFUSALS = 2
"""Slack's refusals after which the night asks no further."""


@dataclass(frozen=True)
class Done:
    """What the threads told tonight: incidents that are new there, that changed, that have one; what went wrong."""

    new: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    threaded: frozenset[str] = frozenset()
    faults: tuple[str, ...] = ()


class Keeper:
    """Tonight's work on all threads."""

    def __init__(self, slack: Slack, folder: Path, night: str, ledger: Ledger, most: int, setting: Setting) -> None:
        self._slack, self._night, self._ledger, self._most, self._setting = slack, night, ledger, most, setting
        self._folder = folder
        self._silent = {incident.id for incident in ledger.incidents.values() if ledger.silent(incident, iso_of(night))}
        self._new: set[str] = set()
        self._changed: set[str] = set()
        self._faults: list[str] = []
        self._first_messages = self._refused = 0

    def keep(self) -> Done:
        """All threads of tonight and before, the oldest first."""
        memory = thread_files.read_memory(self._folder)
        threads = {thread.name: thread for thread in thread_files.read(self._folder, self._ledger, memory)}
        known = {name for thread in threads.values() for name in thread.incidents}
        new, hushed = self._fresh(memory, known)
        for thread in list(self._assigned(new, threads)):
            threads[thread.name] = thread_files.write(self._folder, thread)
        placed = {name: thread.name for thread in threads.values() for name in thread.incidents}
        thread_files.write_memory(self._folder, ThreadMemory(self._night, tuple(sorted(hushed)), placed))
        for thread in sorted(threads.values(), key=lambda other: (other.stamp, other.shared, other.name)):
            try:
                self._one(thread)
            except DashboardError as error:
                self._refused += 1
                self._faults.append(str(error))
                if self._refused == _REFUSALS:
                    break
        return Done(frozenset(self._new), frozenset(self._changed), frozenset(placed), tuple(self._faults))

    def _fresh(self, memory: ThreadMemory | None, known: set[str]) -> tuple[list[Incident], set[str]]:
        """The incidents that are to get a thread, and those that are not told until a silence ends."""
        hushed_before = set(memory.hushed) if memory else set()
        new, hushed = [], set()
        for incident in self._ledger.incidents.values():
            waited = incident.id in hushed_before and incident.is_open
            if incident.id in known or not (waited or self._is_new(incident, memory)):
                continue
            if incident.id in self._silent:
                hushed.add(incident.id)
            elif waited or incident.state not in SETTLED:
                new.append(incident)
        return sorted(new, key=thread_words.rank), hushed

    def _is_new(self, incident: Incident, memory: ThreadMemory | None) -> bool:
        """Found tonight or since the threads were last brought up to date; on the first night, only tonight."""
        if incident.found == self._night:
            return True
        since = memory.night if memory else self._night
        return since < incident.found <= self._night and _days(incident.found, self._night) <= _NEW_DAYS

    def _assigned(self, new: Sequence[Incident], threads: Mapping[str, Thread]) -> Iterator[Thread]:
        """A thread for each new incident; for those beyond the most of one night, one for all."""
        # of an earlier run
        own = [thread for thread in threads.values() if thread.stamp == self._night and not thread.shared]
        room = max(0, self._most - len(own))
        for incident in new[:room]:
            yield Thread(thread_files.name_of(incident.id), incident.found, {incident.id: None})
        rest = {incident.id: None for incident in new[room:]}
        if rest:
            shared = thread_files.shared_name(self._night)
            before = threads[shared].incidents if shared in threads else {}
            yield Thread(shared, self._night, {**before, **rest}, shared=True)

    def _one(self, thread: Thread) -> None:
        members = [self._ledger.incidents[name] for name in thread.incidents if name in self._ledger.incidents]
        spoken = [incident for incident in members if incident.id not in self._silent]
        folder = self._folder / thread.name
        if not spoken or not self._is_followed(members):
            return
        entry = entry_of(folder, thread.stamp)
        if entry is None or entry.state != SENT:
            self._first_messages += 1
            if self._first_messages > self._most + 1:
                self._faults.append("Further new incidents are posted the next night.")
                return
        if entry is None or entry.state == QUEUED:
            thread = self._known(thread, members)
        message = thread_words.first_message(members, thread.stamp, self._setting)
        begun = common.parse_stamp(thread.stamp).timestamp()
        delivered = deliver(self._slack, folder, thread.stamp, message, since=begun)
        entry = entry_of(folder, thread.stamp)
        if entry is None or entry.state != SENT:
            self._faults.append(delivered.words)
            return
        self._new |= {incident.id for incident in members if delivered.posted or incident.found == self._night}
        if delivered.posted:
            thread = self._known(thread, members)
        self._reply(thread, spoken, folder, float(entry.ts or 0))

    def _known(self, thread: Thread, members: Sequence[Incident]) -> Thread:
        """The thread, whose first message tells of all that its incidents are now."""
        return thread_files.write(
            self._folder, thread.telling({incident.id: ToldInThread.of(incident) for incident in members})
        )

    def _reply(self, thread: Thread, incidents: Sequence[Incident], folder: Path, posted: float) -> None:
        """Say what changed since it was last said; where that was lost, since the first message was posted."""
        replies: list[Reply] = []
        for incident in incidents:
            before = thread.incidents[incident.id] or ToldInThread.at(incident, posted)
            found_replies = list(_replies(incident, before, self._setting, named=thread.shared))
            tonight = any(change.at == iso_of(self._night) for change in incident.changes[1:])
            self._changed |= {incident.id} if found_replies or tonight else set()
            replies += found_replies
        fault = reply(self._slack, folder, thread.stamp, replies)
        self._faults += [fault] if fault else []
        thread_files.write(
            self._folder, thread.telling({incident.id: ToldInThread.of(incident) for incident in incidents})
        )

    def _is_followed(self, members: Sequence[Incident]) -> bool:
        now = iso_of(self._night)
        return any(
            incident.is_open or _iso_days(incident.changes[-1].at, now) <= _FOLLOWED_DAYS for incident in members
        )


def _replies(incident: Incident, before: ToldInThread, setting: Setting, *, named: bool) -> Iterator[Reply]:
    more = [moved for moved in incident.moved if moved.series not in before.series]
    if more:
        yield thread_words.growth_reply(incident, more, setting, named=named)
    for change in incident.changes:
        if thread_words.mark_of(incident, change) not in before.states:
            yield thread_words.change_reply(incident, change, named=named)


def _days(first: str, last: str) -> float:
    return (common.parse_stamp(last) - common.parse_stamp(first)).total_seconds() / 86400


def _iso_days(first: str, last: str) -> float:
    return (thread_files.moment(last) - thread_files.moment(first)) / 86400
