"""A measuring process: it loads the library of a point, takes samples when it is told to, and says what it saw."""

from __future__ import annotations

import ctypes
import functools
import importlib
import json
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.card import points

SAMPLE_NS, TODAY_NS, BEFORE_NS = 5e6, 20e6, 1e6
MOST_IN_GRAPH = 200
NUMBERS = (1, 2, 5, 10, 20, 50, 200, 1000)
MIB = 1024 * 1024


class Cuda:
    """CUDA's runtime as TVM has loaded it already."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcudart.so.13")

    def __call__(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} failed with error {code}")

    def make(self, name: str, *arguments: Any, last: bool = False) -> ctypes.c_void_p:
        """What the function leaves where its first, or last, argument points."""
        made = ctypes.c_void_p()
        place = ctypes.byref(made)
        self(name, *((*arguments, place) if last else (place, *arguments)))
        return made


class Process:
    """What a measuring process does when it is told to; the answers are what its methods return."""

    def __init__(self, folder: Path, device: str) -> None:
        self.marks = {"python": time.perf_counter_ns()}
        self.folder, self.name, self.cores = folder, device, os.sched_getaffinity(0)
        self.numpy = importlib.import_module("numpy")
        self.mark("numpy")
        self.tvm = importlib.import_module("tvm")
        self.mark("tvm")
        if device == "cuda":  # a TVM without its compiler loads no runtime of a device by itself
            ctypes.CDLL(str(Path(self.tvm.__file__).parent / "lib" / "libtvm_runtime_cuda.so"))
        self.mark("device_runtime")
        self.device = self.tvm.device(device, 0)
        self.device.sync()
        self.mark("context")
        self.cuda = Cuda() if device == "cuda" else None
        if self.cuda:
            self.events = [self.cuda.make("cudaEventCreate") for _ in range(2)]
            self.stream = self.cuda.make("cudaStreamCreate")
        self.timed = 0
        self.mark("ready")

    def mark(self, name: str) -> None:
        self.marks[name] = time.perf_counter_ns()

    def hello(self) -> dict[str, Any]:
        return self.marks

    def load(self, point: str) -> dict[str, Any]:
        """Load the library of a point, call it once, hold its answer against the processor's."""
        self.marks = {"begun": time.perf_counter_ns()}
        self.point, self.held = point, []
        facts = json.loads((self.folder / f"{point}.json").read_text())
        kept = self.numpy.load(self.folder / f"{point}.npz")
        self.arrays = [
            kept[str(index)] if given is None else points.make_array(given)
            for index, given in enumerate(facts["given"])
        ]
        self.mark("arrays")
        return self._open()

    def place(self) -> dict[str, Any]:
        """Load the same point to other places of the card's memory: what it had stays taken."""
        pad = self.tvm.runtime.empty((random.randrange(1, 64 * MIB),), "uint8", self.device)
        self.held += [pad, self.machine, self.call]
        self.tvm.get_global_func("vm.builtin.memory_manager.clear")()
        self.marks = {"begun": time.perf_counter_ns()}
        return self._open()

    def move(self, core: int | None) -> dict[str, Any]:
        """Run on that core alone, or on all that this process began with."""
        os.sched_setaffinity(0, self.cores if core is None else {core})
        return {}

    def _open(self) -> dict[str, Any]:
        point = self.point
        module = self.tvm.runtime.load_module(str(self.folder / f"{point}.so"))
        self.mark("library")
        vm = importlib.import_module("tvm.runtime.vm").VirtualMachine
        self.machine = vm(module, self.device)
        self.mark("machine")
        tensors = [self.tvm.runtime.tensor(array, device=self.device) for array in self.arrays]
        self.device.sync()
        self.mark("inputs")
        answer = self.machine["main"](*tensors)
        self.device.sync()
        self.mark("first_call")
        return self._ready(point, tensors, answer)

    def _ready(self, point: str, tensors: Sequence[Any], answer: Any) -> dict[str, Any]:
        self.call = functools.partial(self.machine["main"], *tensors)
        self.timed += 1
        self.saved = f"timed{self.timed}"
        self.machine.save_function("main", self.saved, *tensors, include_return=False)
        self.graph, self.in_graph = None, 0
        expected, got = self.numpy.load(self.folder / f"{point}.npy"), points.sampled(points.first_of(answer))
        error = float(abs(got - expected).max() / abs(expected).max())
        self.mark("checked")
        return {"marks": self.marks, "off": error}

    def burn(self, seconds: float) -> dict[str, Any]:
        """Keep the card busy so long."""
        end, calls = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            for _ in range(10):
                self.call()
            self.device.sync()
            calls += 10
        return {"calls": calls}

    def calibrate(self, scheme: str) -> dict[str, Any]:
        """How many calls, or replays of a graph of how many calls, make a sample."""
        if scheme == "graph":
            one = self._sample("batch", 20, 5)[0]
            self.prepare(scheme, max(1, min(MOST_IN_GRAPH, int(1e6 / (one / 20)))) if one else 1)
        aim, number = (TODAY_NS if scheme == "today" else SAMPLE_NS), 1
        while True:
            wall, event, _ = self._sample(scheme, number, 0)
            taken = max(1.0, event if wall is None else wall)
            if taken >= aim or number >= 1_000_000:
                return {"number": number, "in_graph": self.in_graph}
            number = max(number + 1, min(10 * number, int(number * aim / taken * 1.1) + 1))

    def prepare(self, scheme: str, in_graph: int) -> dict[str, Any]:
        """What the side that did not calibrate has to do: graphs of both sides hold as many calls."""
        if scheme == "graph" and in_graph != self.in_graph:
            self._capture(in_graph)
        return {}

    def sample(self, scheme: str, number: int, repeat: int) -> dict[str, Any]:
        before = 0 if scheme == "today" else max(1, math.ceil(number * BEFORE_NS / SAMPLE_NS))
        return {"taken": [self._sample(scheme, number, before) for _ in range(repeat)]}

    def _sample(self, scheme: str, number: int, before: int) -> tuple[float | None, float | None, float]:
        """Nanoseconds of one sample by the wall clock and by events, and how long the host issued calls."""
        if scheme == "evaluator":
            return None, self.evaluate(number), 0.0
        call, wait, stream = self.call, self.device.sync, None
        if scheme == "graph":
            assert self.cuda
            stream = self.stream
            call = functools.partial(self.cuda.library.cudaGraphLaunch, self.graph, stream)
            wait = functools.partial(self.cuda, "cudaStreamSynchronize", stream)
        for _ in range(before):
            call()
        wait()
        with_events = self.cuda is not None and scheme != "today"
        calls = range(number)
        begun = time.perf_counter_ns()
        if with_events:
            self.cuda("cudaEventRecord", self.events[0], stream)
        for _ in calls:
            call()
        if with_events:
            self.cuda("cudaEventRecord", self.events[1], stream)
        issued = time.perf_counter_ns()
        wait()
        ended = time.perf_counter_ns()
        return ended - begun, self._between() if with_events else None, issued - begun

    def _between(self) -> float:
        taken = ctypes.c_float()
        self.cuda("cudaEventElapsedTime", ctypes.byref(taken), *self.events)
        return taken.value * 1e6

    def evaluate(self, number: int) -> float:
        """Nanoseconds of `number` calls by TVM's time_evaluator, which calls from C++ and asks the device's clock."""
        evaluator = self.machine.time_evaluator(self.saved, self.device, number=number, repeat=1)
        return float(evaluator().results[0]) * number * 1e9

    def _capture(self, calls: int) -> None:
        """A CUDA graph of so many calls, captured from what TVM launches."""
        if self.cuda is None:
            raise RuntimeError("no CUDA here")
        tvm_ffi = importlib.import_module("tvm_ffi")
        self.device.sync()
        with tvm_ffi.use_raw_stream(self.device, self.stream.value):
            for _ in range(3):
                self.call()
            self.cuda("cudaStreamSynchronize", self.stream)
            self.cuda("cudaStreamBeginCapture", self.stream, 2)
            try:
                for _ in range(calls):
                    self.call()
            finally:
                graph = self.cuda.make("cudaStreamEndCapture", self.stream, last=True)
        self.graph, self.in_graph = self.cuda.make("cudaGraphInstantiate", graph, ctypes.c_ulonglong(0)), calls

    def levels(self) -> dict[str, Any]:
        """By how many calls are between two synchronisations: what a call takes, in ns, by each clock."""
        rows = []
        for number in NUMBERS:
            repeat = 15 if number < 50 else 5
            self._sample("batch", number, 3)
            taken = [self._sample("batch", number, 3) for _ in range(repeat)]
            row = {
                "number": number,
                "evaluator": statistics.median(self.evaluate(number) for _ in range(repeat)) / number,
            }
            for name, values in zip(("wall", "event", "issue"), zip(*taken, strict=True), strict=True):
                known = [value for value in values if value is not None]
                row[name] = statistics.median(known) / number if known else None
            rows.append(row)
            if row["wall"] * number > 100e6:
                break
        empty = [self._sample("batch", 0, 0) for _ in range(50)]
        told: dict[str, Any] = {"rows": rows, "empty_wall": statistics.median(one[0] for one in empty)}
        if self.cuda:
            told["empty_event"] = statistics.median(one[1] for one in empty)
            try:
                number = self.calibrate("graph")["number"]
                graph = [self._sample("graph", number, 1) for _ in range(9)]
                told["graph"] = statistics.median(one[1] for one in graph) / number / self.in_graph
            except RuntimeError as error:
                told["graph_error"] = str(error)
        return told

    def build_here(self, point: str) -> dict[str, Any]:
        """What a process does today: import the compiler, compile, load from memory, call."""
        self.marks = {"begun": time.perf_counter_ns()}
        module, _, arrays = points.PLAIN[point]()
        self.mark("module")
        importlib.import_module("tvm.s_tir.tensor_intrin.cuda")
        self.mark("intrinsics")
        if os.environ.get("TVM_CUDA_COMPILE_MODE", "nvrtc") == "nvrtc" and self.name == "cuda":
            nvrtc = importlib.import_module("cuda.bindings.nvrtc")
            self.mark("nvrtc_import")
            nvrtc.nvrtcVersion()
        self.mark("nvrtc_start")
        told = points.spy_on_compiler()
        executable = points.build(point, module, self.name)
        self.mark("build")
        vm = importlib.import_module("tvm.runtime.vm").VirtualMachine
        self.machine = vm(executable, self.device)
        self.mark("machine")
        tensors = [self.tvm.runtime.tensor(array, device=self.device) for array in arrays]
        answer = self.machine["main"](*tensors)
        self.device.sync()
        self.mark("first_call")
        return {**self._ready(point, tensors, answer), "cuda_compile_s": told["seconds"]}


def run_process(folder: Path, device: str) -> None:
    """Answer orders, JSON objects, one a line. What TVM prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    process = Process(folder, device)
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = getattr(process, order.pop("do"))(**order)
        except Exception as error:  # noqa: BLE001 - TVM raises anything; the other points go on
            answer = {"error": f"{type(error).__name__}: {error}"[:800]}
        answers.write(json.dumps(answer) + "\n")
