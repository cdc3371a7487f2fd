"""One compilation in the life of a process: each phase's time, and what came out.

The second compilation in a process is another thing than the first: Python modules, LLVM's targets and TVM's tables of
functions are there already. So each process imports once and compiles once, and what it saw is told for all phases.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash import networks, relax_util
from tvmdash.errors import DashboardError
from tvmdash.experiment.engines import EngineFacts
from tvmdash.measure import phases
from tvmdash.measure.phases import phase
from tvmdash.networks import INPUT, Network, accuracy, to_onnx
from tvmdash.networks.ops import Array
from tvmdash.relax_util import Compiled, CompileOptions, lowering
from tvmdash.relax_util.workloads import PASSES_TOLD, engine_facts

IMPORT, FRONTEND, LOAD, TOTAL = "import", "frontend", "load", "total"
INSIDE: Mapping[str, str] = {
    FRONTEND: FRONTEND,
    "pipeline": "compile: pipeline",
    "build": "compile: build",
    "machine_code": "compile: machine code",
    LOAD: LOAD,
}
"""A phase's name in the records and in the traces."""
PHASES = (TOTAL, *INSIDE)


@dataclass(frozen=True)
class CompilationCost:
    """Each phase's time in ms; `memory` in bytes, `told` is what else goes into the record."""

    phases_ms: Mapping[str, float]
    memory: Mapping[str, int | str]
    told: Mapping[str, Any]


@dataclass(frozen=True)
class Compilation:
    """One compilation: its cost and its products."""

    cost: CompilationCost
    compiled: Compiled
    check: Callable[[], Mapping[str, float]]


@dataclass(frozen=True)
class ModelSource:
    """The source of a compilation: a network by its name, through a frontend (`relax` or `onnx`)."""

    network: str
    frontend: str
    batch: int
    seed: int


class _Watched:
    """Time and memory from its making on."""

    def __init__(self) -> None:
        self._since = "the beginning of this" if forget_peak() else "the start of the process"
        self._before = now()
        self._begun = time.perf_counter_ns()

    def ms(self) -> float:
        return (time.perf_counter_ns() - self._begun) / 1e6

    def memory(self) -> dict[str, int | str]:
        peak = now().peak
        return {
            "memory_before_bytes": self._before.resident,
            "peak_memory_bytes": peak,
            "peak_memory_since": self._since,
        }


@functools.cache
def import_tvm() -> CompilationCost:
    """Import TVM with Relax: the first time in this process, or a DashboardError. numpy is there already."""
    if "tvm" in sys.modules:
        raise DashboardError("tvm was imported before its import was to be timed: something else here imports it.")
    modules, watched = len(sys.modules), _Watched()
    import tvm.relax  # noqa: F401

    elapsed_ms = watched.ms()
    return CompilationCost({IMPORT: elapsed_ms}, watched.memory(), {"modules_imported": len(sys.modules) - modules})


def timed_facts() -> EngineFacts:
    """Return TVM's facts, its import timed: a measuring process asks for them first of all."""
    import_tvm()
    return engine_facts()


def compile_once(source: ModelSource, options: CompileOptions, threads: int) -> Compilation:
    """Make the only compilation of this process; where it failed, raise its error again."""
    done = _tried(source, str(options), lambda: _compile(source, options, threads))
    if isinstance(done, Exception):
        raise done
    return done


_results: dict[tuple[ModelSource, str], Compilation | Exception] = {}


def _tried(source: ModelSource, options: str, work: Callable[[], Compilation]) -> Compilation | Exception:
    if (source, options) not in _results:
        if _results:
            raise DashboardError("this process has compiled something already. Give each compilation a group.")
        try:
            _results[source, options] = work()
        except Exception as error:  # noqa: BLE001 - every phase of this compilation fails with it
            _results[source, options] = error
    return _results[source, options]


def _compile(source: ModelSource, options: CompileOptions, threads: int) -> Compilation:
    network = networks.NETWORKS[source.network]()
    weights = networks.make_weights(network, source.seed)
    x = networks.make_input(network, source.seed, source.batch)
    frontend = _frontend(source, network, weights)
    watched = _Watched()
    with phase(FRONTEND):
        module = frontend()
    compiled = relax_util.compile_module(module, options)
    total_ms, used = watched.ms(), watched.memory()
    with phase(LOAD):
        loaded = relax_util.load(compiled, threads)
    answer = loaded.run(x)
    times = {phase.name: phase.duration_ns / 1e6 for phase in phases.list_so_far()}
    phases_ms = {TOTAL: total_ms, **{name: times[traced] for name, traced in INSIDE.items()}}

    @functools.cache
    def check() -> Mapping[str, float]:
        return accuracy.check_answer(answer, networks.reference(network, weights, x))

    return Compilation(CompilationCost(phases_ms, used, _describe(compiled, phases_ms)), compiled, check)


def _describe(compiled: Compiled, phases_ms: Mapping[str, float]) -> dict[str, Any]:
    passes = compiled.pass_times_ms
    return {
        "module_hash": compiled.module_hash,
        "phases_ms": {name: round(ms, 3) for name, ms in phases_ms.items()},
        "passes_ms": {name: round(ms, 3) for name, ms in passes[:PASSES_TOLD]},
        "outside_passes_ms": round(compiled.compile_ms - sum(ms for _, ms in passes), 3),
    }


def _frontend(source: ModelSource, network: Network, weights: Mapping[str, Array]) -> Callable[[], Any]:
    """Make a call from what a user has to a Relax module; what the user has is made here, out of the timed part."""
    if source.frontend == "relax":
        return lambda: lowering.lower(network, weights, source.batch)
    shapes = {INPUT: [source.batch, *network.input_shape]}
    made = to_onnx.lower(network, weights, source.batch)

    def from_onnx() -> Any:
        from tvm.relax.frontend import onnx

        return onnx.from_onnx(made, shape_dict=shapes)

    return from_onnx


_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


@dataclass(frozen=True)
class CompilationMemory:
    """Resident memory in bytes: now, and the most since the peak was last forgotten.

    It is VmHWM and not getrusage's ru_maxrss: that one begins with the memory of whoever started the process.
    """

    resident: int
    peak: int


def now() -> CompilationMemory:
    """Read this process's memory."""
    lines = dict(line.split(":", 1) for line in _STATUS.read_text(encoding="utf-8").splitlines() if ":" in line)
    try:
        resident, peak = (int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    except KeyError as error:
        raise DashboardError(f"{_STATUS}: there is no {error}. Peak memory is read from Linux alone.") from error
    return CompilationMemory(resident, peak)


def forget_peak() -> bool:
    """Forget the peak so far; False where the system forbids it (see proc(5), clear_refs)."""
    try:
        _CLEAR.write_text(_RESET_PEAK, encoding="utf-8")
    except OSError:
        return False
    return True
