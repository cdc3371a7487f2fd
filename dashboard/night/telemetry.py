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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from dashboard.night.context import Context
from dashboard.plan.job import Job
from tvmdash.dashboard_info.stages import Stage
from tvmdash.errors import DashboardError
from tvmdash.machine import nvml, telemetry
from tvmdash.machine.telemetry import SECONDS, Cost, Telemetry

MAX_SHARE = 0.005
_KEPT_NIGHTS = 30
"""Nights of telemetry that are kept where the home's config does not say."""
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
        self.begun_unix_s, self._begun = time.time(), time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """End after at most one more reading."""
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
                # Every second reading goes, so that the whole stage stays covered at half the rate.
                del self._rows[1::2]
                self._period_s *= 2

    def _read(self) -> float:
        """Take one reading; return the CPU seconds that it took."""
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
        names = dict.fromkeys(name for row in self._rows for name in row)
        return {name: [row.get(name) for row in self._rows] for name in names}

    def cost(self) -> Cost:
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
    recorder = Recorder(rate, [*host_sensors(), *([cards] if cards else [])])
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
    cores, memory = len(os.sched_getaffinity(0)), memory_total_bytes()
    whole = Telemetry(job.name, context.stamp, recorder.begun_unix_s, rate, cores, memory, recorder.cost(), columns)
    telemetry.write(telemetry.file(root, job.name, context.stamp), whole)
    kept = sorted(telemetry.folder(root, job.name).glob("telemetry_*.json"))
    nights = context.plan.config.keep_raw_nights
    for old in kept[: -max(1, _KEPT_NIGHTS if nights is None else nights)]:
        old.unlink()


Reading = dict[str, float | None]
Sensor = Callable[[], Mapping[str, float | None]]

MAX_CORE_COLUMNS = 16
"""On a machine with more cores, only the lowest, median and highest clock are kept."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def host_sensors(root: Path = Path("/")) -> list[Sensor]:
    """List the sensors of this machine; `root` is where /proc and /sys lie."""
    proc, system = root / "proc", root / "sys"
    sensors: list[Sensor] = [
        lambda: _load(proc),
        lambda: _read_memory(proc),
        BusyCores(proc),
        _find_clocks(system, proc),
    ]
    temperatures = {**_find_thermal_zones(system), **_find_hwmon(system)}
    if temperatures:
        sensors.append(
            lambda: {f"temperature_c.{name}": _read_scaled(path, 1e-3) for name, path in temperatures.items()}
        )
    return sensors


def memory_total_bytes(root: Path = Path("/")) -> int:
    """Return the machine's memory; 0 where it does not say."""
    return int(_read_meminfo(root / "proc").get("MemTotal", 0))


def _load(proc: Path) -> Reading:
    parts = _read_text(proc / "loadavg").split()
    return {"load_1_min": float(parts[0]) if parts else None}


def _read_memory(proc: Path) -> Reading:
    return {"memory_available_bytes": _read_meminfo(proc).get("MemAvailable")}


def _read_meminfo(proc: Path) -> dict[str, float]:
    lines = (line.split() for line in _read_text(proc / "meminfo").splitlines()[:8])
    return {parts[0].rstrip(":"): int(parts[1]) * 1024.0 for parts in lines if len(parts) > 1}


class BusyCores:
    """Cores kept busy since the last reading: by everybody, by the night with all that it started, by other machines.

    The night's share is its own CPU time and that of its descendants, ended ones included; so what is `others` cannot
    be a stage that uses more threads than it said. A kernel that does not tell children (gVisor) gives neither.
    Only the cores that the night may use are counted: what runs beside it on the others takes nothing from it.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._cores = frozenset(b"cpu%d" % core for core in os.sched_getaffinity(0))
        self._tells_children = (proc / f"{os.getpid()}/task/{os.getpid()}/children").exists()
        self._last = self._now()

    def __call__(self) -> Mapping[str, float | None]:
        now = self._now()
        span = now[0] - self._last[0]
        deltas = [
            max(0.0, new - old) / span if span > 0 else None for new, old in zip(now[1:], self._last[1:], strict=True)
        ]
        self._last = now
        everybody, own, stolen = deltas
        own = own if self._tells_children else None
        others = None if everybody is None or own is None else max(0.0, everybody - own)
        return {"busy_cores.own": own, "busy_cores.others": others, "stolen_cores": stolen}

    def _now(self) -> tuple[float, float, float, float]:
        """Read the clock, and CPU seconds so far of everybody, of the night, of the hypervisor's other guests."""
        busy = stolen = 0
        for line in (self._proc / "stat").read_bytes().splitlines():
            name, _, fields = line.partition(b" ")
            if name in self._cores:
                user, nice, system, _, _, interrupts, soft, more = (*map(int, fields.split()), *[0] * 8)[:8]
                busy += user + nice + system + interrupts + soft
                stolen += more
        return time.monotonic(), busy / _TICKS_PER_S, self._night_ticks() / _TICKS_PER_S, stolen / _TICKS_PER_S

    def _night_ticks(self) -> int:
        total, waiting = 0, [os.getpid()]
        while waiting:
            pid = waiting.pop()
            try:
                stat = (self._proc / f"{pid}/stat").read_bytes()
                total += sum(int(part) for part in stat.rpartition(b")")[2].split()[11:15])
                for thread in os.listdir(self._proc / f"{pid}/task"):
                    waiting += map(int, (self._proc / f"{pid}/task/{thread}/children").read_bytes().split())
            except OSError:
                continue  # it ended while it was read; its time is then its parent's
        return total


def _find_clocks(system: Path, proc: Path) -> Sensor:
    """Make the sensor of the cores' clocks: from cpufreq, else (as in a virtual machine) from cpuinfo."""
    cores = sorted(os.sched_getaffinity(0))
    files = {core: system / f"devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq" for core in cores}
    if _read_text(files[cores[0]]):
        return lambda: _clock_columns({core: _read_scaled(path, 1e-3) for core, path in files.items()})
    return lambda: _clock_columns(_cpuinfo_clocks(proc))


def _clock_columns(clocks: Mapping[int, float | None]) -> Reading:
    known = sorted(clock for clock in clocks.values() if clock is not None)
    if not known:
        return {}
    spread = {"cpu_mhz_min": known[0], "cpu_mhz_median": known[len(known) // 2], "cpu_mhz_max": known[-1]}
    each = {f"cpu_mhz.{core}": clock for core, clock in clocks.items()} if len(clocks) <= MAX_CORE_COLUMNS else {}
    return {**spread, **each}


def _cpuinfo_clocks(proc: Path) -> dict[int, float | None]:
    """Read `cpu MHz` of each core; none on processors that do not say (Arm)."""
    lines = [line.partition(":") for line in _read_text(proc / "cpuinfo").splitlines()]
    clocks = [float(value) for name, _, value in lines if name.strip() == "cpu MHz"]
    return dict(enumerate(clocks))


def _find_thermal_zones(system: Path) -> dict[str, Path]:
    zones = sorted((system / "class/thermal").glob("thermal_zone*"))
    return {
        f"{_read_text(zone / 'type').strip() or 'zone'} {zone.name[12:]}": zone / "temp"
        for zone in zones
        if _read_text(zone / "temp")
    }


def _find_hwmon(system: Path) -> dict[str, Path]:
    paths = {}
    for path in sorted((system / "class/hwmon").glob("hwmon*/temp*_input")):
        label = _read_text(path.with_name(path.name.replace("_input", "_label"))).strip() or path.name.removesuffix(
            "_input"
        )
        if _read_text(path):
            paths[f"{_read_text(path.parent / 'name').strip() or path.parent.name} {label}"] = path
    return paths


def _read_scaled(path: Path, factor: float) -> float | None:
    try:
        return int(_read_text(path)) * factor
    except ValueError:
        return None


def _read_text(path: Path) -> str:
    """Read a file of the system; empty where it cannot be read, as some sensors now and then cannot."""
    try:
        with path.open("rb", buffering=0) as file:
            return file.read(1 << 20).decode("utf-8", errors="replace")
    except OSError:
        return ""
