"""Record what the machine does while a stage has it to itself: a thread of the night, cheap and never in the way.

It runs at the lowest priority and never takes more than `MAX_SHARE` of one core: a machine on which a reading costs
more is read less often. What it took is in the file.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator

from dashboard.night import sensors
from dashboard.night.context import Context
from dashboard.night.sensors import Sensor
from dashboard.plan.job import Job
from tvmdash.errors import DashboardError
from tvmdash.machine import nvml, telemetry
from tvmdash.machine.telemetry import SECONDS, Cost, Telemetry
from tvmdash.stages import Stage

MAX_SHARE = 0.005
MAX_READINGS = 20_000
"""A longer recording is thinned to half of its readings and goes on at half the rate."""
_LOWEST_PRIORITY = 19
_log = logging.getLogger("night")


class Recorder:
    """Reads all sensors `rate_per_s` times a second, from `start` to `stop`, in a thread of its own."""

    def __init__(self, rate_per_s: float, sensors_: list[Sensor], *, max_readings: int = MAX_READINGS) -> None:
        self._period_s = 1 / rate_per_s
        self._sensors = sensors_
        self._max_readings = max_readings
        self._rows: list[dict[str, float | None]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._record, name="telemetry", daemon=True)
        self._cpu_s = self._longest_s = 0.0
        self.begun_unix_s = 0.0

    def start(self) -> None:
        """Begin."""
        self.begun_unix_s, self._begun = time.time(), time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """End, after at most one more reading."""
        self._stop.set()
        self._thread.join()
        self._elapsed_s = time.monotonic() - self._begun

    def _record(self) -> None:
        with contextlib.suppress(OSError):  # a container may forbid it
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
        due = time.monotonic() + min(self._period_s, 0.2)  # rates need a span; a short stage should have a reading
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due = time.monotonic() + max(self._period_s, self._read() / MAX_SHARE)
            if len(self._rows) >= self._max_readings:
                del self._rows[1::2]
                self._period_s *= 2

    def _read(self) -> float:
        """Take one reading; the CPU seconds that it took."""
        begun = time.thread_time()
        row: dict[str, float | None] = {SECONDS: time.monotonic() - self._begun}
        for sensor in list(self._sensors):
            try:
                row.update(sensor())
            except (OSError, ValueError, IndexError) as error:
                _log.warning("telemetry: stopped reading a faulty sensor: %s", error)
                self._sensors.remove(sensor)
        self._rows.append(row)
        took = time.thread_time() - begun
        self._cpu_s += took
        self._longest_s = max(self._longest_s, took)
        return took

    def columns(self) -> dict[str, list[float | None]]:
        """What was read, by column."""
        names = dict.fromkeys(name for row in self._rows for name in row)
        return {name: [row.get(name) for row in self._rows] for name in names}

    def cost(self) -> Cost:
        """What it took."""
        return Cost(
            round(self._cpu_s / self._elapsed_s, 6) if self._elapsed_s else 0.0, round(self._longest_s * 1e3, 3)
        )


@contextlib.contextmanager
def record(context: Context, job: Job, stage: Stage) -> Iterator[None]:
    """Record while the block runs, where `stage` has the machine to itself and the home's `telemetry_rate` is not 0.

    A recording that fails is a warning in the log; it costs the stage nothing.
    """
    rate = context.plan.config.telemetry_rate
    if not stage.alone or not rate:
        yield
        return
    cards = nvml.open_cards()
    recorder = Recorder(rate, [*sensors.host_sensors(), *([cards] if cards else [])])
    recorder.start()
    try:
        yield
    finally:
        recorder.stop()
        if cards:
            cards.close()
        try:
            _keep(context, job, recorder, rate)
        except (DashboardError, OSError) as error:
            _log.warning("could not save the telemetry of %s: %s", job.name, error)


def _keep(context: Context, job: Job, recorder: Recorder, rate: float) -> None:
    columns = {name: tuple(column) for name, column in recorder.columns().items()}
    if not columns:
        return
    root = context.home.root
    cores, memory = len(os.sched_getaffinity(0)), sensors.memory_total_bytes()
    whole = Telemetry(job.name, context.stamp, recorder.begun_unix_s, rate, cores, memory, recorder.cost(), columns)
    telemetry.write(telemetry.file(root, job.name, context.stamp), whole)
    kept = sorted(telemetry.folder(root, job.name).glob("telemetry_*.json"))
    for old in kept[: -max(1, context.plan.config.keep_raw_nights)]:
        old.unlink()
