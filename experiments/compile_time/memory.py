"""How much memory this process has, and has had at most."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tvmdash.errors import DashboardError

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


@dataclass(frozen=True)
class Memory:
    """Resident memory in bytes: now, and the most since the peak was last forgotten.

    It is VmHWM and not getrusage's ru_maxrss: that one begins with the memory of whoever started the process.
    """

    resident: int
    peak: int


def now() -> Memory:
    """What the system says of this process."""
    lines = dict(line.split(":", 1) for line in _STATUS.read_text(encoding="utf-8").splitlines() if ":" in line)
    try:
        resident, peak = (int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    except KeyError as error:
        raise DashboardError(f"{_STATUS}: there is no {error}. Peak memory is read from Linux alone.") from error
    return Memory(resident, peak)


def forget_peak() -> bool:
    """From now on the peak is that of what follows; False where the system forbids it (see proc(5), clear_refs)."""
    try:
        _CLEAR.write_text(_RESET_PEAK, encoding="utf-8")
    except OSError:
        return False
    return True
