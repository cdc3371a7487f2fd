"""Readings of the machine from /proc and /sys; nothing here starts a process, and what is not there is left out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Reading = dict[str, float | None]
Sensor = Callable[[], Mapping[str, float | None]]

MAX_CORE_COLUMNS = 16
"""On a machine with more cores, only the lowest, median and highest clock are kept."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def host_sensors(root: Path = Path("/")) -> list[Sensor]:
    """The sensors that this machine has; `root` is where /proc and /sys lie."""
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
    """The machine's memory; 0 where it does not say."""
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
        """The moment, and CPU seconds so far of everybody, of the night, of the hypervisor's other guests."""
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
    """The clock of each core that may be used: from cpufreq, else (as in a virtual machine) from cpuinfo."""
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
    """`cpu MHz` of each core; without any on processors that do not say (Arm)."""
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
    """What the file of the system holds; empty where it cannot be read, as some sensors now and then cannot."""
    try:
        with path.open("rb", buffering=0) as file:
            return file.read(1 << 20).decode("utf-8", errors="replace")
    except OSError:
        return ""
