"""`watch`: alert once when nights stop running on schedule, and once when they run again."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb, find_home
from dashboard.night import lock
from dashboard.plan.home_config import read_home_config
from dashboard.plan.job import REPOSITORY
from dashboard.schedule.refusal import Ending
from dashboard.schedule.schedule import find_schedule
from dashboard.schedule.watch import Watched, make_grace, watch
from tvmdash import common
from tvmdash.dashboard_info import INTERRUPTED, RUNNING, Home, Night, last_config
from tvmdash.errors import DashboardError
from tvmdash.text import format_duration

if TYPE_CHECKING:
    from tvmdash.notify.service import Told
    from tvmdash.notify.spells import Spell


_AGAIN = "Nights are running again"


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    text = "alert when nights do not run as scheduled; run it from cron"
    parser = add_home_verb(verbs, "watch", _watch, text, code=False)
    parser.add_argument("--verbose", action="store_true", help="also print the state when nothing has changed")
    parser.epilog = "Exit codes: 0 nights run on schedule; 1 they do not, or a route failed; 2 no schedule found."


def _watch(arguments: argparse.Namespace) -> int:
    home, now = find_home(arguments), common.utc_now()
    schedule = find_schedule(home)
    if schedule is None:
        remedy = 'Set "schedule": "0 3 * * *" there, or start the nights from cron or a systemd timer.'
        problem = "no schedule found, neither there nor in this user's crontab or systemd timers."
        raise DashboardError(problem, place=home.config_file, remedy=remedy)
    watched = watch(home, schedule, now, read_grace(home), is_running=lock.is_held(home))
    is_new, told = _tell(home, watched, now)
    lines = _describe(home, watched) if is_new or arguments.verbose else []
    if is_new and not watched.is_quiet:
        lines[0] = _AGAIN
    lines += [f"Route {each.state.name}: {each.state.fault}" for each in told if each.state.fault]
    print("\n".join(lines), end="\n" * bool(lines))
    return SOME_FAILED if watched.is_quiet or any(each.state.fault for each in told) else OK_CODE


def read_grace(home: Home) -> datetime.timedelta | None:
    """Read the configured grace period, even if another part of the config has an error."""
    try:
        value = last_config.read_config(home)
    except DashboardError:
        return None
    minutes = value.get("watch_grace_minutes") if isinstance(value, dict) else None
    return make_grace(minutes * 60) if isinstance(minutes, (int, float)) and minutes > 0 else None


def _tell(home: Home, watched: Watched, now: datetime.datetime) -> tuple[bool, Sequence[Told]]:
    """Send the state on the routes; return whether it was news, and how sending went."""
    from tvmdash.notify import spells  # the detector's imports cost the other verbs a third of a second
    from tvmdash.notify.config import read_despite_faults

    try:
        routing = read_despite_faults(home)
    except DashboardError as error:
        if watched.is_quiet:
            print("\n".join(_describe(home, watched)))
        raise DashboardError(f"No messages can be sent on the routes: {error}") from error
    if watched.is_quiet:
        return spells.tell_quiet(home, routing, _make_spell(home, watched), now)
    return spells.tell_end(home, routing, lambda since: _make_end(home, watched, since), now)


def _make_spell(home: Home, watched: Watched) -> Spell:
    from tvmdash.notify.message import Item
    from tvmdash.notify.spells import Spell

    title, *lines = _describe(home, watched)
    night = _choose_night(watched)
    start = REPOSITORY / "run_dashboard.sh"
    program = f"{start} --command" if start.is_file() else "dashboard"
    commands = (
        ("How the last night went", f"{program} status {home.root}"),
        ("What is wrong with the home", f"{program} doctor {home.root}"),
        ("Run a night now", f"{start if start.is_file() else 'dashboard run'} {home.root}"),
    )
    last = watched.last.stamp if watched.last else ""
    return Spell(night, last, title, (Item("", tuple(lines), "", commands),))


def _choose_night(watched: Watched) -> str:
    if watched.due is not None and watched.is_overdue:
        return common.stamp_of(watched.due)
    if watched.refusal is not None:
        return watched.refusal.at
    return watched.attempt.stamp if watched.attempt else ""


def _make_end(home: Home, watched: Watched, since: str) -> Spell:
    from tvmdash.notify.message import Item
    from tvmdash.notify.spells import Spell

    last = watched.last.stamp if watched.last else ""
    if last > since:
        before = f"Before that, no night had completed since {common.format_moment(since)}."
        lines = [
            f"The night of {common.format_moment(last)} is complete. Schedule: {watched.schedule}.",
            before if since else "It is the first complete night.",
        ]
    else:
        lines = [f"A night is running now. Schedule: {watched.schedule}."]
    night = watched.last.stamp if watched.last else common.stamp_of(common.utc_now())
    return Spell(night, since, _AGAIN, (Item("", tuple(lines)),), is_over=True)


def _describe(home: Home, watched: Watched) -> list[str]:
    """Describe the state, the most important line first."""
    last = watched.last.stamp if watched.last else ""
    if not watched.is_quiet:
        text = f"Last complete night: {common.format_moment(last)}" if last else "No night was due yet"
        return ["Nights are running on schedule", f"{text}. Schedule: {watched.schedule}."]
    title = f"No night has completed since {common.format_moment(last)}" if last else "No night has ever completed"
    due = f"Schedule: {watched.schedule}."
    if watched.due is not None and watched.is_overdue:
        was = f"A night was due on {watched.due:%Y-%m-%d at %H:%M} UTC and had {_format_grace(watched)} to complete."
        due = f"{was} {due}"
    elif watched.refusal is not None:
        how = "could not begin" if watched.refusal.ending is Ending.REFUSED else "ended with an error"
        title = f"The night of {common.format_moment(watched.refusal.at)} {how}"
    elif watched.attempt is not None:
        title = f"The night of {common.format_moment(watched.attempt.stamp)} was killed or lost power"
    return [title, due, *_find_reasons(home, watched)]


def _format_grace(watched: Watched) -> str:
    return format_duration(watched.grace.total_seconds())


def _find_reasons(home: Home, watched: Watched) -> Iterator[str]:
    if watched.refusal is not None:
        yield str(watched.refusal)
    elif watched.attempt is not None:
        yield _describe_attempt(home, watched.attempt)
    if not watched.schedule.is_enabled and watched.is_overdue:
        yield "Its systemd timer is not enabled. Run systemctl --user enable --now NAME.timer"
    if watched.refusal is not None:
        return
    try:
        read_home_config(home)
    except DashboardError as error:
        yield f"No night can start because of an error in the home's config: {error}"


def _describe_attempt(home: Home, night: Night) -> str:
    if night.state == RUNNING and lock.is_held(home):
        return f"The night of {common.format_moment(night.stamp)} is still running; `status` shows what it is doing."
    if night.state == RUNNING:
        return f"The night of {common.format_moment(night.stamp)} broke off. The next one saves what it had measured."
    if night.state == INTERRUPTED:
        return f"The night of {common.format_moment(night.stamp)} started but was interrupted."
    return f"The night of {common.format_moment(night.stamp)} is {night.state}."
