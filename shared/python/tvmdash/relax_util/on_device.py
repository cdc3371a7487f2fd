"""Devices driven by TVM, here or behind an RPC tracker: found, described, timed."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tvmdash.errors import DashboardError
from tvmdash.machine import cuda, nvml
from tvmdash.machine.devices import CPU, FACT, KINDS, Device, find_device
from tvmdash.measure.phases import phase
from tvmdash.measure.under_load import watch_card
from tvmdash.networks.ops import Array
from tvmdash.relax_util.linking import link
from tvmdash.relax_util.rpc import session
from tvmdash.trial_util import Timer, waiting_timer

_ATTRIBUTES = {"compute_units": 7, "driver": 12, "memory_bytes": 14}
"""Numbers of TVM's device attributes. Not every runtime has each."""
_OF_DEVICES = frozenset((*KINDS, "hip"))
"""Kinds of TVM runtime modules with a device's code; that of rocm is hip."""
_ROUNDS = 5
WAIT_VARIABLE, _WAIT_S = "TVMDASH_REMOTE_WAIT_S", 60.0
"""Variable with the seconds that a remote device has to grant a session, and their default."""


class OpenDevice:
    """A local device in use by this process; `handle` is TVM's."""

    waits_here = True
    """True where calls are timed by this machine's clock."""

    def __init__(self, device: Device) -> None:
        import tvm

        self.device = device
        if tvm.get_global_func(f"device_api.{device.kind}", True) is None:
            raise DashboardError(
                f"this TVM has no runtime for {device.kind}. Run `python3 -m dashboard check HOME` to find out why."
            )
        self.handle = tvm.device(device.kind, device.index)
        if not self.handle.exist:
            raise DashboardError(
                f"TVM's runtime for {device.kind} detects no device with number {device.index}. Run `python3 -m "
                "dashboard check HOME` to find out why."
            )

    @property
    def model(self) -> str:
        """Return the driver's name of the device."""
        return str(self.handle.device_name)

    @functools.cached_property
    def card(self) -> nvml.Card | None:
        """Return it as its maker's library shows it; None where it is not NVIDIA's or that library does not."""
        place = cuda.find_cuda_card(self.device.index) if self.device.kind == "cuda" else None
        return nvml.find_card(place.pci_bus_id) if place else None

    def watch(self, call: Callable[[], object]) -> dict[str, Any]:
        """Return energy and throttling while it repeats the call; empty without its maker's library."""
        return watch_card(self.card, call, self.handle.sync) if self.card else {}

    def load(self, executable: Any) -> Any:
        """Return the module in a form that a virtual machine of the device can load."""
        return executable

    def facts(self) -> dict[str, Any]:
        """Return a record's facts about the device: model, driver, size."""
        import tvm

        attribute = tvm.get_global_func("runtime.GetDeviceAttr")
        number = self.handle.dlpack_device_type()
        known = {name: attribute(number, self.device.index, which) for name, which in _ATTRIBUTES.items()}
        known["driver"] = known["driver"] or (self.card.driver_version() if self.card else None)
        said = {name: value for name, value in known.items() if value is not None}
        return {FACT: {"name": self.device.name, "model": self.model, **said}}

    def timer(self, call: Callable[[], object]) -> Timer:
        """Return a timer by the wall clock: from a sample's first call until the device has done the last one."""
        return waiting_timer(call, self.handle.sync)

    def time_transfers(self, inputs: Sequence[Array], outputs: Sequence[Any]) -> float:
        """Return the median milliseconds for copying all inputs to the device and all outputs back."""
        import tvm

        times = []
        for _ in range(_ROUNDS):
            self.handle.sync()
            begun = time.perf_counter_ns()
            copies = [tvm.runtime.tensor(array, device=self.handle) for array in inputs]
            self.handle.sync()
            for output in outputs:
                output.numpy()
            times.append((time.perf_counter_ns() - begun) / 1e6)
            del copies
        return median(times)


class FarDevice(OpenDevice):
    """A device behind an RPC tracker, in this process's one session with it. Its own clock times the calls."""

    waits_here = False

    def __init__(self, device: Device) -> None:
        assert device.tracker is not None
        self.device = device
        wait_s = float(os.environ.get(WAIT_VARIABLE) or _WAIT_S)
        self._session = session(device.name, device.key, device.tracker, wait_s, WAIT_VARIABLE)
        self.handle = self._session.device(device.kind, device.index)

    @property
    def model(self) -> str:
        """Return the driver's name; of a processor its key at the tracker, as TVM knows no name of it."""
        return str(self.handle.device_name or "") if self.device.kind != CPU else self.device.key

    def load(self, executable: Any) -> Any:
        """Link, upload and load the module there."""
        with tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
            with phase("link"):
                path = link(executable, Path(folder) / "module", device=self.device.name, cc=self.device.cc)
            with phase("upload"):
                self._session.upload(str(path))
                return self._session.load_module(path.name)

    def facts(self) -> dict[str, Any]:
        return {FACT: {"name": self.device.name, "model": self.model, "kind": self.device.kind}}


@functools.cache
def open_device(name: str) -> OpenDevice | None:
    """Open the device of that name, None for this machine's processor; DashboardError where it is unusable."""
    if name == CPU:
        return None
    device = find_device(name)
    if device.tracker is not None:
        return FarDevice(device)
    with told_of(name):
        return OpenDevice(device)


@contextlib.contextmanager
def told_of(name: str) -> Iterator[None]:
    """Make errors in the block name the device."""
    if name == CPU:
        yield
        return
    try:
        yield
    except DashboardError as error:
        raise error.at(f"device {name}") from error
    except Exception as error:  # TVM and drivers raise anything: lost, busy, out of memory
        raise DashboardError(f"{type(error).__name__}: {error}"[:1500], place=f"device {name}") from error


def code_of_device(module: Any) -> list[bytes]:
    """Return the source or code of every device module that a runtime module imports, at any depth."""
    parts = []
    for imported in module.imports:
        if imported.kind in _OF_DEVICES:
            parts.append(str(imported.inspect_source()).encode())
        parts += code_of_device(imported)
    return parts
