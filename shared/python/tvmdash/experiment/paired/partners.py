"""Two processes that measure the same points in turn, seen from the run stage, which says whose turn it is.

Turns go by the sample, in an order drawn anew for each turn, so that neither side has the warmer caches. A point that
is judged by the CPU clock has both sides on one core, drawn anew for each turn as well. Where one side fails at a
point, or is lost, the other goes on alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tvmdash.dashboard_info.stages import read_status
from tvmdash.errors import DashboardError
from tvmdash.experiment.paired.turns import END, PREPARE, SAMPLE, VARIABLE
from tvmdash.experiment.points import MeasuringJob, key
from tvmdash.trial_util import Timing

Answer = Mapping[str, Any]
FEWEST_TURNS = 2
"""Turns of a pair whose samples take seconds: there it is the pairs that count."""


@dataclass
class Partner:
    """One of the two processes, which leaves its raw data in `folder`; lost: why it answers no more.

    jobs: the points that it measures, by their key. left_s: how long its answers may still take in all.
    """

    folder: Path
    jobs: Mapping[str, MeasuringJob]
    process: subprocess.Popen[bytes]
    line: Connection
    left_s: float
    limit: str
    lost: str = ""

    def tell(self, **order: Any) -> None:
        """Send an order; `answer` waits for what comes of it."""
        if not self.lost:
            try:
                self.line.send_bytes(json.dumps(order).encode())
            except OSError:
                self._lose()

    def answer(self) -> Answer | None:
        """Wait for the answer to the last order; None where the process is lost."""
        if self.lost:
            return None
        asked = time.monotonic()
        try:
            if self.line.poll(self.left_s):
                answer: Answer = json.loads(self.line.recv_bytes())
                self.left_s = max(0.0, self.left_s - (time.monotonic() - asked))
                return answer
        except (OSError, EOFError):
            self._lose()
            return None
        self._end()
        return None

    def close(self) -> str | None:
        """Wait for the process; return why it failed, or None."""
        self.line.close()
        if not self.lost:
            self._lose()
        return self.lost or None

    def _lose(self) -> None:
        """Wait for the process to end by itself, and keep its reason, or that it was killed."""
        try:
            code = self.process.wait(max(1.0, self.left_s))
        except subprocess.TimeoutExpired:
            self._end()
            return
        self.lost = describe_end(code, self.folder) or ""

    def _end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.lost = self.limit


def describe_limit(minutes: float) -> str:
    """Return why a measuring process that ran for so long was ended."""
    return f"its process exceeded process_minutes ({minutes:g} min) and was stopped"


def describe_end(code: int, folder: Path) -> str | None:
    """Return why a measuring process that exited with `code` did not do its task; None where it did."""
    if code < 0:
        return f"its process was killed by {signal.Signals(-code).name}"
    try:
        status = read_status(folder)
    except DashboardError as error:
        return f"its process exited with status {code}. {error}"
    return None if status.success else status.message


@contextlib.contextmanager
def started(
    argv: Sequence[str], environment: Mapping[str, str], folder: Path, jobs: Sequence[MeasuringJob], minutes: float
) -> Iterator[Partner]:
    """Start a process that waits for its turns; the end of the block kills it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            argv, env={**environment, VARIABLE: str(theirs.fileno())}, pass_fds=[theirs.fileno()]
        )
        # held open here, it would keep the line alive after the process's death
        theirs.close()
        by_key = {key(job.point): job for job in jobs}
        # a duplicate, as both the Connection and the socket close theirs
        line = Connection(os.dup(ours.fileno()))
        try:
            yield Partner(folder, by_key, process, line, minutes * 60, describe_limit(minutes))
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


@dataclass
class Conductor:
    """Decides whose turn it is. Each side prepares a point while the other waits, or both at once, as its job says.

    numbers: by point, how many calls a sample has, once that was found out; it is the same on both sides.
    """

    timing: Timing
    order: random.Random
    numbers: dict[str, int] = field(default_factory=dict)

    def compile(self, sides: Sequence[Partner], jobs: Sequence[MeasuringJob]) -> dict[str, str]:
        """Have every point compiled by each side that has it, in turn; return the failures by point."""
        failed: dict[str, str] = {}
        for job in jobs:
            name = key(job.point)
            asked = [side for side in sides if name in side.jobs]
            for side, answer in self._ask_to_prepare(job, self.order.sample(asked, len(asked))):
                if _failed(answer):
                    failed[name] = str(answer["error"]) if answer else side.lost
        return failed

    def conduct(self, sides: Sequence[Partner], jobs: Sequence[MeasuringJob]) -> None:
        """Have every point measured by each side that has it."""
        for job in jobs:
            name = key(job.point)
            asked = [side for side in sides if name in side.jobs]
            self._measure(name, job, self.order.sample(asked, len(asked)))

    def _measure(self, name: str, job: MeasuringJob, asked: list[Partner]) -> None:
        ready, longest_ns = self._prepare(job, asked)
        cores = sorted(os.sched_getaffinity(0))
        timing = replace(self.timing, repeat=job.repeat)
        turns = timing.count_samples(longest_ns * len(ready), FEWEST_TURNS) if ready else 0
        for _ in range(turns):
            core = self.order.choice(cores) if job.one_core else None
            for side in self.order.sample(ready, len(ready)):
                side.tell(do=SAMPLE, core=core)
                if _failed(side.answer()):
                    ready.remove(side)
        for side in ready:
            side.tell(do=END, profile=job.profile)
            side.answer()

    def _prepare(self, job: MeasuringJob, asked: Sequence[Partner]) -> tuple[list[Partner], int]:
        """Return the sides that are ready, and how long the longer of their samples lasts."""
        ready, longest_ns = [], 0
        for side, answer in self._ask_to_prepare(job, asked):
            if answer is not None and not _failed(answer):
                ready.append(side)
                self.numbers.setdefault(key(job.point), int(answer["number"]))
                longest_ns = max(longest_ns, int(answer["warm_ns"]))
        return ready, longest_ns

    def _ask_to_prepare(self, job: MeasuringJob, asked: Sequence[Partner]) -> Iterator[tuple[Partner, Answer | None]]:
        """One after the other also where the first one finds out how many calls a sample has: both have as many."""
        name = key(job.point)
        is_in_turn = (job.alone and not job.built) or name not in self.numbers
        for group in [[side] for side in asked] if is_in_turn else [asked]:
            for side in group:
                side.tell(do=PREPARE, number=self.numbers.get(name, 0))
            for side in group:
                yield side, side.answer()


def _failed(answer: Answer | None) -> bool:
    return answer is None or "error" in answer
