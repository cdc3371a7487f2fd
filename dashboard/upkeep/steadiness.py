"""Causes of noisy measurements on this machine, each with the command that removes it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from dashboard.upkeep.finding import HomeFinding, make_good, make_warning
from tvmdash.machine import hardware
from tvmdash.text import format_bytes

_LOOK_S = 1.0
_BUSY_CORES, _STOLEN_SHARE, _SWAPPED_BYTES = 0.3, 0.01, 64 << 20


def examine(root: Path = Path("/"), look_s: float = _LOOK_S) -> Iterator[HomeFinding]:
    """Look in /proc and /sys below `root`, and for `look_s` at the load of other programs."""
    state = hardware.read_state(root)
    found = [*_find_frequency(root, state), *_find_memory(root), *_find_load(root, look_s)]
    yield from found
    if not found:
        yield make_good("machine", "no known cause of noisy measurements.")


def _find_frequency(root: Path, state: Mapping[str, object]) -> Iterator[HomeFinding]:
    cpu = root / "sys/devices/system/cpu"
    governors = {_read(path) for path in cpu.glob("cpu[0-9]*/cpufreq/scaling_governor")} - {"", "performance"}
    if governors:
        text = f"the CPU governor is {', '.join(sorted(governors))}, so the clock follows the load."
        yield make_warning("machine", text, "sudo cpupower frequency-set -g performance")
    if state["boost"]:
        intel = (cpu / "intel_pstate/no_turbo").exists()
        name, off, switch = ("turbo", 1, "intel_pstate/no_turbo") if intel else ("boost", 0, "cpufreq/boost")
        command = f"echo {off} | sudo tee /sys/devices/system/cpu/{switch}"
        yield make_warning("machine", f"{name} is on, so the clock depends on temperature and on other cores.", command)
    if state["smt"]:
        command = "echo off | sudo tee /sys/devices/system/cpu/smt/control"
        yield make_warning("machine", "SMT is on: two threads share a core and slow each other down.", command)


def _find_memory(root: Path) -> Iterator[HomeFinding]:
    lines = (line.split() for line in _read(root / "proc/meminfo").splitlines())
    memory = {parts[0].rstrip(":"): int(parts[1]) * 1024 for parts in lines if len(parts) > 1 and parts[1].isdecimal()}
    used = memory.get("SwapTotal", 0) - memory.get("SwapFree", 0)
    if used > _SWAPPED_BYTES:
        text = f"{format_bytes(used)} are swapped out, so measured code may have to wait for the disk."
        yield make_warning("machine", text, "sudo swapoff -a && sudo swapon -a, once enough memory is free")


def _find_load(root: Path, look_s: float) -> Iterator[HomeFinding]:
    """Find CPU time taken by other programs and by the hypervisor: this process sleeps meanwhile."""
    before = _read_cores(root)
    time.sleep(look_s)
    after = _read_cores(root)
    busy, stolen, total = (new - old for new, old in zip(after, before, strict=True))
    if total <= 0:
        return
    cores = len(os.sched_getaffinity(0))
    if busy / total * cores > _BUSY_CORES:
        text = f"{busy / total * cores:.1f} of {cores} cores are busy with other programs now."
        yield make_warning("machine", text, "Find them with top, and stop them while nights run.")
    if stolen / total > _STOLEN_SHARE:
        text = f"the hypervisor takes {100 * stolen / total:.0f} % of this machine's CPU time for other machines."
        yield make_warning("machine", text, "Request a dedicated host, or pin the virtual machine's cores.")


def _read_cores(root: Path) -> tuple[int, int, int]:
    """Read the ticks so far of all cores: busy, stolen, all."""
    line = next(iter(_read(root / "proc/stat").splitlines()), "")
    fields = [int(part) for part in line.split()[1:9] if part.isdecimal()]
    user, nice, system, idle, wait, interrupts, soft, stolen = (*fields, *[0] * 8)[:8]
    busy = user + nice + system + interrupts + soft
    return busy, stolen, busy + stolen + idle + wait


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
