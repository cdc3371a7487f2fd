"""Networks and convolutions, compiled here and run on devices through TVM's RPC tracker."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import median
from typing import Any

from loopback import loopback

from tvmdash import networks, relax_util
from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import engine_store, plots
from tvmdash.experiment.engines import Engine
from tvmdash.measure.phases import phase
from tvmdash.networks import INPUT, Network, Node, accuracy
from tvmdash.networks import layers as network_layers
from tvmdash.networks.ops import Array
from tvmdash.relax_util import Compiled, CompileOptions, lowering
from tvmdash.relax_util import workloads as relax_workload
from tvmdash.relax_util.linking import link
from tvmdash.relax_util.rpc import Address, session
from tvmdash.summary_util import Summary, format_ratio, geometric_mean_ratio
from tvmdash.trial_util import Timer

TVM = Engine("tvm", ("cloudpickle==3.1.2", "psutil==7.2.2", "tornado==6.6.1"), facts=relax_workload.engine_facts)
"""TVM with what its tracker and its server import."""
LOOPBACK = "TVMDASH_LOOPBACK"
"""The variable in which the run stage tells its processes where the loopback's tracker listens, or why it does not."""
LOOPBACK_KEY = "tvmdash-loopback"


@dataclass(frozen=True, kw_only=True)
class RemoteDeviceConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    mcpu: str
    devices: Mapping[str, Mapping[str, Any]]
    networks: tuple[str, ...]
    layers: tuple[int, ...]
    wait_seconds: float
    threads: int


class RemoteDevice(Experiment[RemoteDeviceConfig]):
    """Every workload on every device; a process for each device, with one session."""

    engines = (TVM,)
    axes = (
        Axis("device", "runtime_config"),
        Axis("threads", "runtime_config"),
    )

    def points(self, config: RemoteDeviceConfig) -> list[Point]:
        workloads = [f"network.{name}" for name in config.networks]
        workloads += [f"layer.resnet18_c{number}" for number in config.layers]
        return [
            Point(workload, {"device": device.name, "threads": config.threads}, device.name, device.target)
            for device in _devices(config).values()
            for workload in workloads
        ]

    def prepare(self, point: Point, config: RemoteDeviceConfig, seed: int) -> Prepared:
        device, name = _devices(config)[point.values["device"]], point.workload.partition(".")[2]
        remote = session(device.name, device.key, _address(device), config.wait_seconds)
        network, weights, x, expected = problem(name, seed)
        options = CompileOptions(json.loads(device.target), "zero")
        compiled = relax_util.compile_module(lowering.lower(network, weights), options)
        sent = send(remote, device, name, compiled, x)
        if device.is_loopback and sent.device_threads != config.threads:
            raise DashboardError(f"the loopback server runs {sent.device_threads} threads, not {config.threads}.")
        ready = relax_workload.make_prepared(
            compiled,
            sent.timer,
            lambda: {
                **accuracy.check_answer(sent.run(), expected),
                "round_trip_ms": round(sent.round_trip_ms(), 3),
            },
            layout="NCHW",
            details={
                "library_bytes": sent.library_bytes,
                "upload_ms": round(sent.upload_ms, 3),
                "device_threads": sent.device_threads,
            },
        )
        return replace(ready, inputs=(x,))

    def summary(self, history: History) -> Summary:
        """Add to the default words how each device stands to the first one."""
        usual = super().summary(history)
        return usual.with_lines(summarize_history(history))

    def _run(self, config_dir: Path, raw: Path) -> str:
        config = self.load_config(config_dir)
        with self._loopback(config):
            return super()._run(config_dir, raw)

    @contextlib.contextmanager
    def _loopback(self, config: RemoteDeviceConfig) -> Iterator[None]:
        """Run the loopback's tracker and server, where a device wants them; if they fail, it costs that device."""
        engine = engine_store.find(self.folder / "setup", TVM)
        wanted = any(device.is_loopback for device in _devices(config).values())
        if not wanted or engine.reason:
            yield
            return
        path = [*filter(None, [engine.path, os.environ.get("PYTHONPATH", "")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "TVM_NUM_THREADS": str(config.threads)}
        with contextlib.ExitStack() as stack:
            try:
                address = stack.enter_context(loopback(LOOPBACK_KEY, environment))
                os.environ[LOOPBACK] = json.dumps(address)
            except DashboardError as error:
                os.environ[LOOPBACK] = json.dumps(str(error))
            yield


TRACKER_PORT = 9190
"""The port of TVM's tracker unless it is told otherwise."""


@dataclass(frozen=True)
class Device:
    """A device of a tracker; without a `tracker_host` it is this machine, through a server on 127.0.0.1.

    key: its name at the tracker. target: what is compiled for, as JSON. kind: TVM's device on the far side, as in `cpu`
    or `opencl`. cc: the compiler that links for it, here; where it is empty, this machine's own links for this machine,
    and any other device links what it is sent.
    """

    name: str
    target: str
    tracker_host: str = ""
    tracker_port: int = TRACKER_PORT
    key: str = ""
    kind: str = "cpu"
    cc: str = ""

    @property
    def is_loopback(self) -> bool:
        return not self.tracker_host


_TYPES: Mapping[str, tuple[type, ...]] = {"tracker_port": (int,), "target": (str, dict)}


def devices(value: Mapping[str, Mapping[str, Any]], own_target: Mapping[str, Any], own_key: str) -> dict[str, Device]:
    """Read the config's `devices` by name; this machine has `own_key`, and `own_target` unless another is given."""
    if not value:
        raise DashboardError('$.devices: no device given. Add one, e.g. {"sim": {}}.')
    return {name: _device(name, given, own_target, own_key) for name, given in value.items()}


def _device(name: str, given: Mapping[str, Any], own_target: Mapping[str, Any], own_key: str) -> Device:
    json_path = f"$.devices.{name}"
    known = [field.name for field in fields(Device) if field.name != "name"]
    for field, item in given.items():
        if field not in known:
            raise DashboardError(f"{json_path}.{field}: unknown field. Use one of: {', '.join(known)}.")
        wanted = _TYPES.get(field, (str,))
        if not isinstance(item, wanted) or isinstance(item, bool) or item == "":
            names = " or ".join(kind.__name__ for kind in wanted)
            raise DashboardError(
                f"{json_path}.{field}: {item!r} is not a valid {names}. Use one, or leave the field out."
            )
    here = "tracker_host" not in given
    if not here and "target" not in given:
        raise DashboardError(f"{json_path}.target: required field is missing. Give the TVM target, e.g. {EXAMPLE}.")
    target = given.get("target", own_target)
    key = own_key if here else given.get("key", name)
    return Device(**{**given, "name": name, "key": key, "target": json.dumps(target, sort_keys=True)})


EXAMPLE = '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72", "num-cores": 4}'


def _devices(config: RemoteDeviceConfig) -> dict[str, Device]:
    return devices(config.devices, relax_workload.target(config), LOOPBACK_KEY)


def _address(device: Device) -> Address:
    if not device.is_loopback:
        return device.tracker_host, device.tracker_port
    address = json.loads(os.environ.get(LOOPBACK, '"the run stage started no loopback server."'))
    if isinstance(address, str):
        raise DashboardError(f"device {device.name}: {address}")
    return address[0], address[1]


def summarize_history(history: History) -> list[str]:
    """Write a line for each device but the first: its times against the first one's, over the workloads of both."""
    times: dict[str, dict[str, float]] = {}
    for series in plots.measured_tonight(history, {"run_time"}):
        device = series.labels["runtime_config"]["device"]
        times.setdefault(device, {})[str(series.labels["workload"])] = series.values[-1]
    if not times:
        return []
    first, *others = times
    lines = []
    for device in others:
        pairs = [(times[first][name], ms) for name, ms in times[device].items() if name in times[first]]
        if pairs:
            lines.append(f"- {device} against {first}: {format_ratio(geometric_mean_ratio(pairs))}")
    return lines


@functools.cache
def layers() -> dict[str, Network]:
    """Make the different convolutions of ResNet-18 networks of one node."""
    convolutions = network_layers.resnet18_convolutions().items()
    return {name: Network(name, shape, (Node("conv", op, (INPUT,)),)) for name, (op, shape) in convolutions}


@functools.lru_cache(maxsize=1)
def problem(name: str, seed: int) -> tuple[Network, dict[str, Array], Array, Array]:
    """Make a network or layer, its weights, an input and the reference answer."""
    network = layers()[name] if name in layers() else networks.NETWORKS[name]()
    weights, x = networks.make_weights(network, seed), networks.make_input(network, seed)
    return network, weights, x, networks.reference(network, weights, x)


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
        """Return the median of a few calls from here, with the answer brought back."""
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
    """Link a shared library, or an archive where the device has to link."""
    return link(compiled.executable, stem, device=device.name, cc=device.cc, is_here=device.is_loopback)


if __name__ == "__main__":
    raise SystemExit(RemoteDevice().main())
