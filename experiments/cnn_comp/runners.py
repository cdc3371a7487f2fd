"""A network on each engine, ready to be called from Python: input in place, output made by the engine at each call."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tvmdash import networks, relax_util
from tvmdash.common.files import trees
from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Point, Prepared
from tvmdash.experiment import on_cuda, per_operator
from tvmdash.experiment.on_cuda import RivalDevice
from tvmdash.measure import prebuilt
from tvmdash.networks import INPUT, Network, to_onnx, to_torch
from tvmdash.networks.ops import Array
from tvmdash.relax_util import CompileOptions, lowering, tuning, workloads
from tvmdash.trial_util import python_timer, waiting_timer


@dataclass(frozen=True)
class NetworkProblem:
    """The input of every engine, and the answer that it should give."""

    network: Network
    seed: int
    x: Array = field(repr=False)
    expected: Array = field(repr=False)

    @property
    def weights(self) -> Mapping[str, Array]:
        """Large, and needed only by what compiles."""
        return _make_weights(self.network.name, self.seed)


Ready = tuple[Prepared, Callable[[], Array]]
"""The call that is timed, and one that gives its answer."""


def problem(name: str, batch: int, seed: int) -> NetworkProblem:
    """Make the problem of a seed, the same for every engine."""
    x, expected = prebuilt.keep("problem", lambda: _answer(name, batch, seed))
    return NetworkProblem(networks.NETWORKS[name](), seed, x, expected)


@functools.lru_cache(maxsize=1)
def _answer(name: str, batch: int, seed: int) -> tuple[Array, Array]:
    network = networks.NETWORKS[name]()
    x = networks.make_input(network, seed, batch)
    return x, networks.reference(network, _make_weights(name, seed), x)


@functools.lru_cache(maxsize=1)
def _make_weights(name: str, seed: int) -> Mapping[str, Array]:
    return networks.make_weights(networks.NETWORKS[name](), seed)


def on_tvm(asked: NetworkProblem, point: Point, pipeline: str) -> Ready:
    """Compile through this pipeline; where tuned, with the schedules that the experiment tuning left for this build."""
    target, batch = json.loads(point.target), point.values["batch"]
    dtype = point.values.get("dtype", lowering.FLOAT32)
    rows = None if point.values.get("shapes") == "dynamic" else batch
    module: Any = lambda: lowering.lower(asked.network, asked.weights, rows, dtype)  # noqa: E731
    x, before_ms, details = lowering.in_type(asked.x, dtype), 0.0, {}
    if point.values["variant"] == "tuned":
        subject = tuning.Subject(asked.network.name, batch, target, pipeline)
        database, facts = tuning.find(subject)
        begun = time.perf_counter_ns()
        module = tuning.schedule(tuning.lowered(module(), pipeline, target), database, target)
        pipeline, before_ms = "default", _ms_since(begun)
        details = {"tuning": {**facts, "kernels_scheduled": len(tuning.scheduled(module))}}
    compiled = relax_util.compile_module(module, CompileOptions(target, pipeline))
    loaded = relax_util.load(compiled, point.values["threads"], point.device)
    timer = loaded.python_timer(x)
    ready = workloads.make_prepared(compiled, timer, None, details=details, inputs=(x,), on=loaded)
    profile = functools.partial(loaded.profile, x, per_operator.RUNS)
    return replace(ready, compile_ms=before_ms + compiled.compile_ms, profile=profile), lambda: loaded.run(x)


def on_onnxruntime(asked: NetworkProblem, point: Point, _pipeline: str) -> Ready:
    """Prepare with every graph optimisation, the default; input and output are bound, so that a call copies nothing."""
    import onnxruntime

    device = on_cuda.find_rival_device(point.device)
    model = to_onnx.lower(asked.network, asked.weights, point.values["batch"]).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = point.values["threads"], 1
    begun = time.perf_counter_ns()
    session = on_cuda.open_onnx_session(model, options, device)
    compile_ms = _ms_since(begun)
    binding = session.io_binding()
    place = (device.kind, device.index)
    binding.bind_ortvalue_input(INPUT, onnxruntime.OrtValue.ortvalue_from_numpy(asked.x, *place))
    binding.bind_output(session.get_outputs()[0].name, *place)
    call, wait = functools.partial(session.run_with_iobinding, binding), binding.synchronize_outputs

    def answer() -> Array:
        call()
        given: Array = binding.copy_outputs_to_cpu()[0]
        return given

    return _make_ready(call, wait, answer, compile_ms, device)


def on_torch(asked: NetworkProblem, point: Point, _pipeline: str) -> Ready:
    """Prepare eager, or through torch.compile with its defaults; the first call of that one compiles."""
    import torch

    torch.set_grad_enabled(False)
    torch.set_num_threads(point.values["threads"])
    device = on_cuda.find_rival_device(point.device)
    wait = on_cuda.use_torch(device)
    model = to_torch.lower(asked.network, asked.weights).to(device.place)
    compile_ms, x = None, torch.from_numpy(asked.x).to(device.place)
    if point.values["variant"] == "compile":
        _check_compiler()
        _forget_compiled()
        begun = time.perf_counter_ns()
        model = torch.compile(model)
        # torch.compile compiles on the first call
        model(x)
        wait()
        compile_ms = _ms_since(begun)
    call = functools.partial(model, x)

    def answer() -> Array:
        given: Array = call().cpu().numpy()
        return given

    return _make_ready(call, wait, answer, compile_ms, device)


def _make_ready(
    call: Callable[[], object],
    wait: Callable[[], object],
    answer: Callable[[], Array],
    compile_ms: float | None,
    device: RivalDevice,
) -> Ready:
    """Prepare a rival's call, timed until the device is done."""
    if device.card is None:
        return Prepared(timer=python_timer(call), compile_ms=compile_ms), answer
    after = functools.partial(device.watch, call, wait)
    return Prepared(timer=waiting_timer(call, wait), compile_ms=compile_ms, after=after), answer


def _check_compiler() -> None:
    """Raise DashboardError where torch.compile would not find its C++ compiler."""
    name = os.environ.get("CXX", "g++")
    if not shutil.which(name):
        raise DashboardError(
            f"torch.compile needs a C++ compiler, and there is no {name} here (Debian: apt install g++)."
        )


def _forget_compiled() -> None:
    """Let this process compile anew: torch keeps what it compiled on the disk."""
    folder = tempfile.mkdtemp(prefix="tvmdash-inductor-")
    atexit.register(trees.remove, Path(folder))
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder


def _ms_since(begun_ns: int) -> float:
    return (time.perf_counter_ns() - begun_ns) / 1e6


RUNNERS: Mapping[str, Callable[[NetworkProblem, Point, str], Ready]] = {
    "tvm": on_tvm,
    "onnxruntime": on_onnxruntime,
    "onnxruntime cuda": on_onnxruntime,
    "torch": on_torch,
    "torch cuda": on_torch,
}
