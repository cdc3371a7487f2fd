"""A device of this machine as TVM drives it: found, told what it is, timed from the host and by its own clock."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from tvmdash.devices import CPU, FACT, Device, find_device
from tvmdash.errors import DashboardError
from tvmdash.networks.ops import Array
from tvmdash.trial_util import Timer

_ATTRIBUTES = {"compute_units": 7, "driver": 12, "memory_bytes": 14}
"""Numbers of TVM's device attributes. Not every runtime has each."""
_ROUNDS = 5


class OpenDevice:
    """A device that this process uses; `handle` is TVM's."""

    def __init__(self, device: Device) -> None:
        import tvm

        self._device = device
        with told_of(device.name):
            if tvm.get_global_func(f"device_api.{device.kind}", True) is None:
                raise DashboardError(
                    f"this TVM has no runtime for {device.kind}. The command `dashboard check HOME` says what it lacks."
                )
            self.handle = tvm.device(device.kind, device.index)
            if not self.handle.exist:
                raise DashboardError(
                    f"TVM's runtime for {device.kind} sees no device of number {device.index} here. The command"
                    " `dashboard check HOME` says what it lacks."
                )
            self._model = str(self.handle.device_name)

    @property
    def name(self) -> str:
        """As the config has it."""
        return self._device.name

    def facts(self) -> dict[str, Any]:
        """What a record says of it: its model, its driver, how large it is."""
        import tvm

        attribute = tvm.get_global_func("runtime.GetDeviceAttr")
        number = self.handle.dlpack_device_type()
        known = {name: attribute(number, self._device.index, which) for name, which in _ATTRIBUTES.items()}
        return {FACT: {"name": self.name, "model": self._model, **{n: v for n, v in known.items() if v is not None}}}

    def timer(self, call: Callable[[], object]) -> Timer:
        """A timer by the wall clock: from the first call of a sample until the device has done the last one."""

        def timer(number: int, repeat: int) -> list[int]:
            calls, sync, elapsed = range(number), self.handle.sync, []
            sync()
            for _ in range(repeat):
                begun = time.perf_counter_ns()
                for _ in calls:
                    call()
                sync()
                elapsed.append(time.perf_counter_ns() - begun)
            return elapsed

        def told(number: int, repeat: int) -> list[int]:
            with told_of(self.name):
                return timer(number, repeat)

        return told

    def time_transfers(self, inputs: Sequence[Array], outputs: Sequence[Any]) -> float:
        """Milliseconds for copying all inputs to the device and all outputs, tensors on it, back; the median."""
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


@functools.cache
def open_device(name: str) -> OpenDevice | None:
    """The device of that name, None for this machine's processor; DashboardError where it cannot be used."""
    return None if name == CPU else OpenDevice(find_device(name))


@contextlib.contextmanager
def told_of(name: str) -> Iterator[None]:
    """What goes wrong inside is told of the device of that name."""
    if name == CPU:
        yield
        return
    try:
        yield
    except DashboardError as error:
        raise error.at(f"device {name}") from error
    except Exception as error:  # TVM and drivers raise anything: lost, busy, out of memory
        raise DashboardError(f"{type(error).__name__}: {error}"[:1500], place=f"device {name}") from error


def code_of_device(module: Any, kinds: Mapping[str, Any] | Sequence[str]) -> list[bytes]:
    """The source or code of every device module that a runtime module imports, at any depth."""
    parts = []
    for imported in module.imports:
        if imported.kind in kinds:
            parts.append(str(imported.inspect_source()).encode())
        parts += code_of_device(imported, kinds)
    return parts
