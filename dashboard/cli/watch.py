"""`watch`: whether nights run as scheduled; told once where they do not, and once when they do again."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb, find_home
from dashboard.night import lock
from dashboard.plan.home_config import read_home_config
from dashboard.schedule.schedule import find_schedule
from dashboard.schedule.watch import Watched, watch
from tvmdash import common
from tvmdash.dashboard_info import INTERRUPTED, RUNNING, Home, Night
from tvmdash.errors import DashboardError
from tvmdash.text import format_duration

if TYPE_CHECKING:
    from tvmdash.routes.deliver import Told
    from tvmdash.routes.spells import Spell


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    text = "say where nights do not run as scheduled; a cron line of its own"
    parser = add_home_verb(verbs, "watch", _watch, text, code=False)
    parser.add_argument("--verbose", action="store_true", help="say as well how nights run where nothing is new")
    parser.epilog = "Exit codes: 0 nights run; 1 they do not, or a route failed; 2 no schedule is known."


def _watch(arguments: argparse.Namespace) -> int:
    home, now = find_home(arguments), common.utc_now()
    schedule = find_schedule(home)
    if schedule is None:
        remedy = 'Write the time into it, as "schedule": "0 3 * * *", or let cron or a timer of systemd run its nights.'
        problem = "no schedule: neither it nor this user's crontab or timers say when nights begin."
        raise DashboardError(problem, place=home.config_file, remedy=remedy)
    watched = watch(home, schedule, now, _read_grace(home))
    is_new, told = _tell(home, watched, now)
    lines = _describe(home, watched) if is_new or arguments.verbose else []
    lines += [f"Route {each.state.name}: {each.state.fault}" for each in told if each.state.fault]
    print("\n".join(lines), end="\n" * bool(lines))
    return SOME_FAILED if watched.is_quiet or any(each.state.fault for each in told) else OK_CODE


def _read_grace(home: Home) -> datetime.timedelta | None:
    """What the config states, also where something else in it has a fault."""
    try:
        value = common.read_json(home.config_file)
    except DashboardError:
        return None
    minutes = value.get("watch_grace_minutes") if isinstance(value, dict) else None
    return datetime.timedelta(minutes=minutes) if isinstance(minutes, (int, float)) and minutes > 0 else None


def _tell(home: Home, watched: Watched, now: datetime.datetime) -> tuple[bool, Sequence[Told]]:
    """Whether what is seen is news, and how telling it went."""
    from tvmdash.routes import spells  # the detector's imports cost the other verbs a third of a second
    from tvmdash.routes.config import read_despite_faults

    try:
        routing = read_despite_faults(home)
    except DashboardError as error:
        if watched.is_quiet:
            print("\n".join(_describe(home, watched)))
        raise DashboardError(f"Nothing can be told on the routes: {error}") from error
    if watched.is_quiet:
        return spells.tell_quiet(home, routing, _make_spell(home, watched), now)
    return spells.tell_end(home, routing, lambda since: _make_end(home, watched, since), now)


def _make_spell(home: Home, watched: Watched) -> Spell:
    from tvmdash.routes.message import Item
    from tvmdash.routes.spells import Spell

    title, *lines = _describe(home, watched)
    assert watched.due is not None
    commands = (
        ("How the last night went", f"python3 -m dashboard status {home.root}"),
        ("What is wrong with the home", f"python3 -m dashboard doctor {home.root}"),
        ("Run a night now", f"./run_dashboard.sh {home.root}"),
    )
    last = watched.last.stamp if watched.last else ""
    return Spell(common.stamp_of(watched.due), last, title, (Item("", tuple(lines), "", commands),))


def _make_end(home: Home, watched: Watched, since: str) -> Spell:
    from tvmdash.routes.message import Item
    from tvmdash.routes.spells import Spell

    title, *lines = _describe(home, watched)
    lines.append(f"Before it none was complete since {_format_night(since)}." if since else "It is the first one.")
    night = watched.last.stamp if watched.last else common.stamp_of(common.utc_now())
    return Spell(night, since, title, (Item("Nights run again", tuple(lines)),), is_over=True)


def _describe(home: Home, watched: Watched) -> list[str]:
    """What is seen, the gist first."""
    last = watched.last.stamp if watched.last else ""
    if not watched.is_quiet:
        text = f"The last complete one is that of {_format_night(last)}" if last else "None was due yet"
        return ["Nights run as scheduled", f"{text}. Schedule: {watched.schedule}."]
    title = f"No night has been complete since {_format_night(last)}" if last else "No night has ever been complete"
    due = f"One was due on {watched.due:%Y-%m-%d at %H:%M} UTC and is given {_format_grace(watched)} to be complete."
    return [title, f"{due} Schedule: {watched.schedule}.", *_find_reasons(home, watched)]


def _format_grace(watched: Watched) -> str:
    return format_duration(watched.grace.total_seconds())


def _find_reasons(home: Home, watched: Watched) -> Iterator[str]:
    """What is known of why."""
    if watched.attempt is not None:
        yield _describe_attempt(home, watched.attempt)
    if not watched.schedule.is_enabled:
        yield "Its timer is not enabled: systemctl --user enable --now NAME.timer"
    try:
        read_home_config(home)
    except DashboardError as error:
        yield f"The home's config has a fault, so that no night begins: {error}"


def _describe_attempt(home: Home, night: Night) -> str:
    if night.state == RUNNING and lock.is_held(home):
        return f"The night of {_format_night(night.stamp)} still runs; `status` says at what."
    if night.state in (RUNNING, INTERRUPTED):
        return f"The night of {_format_night(night.stamp)} began and was interrupted."
    return f"The night of {_format_night(night.stamp)} is {night.state}."


def _format_night(stamp: str) -> str:
    return f"{common.parse_stamp(stamp):%Y-%m-%d %H:%M} UTC"
