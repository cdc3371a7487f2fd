"""Two processes that measure the same points in turn, seen from one of them: it does what it is told, and waits.

Both compile and load a point, each while the other sleeps; then they take samples in turn. `partners` tells them when.
Orders and answers are JSON objects on a pipe. An order: `{"do": "prepare", "number": calls in a sample or 0}`,
`{"do": "sample", "core": one to run on or null}`, `{"do": "end", "profile": whether}`. An answer: `{}`, what `prepare`
found (`number`, `warm_ns`: how long a sample lasts), or `{"error": why the point has no more samples}`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from tvmdash.errors import DashboardError
from tvmdash.measure.capture import Sample
from tvmdash.measure.content import Code, watch_python
from tvmdash.trial_util import Timer, Timing, calibrate, take_sample

VARIABLE = "TVMDASH_TURNS"
"""Number of the open file on which this process gets its orders; not set where it measures alone."""
PREPARE, SAMPLE, END = "prepare", "sample", "end"


@dataclass(frozen=True)
class Taken:
    """A point's samples. is_to_profile: profile it now; ran: the Python code that it calls."""

    samples: list[Sample]
    is_to_profile: bool
    ran: frozenset[Code]


class Turns:
    """The measuring process's end of the pipe."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        self._cores = os.sched_getaffinity(0)

    def wait_to_prepare(self) -> int:
        """Wait until a point may be prepared; return the calls of a sample, 0 where that is to be found out."""
        return int(self._receive(PREPARE)["number"])

    def take(self, timer: Timer, timing: Timing, number: int) -> Taken:
        """Take every sample of the point, each when it is this process's turn."""
        number, ran = number or timing.number or calibrate(timer, timing.min_repeat_ms), set[Code]()
        # only while warming up: a profiler of Python's calls slows them down
        with watch_python(ran):
            warm_ns = timer(number, timing.warmup)[-1]
        self._send(number=number, warm_ns=warm_ns)
        samples: list[Sample] = []
        try:
            while (order := self._receive(SAMPLE, END))["do"] == SAMPLE:
                if order["core"] is not None:
                    os.sched_setaffinity(0, {order["core"]})
                samples.append(take_sample(timer, number))
                self._send()
        finally:
            # what comes after the turns is not bound to the core of the last one
            os.sched_setaffinity(0, self._cores)
        return Taken(samples, bool(order["profile"]), frozenset(ran))

    def end(self, error: str | None = None) -> None:
        """Answer that the point is done, or cannot go on."""
        self._send(**({"error": error} if error else {}))

    def _send(self, **answer: Any) -> None:
        self._line.send_bytes(json.dumps(answer).encode())

    def _receive(self, *expected: str) -> Mapping[str, Any]:
        order: Mapping[str, Any] = json.loads(self._line.recv_bytes())
        if order["do"] not in expected:
            raise DashboardError(f"{VARIABLE}: told to {order['do']}, expected {' or '.join(expected)}.")
        return order


def read_turns() -> Turns | None:
    """Return the pipe of this process, None where it measures alone."""
    named = os.environ.get(VARIABLE)
    return Turns(Connection(int(named))) if named else None
