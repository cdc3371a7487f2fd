"""Waivers: somebody answers by name for a change, with a reason. Lines are only ever appended.

A waiver belongs to one series and one A, whatever B is, and has the size that it was given for: what has become clearly
worse since is not covered.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.files import lines
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.text import format_list
from tvmdash.trials.signoff import Signoff, SignoffSeries, SignoffState, SignoffWaiver, WaiverEvent
from tvmdash.verdict import TELL

_FOLDER, _FILE = "signoff", "waivers.jsonl"
_NEAR, _SHOWN = 0.3, 4


def path_of(home: Home) -> Path:
    return home.root / "results" / _FOLDER / _FILE


def read(home: Home) -> tuple[list[WaiverEvent], list[str]]:
    """All that was ever waived or taken back, in order; and what is wrong with each line that is neither."""
    path = path_of(home)
    events, faults = [], []
    for number, line in enumerate(path.read_bytes().splitlines() if path.is_file() else (), start=1):
        where = f"{path}:{number}"
        try:
            events.append(structured.from_json(WaiverEvent, common.parse_json(line, where), where))
        except DashboardError as error:
            faults.append(f"Ignored an invalid waiver: {error} Fix or remove the line.")
    return events, faults


def append(home: Home, events: Sequence[WaiverEvent]) -> None:
    """Write them behind what is there, in one write, under a lock; they survive a power cut."""
    path = path_of(home)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines.append(path, map(structured.to_json, events))
    except OSError as error:
        raise DashboardError(f"{path}: {error.strerror}. The waiver was not recorded.") from error


def list_standing(events: Iterable[WaiverEvent], base: str) -> list[SignoffWaiver]:
    """List those from that A on which nobody took back: the last of each series."""
    standing: dict[str, SignoffWaiver] = {}
    for event in events:
        if event.waiver.base == base:
            standing.pop(event.waiver.series, None)
            if not event.taken_back:
                standing[event.waiver.series] = event.waiver
    return list(standing.values())


def apply_waivers(series: Iterable[SignoffSeries], standing: Iterable[SignoffWaiver]) -> tuple[SignoffSeries, ...]:
    """The series with what covers each, or covered it before it became clearly worse."""
    by_series = {waiver.series: waiver for waiver in standing}
    return tuple(_apply(item, by_series.get(item.id)) for item in series)


def _apply(item: SignoffSeries, waiver: SignoffWaiver | None) -> SignoffSeries:
    if waiver is None or not item.is_in_the_way:
        return item
    return replace(item, waiver=waiver) if covers(waiver, item) else replace(item, outgrown=waiver)


def covers(waiver: SignoffWaiver, item: SignoffSeries) -> bool:
    """Return True where the waiver was given for no less than this.

    One for what could not be said does not cover a regression that has been measured since.
    """
    if waiver.state is not SignoffState.WORSE:
        return item.state is waiver.state
    if item.state is SignoffState.LOST:
        return False
    if waiver.value is not None and item.after is not None:
        return (item.after <= waiver.value) if item.direction == "lower" else (item.after >= waiver.value)
    return not _is_clearly_worse(item, waiver.effect)


def _is_clearly_worse(item: SignoffSeries, effect: float | None) -> bool:
    """Return True where the interval lies wholly beyond the size waived, and the change by one percent or more."""
    if effect is None or item.effect is None:
        return item.effect is not None
    sign = 1.0 if item.direction == "lower" else -1.0
    near = min(sign * end for end in (item.low, item.high, item.effect) if end is not None)
    return near > sign * effect and sign * (item.effect - effect) >= TELL


def waive(done: Signoff, patterns: Sequence[str], *, who: str, reason: str) -> list[WaiverEvent]:
    """The waivers of what the patterns name; DashboardError where one names nothing that needs one."""
    if not reason.strip():
        raise DashboardError("A waiver needs a reason. Give one with --reason.")
    at = f"{common.utc_now():%Y-%m-%dT%H:%M:%SZ}"
    in_the_way = [item for item in done.series if item.is_in_the_way]
    events = []
    for pattern in patterns:
        for item in _find(pattern, in_the_way, done.series):
            ends = (done.a.id, done.b.id, item.id, item.name, item.state, item.effect, item.after)
            events.append(WaiverEvent(SignoffWaiver(at, who, reason, pattern, *ends)))
    return events


def take_back(done: Signoff, patterns: Sequence[str], *, who: str, reason: str) -> list[WaiverEvent]:
    """The ends of the waivers that the patterns name: by pattern, or by series."""
    at = f"{common.utc_now():%Y-%m-%dT%H:%M:%SZ}"
    standing = list_standing(done.waivers, done.a.id)
    incidents = {item.id: item.incident for item in done.series}
    events = []
    for pattern in patterns:
        named = [waiver for waiver in standing if waiver.pattern == pattern or _names(
            pattern, (waiver.series, waiver.name, incidents.get(waiver.series)))]  # fmt: skip
        if not named:
            known = format_list([waiver.name for waiver in standing], _SHOWN) or "none"
            raise DashboardError(f"{pattern!r} matches no waiver in force from {done.a.asked} on. In force: {known}.")
        events += [WaiverEvent(replace(each, at=at, who=who, reason=reason), taken_back=True) for each in named]
    return events


def _find(pattern: str, in_the_way: Sequence[SignoffSeries], every: Sequence[SignoffSeries]) -> list[SignoffSeries]:
    found = [item for item in in_the_way if _names(pattern, (item.id, item.name, item.incident))]
    if found:
        return found
    if any(_names(pattern, (item.id, item.name, item.incident)) for item in every):
        raise DashboardError(f"{pattern!r} matches only series that need no waiver.")
    names = [item.name for item in (in_the_way or every)]
    near = difflib.get_close_matches(pattern, names, _SHOWN, _NEAR) or names[:_SHOWN]
    raise DashboardError(f"{pattern!r} matches no series. Similar names: {format_list(near, _SHOWN) or 'nothing'}.")


def _names(pattern: str, texts: Iterable[str | None]) -> bool:
    return any(text is not None and (text == pattern or fnmatch.fnmatchcase(text, pattern)) for text in texts)
