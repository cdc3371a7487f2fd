"""The same rows as RocPD, raw and sealed: `python tests/benchmarks/traces.py [--rows N] [--files N]`.

The best of three; seconds of the clock, and of CPU in all threads, which say more where the machine has other work.
AMD's own package is beside it in `amd.py`. Also, and alone with --capture: what capture costs a measuring process.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "shared" / "python")]

from tests.tvmtraces import rocpd_files  # noqa: E402
from tvmdash.measure import capture, phases  # noqa: E402
from tvmtraces import Filters, Window, connect  # noqa: E402
from tvmtraces.analysis import summary  # noqa: E402
from tvmtraces.sealing import seal  # noqa: E402

NAMES = [f"fused_conv2d_add_relu_kernel_{index}" for index in range(40)]
WINDOW = 'SELECT count(*), sum(duration) FROM kernels WHERE start >= {0} AND "end" <= {1}'


@dataclass(frozen=True)
class Took:
    """Seconds of the clock, and of CPU."""

    wall_s: float
    cpu_s: float

    def __str__(self) -> str:
        return f"{self.wall_s:9.3f} ({self.cpu_s:7.3f})"


def timed(work: Callable[[], object], repeats: int = 3) -> Took:
    """The best of `repeats`, each by itself."""
    found = []
    for _ in range(repeats):
        begun, cpu = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - begun, time.process_time() - cpu))
    walls, cpus = zip(*found, strict=True)
    return Took(min(walls), min(cpus))


def make(folder: Path, rows: int, files: int) -> tuple[list[Path], list[Path]]:
    """The same kernels as RocPD-like and as raw databases."""
    theirs, ours = [], []
    for index in range(files):
        made = rocpd_files.kernels(rows // files, seed=index, begin_ns=1_795_256_353_245_641_618 + index * 1_000_000)
        theirs.append(folder / f"{index}_results.db")
        rocpd_files.write(theirs[-1], made, NAMES, pid=1000 + index)
        place = folder / "raw" / f"process_{index}"
        place.mkdir(parents=True)
        write_raw(place, made)
        ours += place.glob("raw_*.db")
    return theirs, ours


def write_raw(place: Path, made: Sequence[rocpd_files.Kernel], per_run: int = 500) -> None:
    """As an experiment's process leaves them: a trial of ten profiled runs, and so on."""
    with capture.Capture(place, {"machine": {"host": "node"}}) as opened:
        for first in range(0, len(made), per_run * 10):
            part = made[first : first + per_run * 10]
            begins = [run.start_ns for run in part[::per_run]]
            spans = [
                capture.OperatorSpan(
                    index // per_run, NAMES[kernel.name], kernel.start_ns - begins[index // per_run], kernel.duration_ns
                )
                for index, kernel in enumerate(part)
            ]
            trial = opened.begin({"workload": "network.x", "values": {"batch": 1}})
            opened.end(trial, samples=[capture.Sample(1000, 1)], operators=spans, run_starts_ns=begins)


def compare(folder: Path, rows: int, files: int) -> None:
    """Print the table."""
    theirs, ours = make(folder, rows, files)
    sealed = folder / "sealed"
    sealing = timed(lambda: seal(ours, sealed), 1)
    sealing_theirs = timed(lambda: seal(theirs, folder / "sealed of theirs"), 1)
    begin, end = connect(ours).traces.bounds_ns()
    low, high = begin + (end - begin) * 45 // 100, begin + (end - begin) * 55 // 100
    window = Filters(window=Window(str(low), str(high)))
    count = "SELECT count(*), sum(duration) FROM kernels"
    places: tuple[str | Sequence[Path], ...] = (theirs, ours, [sealed])
    opened = [connect(place) for place in places]
    cut = WINDOW.format(low, high)
    views: list[tuple[str, Callable[[Any, Any], object]]] = [
        (
            "open and top, from nothing",
            lambda place, _: connect(place).execute("SELECT * FROM top_kernels").fetchall(),
        ),
        ("top", lambda _, one: one.execute("SELECT * FROM top").fetchall()),
        ("window of 10 % (SQL)", lambda _, one: one.execute(cut).fetchall()),
        (
            "window of 10 % (connect with a filter)",
            lambda place, _: connect(place, filters=window).execute(count).fetchall(),
        ),
        ("summary with percentiles", lambda _, one: list(summary(one))),
    ]
    print(f"{rows:,} kernels in {files} databases; seconds (of CPU)")
    print(f"{'':38}{'RocPD':>19}{'raw':>19}{'sealed':>19}")
    for words, ask in views:
        took = [timed(lambda p=place, o=one, a=ask: a(p, o)) for place, one in zip(places, opened, strict=True)]
        print(f"{words:38}{''.join(map(str, took))}", flush=True)
    print(f"{'seal':38}{sealing_theirs}{sealing}")
    for words, took_s in (("raw", sealing), ("RocPD's", sealing_theirs)):
        print(f"sealing {words}: {rows / took_s.wall_s:,.0f} rows/s, {rows / took_s.cpu_s:,.0f} rows per CPU second")
    check(count, *opened, window=(low, high))
    sizes = [sum(path.stat().st_size for path in part) for part in (theirs, ours, sealed.iterdir())]
    words = ", ".join(f"{size / 1e6:.1f}" for size in sizes)
    print(f"MB on disk: {words}; RocPD's are {sizes[0] / sizes[1]:.1f} and {sizes[0] / sizes[2]:.1f} times ours")


def check(count: str, *ours: Any, window: tuple[int, int]) -> None:
    """All say the same."""
    for query in (count, WINDOW.format(*window)):
        found = [one.execute(query).fetchall() for one in ours]
        if found != found[:1] * len(found):
            raise SystemExit(f"{query}: {found}")


def many_runs(folder: Path, runs: int = 200) -> None:
    """Connect to many sealed runs."""
    for index in range(runs):
        place = folder / "small" / f"raw_{index}"
        place.mkdir(parents=True)
        write_raw(place, rocpd_files.kernels(500, seed=index))
        seal([place], folder / "many" / f"{index}")
    print(f"connect to {runs} sealed runs: {timed(lambda: connect(folder / 'many'))}")
    top = timed(lambda: connect(folder / "many").execute("SELECT * FROM top").fetchall())
    print(f"with a top: {top}")


def capturing(folder: Path, trials: int = 200, samples: int = 10) -> None:
    """CPU time of begin, four phases and end of a trial, as a share of what is timed in it: calls of 1 ms."""
    spans = [capture.OperatorSpan(0, NAMES[index % 40], index * 10_000, 9_000) for index in range(100)]
    passes = [(f"Pass{index}", 1_000_000) for index in range(50)]
    kinds: dict[str, tuple[float, dict[str, Any]]] = {
        f"warm-up and {samples} samples of 1 ms": (samples + 1, {}),
        "the same, and a profiled run of 100 operators": (samples + 2, {"operators": spans}),
        "the same, and compilation, 50 passes of 1 ms": (samples + 52, {"operators": spans, "passes": passes}),
    }
    took: dict[str, list[float]] = {words: [] for words in kinds}
    with capture.Capture(folder, {}) as opened:
        for _ in range(7):
            for words, (_, results) in kinds.items():
                took[words].append(_trials(opened, trials, samples, results) / trials * 1000)
    for words, found in took.items():
        least, median, trial_ms = min(found), statistics.median(found), kinds[words][0]
        shares = f"{least / trial_ms:.2%} ({median / trial_ms:.2%})"
        print(f"capture: {words}: {least:.3f} ms of CPU (median {median:.3f}), {shares} of the trial")


def _trials(opened: capture.Capture, trials: int, samples: int, results: Mapping[str, Any]) -> float:
    begun = time.process_time()
    for _ in range(trials):
        trial = opened.begin({"workload": "network.x", "values": {"batch": 1}, "engine": "tvm", "target": "llvm"})
        for name in ("prepare", "check", phases.TIMING, "profile"):
            with phases.phase(name):
                pass
        taken = [capture.Sample(1_000_000, 1) for _ in range(samples)]
        opened.end(trial, samples=taken, facts={"code_size": 1}, **results)
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--folder", help="where the databases are made; default: the temporary folder")
    parser.add_argument("--capture", action="store_true", help="only what capture costs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        capturing(Path(name))
        if options.capture:
            return
        compare(Path(name), options.rows, options.files)
        many_runs(Path(name))


if __name__ == "__main__":
    main()
