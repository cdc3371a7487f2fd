"""`python at_clock.py OFFSETS VERB ...`: the dashboard by a clock that is wrong by so many seconds, look by look."""

from __future__ import annotations

import datetime
import json
import sys
import time
import types
from collections.abc import Iterator

from dashboard.cli.main import main
from tvmdash import common


def _draw(offsets: list[float]) -> Iterator[float]:
    yield from offsets
    while True:
        yield offsets[-1]


def _turn(offsets: list[float]) -> None:
    drawn, now, now_ns = _draw(offsets), time.time, time.time_ns

    class Moment(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
            return datetime.datetime.now(tz) + datetime.timedelta(seconds=next(drawn))

    common.datetime = types.SimpleNamespace(datetime=Moment, timedelta=datetime.timedelta, UTC=datetime.UTC)  # type: ignore[assignment]
    time.time = lambda: now() + next(drawn)
    time.time_ns = lambda: now_ns() + round(next(drawn) * 1e9)


_turn(json.loads(sys.argv[1]))
sys.exit(main(sys.argv[2:]))
