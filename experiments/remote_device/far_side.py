"""A compiled network on the far side of a session: linked, sent, checked, timed there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from devices import Device

from tvmdash.measure.phases import phase
from tvmdash.networks.ops import Array
from tvmdash.relax_util import Compiled
from tvmdash.relax_util.linking import link
from tvmdash.trial_util import Timer

ROUND_TRIPS = 5


@dataclass(frozen=True)
class Sent:
    """A network on a device, its input there already; `timer` uses its clock, `round_trip_ms` ours."""

    run: Callable[[], Array]
    timer: Timer
    library_bytes: int
    upload_ms: float
    device_threads: int

    def round_trip_ms(self) -> float:
        """The median of a few calls from here, with the answer brought back."""
        times = []
        for _ in range(ROUND_TRIPS):
            begun = time.perf_counter_ns()
            self.run()
            times.append((time.perf_counter_ns() - begun) / 1e6)
        return median(times)


def send(session: Any, device: Device, name: str, compiled: Compiled, x: Array) -> Sent:
    """Link the module, send it, and load it there."""
    import tvm
    from tvm import relax

    with tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
        with phase("link"):
            path = _linked(compiled, device, Path(folder) / name)
        begun = time.perf_counter_ns()
        with phase("upload"):
            session.upload(str(path))
            module = session.load_module(path.name)
        upload_ms, size_bytes = (time.perf_counter_ns() - begun) / 1e6, path.stat().st_size
    there = session.device(device.kind, 0)
    machine = relax.VirtualMachine(module, there)
    tensor = tvm.runtime.tensor(x, device=there)
    machine.save_function("main", "timed", tensor, include_return=False)

    def run() -> Array:
        output: Array = machine["main"](tensor).numpy()
        return output

    def timer(number: int, repeat: int) -> list[int]:
        evaluator = machine.time_evaluator("timed", there, number=number, repeat=repeat)
        return [round(seconds * number * 1e9) for seconds in evaluator().results]

    threads = int(session.get_function("runtime.NumThreads")())
    return Sent(run, timer, size_bytes, upload_ms, threads)


def _linked(compiled: Compiled, device: Device, stem: Path) -> Path:
    """A shared library, or an archive where the device has to link."""
    return link(compiled.executable, stem, device=device.name, cc=device.cc, is_here=device.is_loopback)
