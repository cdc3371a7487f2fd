"""A convolution through Relay onto VTA: compiled for a target, sent to it, run there. Needs a TVM that has both."""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tvmdash.errors import DashboardError
from tvmdash.experiment.engines import EngineFacts
from tvmdash.measure.phases import COMPILE, phase
from tvmdash.networks.layers import resnet18_convolutions
from tvmdash.networks.ops import Array, Conv2d
from tvmdash.relax_util.rpc import Address, session
from tvmdash.trial_util import Timer

SIM = "sim"
"""VTA's fast simulator, in this process."""
TILES = Path(__file__).with_name("tiles.log")
WITHOUT = ("AlterOpLayout", "tir.CommonSubexprElimTIR")
"""Passes that VTA's schedules do without, as in TVM's own examples for it."""
REMEDY = (
    'It needs one that has both, as v0.18.0, built from source: "tvm_remote": "https://github.com/apache/tvm", '
    '"tvm_branch": "refs/tags/v0.18.0", "tvm_options": {"USE_LLVM": "llvm-config-15", "USE_VTA_FSIM": "ON"} '
    "in this experiment's config.json (docs/explanation/artifacts.md)."
)


BLOCK = 16
"""Channels that VTA's matrix unit takes and gives at once, in the geometry that the tile sizes are for."""
SHIFT = 12
"""Sums are divided by 2**SHIFT: random answers then fill the 8 bits, and some reach their end."""


@dataclass(frozen=True)
class LayerProblem:
    """A convolution; int8 arrays. `x`: (channels, height, width); `weight`: (out, in, kernel, kernel).

    `expected`: (out channels, out height, out width), in [0, 127].
    """

    op: Conv2d
    x: Array
    weight: Array
    expected: Array

    @property
    def macs(self) -> int:
        """Multiplications, each with an addition."""
        return int(self.expected.size * self.weight[0].size)


@functools.lru_cache(maxsize=1)
def make_problem(name: str, seed: int) -> LayerProblem:
    """Draw the layer, and compute its answer by numpy. Its sums are whole numbers that float64 holds exactly.

    VTA multiplies 8-bit integers, sums in 32 bits, shifts, and cuts to 8 bits again.
    """
    op, shape = resnet18_convolutions()[name]
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, shape, dtype=np.int8)
    weight = rng.integers(-128, 128, op.weights((1, *shape))["weight"], dtype=np.int8)
    sums = op.forward({"weight": weight.astype(np.float64)}, x[None].astype(np.float64))[0].astype(np.int64)
    return LayerProblem(op, x, weight, np.clip(sums >> SHIFT, 0, 127).astype(np.int8))


def packed(x: Array) -> Array:
    """Lay (channels, height, width) out as VTA reads it, NCHW1n16c: (1, channels / 16, height, width, 1, 16)."""
    channels, height, width = x.shape
    return np.ascontiguousarray(x.reshape(1, channels // BLOCK, BLOCK, height, width, 1).transpose(0, 1, 3, 4, 5, 2))


def packed_weight(weight: Array) -> Array:
    """Lay (out, in, kernel, kernel) out as VTA reads it, OIHW16o16i: (out / 16, in / 16, kernel, kernel, 16, 16)."""
    out, channels, height, width = weight.shape
    blocks = weight.reshape(out // BLOCK, BLOCK, channels // BLOCK, BLOCK, height, width)
    return np.ascontiguousarray(blocks.transpose(0, 2, 4, 5, 1, 3))


def unpacked(x: Array) -> Array:
    """Undo `packed`."""
    _, blocks, height, width, _, _ = x.shape
    return x.transpose(0, 1, 5, 4, 2, 3).reshape(blocks * BLOCK, height, width)


def facts() -> EngineFacts:
    """Return TVM's facts with the geometry of its VTA; DashboardError where it has none."""
    import tvm

    try:
        import vta
        from tvm import relay  # noqa: F401 - whether it is there
    except ImportError as error:
        raise DashboardError(f"TVM {tvm.__version__} has no Relay or no VTA ({error}). {REMEDY}") from error
    env = vta.get_env()
    if (env.BATCH, env.BLOCK_IN, env.BLOCK_OUT) != (1, BLOCK, BLOCK):
        geometry = f"{env.BATCH}x{env.BLOCK_IN}x{env.BLOCK_OUT}"
        raise DashboardError(
            f"this VTA multiplies {geometry}; the tile sizes of {TILES.name} are for 1x{BLOCK}x{BLOCK}."
        )
    commit = str(getattr(getattr(tvm, "_version", None), "__commit_id__", "")) or str(tvm.__version__)
    return EngineFacts(str(tvm.__version__), commit.removeprefix("g"), {"vta": env.BITSTREAM})


@contextlib.contextmanager
def hardware(target: str) -> Iterator[Any]:
    """Enter VTA's environment for `target`, with everything else as its own description says."""
    import vta

    with vta.Environment({**vta.get_env().cfg_dict, "TARGET": target}) as env:
        yield env


def simulator() -> Any:
    """Make a session that is this process, with VTA's simulator in it."""
    from tvm import rpc
    from vta.testing import simulator  # noqa: F401 - loads its library

    return rpc.LocalSession()


@functools.cache
def board(target: str, address: Address, wait_s: float, bitstream: str) -> Any:
    """Open the process's session on a board of this kind, once; `bitstream` is a file for its FPGA, or empty."""
    if bitstream and not Path(bitstream).is_file():
        raise DashboardError(f"$.bitstreams.{target}: {bitstream}: no such file.")
    import vta

    remote = session(target, target, address, wait_s)
    with hardware(target):
        vta.reconfig_runtime(remote)
        if bitstream:
            vta.program_fpga(remote, bitstream)
    return remote


@dataclass(frozen=True)
class LoadedOnVta:
    """A layer on a device, its input there already."""

    graph: Any
    device: Any
    remote: Any
    compile_ms: float
    library_bytes: int

    def run(self) -> Array:
        """Return the answer of one call, (channels, height, width)."""
        self.graph.run()
        return unpacked(self.graph.get_output(0).numpy())

    def timer(self) -> Timer:
        """Time by the device's clock; of the simulator it is the time that simulating takes."""

        def timed(number: int, repeat: int) -> list[int]:
            evaluator = self.graph.module.time_evaluator("run", self.device, number=number, repeat=repeat)
            return [round(seconds * number * 1e9) for seconds in evaluator().results]

        return timed

    def counted(self) -> dict[str, int]:
        """Return the simulator's counts of one call; nothing on a board, which does not count."""
        try:
            clear = self.remote.get_function("vta.simulator.profiler_clear")
        except (AttributeError, ValueError):  # a board has no such function
            return {}
        clear()
        self.graph.run()
        counts: dict[str, int] = json.loads(self.remote.get_function("vta.simulator.profiler_status")())
        return counts


def load(problem: LayerProblem, target: str, host: str, remote: Any) -> LoadedOnVta:
    """Compile for `target` with its processor `host` (TVM's own choice where it is empty), send, and load there."""
    import tvm
    from tvm.contrib import graph_executor

    with hardware(target) as env, tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
        begun = time.perf_counter_ns()
        with phase(COMPILE):
            library = _compiled(_relay(problem), tvm.target.Target(env.target, host=host or env.target_host))
        compile_ms = (time.perf_counter_ns() - begun) / 1e6
        path = Path(folder) / "layer.tar"  # objects: the far side links, with its own compiler
        library.export_library(str(path))
        with phase("upload"):
            remote.upload(str(path))
            module = remote.load_module(path.name)
        size_bytes = path.stat().st_size
    device = remote.ext_dev(0)
    graph = graph_executor.GraphModule(module["default"](device))
    graph.set_input("x", packed(problem.x))
    return LoadedOnVta(graph, device, remote, compile_ms, size_bytes)


def _relay(problem: LayerProblem) -> Any:
    import tvm
    from tvm import relay

    op, x = problem.op, packed(problem.x)
    given = relay.var("x", shape=x.shape, dtype="int8")
    sums = relay.nn.conv2d(
        given,
        relay.const(packed_weight(problem.weight)),
        strides=(op.stride, op.stride),
        padding=(op.padding, op.padding),
        channels=op.channels,
        kernel_size=(op.kernel, op.kernel),
        data_layout=f"NCHW1n{BLOCK}c",
        kernel_layout=f"OIHW{BLOCK}o{BLOCK}i",
        out_dtype="int32",
    )
    cut = relay.clip(relay.right_shift(sums, relay.const(SHIFT, "int32")), 0, 127)
    return tvm.IRModule.from_expr(relay.Function([given], relay.cast(cut, "int8")))


def _compiled(module: Any, target: Any) -> Any:
    import vta
    from tvm import autotvm, relay

    with autotvm.apply_history_best(str(TILES)), vta.build_config(opt_level=3, disabled_pass=set(WITHOUT)):
        return relay.build(module, target=target)
