"""The progress of a running night for people: a live line on a terminal, log lines under cron, a file for `status`."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import statistics
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dashboard.plan.job import Job
from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.dashboard_info import COMPLETE, OK, SKIPPED, Home, StepResult, pages
from tvmdash.dashboard_info.stages import POINTS_FILE, Stage
from tvmdash.errors import DashboardError
from tvmdash.redaction import redact

_log = logging.getLogger("night")
_SIGNS = {OK: "ok", SKIPPED: "kept"}


_PAUSE_S = 0.5
_BEAT_S = 30.0
"""The interval of a night's signs of life; after ten of them without one a reader takes it for dead."""
_NIGHTS_BACK, _MOST_BYTES = 5, 1000
NOW_FILE = ".now.keep.tmp"
"""The file in results/ that says what a running night does now. The name keeps it out of archives."""


@dataclass(frozen=True)
class Now:
    """A running night's steps: what runs since which stamp, and how many are done.

    usual_s: how long it usually takes, of what runs, where that is known. points: how many of how many are measured.
    """

    running: tuple[tuple[str, str], ...]
    done: int
    total: int
    usual_s: Mapping[str, float] = field(default_factory=dict)
    points: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def read_now(home: Home, stamp: str) -> Now | None:
    """Read the progress of the night `stamp`; None where it has written none."""
    try:
        value = common.read_json(home.nights.parent / NOW_FILE, max_bytes=1 << 20)
        running = tuple((str(what), str(since)) for what, since in value["running"])
        usual_s = {str(what): float(seconds) for what, seconds in value.get("usual_s", {}).items()}
        points = {str(what): (int(one), int(other)) for what, (one, other) in value.get("points", {}).items()}
        now = Now(running, int(value["done"]), int(value["total"]), usual_s, points)
        return now if value["night"] == stamp else None
    except (DashboardError, AttributeError, KeyError, TypeError, ValueError):
        return None


class Progress:
    """Steps as they begin and end; `total` is how many the night has. Use it as a context.

    What changes is written down by a thread of its own, twice a second at most: a night of short steps would spend more
    on saying what it does than on doing it. That a stage begins which has the machine to itself is written before.
    The website, where there is one, has it in a file of its own, which the pages of readers ask for.
    """

    def __init__(self, total: int, home: Home, stamp: str) -> None:
        self._file, self._night = home.nights.parent / NOW_FILE, stamp
        self._site = home.output("website")
        took_s = [night.elapsed_s for night in home.last_nights(_NIGHTS_BACK, jobs=False) if night.state == COMPLETE]
        self._usual_night_s = statistics.median(took_s) if took_s else None
        self._raw: dict[str, Path] = {}
        self._since: dict[str, str] = {}
        self._usual: dict[str, float] = {}
        self._total = total
        self._done = 0
        self._running: dict[tuple[str, str, str], float] = {}
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._stop, self._changed = threading.Event(), threading.Event()
        self._writer = threading.Thread(target=self._write_changes, name="progress", daemon=True)
        self._live = sys.stderr.isatty()
        self._painter = threading.Thread(target=self._paint_each_second, daemon=True)

    def __enter__(self) -> Self:
        self._writer.start()
        if self._live:
            self._painter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._changed.set()
        self._writer.join()
        self._show_on_site(pages.LiveState.INTERRUPTED if kind else pages.LiveState.ENDED, {})
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)
        if self._live:
            self._painter.join()
            self._erase()

    def report(self, what: str) -> None:
        """Show what the night does between its steps; "" when it is done."""
        with self._lock:
            self._since = {what: common.stamp_of(common.utc_now())} if what else {}
            self._changed.set()

    def begin(self, job: Job, stage: Stage, left_in: Path, usual_s: float | None = None) -> None:
        """Note that a step begins; stages that may take long are logged without a terminal, too.

        left_in: where it may leave how many points it has measured. usual_s: what it usually takes.
        """
        what = _format_stage(job, stage.name)
        with self._lock:
            self._running[job.kind, job.name, stage.name] = time.monotonic()
            self._since[what], self._raw[what] = common.stamp_of(common.utc_now()), left_in
            if usual_s is not None:
                self._usual[what] = usual_s
        if stage.alone:
            self._write()
        else:
            self._changed.set()
        if stage.needs_tvm and not self._live:
            _log.info("%s %s, %s: started", job.kind, job.name, stage.name)

    def end(self, job: Job, result: StepResult) -> None:
        """Note that a step has ended, or was not begun."""
        with self._lock:
            self._running.pop((job.kind, job.name, result.stage), None)
            for known in (self._since, self._usual, self._raw):
                known.pop(_format_stage(job, result.stage), None)
            self._done += 1
            self._changed.set()
            self._erase()
            sign = _SIGNS.get(result.state, result.state.upper())
            level = logging.INFO if result.success else logging.WARNING
            values = (job.kind, job.name, result.stage, sign, result.elapsed_s, self._done, self._total, result.message)
            _log.log(level, "%s %s, %s: %s after %.1f s (%d of %d): %s", *values)

    def _write_changes(self) -> None:
        while not self._stop.is_set():
            self._changed.wait(_BEAT_S)
            self._changed.clear()
            self._write()
            self._stop.wait(_PAUSE_S)

    def _write(self) -> None:
        """Write down what runs; where the disk is full, `status` knows less."""
        with self._writing:
            with self._lock:
                running, usual, raw = list(self._since.items()), dict(self._usual), dict(self._raw)
                value = {"running": running, "done": self._done, "total": self._total, "usual_s": usual}
            points = {what: found for what, folder in raw.items() if (found := _read_points(folder))}
            value = {"night": self._night, **value, "points": points}
            with contextlib.suppress(OSError):
                common.write_json(self._file, value, durable=False)
            self._show_on_site(pages.LiveState.RUNNING, value)

    def _show_on_site(self, state: pages.LiveState, value: Mapping[str, Any]) -> None:
        """Show it on the website, where there is one; a publish replaces its folder, with what was shown last."""
        about = {
            "state": state,
            "night": self._night,
            "at": common.stamp_of(common.utc_now()),
            "usual_night_s": self._usual_night_s,
        }
        content = redact(json.dumps({**value, **about})).encode()
        with contextlib.suppress(OSError):
            if os.path.lexists(self._site / pages.LIVE_FILE):
                common.write_bytes(self._site / pages.LIVE_FILE, pages.as_script("live.json", content), durable=False)

    def _paint_each_second(self) -> None:
        while not self._stop.wait(1.0):
            with self._lock:
                now = time.monotonic()
                steps = [f"{name} {stage} {now - begun:.0f} s" for (_, name, stage), begun in self._running.items()]
                line = f"{', '.join(steps) or 'working'}; {self._total - self._done} steps left"
                sys.stderr.write(f"\r\033[K{line[:150]}")
                sys.stderr.flush()

    def _erase(self) -> None:
        if self._live:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def _read_points(folder: Path) -> tuple[int, int] | None:
    """Read how many points a running stage has measured, of how many; the folder is a stranger's."""
    with contextlib.suppress(OSError, DashboardError, KeyError, TypeError, ValueError, AttributeError):
        with trees.open_file(folder, POINTS_FILE) as file:
            value = common.parse_json(file.read(_MOST_BYTES), POINTS_FILE)
        measured, points = value["measured"], value["points"]
        return (measured, points) if type(measured) is type(points) is int and 0 <= measured <= points else None
    return None


def _format_stage(job: Job, stage: str) -> str:
    return f"{job.kind} {job.name}, {stage}"
