"""A/A runs: does the interval of a night hold the truth as often as it says, and how far do equal nights lie apart?

    python3 tests/benchmarks/aa.py gather FILE [--rounds 60]     # about 6 minutes on two cores
    python3 tests/benchmarks/aa.py table FILE

Nothing changes between the nights, so every difference is the method's. A round starts one process that times TVM's
mlp and dqn and one that times numpy's matmul and a Python loop, in shuffled order. In each, every workload is timed
twice, in shuffled order: as the dashboard does it, and by the ancestor's loop: eight calls that do not count, then the
mean of time.time() round each of a hundred calls.

`table` makes nights of the processes. One of the dashboard is several processes that lie far apart in the run, as the
rounds of a run do; all nights are spread over the same time. One of the ancestor is one process. The truth is the
median of all samples of all processes. Each is told by the wall clock, and by the thread's CPU clock, which a busy
machine disturbs less.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPOSITORY / "shared" / "python"), str(REPOSITORY / "tests"), str(REPOSITORY)]

from tvmdash.experiment.config import Precision  # noqa: E402 - the library is found from here on
from tvmdash.measure.reduction import Reduced, median_interval, reduce_processes  # noqa: E402
from tvmdash.trial_util import Timing, time_workload  # noqa: E402

PAIRS = (("mlp", "dqn"), ("matmul", "loop"))
CLOCKS = ("wall", "cpu")
TIMING = Timing(repeat=10, min_repeat_ms=20, max_seconds=2)
PRECISION = Precision(3, 6, 5, math.inf, 1, 1, 0)
DRY_CALLS, CALLS = 8, 100
DRAWS = 2000
Call = Callable[[], object]


@dataclass
class TwoClocks:
    """A timer by the wall clock that remembers what the thread's CPU clock said of the last samples."""

    call: Call
    cpu_ns: list[int] = field(default_factory=list)

    def __call__(self, number: int, repeat: int) -> list[int]:
        elapsed, self.cpu_ns, calls, call = [], [], range(number), self.call
        for _ in range(repeat):
            begun, cpu_begun = time.perf_counter_ns(), time.thread_time_ns()
            for _ in calls:
                call()
            cpu_ended, ended = time.thread_time_ns(), time.perf_counter_ns()
            elapsed.append(ended - begun)
            self.cpu_ns.append(cpu_ended - cpu_begun)
        return elapsed


def workload(name: str) -> tuple[Call, Call]:
    """One call as the dashboard times it, and as the ancestor did: for TVM with its copies to and from the device."""
    import numpy

    if name == "loop":
        values = list(range(20_000))
        return (lambda: sum(value * value for value in values),) * 2
    if name == "matmul":
        a = numpy.random.default_rng(1).random((384, 384), dtype="float32")
        return (lambda: a @ a,) * 2
    return tvm_workload(name)


def tvm_workload(name: str) -> tuple[Call, Call]:
    import artifact_for_tests

    artifact = artifact_for_tests.find()
    assert artifact, "run tests/run.sh once; it fetches a TVM"
    sys.path[:0] = [str(folder) for folder in artifact.pythonpath]
    from tvmdash import networks, relax_util
    from tvmdash.relax_util import lowering

    graph = networks.NETWORKS[name]()
    weights, x = networks.make_weights(graph, 0), networks.make_input(graph, 0, 1)
    loaded = relax_util.load(
        relax_util.compile_module(lowering.lower(graph, weights, 1), relax_util.CompileOptions()), 1
    )
    main, tensor = loaded.machine["main"], loaded.tensor(x)
    return lambda: main(tensor), lambda: loaded.run(x)


def dashboards_way(call: Call) -> dict[str, list[float]]:
    timer = TwoClocks(call)
    samples = time_workload(timer, TIMING)
    return {"wall": [sample.ms for sample in samples], "cpu": [ns / samples[0].number / 1e6 for ns in timer.cpu_ns]}


def ancestors_way(call: Call) -> dict[str, float]:
    for _ in range(DRY_CALLS):
        call()
    wall, cpu = [], []
    for _ in range(CALLS):
        begun, cpu_begun = time.time(), time.thread_time()
        call()
        cpu.append(time.thread_time() - cpu_begun)
        wall.append(time.time() - begun)
    return {"wall": statistics.fmean(wall) * 1e3, "cpu": statistics.fmean(cpu) * 1e3}


WAYS: dict[str, Callable[[Call], object]] = {"samples": dashboards_way, "ancestor": ancestors_way}


def measure(pair: int, seed: int) -> None:
    """One process: print `{workload: {"samples": {clock: [ms]}, "ancestor": {clock: ms}}}`."""
    order, found = random.Random(seed), {}
    for name in order.sample(PAIRS[pair], 2):
        calls = dict(zip(("samples", "ancestor"), workload(name), strict=True))
        found[name] = {way: WAYS[way](calls[way]) for way in order.sample(sorted(calls), 2)}
    print(json.dumps(found))


def gather(file: Path, rounds: int) -> None:
    order = random.Random(7)
    environment = {**os.environ, **dict.fromkeys(("TVM_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")}
    with file.open("w", encoding="utf-8") as out:
        for number in range(rounds):
            for pair in order.sample(range(len(PAIRS)), len(PAIRS)):
                argv = [sys.executable, __file__, "measure", str(pair), str(order.randrange(2**31))]
                done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, env=environment)
                out.write(json.dumps({"round": number, **json.loads(done.stdout.splitlines()[-1])}) + "\n")
                out.flush()
            print(f"round {number + 1} of {rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)


Process = list[float]


def spread_out(processes: Sequence[Process], size: int) -> list[list[Process]]:
    """Nights of `size` processes each, whose processes lie as far apart as the run is long."""
    stride = len(processes) // size
    return [[processes[first + stride * number] for number in range(size)] for first in range(stride)]


def adaptive(night: Sequence[Process]) -> Reduced:
    """As many processes of a night as the rule of the rounds takes."""
    for size in range(PRECISION.processes, len(night)):
        reduced = reduce_processes(night[:size])
        if PRECISION.reached(reduced):
            return reduced
    return reduce_processes(night)


def covered(found: Sequence[Reduced], truth: float) -> float:
    """The share of intervals that hold the truth."""
    return statistics.fmean(bool(r.low is not None and r.low <= truth <= (r.high or 0)) for r in found)


def deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) / statistics.fmean(values)


def lines(rows: Sequence[dict[str, dict[str, dict[str, Process]]]]) -> Iterator[str]:
    """Two tables in Markdown."""
    processes = {
        (clock, name): [row[name]["samples"][clock] for row in rows if name in row]
        for clock in CLOCKS
        for name in itertools.chain(*PAIRS)
    }
    ancestors = {
        (clock, name): [row[name]["ancestor"][clock] for row in rows if name in row] for clock, name in processes
    }
    yield "| clock, workload | ms | spread within, between | one interval of all samples | 3 processes | 5 | adaptive |"
    yield "|---|---|---|---|---|---|---|"
    for (clock, name), found in processes.items():
        yield f"| {clock}, {name} | {coverage(found)} |"
    yield ""
    yield "| clock, workload | ancestor | 3 processes | 5 | adaptive | ancestor / adaptive |"
    yield "|---|---|---|---|---|---|"
    for (clock, name), found in processes.items():
        yield f"| {clock}, {name} | {nights(found, ancestors[clock, name])} |"


def coverage(processes: Sequence[Process]) -> str:
    """How often each interval of nights drawn from the processes holds the truth, and how wide the last one is."""
    whole, draw = reduce_processes(processes), random.Random(1)
    drawn = [draw.sample(processes, PRECISION.max_processes) for _ in range(DRAWS)]
    pooled = [median_interval(sorted(itertools.chain(*night[:5]))) for night in drawn]
    naive = statistics.fmean(bool(low and high and low <= whole.median <= high) for low, high in pooled)
    by_size = [covered([reduce_processes(night[:size]) for night in drawn], whole.median) for size in (3, 5)]
    ruled = [adaptive(night) for night in drawn]
    half = statistics.median(reduced.half_width for reduced in ruled)
    used = statistics.fmean(reduced.processes for reduced in ruled)
    cells = [f"{whole.median:.4g}", f"{whole.within or 0:.1%}, {whole.between or 0:.1%}", f"{naive:.0%}"]
    cells += [f"{share:.0%}" for share in by_size]
    return " | ".join([*cells, f"{covered(ruled, whole.median):.0%} ({used:.1f} processes, median ± {half:.1%})"])


def nights(processes: Sequence[Process], ancestors: Sequence[float]) -> str:
    """How far equal nights lie apart: their standard deviation as a share of their mean."""
    ours = [[reduce_processes(night).median for night in spread_out(processes, size)] for size in (3, 5)]
    ours.append([adaptive(night).median for night in spread_out(processes, PRECISION.max_processes)])
    spreads = [deviation(values) for values in (ancestors, *ours)]
    return " | ".join([*(f"{spread:.1%}" for spread in spreads), f"{spreads[0] / spreads[-1]:.1f}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("gather")
    verb.add_argument("file", type=Path)
    verb.add_argument("--rounds", type=int, default=60)
    verb = verbs.add_parser("table")
    verb.add_argument("file", type=Path)
    verb = verbs.add_parser("measure")
    verb.add_argument("pair", type=int)
    verb.add_argument("seed", type=int)
    arguments = parser.parse_args()
    if arguments.verb == "gather":
        gather(arguments.file, arguments.rounds)
    elif arguments.verb == "table":
        print("\n".join(lines([json.loads(text) for text in arguments.file.read_text().splitlines()])))
    else:
        measure(arguments.pair, arguments.seed)


if __name__ == "__main__":
    main()
