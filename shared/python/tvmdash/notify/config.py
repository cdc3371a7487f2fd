"""The routes and owners of a home's config, checked: every fault names its place."""

from __future__ import annotations

import contextlib
import datetime
import difflib
import enum
import re
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tvmdash import common, config_util
from tvmdash.common.github_api import DEFAULT_FILE, is_repository
from tvmdash.common.http_util import is_local, is_safe
from tvmdash.config_util import ConfigError
from tvmdash.dashboard_info import Home, last_config
from tvmdash.errors import DashboardError
from tvmdash.verdict import Level

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)
_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?", re.ASCII
)
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})(?:/[A-Za-z0-9-]{1,100})?", re.ASCII)
_SLACK_ID = re.compile(r"[UWS][A-Z0-9]{7,20}", re.ASCII)
_CHANNEL = re.compile(r"[CGD][A-Z0-9]{7,20}", re.ASCII)
_SERVER = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})|\[[0-9a-fA-F:]+\])(?::(\d{1,5}))?", re.ASCII)


class RouteKind(enum.StrEnum):
    """The service that a route uses."""

    EMAIL = "email"
    WEBHOOK = "webhook"
    GITHUB = "github"
    SLACK = "slack"
    APPRISE = "apprise"


class Security(enum.StrEnum):
    """The encryption of the connection to a mail server."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


_PORTS = {Security.STARTTLS: 587, Security.TLS: 465, Security.NONE: 25}
_SECRETS = {RouteKind.GITHUB: DEFAULT_FILE, RouteKind.SLACK: "~/.config/tvmdash/slack_token"}
_OF_KIND: Mapping[RouteKind, tuple[str, ...]] = {
    RouteKind.EMAIL: ("server", "security", "user", "from", "to"),
    RouteKind.WEBHOOK: ("url",),
    RouteKind.GITHUB: ("repository", "labels"),
    RouteKind.SLACK: ("channel",),
    RouteKind.APPRISE: (),
}
_THREADED = (RouteKind.GITHUB, RouteKind.SLACK)
"""Kinds with one issue or thread for each incident."""
_IN_THREADS = ("digest", "quiet_hours", "time_zone", "wake")
"""Fields that these kinds do not take: they send no digest."""
_USUAL_DIGEST = frozenset({Level.INCOMPLETE, Level.NO_DATA})
"""Nights told in a digest by a route without `digest` and without an owner: those in which something failed."""
_LEVELS_OF_INCIDENTS = (Level.REGRESSION, Level.CHANGED, Level.IMPROVED)


@dataclass(frozen=True)
class Route:
    """A place where incidents and nights are told. at_once, digest: of which levels; wake: also in quiet hours.

    is_judged_only: a night that nobody judged is not told; so it is where the config says nothing of nights.
    """

    name: str
    kind: RouteKind
    at_once: frozenset[Level] = frozenset({Level.REGRESSION})
    digest: frozenset[Level] = frozenset()
    wake: frozenset[Level] = frozenset()
    is_judged_only: bool = False
    quiet: QuietHours | None = None
    seconds: float = 60.0
    secret_file: str = ""
    host: str = ""
    port: int = 0
    security: Security = Security.STARTTLS
    user: str = ""
    sender: str = ""
    to: tuple[str, ...] = ()
    url: str = ""
    repository: str = ""
    labels: tuple[str, ...] = ()
    channel: str = ""


@dataclass(frozen=True)
class Owner:
    """People who look after what the globs match, and whom a regression of it pings. routes: that tell it."""

    series: str = "*"
    experiment: str = "*"
    host: str = "*"
    name: str = ""
    slack: tuple[str, ...] = ()
    email: tuple[str, ...] = ()
    github: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Routing:
    """The routes and owners of a home's config."""

    routes: Mapping[str, Route] = field(default_factory=dict)
    owners: tuple[Owner, ...] = ()
    website_url: str = ""


def read_routing(home: Home) -> Routing:
    """The home's routes and owners; none where it has no config, ConfigError with every fault of theirs."""
    if not home.config_file.is_file():
        return Routing()
    return _make_routing(config_util.read_config(home.config_file, config_util.HOME_FIELDS), str(home.config_file))


def read_despite_faults(home: Home) -> Routing:
    """Return the routes and owners although other fields of the config have faults, which can so be told.

    Where they have faults themselves, return those of the last night.
    """
    try:
        return _read_good_fields(common.read_json(home.config_file), home)
    except DashboardError:
        kept = last_config.read(home)
        if kept is None:
            raise
        return _read_good_fields(kept, home)


def _read_good_fields(value: common.Json, home: Home) -> Routing:
    known = {name: value[name] for name in ("routes", "owners") if isinstance(value, dict) and name in value}
    # Required fields, of which any may be the fault that is to be told.
    needed = {"tmp_data_dir": ".", "backup_dir": ".", "setup_dir": "."}
    shown = str(home.config_file)
    return _make_routing(config_util.check({**needed, **known}, config_util.HOME_FIELDS, shown), shown)


def _make_routing(value: Mapping[str, Any], shown: str) -> Routing:
    faults = list[str]()
    routes = {name: _read_route(name, fields, shown, faults) for name, fields in value["routes"].items()}
    owners = [_read_owner(at, fields, routes, shown, faults) for at, fields in enumerate(value["owners"])]
    if faults:
        raise ConfigError(faults)
    good = {name: route for name, route in routes.items() if route is not None}
    routing = Routing(good, tuple(owner for owner in owners if owner is not None), value["website_url"])
    named = {name for owner in routing.owners for name in owner.routes}
    quiet = {name for name, fields in value["routes"].items() if "digest" not in fields} - named
    for name in quiet & set(good):
        if good[name].kind not in _THREADED:
            good[name] = replace(good[name], digest=_USUAL_DIGEST, is_judged_only=True)
    return routing


def _read_route(name: str, fields: Any, shown: str, faults: list[str]) -> Route | None:
    where = f"$.routes.{name}"
    try:
        given = config_util.check(fields, config_util.ROUTE_FIELDS, shown, at=where)
    except ConfigError as error:
        faults += error.faults
        return None
    found = [*_find_name_faults(name), *_find_faults(RouteKind(given["kind"]), given, fields)]
    faults += [f"{shown}: {where}{fault}" for fault in found]
    return None if found else _make_route(name, given)


def _make_route(name: str, given: Mapping[str, Any]) -> Route:
    kind, security = RouteKind(given["kind"]), Security(given["security"])
    server = _SERVER.fullmatch(given["server"])
    quiet = parse_quiet_hours(given["quiet_hours"], given["time_zone"]) if given["quiet_hours"] else None
    return Route(
        name=name,
        kind=kind,
        at_once=frozenset(map(Level, given["at_once"])),
        digest=frozenset(map(Level, given["digest"])),
        wake=frozenset(map(Level, given["wake"])),
        quiet=quiet,
        seconds=given["seconds"],
        secret_file=given["secret_file"] or _SECRETS.get(kind, ""),
        host=server[1].strip("[]") if server else "",
        port=int(server[2] or _PORTS[security]) if server else 0,
        security=security,
        user=given["user"],
        sender=given["from"],
        to=tuple(given["to"]),
        url=given["url"],
        repository=given["repository"],
        labels=tuple(given["labels"]),
        channel=given["channel"],
    )


def _find_name_faults(name: str) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield ": invalid route name. Use up to 40 letters, digits, '-', '_', '.', starting with a letter or digit."


def _find_faults(kind: RouteKind, given: Mapping[str, Any], stated: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults of a route that the types of its fields do not show; each begins with the field."""
    own = {name for names in _OF_KIND.values() for name in names} - set(_OF_KIND[kind])
    own |= set(_IN_THREADS) if kind in _THREADED else set()
    yield from (f".{name}: not allowed for routes of kind {kind}. Remove it." for name in sorted(own & set(stated)))
    for name in ("at_once", "digest", "wake"):
        for at, text in enumerate(given[name]):
            if text not in set(Level):
                yield f".{name}[{at}]: unknown level {text!r:.60}. {_suggest(text, list(Level))}"
            elif name == "at_once" and text not in _LEVELS_OF_INCIDENTS:
                yield f".{name}[{at}]: incidents are never {text}, only nights are. Move it to digest."
    for name in sorted(set(given["at_once"]) & set(given["digest"])):
        yield f".digest: {name} is also in at_once. Remove it from one of them."
    if not given["at_once"] and not given["digest"]:
        yield (
            ".at_once: neither at_once nor digest has a level, so nothing would be sent. Add a level, or remove the "
            "route."
        )
    if given["quiet_hours"]:
        try:
            parse_quiet_hours(given["quiet_hours"], given["time_zone"])
        except DashboardError as error:
            yield str(error)
    yield from _FAULTS[kind](given)


def _suggest(text: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(text, known, n=1)
    return f"Did you mean {str(near[0])!r}?" if near else f"Use one of: {', '.join(known) or 'there are none'}."


def _find_email_faults(given: Mapping[str, Any]) -> Iterator[str]:
    server = _SERVER.fullmatch(given["server"])
    if not server or int(server[2] or 1) not in range(1, 65536):
        yield f".server: {given['server']!r:.80} is not a mail server. Use HOST or HOST:PORT."
    elif given["security"] == Security.NONE and not is_local(server[1].strip("[]")):
        yield ".security: `none` would send messages and password unencrypted over the network. Use starttls or tls."
    if not _ADDRESS.fullmatch(given["from"]):
        yield f".from: {given['from']!r:.80} is not an e-mail address. Give the sender's address."
    yield from _find_address_faults("to", given["to"])
    if given["user"] and not given["secret_file"]:
        yield ".secret_file: required field is missing. Give the file with the password of `user`."
    if given["user"] and (not given["user"].isprintable() or not given["user"].isascii()):
        yield ".user: contains a character that is not allowed in a login name."
    if given["secret_file"] and not given["user"]:
        yield ".user: required field is missing. Give the user for the password in secret_file."


def _find_address_faults(name: str, addresses: Sequence[str]) -> Iterator[str]:
    for at, address in enumerate(addresses):
        if not _ADDRESS.fullmatch(address):
            yield f".{name}[{at}]: {address!r:.80} is not an e-mail address."


def _find_webhook_faults(given: Mapping[str, Any]) -> Iterator[str]:
    if given["url"] and not is_safe(given["url"]):
        yield ".url: must be an https:// URL without a user name. If the URL is secret, put it into secret_file."
    if not given["secret_file"]:
        yield ".secret_file: required field is missing. Give the file with the signing key."


def _find_github_faults(given: Mapping[str, Any]) -> Iterator[str]:
    if not is_repository(given["repository"]):
        yield f".repository: {given['repository']!r:.100} is not of the form OWNER/NAME, e.g. apache/tvm."


def _find_slack_faults(given: Mapping[str, Any]) -> Iterator[str]:
    if not _CHANNEL.fullmatch(given["channel"]):
        yield (
            f".channel: {given['channel']!r:.40} is not a channel ID. Copy the ID (C...) from the channel details "
            "in Slack."
        )


def _find_apprise_faults(given: Mapping[str, Any]) -> Iterator[str]:
    if not given["secret_file"]:
        yield ".secret_file: required field is missing. Give the file with the service URL in Apprise's format."


_FAULTS = {
    RouteKind.EMAIL: _find_email_faults,
    RouteKind.WEBHOOK: _find_webhook_faults,
    RouteKind.GITHUB: _find_github_faults,
    RouteKind.SLACK: _find_slack_faults,
    RouteKind.APPRISE: _find_apprise_faults,
}


def _read_owner(at: int, fields: Any, routes: Mapping[str, object], shown: str, faults: list[str]) -> Owner | None:
    where = f"$.owners[{at}]"
    try:
        given = config_util.check(fields, config_util.OWNER_FIELDS, shown, at=where)
    except ConfigError as error:
        faults += error.faults
        return None
    found = list(_find_owner_faults(given, routes))
    faults += [f"{shown}: {where}{fault}" for fault in found]
    lists = {name: tuple(given[name]) for name in ("slack", "email", "github", "routes")}
    return None if found else Owner(given["series"], given["experiment"], given["host"], given["name"], **lists)


def _find_owner_faults(given: Mapping[str, Any], routes: Mapping[str, object]) -> Iterator[str]:
    if not any(given[name] for name in ("slack", "email", "github", "routes")):
        yield ": no recipient. Give slack, email, github or routes."
    yield from _find_address_faults("email", given["email"])
    for name, pattern, example in (("slack", _SLACK_ID, "U012ABCDEF"), ("github", _LOGIN, "octocat")):
        for at, text in enumerate(given[name]):
            if not pattern.fullmatch(text):
                yield f".{name}[{at}]: {text!r:.60} is invalid (use e.g. {example})."
    for at, name in enumerate(given["routes"]):
        if name not in routes:
            yield f".routes[{at}]: unknown route {name!r:.60}. {_suggest(name, list(routes))}"


def read_what_is_good(home: Home) -> Routing:
    """Return the routes and owners; none where the config has a fault, which the subsystem `routes` reports."""
    with contextlib.suppress(DashboardError):
        return read_routing(home)
    return Routing()


_SPAN = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


@dataclass(frozen=True)
class QuietHours:
    """From `begin` until `end` by the clocks of a time zone, over midnight where the end is the earlier one."""

    begin: datetime.time
    end: datetime.time
    zone: zoneinfo.ZoneInfo

    def find_end(self, now: datetime.datetime) -> datetime.datetime | None:
        """The moment at which those that hold `now` end; None where none do."""
        local = now.astimezone(self.zone)
        clock = local.time()
        over_midnight = self.end <= self.begin
        inside = clock >= self.begin or clock < self.end if over_midnight else self.begin <= clock < self.end
        if not inside:
            return None
        days = 1 if over_midnight and clock >= self.begin else 0
        return datetime.datetime.combine(local.date() + datetime.timedelta(days), self.end, self.zone)


def parse_quiet_hours(text: str, time_zone: str) -> QuietHours:
    """The hours in a text like `22:00-07:00`; DashboardError, which begins with the field, where it is none."""
    match = _SPAN.fullmatch(text)
    if not match:
        raise DashboardError(f".quiet_hours: {text!r:.60} is not a time range (use e.g. 22:00-07:00).")
    begin, end = (datetime.time(int(match[at]), int(match[at + 1])) for at in (1, 3))
    if begin == end:
        raise DashboardError(f".quiet_hours: {text} covers the whole day. Remove the route from the config instead.")
    try:
        return QuietHours(begin, end, zoneinfo.ZoneInfo(time_zone))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise DashboardError(
            f".time_zone: unknown time zone {time_zone!r:.60}. Use an IANA name such as Europe/Berlin."
        ) from None
