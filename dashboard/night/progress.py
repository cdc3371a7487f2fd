"""What a person sees while the night runs: one live line on a terminal, log lines under cron, a file for `status`."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from dashboard.plan.job import Job
from tvmdash import common
from tvmdash.dashboard_info import OK, SKIPPED, Home, StepResult
from tvmdash.errors import DashboardError
from tvmdash.stages import Stage

_log = logging.getLogger("night")
_SIGNS = {OK: "ok", SKIPPED: "kept"}


_PAUSE_S = 0.5
NOW_FILE = ".now.keep.tmp"
"""In results/ while a night runs: what it does at this moment. The name keeps it out of archives."""


@dataclass(frozen=True)
class Now:
    """What a running night does: what runs by the moment at which it began (UTC), `done` of `total` steps.

    usual_s: how long it usually takes, of what runs, where that is known.
    """

    running: tuple[tuple[str, str], ...]
    done: int
    total: int
    usual_s: Mapping[str, float] = field(default_factory=dict)


def read_now(home: Home, stamp: str) -> Now | None:
    """What the night `stamp` does now, where it has said so."""
    try:
        value = common.read_json(home.nights.parent / NOW_FILE, max_bytes=1 << 20)
        running = tuple((str(what), str(since)) for what, since in value["running"])
        usual_s = {str(what): float(seconds) for what, seconds in value.get("usual_s", {}).items()}
        return Now(running, int(value["done"]), int(value["total"]), usual_s) if value["night"] == stamp else None
    except (DashboardError, AttributeError, KeyError, TypeError, ValueError):
        return None


class Progress:
    """Steps as they begin and end; `total` is how many the night has. Use it as a context.

    What changes is written down by a thread of its own, twice a second at most: a night of short steps would spend more
    on saying what it does than on doing it. That a stage begins which has the machine to itself is written before.
    """

    def __init__(self, total: int, home: Home, stamp: str) -> None:
        self._file, self._night = home.nights.parent / NOW_FILE, stamp
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
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)
        if self._live:
            self._painter.join()
            self._erase()

    def report(self, what: str) -> None:
        """What the night does between its steps; "" when it is done."""
        with self._lock:
            self._since = {what: _format_moment()} if what else {}
            self._changed.set()

    def begin(self, job: Job, stage: Stage, usual_s: float | None = None) -> None:
        """A step begins; stages that may take long are said without a terminal, too. usual_s: what it usually takes."""
        with self._lock:
            self._running[job.kind, job.name, stage.name] = time.monotonic()
            self._since[_format_stage(job, stage.name)] = _format_moment()
            if usual_s is not None:
                self._usual[_format_stage(job, stage.name)] = usual_s
        if stage.alone:
            self._write()
        else:
            self._changed.set()
        if stage.needs_tvm and not self._live:
            _log.info("%s %s, %s: started", job.kind, job.name, stage.name)

    def end(self, job: Job, result: StepResult) -> None:
        """A step has ended, or was not begun."""
        with self._lock:
            self._running.pop((job.kind, job.name, result.stage), None)
            self._since.pop(_format_stage(job, result.stage), None)
            self._usual.pop(_format_stage(job, result.stage), None)
            self._done += 1
            self._changed.set()
            self._erase()
            sign = _SIGNS.get(result.state, result.state.upper())
            level = logging.INFO if result.success else logging.WARNING
            values = (job.kind, job.name, result.stage, sign, result.elapsed_s, self._done, self._total, result.message)
            _log.log(level, "%s %s, %s: %s after %.1f s (%d of %d): %s", *values)

    def _write_changes(self) -> None:
        while self._changed.wait() and not self._stop.is_set():
            self._changed.clear()
            self._write()
            self._stop.wait(_PAUSE_S)

    def _write(self) -> None:
        """Write down what runs; where the disk is full, `status` knows less."""
        with self._writing:
            with self._lock:
                running, usual = list(self._since.items()), dict(self._usual)
                value = {"night": self._night, "running": running, "done": self._done, "total": self._total}
            with contextlib.suppress(OSError):
                common.write_json(self._file, {**value, "usual_s": usual}, durable=False)

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


def _format_stage(job: Job, stage: str) -> str:
    return f"{job.kind} {job.name}, {stage}"


def _format_moment() -> str:
    return f"{common.utc_now():%Y-%m-%d %H:%M:%S}"
