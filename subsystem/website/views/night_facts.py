"""Nights around tonight: the calendar, which TVM came before, how often nights start, what is still to come."""

from __future__ import annotations

import datetime
import itertools
import re
import statistics
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from tvmdash import common
from tvmdash.dashboard_info import Night
from tvmdash.text import elide, format_duration, format_list
from tvmdash.verdict.account import NightSeverity
from views.night import ABSENT, FAILED, OK, format_version, subsystems
from views.night_results import KeptResults

_INTERVALS = 10
# versions of builds from git: the tag, the commits since, the commit
_COUNTED = re.compile(r"(?P<tag>[^+\s]*?)(?:\.post(?P<since>\d+))?\+g[0-9a-f]+")


@dataclass(frozen=True)
class NextRun:
    """When nights start, from the history alone: what starts them is not known here."""

    last: str
    words: str
    expected: str | None


def next_run(stamps: Sequence[str]) -> NextRun:
    """Estimate the next night from the stamps of nights up to tonight, oldest first; at least one."""
    moments = [common.parse_stamp(stamp) for stamp in stamps[-_INTERVALS - 1 :]]
    gaps = [(after - before).total_seconds() for before, after in itertools.pairwise(moments)]
    if len(gaps) < 2:
        return NextRun(stamps[-1], "Too few nights to tell how often they start.", None)
    usual = statistics.median(gaps)
    next_moment = moments[-1] + datetime.timedelta(seconds=usual)
    text = f"Nights usually start {format_duration(usual)} apart"
    return NextRun(stamps[-1], text, common.stamp_of(next_moment))


def format_versions(tonight: Night, before: Night | None) -> tuple[str, ...]:
    """Describe each TVM of tonight: its commit's title, the night before's, what it was measured against."""
    earlier = [item for item in before.artifacts if isinstance(item, dict)] if before else []
    against = [tonight.describe_references(item) for item in tonight.artifacts]
    return tuple(
        f"{_version(item, earlier)}{f'; measured {other}' if other else ''}"
        for item, other in zip(tonight.artifacts, against, strict=True)
    )


def _version(item: object, earlier: Sequence[Mapping[str, Any]]) -> str:
    facts: Mapping[str, Any] = item.get("facts") or {} if isinstance(item, dict) else {}
    now = format_version(item)
    title = f" ({elide(str(facts['title']), 80)})" if facts.get("title") else ""
    same_source = (
        [artifact for artifact in earlier if _asked(item) & _asked(artifact)]
        or [artifact for artifact in earlier if (artifact.get("facts") or {}).get("remote") == facts.get("remote")]
        or earlier
    )
    known = [format_version(artifact) for artifact in same_source]
    if not known:
        return now + title
    if now in known:
        same = [artifact.get("key") for artifact, version in zip(same_source, known, strict=True) if version == now]
        is_same = isinstance(item, dict) and item.get("key") in same
        return f"{now}{title}, {'as' if is_same else 'another build than'} the night before"
    version = str(item.get("version")) if isinstance(item, dict) else ""
    between = [commits_between(str(artifact.get("version")), version) for artifact in same_source]
    text = (
        f"{_commits(between[0])} than the night before, " if len(between) == 1 and between[0] else "the night before "
    )
    return f"{now}{title}; {text}{format_list(known, 2)}"


def _asked(artifact: object) -> set[tuple[str, str]]:
    """Return the remotes and branches that it was taken for; nights of long ago do not say so."""
    asked = artifact.get("asked") if isinstance(artifact, dict) else None
    return {
        (str(question.get("remote")), str(question.get("branch")))
        for question in asked or ()
        if isinstance(question, dict)
    }


def _commits(count: int) -> str:
    return f"{count} commit{'' if count == 1 else 's'} later"


def commits_between(before: str, now: str) -> int | None:
    """Count the commits between two builds from git whose versions count from the same tag; None if unknown."""
    old, new = _COUNTED.match(before), _COUNTED.match(now)
    if not old or not new or old["tag"] != new["tag"]:
        return None
    count = int(new["since"] or 0) - int(old["since"] or 0)
    return count if count > 0 else None


def still_to_come(tonight: Night, own: str) -> tuple[str, ...]:
    """List the subsystems that had not had their turn when the page was written, but `own`."""
    return tuple(
        job.title
        for job in subsystems(tonight)
        if job.name != own and job.first_failure is None and not any(step.stage == "run" for step in job.steps)
    )


WEEKS = 5
_SEVERITIES = {OK: NightSeverity.GOOD, FAILED: NightSeverity.BAD, ABSENT: NightSeverity.UNKNOWN}
"""Of nights of before there was an account: by how their jobs went."""


@dataclass(frozen=True)
class CalendarDay:
    """A day; of its last night the stamp, how grave it was, and that in words. Without one, stamp is empty."""

    day: int
    stamp: str = ""
    severity: str = "none"
    words: str = ""
    other_machine: bool = False


def make_calendar(
    nights: Mapping[str, tuple[str, KeptResults]], machine_changed: AbstractSet[str]
) -> tuple[CalendarDay, ...]:
    """Fill whole weeks from Monday on, up to the last night. nights: how the jobs of each went, and what was kept."""
    by_day = {common.parse_stamp(stamp).date(): stamp for stamp in sorted(nights)}
    last = max(by_day)
    first = max(min(by_day), last - datetime.timedelta(weeks=WEEKS - 1))
    day, days = first - datetime.timedelta(days=first.weekday()), []
    while day <= last:
        days.append(_make_day(day, by_day.get(day), nights, machine_changed))
        day += datetime.timedelta(days=1)
    return tuple(days)


def _make_day(
    day: datetime.date,
    stamp: str | None,
    nights: Mapping[str, tuple[str, KeptResults]],
    machine_changed: AbstractSet[str],
) -> CalendarDay:
    if stamp is None:
        return CalendarDay(day.day)
    state, kept = nights[stamp]
    severity, words = kept.sentence or (_SEVERITIES.get(state, NightSeverity.WARN), state)
    other = stamp in machine_changed
    words = f"{common.format_day(stamp)}: {words}{'; the machine changed' if other else ''}"
    return CalendarDay(day.day, stamp, severity, words, other)


def machine_changes(machines: Mapping[str, Sequence[str]]) -> set[str]:
    """Find the nights that measured on none of the machines of the night before; `machines` by stamp, oldest first."""
    changed: set[str] = set()
    before: AbstractSet[str] = frozenset()
    for stamp, now in machines.items():
        if before and before.isdisjoint(now):
            changed.add(stamp)
        before = frozenset(now)
    return changed
