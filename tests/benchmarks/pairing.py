"""Pairs of processes that take turns: how sure is the ratio of two builds of TVM, calm and beside a load?

    python3 tests/benchmarks/pairing.py gather FILE [--pairs 40] [--burners 10] [--threads 2]
    python3 tests/benchmarks/pairing.py table FILE...

Nothing differs between the two sides but the process, so a ratio that is not 1 is an error of the method. Two processes
of one TVM prepare the points of relax_opt as a night does (mlp, dqn) and stay; then they take turns by the sample, in
an order drawn anew for each turn, the other one asleep. With one thread both sit on the same core, drawn anew as well;
with more, none is bound. In turns of their own the second process runs each point with work planted in it, as a build
that is slower would: mlp with 103 calls for 100, dqn with two calls of mlp after it.

`table` makes nights of five pairs, drawn from all of them. For each clock (wall, the thread's CPU) it says how far the
absolute time of such a night scatters and how far the ratio, how wide the 95 % interval of the ratio is (Student's t
over the pairs), how often it holds the truth, and in how many nights the planted work is seen: its lower bound above 0.
The first figure of the coverage counts 0 as the truth, the second the mean of all pairs: they differ by what is biased.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPOSITORY / "shared" / "python"), str(REPOSITORY / "tests"), str(REPOSITORY)]

from tvmdash.judge.student import mean_interval  # noqa: E402 - the library is found from here on

CLOCKS = ("wall", "cpu")
NIGHT_PAIRS, DRAWS = 5, 2000
TURNS = 12
TRIM = 0.2
"""The share of a process's samples that is left out of its mean at each end."""


@dataclass(frozen=True)
class Sampled:
    """One sample in nanoseconds; `waited`: the kernel took the core away meanwhile."""

    wall: int
    cpu: int
    waited: bool


@dataclass(frozen=True)
class Work:
    """What one sample does: so many calls of a network, and of mlp after it."""

    network: str
    calls: int
    of_mlp: int = 0


WORKS = {
    "mlp": Work("mlp", 100),
    "mlp +3 %": Work("mlp", 103),
    "dqn": Work("dqn", 1),
    "dqn +2 mlp": Work("dqn", 1, of_mlp=2),
}
PLAIN = {name: work.network for name, work in WORKS.items()}


def serve(threads: int) -> None:
    """One side: prepare as the experiment does, then take the samples that standard input asks for."""
    import artifact_for_tests

    artifact = artifact_for_tests.find()
    assert artifact, "run tests/run.sh once; it fetches a TVM"
    sys.path[:0] = [str(folder) for folder in artifact.pythonpath]
    sys.path[:0] = [str(REPOSITORY / "experiments" / "relax_opt")]
    import relax_opt

    from tests.experiments import trying

    experiment = relax_opt.RelaxOpt()
    given = {"networks": ["mlp", "dqn"], "variants": ["zero"], "opt_levels": [3], "threads": threads}
    config = trying.config_of(relax_opt.RelaxOpt, "relax_opt", **given)
    timers = {point.name: experiment.prepare(point, config, 0).timer for point in experiment.points(config)}
    for timer in timers.values():
        timer(2, 1)
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["core"] is not None:
            os.sched_setaffinity(0, {asked["core"]})
        print(json.dumps(asdict(_sample(timers, Work(**asked["work"])))), flush=True)


def _sample(timers: dict[str, Any], work: Work) -> Sampled:
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
    wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
    timers[work.network](work.calls, 1)
    if work.of_mlp:
        timers["mlp"](work.of_mlp, 1)
    cpu, wall = time.thread_time_ns() - cpu, time.perf_counter_ns() - wall
    return Sampled(wall, cpu, resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw > before)


class Side:
    """A process that takes samples when it is its turn."""

    def __init__(self, threads: int, padding: int) -> None:
        names = ("TVM_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        own = {**dict.fromkeys(names, str(threads)), "TVM_BIND_THREADS": "0", "PADDING": "x" * padding}
        argv = [sys.executable, __file__, "serve", str(threads)]
        self._process = subprocess.Popen(
            argv, env={**os.environ, **own}, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def wait_until_ready(self) -> None:
        assert self._answers.readline() == "ready\n", "the process did not come up"

    def sample(self, work: Work, core: int | None) -> Sampled:
        assert self._process.stdin is not None
        print(json.dumps({"work": asdict(work), "core": core}), file=self._process.stdin, flush=True)
        return Sampled(**json.loads(self._answers.readline()))

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(600)

    @property
    def _answers(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout


@contextmanager
def burning(processes: int) -> Iterator[None]:
    """So many processes that use all the CPU time they get."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def measure_pair(order: random.Random, threads: int) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By side and work, every sample of a pair of processes; the reference's are of the plain network in each turn."""
    sides = {name: Side(threads, order.randrange(4096)) for name in ("reference", "tonight")}
    for side in sides.values():
        side.wait_until_ready()
    samples: dict[str, dict[str, list[dict[str, Any]]]] = {name: {} for name in sides}
    cores = sorted(os.sched_getaffinity(0))
    for _ in range(TURNS):
        for name in order.sample(list(WORKS), len(WORKS)):
            core = order.choice(cores) if threads == 1 else None
            for side in order.sample(["reference", "tonight"], 2):
                work = WORKS[name if side == "tonight" else PLAIN[name]]
                samples[side].setdefault(name, []).append(asdict(sides[side].sample(work, core)))
    for side in sides.values():
        side.end()
    return samples


def gather(file: Path, pairs: int, burners: int, threads: int) -> None:
    order = random.Random(7)
    with file.open("w", encoding="utf-8") as out, burning(burners):
        for number in range(pairs):
            begun = time.monotonic()
            samples = measure_pair(order, threads)
            took_s = time.monotonic() - begun
            row = {"burners": burners, "threads": threads, "seconds": took_s, "samples": samples}
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(f"pair {number + 1} of {pairs}, {took_s:.0f} s", file=sys.stderr)


@dataclass
class Found:
    """What pairs of processes say of one network by one clock: log times of the reference, log ratios of each work."""

    absolute: list[float] = field(default_factory=list)
    ratios: dict[str, list[float]] = field(default_factory=dict)


def read(file: Path, clock: str) -> dict[str, Found]:
    """By network."""
    found = {name: Found() for name in ("mlp", "dqn")}
    for line in file.read_text(encoding="utf-8").splitlines():
        samples = json.loads(line)["samples"]
        for name, network in PLAIN.items():
            reference, tonight = (_level(samples["reference"][name], clock), _level(samples["tonight"][name], clock))
            if name == network:
                found[network].absolute.append(math.log(reference))
            found[network].ratios.setdefault(name, []).append(math.log(tonight / reference))
    return found


def _level(samples: Sequence[dict[str, Any]], clock: str) -> float:
    """The trimmed mean of a process's samples."""
    values = sorted(sample[clock] for sample in samples)
    out = int(len(values) * TRIM)
    return statistics.fmean(values[out : len(values) - out])


def lines(file: Path) -> Iterator[str]:
    """Rows of the table in Markdown."""
    first = json.loads(file.read_text(encoding="utf-8").splitlines()[0])
    state = f"{first['burners']} burners" if first["burners"] else "calm"
    for clock in CLOCKS:
        for network, found in read(file, clock).items():
            planted = [name for name in found.ratios if name != network]
            cells = [f"{state}, threads {first['threads']}", network, clock, str(len(found.absolute))]
            cells += [f"{_night_scatter(found.absolute):.2f}", f"{statistics.stdev(found.ratios[network]) * 100:.2f}"]
            cells.append(f"{_night_scatter(found.ratios[network]):.2f}")
            cells += [_intervals(found.ratios[network])]
            for name in planted:
                truth = statistics.fmean(found.ratios[name]) - statistics.fmean(found.ratios[network])
                cells.append(f"{truth * 100:.1f} %: {_seen(found.ratios[name]):.0%}")
            yield f"| {' | '.join(cells)} |"


def _nights(values: Sequence[float]) -> list[list[float]]:
    draw = random.Random(1)
    return [draw.sample(values, NIGHT_PAIRS) for _ in range(DRAWS)]


def _night_scatter(values: Sequence[float]) -> float:
    """The standard deviation of a night's mean in percent."""
    return statistics.stdev(values) / math.sqrt(NIGHT_PAIRS) * 100


def _intervals(values: Sequence[float]) -> str:
    """How wide the nights' intervals are to either side, in percent, and how often they hold 0, and the mean of all."""
    found = [mean_interval(night) for night in _nights(values)]
    half = statistics.median((high - low) / 2 for low, high in found) * 100
    held = [statistics.fmean(low <= truth <= high for low, high in found) for truth in (0.0, statistics.fmean(values))]
    return f"{half:.2f}, {held[0]:.0%}, {held[1]:.0%}"


def _seen(values: Sequence[float]) -> float:
    return statistics.fmean(mean_interval(night)[0] > 0 for night in _nights(values))


HEAD = (
    "| condition | network | clock | pairs | a night's time, sd % | one pair's ratio, sd % | a night's ratio, sd % |"
    " half-width %, coverage | planted, seen |\n|---|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("gather")
    verb.add_argument("file", type=Path)
    verb.add_argument("--pairs", type=int, default=40)
    verb.add_argument("--burners", type=int, default=0)
    verb.add_argument("--threads", type=int, default=1)
    verb = verbs.add_parser("table")
    verb.add_argument("files", type=Path, nargs="+")
    verb = verbs.add_parser("serve")
    verb.add_argument("threads", type=int)
    arguments = parser.parse_args()
    if arguments.verb == "gather":
        gather(arguments.file, arguments.pairs, arguments.burners, arguments.threads)
    elif arguments.verb == "table":
        print(HEAD, *(line for file in arguments.files for line in lines(file)), sep="\n")
    else:
        serve(arguments.threads)


if __name__ == "__main__":
    main()
