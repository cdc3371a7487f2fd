"""What a person sees while the night runs: one live line on a terminal, plain log lines under cron."""

from __future__ import annotations

import logging
import sys
import threading
import time
from types import TracebackType

from dashboard.plan import Job
from tvmdash.dashboard_info import OK, SKIPPED, StepResult
from tvmdash.stages import Stage

_log = logging.getLogger("night")
_SIGNS = {OK: "ok", SKIPPED: "kept"}


class Progress:
    """Steps as they begin and end; `total` is how many there are. Use it as a context."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._running: dict[tuple[str, str, str], float] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._live = sys.stderr.isatty()
        self._painter = threading.Thread(target=self._paint_each_second, daemon=True)

    def __enter__(self) -> Progress:
        if self._live:
            self._painter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._live:
            self._painter.join()
            self._erase()

    def begin(self, job: Job, stage: Stage) -> None:
        """A step begins; stages that may take long are said without a terminal, too."""
        with self._lock:
            self._running[job.kind, job.name, stage.name] = time.monotonic()
        if stage.needs_tvm and not self._live:
            _log.info("%s %s, %s: begun", job.kind, job.name, stage.name)

    def end(self, job: Job, result: StepResult) -> None:
        """A step has ended, or was not begun."""
        with self._lock:
            self._running.pop((job.kind, job.name, result.stage), None)
            self._done += 1
            self._erase()
            sign = _SIGNS.get(result.state, result.state.upper())
            level = logging.INFO if result.success else logging.WARNING
            words = (job.kind, job.name, result.stage, sign, result.elapsed_s, self._done, self._total, result.message)
            _log.log(level, "%s %s, %s: %s after %.1f s (%d of %d): %s", *words)

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
