"""The heat strip: experiments down, the last nights across, newest first."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from night_views import ABSENT, OK, PARTIAL, experiments, job_state
from tonight_views import anchor_of

from tvmdash import common
from tvmdash.dashboard_info import Home, JobResult, Night

NIGHTS = 30


@dataclass(frozen=True)
class Row:
    """One experiment: its state on each night; `anchor` leads to it where it took part tonight."""

    name: str
    title: str
    anchor: str | None
    states: tuple[str, ...]


@dataclass(frozen=True)
class Strip:
    """`stamps` newest first; `months` are (name, how many of them)."""

    stamps: tuple[str, ...]
    months: tuple[tuple[str, int], ...]
    rows: tuple[Row, ...]


def make_strip(home: Home, tonight: Night) -> Strip:
    """The strip of the last nights up to tonight."""
    nights = [night for night in home.last_nights(NIGHTS) if night.stamp < tonight.stamp]
    return _strip([tonight, *nights][:NIGHTS])


def _strip(nights: Sequence[Night]) -> Strip:
    titles: dict[str, str] = {}
    for night in nights:
        for job in experiments(night):
            titles.setdefault(job.name, job.title)
    states = [{job.name: _cell(job) for job in experiments(night)} for night in nights]
    rows = (
        Row(name, title, anchor_of(name) if name in states[0] else None, tuple(row.get(name, ABSENT) for row in states))
        for name, title in sorted(titles.items(), key=lambda item: (item[1].lower(), item[0]))
    )
    stamps = tuple(night.stamp for night in nights)
    by_month = itertools.groupby(f"{common.parse_stamp(stamp):%b %Y}" for stamp in stamps)
    return Strip(stamps, tuple((name, len(list(group))) for name, group in by_month), tuple(rows))


def _cell(job: JobResult) -> str:
    state = job_state(job)
    return PARTIAL if state == OK and job.failed_points else state
