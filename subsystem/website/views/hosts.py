"""The machines that measure for the home: how its last nights went on each of them."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace

from tvmdash import common, dashboard_info
from tvmdash.dashboard_info import HostNight, HostState, Night, host_of
from tvmdash.text import format_duration
from views import night as night_views
from views.context import SiteContext
from views.night import ABSENT, BLOCKED, FAILED, OK

OWN = "local"
"""The home's own machine in configs; no other host has that name."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_STATES = {
    HostState.MEASURED: OK,
    HostState.AWAY: BLOCKED,
    HostState.REFUSED: FAILED,
    HostState.LOST: FAILED,
    HostState.DAMAGED: FAILED,
}
_AT_ONCE_S = 0.05


@dataclass(frozen=True)
class NightOnHost:
    """A night on a machine. state: its sign; word: for people; why: it has no results, or what went wrong.

    asked: whether the night had anything for it to measure. later: what it measured came home with the night `later`.
    """

    stamp: str
    state: str
    word: str
    why: str = ""
    took: str = ""
    clock: str = ""
    late: tuple[str, ...] = ()
    later: str = ""

    @property
    def asked(self) -> bool:
        return self.state != ABSENT

    @property
    def measured(self) -> bool:
        return self.state == OK


@dataclass(frozen=True)
class Machine:
    """A machine. host: its name in the names of jobs, empty for the home's own; nights: the last ones, newest first."""

    host: str
    name: str
    page: str
    hw_model: str
    node: str
    nights: tuple[NightOnHost, ...]

    @property
    def tonight(self) -> NightOnHost:
        return self.nights[0]

    @property
    def late(self) -> list[NightOnHost]:
        """The nights with which it handed in what it had measured before."""
        return [night for night in self.nights if night.late]

    @property
    def availability(self) -> str:
        """The share of the nights that asked it that it measured, as in "28 of 30 nights (93 %)"; empty if none did."""
        asked = sum(night.asked for night in self.nights)
        measured = sum(night.measured for night in self.nights)
        if not asked:
            return ""
        return f"{measured} of {asked} night{'' if asked == 1 else 's'} ({100 * measured / asked:.0f} %)"


def list_machines(context: SiteContext) -> list[Machine]:
    """List the home's own machine, then the others by name; none where only one machine ever measured."""
    if not context.hosts:
        return []
    return [_make_own(context), *(_make_host(context, name) for name in context.hosts)]


def _make_own(context: SiteContext) -> Machine:
    identity = context.home.machine()
    name, hw_model = (identity.name, identity.hw_model) if identity else (OWN, "")
    nights = tuple(_describe_own(night) for night in context.last_nights)
    return Machine("", name, f"hosts/{OWN}.html", hw_model, "", nights)


def _describe_own(night: Night) -> NightOnHost:
    own = replace(night, jobs=tuple(job for job in night.jobs if not host_of(job.name)))
    if not own.experiments:
        return NightOnHost(night.stamp, ABSENT, "not asked")
    headline = night_views.judge(own).headline
    if not own.has_run_on(""):
        return NightOnHost(night.stamp, FAILED, "measured nothing", headline)
    why = "" if all(job.state == dashboard_info.OK for job in own.experiments) else headline
    return NightOnHost(night.stamp, OK, "measured", why, format_duration(night.elapsed_s) if night.elapsed_s else "")


def _make_host(context: SiteContext, name: str) -> Machine:
    of_host = {night.stamp: _find(night, name) for night in context.last_nights}
    known = [record for record in of_host.values() if record is not None]
    later = {stamp: at for at, record in of_host.items() if record for stamp in record.late}
    has_run = {night.stamp for night in context.last_nights if night.has_run_on(name)}
    nights = tuple(
        _describe(stamp, record, later.get(stamp, ""), has_run=stamp in has_run) for stamp, record in of_host.items()
    )
    hw_model = next((record.hw_model for record in known if record.hw_model), "")
    node = next((record.node for record in known if record.node), "")
    return Machine(name, name, page_of(name), hw_model, node, nights)


def _find(night: Night, name: str) -> HostNight | None:
    return next((host for host in night.hosts if host.name == name), None)


def _describe(stamp: str, record: HostNight | None, later: str, *, has_run: bool) -> NightOnHost:
    if record is None:
        return NightOnHost(stamp, ABSENT, "not asked", later=later)
    clock = _format_clock(record.clock_offset_s) if record.node else ""
    took = format_duration(record.elapsed_s) if record.elapsed_s else ""
    state, word = _STATES[record.state], record.state.value
    if record.state is HostState.MEASURED and not has_run:
        state, word = FAILED, "measured nothing"
    return NightOnHost(stamp, state, word, record.why, took, clock, record.late, later)


def _format_clock(offset_s: float) -> str:
    if abs(offset_s) < _AT_ONCE_S:
        return "as at home"
    return f"{format_duration(abs(offset_s))} {'ahead' if offset_s > 0 else 'behind'}"


@functools.cache
def page_of(host: str) -> str:
    """Return the page of a host other than the home's own machine."""
    return f"hosts/{host if _PLAIN.fullmatch(host) and host != OWN else common.safe_name(host)}.html"
