"""Timing on a card: how far process pairs of one and the same library lie apart, by how samples are taken; A/A.

    python3 tests/benchmarks/on_card.py compile FOLDER        # needs TVM and nvcc, but no card
    python3 tests/benchmarks/on_card.py measure FOLDER FILE   # on the card: TVM's runtime is enough; eight minutes
    python3 tests/benchmarks/on_card.py table FILE

Give TVM by PYTHONPATH, `libcudart.so.13` by LD_LIBRARY_PATH. Without a card, `compile` uses the tests' stand-in for
NVIDIA's driver, because TVM keeps CUDA C++ instead of machine code where its CUDA runtime does not load; set
TVM_CUDA_COMPILE_MODE=nvcc. A folder holds one library a point and what a process needs beside it. `measure` imports
nothing but numpy, TVM's runtime and nvidia-ml-py; its stages are

- `levels`: one process; what a call takes by how many are issued between two synchronisations, by the wall clock, by
  events and by TVM's time_evaluator, which is the product's device_time with 5;
- `costs`: the seconds of a process pair, by step, each point in processes of its own;
- `compiling`: the same of a process that compiles (give a TVM with its compiler as --compiler FOLDER:FOLDER);
- `pairs`: pairs of fresh processes, every point in each, until --seconds are up; short points are then loaded again to
  other places of the card's memory.

Hide torch from these processes (a folder of links to numpy, ml_dtypes, typing_extensions.py, pynvml.py): tvm_ffi
imports it where it is installed, which is no part of what the product pays. card/on_an_h100.md has what was found.

The ways to take a sample (SCHEMES): `today`, what the product does, 20 ms of calls from Python between two
synchronisations; `batch`, 5 ms of them after one untimed millisecond, with events around; `evaluator`, 5 ms of calls
from C++ by TVM's time_evaluator; `graph`, 5 ms of replays of a CUDA graph that holds up to 200 calls. With `turns`
sides take each sample after the other, in random order, with `core` all on one core of the host; in `blocks` one takes
all of its samples, then the other.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPOSITORY / "shared" / "python"), str(REPOSITORY)]

from tests.benchmarks.card.points import PLAIN, POINTS, SEED, compile_points  # noqa: E402 - found from here on
from tests.benchmarks.card.process import run_process  # noqa: E402
from tests.benchmarks.card.tables import write_tables  # noqa: E402

SHORT = ("add_1mi", "gemv_f16", "mlp", "mlp+graph", "attention", "softmax")
COSTED = ("add_1mi", "resnet18")
COMPILED = ("mlp", "matmul_f16", "resnet18")
LEVELLED = (*SHORT, "matmul_f16", "matmul_f16+tag", "decoder")
SAMPLES, PLACED_SAMPLES, PLACES = 8, 3, 6
STEADY_READINGS, STEADY_SHARE, BURN_S, MOST_BURN_S = 4, 0.01, 0.04, 2.0
SCHEMES = ("today", "batch", "evaluator", "graph")
IN_BLOCKS = ("today", "batch", "graph")
ON_ONE_CORE = ("today", "batch")
PLACED = ("batch", "graph")


class Side:
    """One process, told what to do."""

    def __init__(self, folder: Path, device: str, path: str | None = None) -> None:
        environment = dict(os.environ)
        if path is None:
            environment["TVM_USE_RUNTIME_LIB"] = "1"
        else:
            environment["PYTHONPATH"] = path
        argv = [sys.executable, str(Path(__file__).resolve()), "process", str(folder), "--device", device]
        self.spawned = time.perf_counter_ns()
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def tell(self, do: str, **order: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"do": do, **order}) + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"the process ended with {self.process.wait()}"}

    def ask(self, do: str, **order: Any) -> dict[str, Any]:
        self.tell(do, **order)
        return self.hear()

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(30)


class Clocks(threading.Thread):
    """The card's clocks twenty times a second, where NVML is there."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.readings: list[tuple[float, ...]] = []
        self.stopped = threading.Event()

    def run(self) -> None:
        try:
            nvml = importlib.import_module("pynvml")
            nvml.nvmlInit()
            card = nvml.nvmlDeviceGetHandleByIndex(0)
        except Exception as error:  # noqa: BLE001 - the package or the driver is not there
            print(f"no NVML: {error}")
            return
        while not self.stopped.wait(0.05):
            sm, memory = (
                nvml.nvmlDeviceGetClockInfo(card, which) for which in (nvml.NVML_CLOCK_SM, nvml.NVML_CLOCK_MEM)
            )
            power, heat = nvml.nvmlDeviceGetPowerUsage(card), nvml.nvmlDeviceGetTemperature(card, 0)
            why = nvml.nvmlDeviceGetCurrentClocksEventReasons(card)
            self.readings.append((time.perf_counter(), sm, memory, power / 1e3, heat, why))

    def is_steady(self, since: float) -> bool:
        last = [reading[1] for reading in self.readings[-STEADY_READINGS:] if reading[0] > since]
        if not self.readings:
            return time.perf_counter() - since > 3 * BURN_S
        return len(last) == STEADY_READINGS and max(last) - min(last) <= STEADY_SHARE * max(last)


class Results:
    """Everything that was seen, a JSON object a line."""

    def __init__(self, path: Path) -> None:
        self.file, self.begun = path.open("w"), time.perf_counter()

    def __call__(self, stage: str, **row: Any) -> None:
        self.file.write(json.dumps({"stage": stage, "t": round(time.perf_counter() - self.begun, 3), **row}) + "\n")
        self.file.flush()


def warm(sides: Sequence[Side], clocks: Clocks) -> float:
    """Seconds of work, of the sides by turns, until the clock is steady."""
    begun = time.perf_counter()
    while True:
        for side in sides:
            side.ask("burn", seconds=BURN_S)
        taken = time.perf_counter() - begun
        if clocks.is_steady(begun) or taken > MOST_BURN_S:
            return taken


def compare(
    sides: Sequence[Side], scheme: str, order: random.Random, *, in_turns: bool = True, count: int = SAMPLES
) -> dict[str, Any]:
    """Samples of both sides, as long on both. The first of each does not count.

    A CUDA graph that was made just now is slower, by 0.3 us a kernel, until the card has worked for another process.
    """
    told = sides[0].ask("calibrate", scheme=scheme)
    if "error" in told:
        return told
    other = sides[1].ask("prepare", scheme=scheme, in_graph=told["in_graph"])
    if "error" in other:
        return other
    taken: list[list[Any]] = [[], []]
    rounds = [1] * (count + 1) if in_turns else [1, count]
    for repeat in rounds:
        for side in order.sample((0, 1), 2):
            answer = sides[side].ask("sample", scheme=scheme, number=told["number"], repeat=repeat)
            if "error" in answer:
                return answer
            taken[side] += answer["taken"]
    return {**told, "taken": [side[1:] for side in taken]}


def compare_places(sides: Sequence[Side], scheme: str, order: random.Random) -> dict[str, Any]:
    """A few samples of both sides in each of several places of memory."""
    begun, places = time.perf_counter(), [[], []]
    for _ in range(PLACES):
        answers = [side.ask("place") for side in sides]
        compared = compare(sides, scheme, order, count=PLACED_SAMPLES)
        for answer in (*answers, compared):
            if "error" in answer:
                return {"error": answer["error"]}
        calls = compared["number"] * (compared["in_graph"] if scheme == "graph" else 1)
        for side, taken in zip(places, compared["taken"], strict=True):
            side.append([[None if ns is None else ns / calls for ns in sample] for sample in taken])
    return {"places": places, "place_s": (time.perf_counter() - begun) / PLACES}


def measure_levels(results: Results, folder: Path, device: str, clocks: Clocks, names: Sequence[str]) -> None:
    side = Side(folder, device)
    results("start", spawned=side.spawned, marks=side.ask("hello"))
    for name in names:
        loaded = side.ask("load", point=name)
        told = {"warm_s": warm([side], clocks), **side.ask("levels")} if "marks" in loaded else {}
        results("levels", point=name, loaded=loaded, **told)
    side.end()


def measure_costs(
    results: Results, folder: Path, device: str, clocks: Clocks, names: Sequence[str], rounds: int
) -> None:
    """Pairs with one point, as cheap as they get: both processes start at once, few samples."""
    order = random.Random(SEED)
    for number in range(rounds):
        for name in names:
            for scheme in ("batch", "graph"):
                begun = time.perf_counter_ns()
                sides = [Side(folder, device) for _ in range(2)]
                hello = [side.ask("hello") for side in sides]
                for side in sides:
                    side.tell("load", point=name)
                loaded = [side.hear() for side in sides]
                at = time.perf_counter_ns()
                warmed = warm(sides, clocks)
                compared = compare(sides, scheme, order)
                timed = time.perf_counter_ns()
                for side in sides:
                    side.end()
                whole = time.perf_counter_ns() - begun
                spawned = [side.spawned for side in sides]
                times = {"whole_ns": whole, "until_loaded_ns": at - begun, "end_ns": begun + whole - timed}
                results(
                    "costs", round=number, point=name, scheme=scheme, spawned=spawned, marks=hello, loaded=loaded,
                    warm_s=warmed, timing_s=(timed - at) / 1e9 - warmed, compared=compared, **times,
                )  # fmt: skip


def measure_compiling(results: Results, folder: Path, device: str, names: Sequence[str], path: str) -> None:
    """Processes that compile, all at once, because the card is not asked for much."""
    sides = {name: Side(folder, device, path) for name in names}
    hello = {name: side.ask("hello") for name, side in sides.items()}
    for name, side in sides.items():
        side.tell("build_here", point=name)
    for name, side in sides.items():
        results("compiling", point=name, spawned=side.spawned, hello=hello[name], **side.hear())
        side.end()


def measure_pairs(
    results: Results, folder: Path, device: str, clocks: Clocks, names: Sequence[str], until: float
) -> None:
    """Every point in each pair of processes, each scheme in each mode, in random order."""
    order, number, longest = random.Random(SEED), 0, 0.0
    while time.perf_counter() + longest < until:
        begun = time.perf_counter()
        sides = [Side(folder, device) for _ in range(2)]
        for index, side in enumerate(sides):
            results("start", pair=number, side=index, spawned=side.spawned, marks=side.ask("hello"))
        for name in order.sample(names, len(names)):
            loaded = [side.ask("load", point=name) for side in sides]
            results("load", pair=number, point=name, loaded=loaded)
            if not all("marks" in one for one in loaded):
                continue
            warmed = warm(sides, clocks)
            wanted = [(scheme, "turns") for scheme in SCHEMES if scheme != "graph" or name in PLAIN]
            wanted += [(scheme, "core") for scheme in ON_ONE_CORE if name in SHORT]
            wanted += [(scheme, "blocks") for scheme in IN_BLOCKS if name in PLAIN]
            for scheme, mode in order.sample(wanted, len(wanted)):
                core = order.choice(sorted(os.sched_getaffinity(0))) if mode == "core" else None
                for side in sides:
                    side.ask("move", core=core)
                at = time.perf_counter()
                compared = compare(sides, scheme, order, in_turns=mode != "blocks")
                span = (at, time.perf_counter())
                results(
                    "pairs", pair=number, point=name, scheme=scheme, mode=mode, span=span, warm_s=warmed, **compared
                )
                warmed = 0.0
            for scheme in PLACED if name in SHORT and name in PLAIN else ():
                told = compare_places(sides, scheme, order)
                results("places", pair=number, point=name, scheme=scheme, **told)
        for side in sides:
            side.end()
        longest, number = max(longest, time.perf_counter() - begun), number + 1


def measure(arguments: argparse.Namespace) -> None:
    begun, results, clocks = time.perf_counter(), Results(arguments.file), Clocks()
    clocks.start()
    names = [name for name in POINTS if (arguments.folder / f"{name}.json").exists()]

    def known(wanted: Sequence[str]) -> list[str]:
        return [name for name in wanted if name in names]

    stages = arguments.stages.split(",")
    folder, device = arguments.folder, arguments.device
    for name in names:
        results("point", point=name, **json.loads((folder / f"{name}.json").read_text()), **code_of(folder, name))
    if "levels" in stages:
        measure_levels(results, folder, device, clocks, known(LEVELLED))
    if "costs" in stages:
        measure_costs(results, folder, device, clocks, known(COSTED), arguments.rounds)
    if "compiling" in stages:
        measure_compiling(results, folder, device, known(COMPILED), arguments.compiler)
    print(f"before the pairs: {time.perf_counter() - begun:.0f} s", flush=True)
    if "pairs" in stages:
        paired = known([*PLAIN, "mlp+graph"])
        measure_pairs(results, folder, device, clocks, paired, begun + arguments.seconds)
    clocks.stopped.set()
    clocks.join(2)
    results("clocks", readings=clocks.readings)
    print(f"done after {time.perf_counter() - begun:.0f} s", flush=True)


def code_of(folder: Path, name: str) -> dict[str, int]:
    """How often the machine code of a point multiplies matrices on tensor cores, where cuobjdump is here."""
    binary = folder / f"{name}.fatbin"
    try:
        done = subprocess.run(["cuobjdump", "-sass", str(binary)], capture_output=True, text=True, check=False)
    except OSError:
        return {}
    return {word: done.stdout.count(f"{word}.") for word in ("HMMA", "HGMMA", "FFMA", "HFMA2")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=["compile", "compile-here", "measure", "process", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--points", default=",".join(POINTS))
    parser.add_argument("--stages", default="levels,costs,pairs")
    parser.add_argument("--seconds", type=float, default=450.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--compiler", default="")
    arguments = parser.parse_args()
    if arguments.do == "compile":
        compile_all(arguments)
    elif arguments.do == "compile-here":
        compile_points(arguments.folder, arguments.device, arguments.points.split(","))
    elif arguments.do == "process":
        run_process(arguments.folder, arguments.device)
    elif arguments.do == "measure":
        measure(arguments)
    else:
        write_tables(arguments.folder)


def compile_all(arguments: argparse.Namespace) -> None:
    """In a process that finds the stand-in for the driver, where there is no card."""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ)
    if arguments.device == "cuda":
        driver = arguments.folder / "driver"
        driver.mkdir(exist_ok=True)
        environment = importlib.import_module("tests.cards.stand_in").make_driver(driver).environment
    argv = [sys.executable, __file__, "compile-here", str(arguments.folder), "--device", arguments.device]
    subprocess.run([*argv, "--points", arguments.points], env=environment, check=True)


if __name__ == "__main__":
    main()
