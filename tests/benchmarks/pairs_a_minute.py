"""How many process pairs does a minute give, and how far do they scatter? Two checkouts on one machine, in turn.

    tests/python.sh tests/benchmarks/pairs_a_minute.py BEFORE AFTER [--minutes 2] [--rounds 2]

BEFORE and AFTER are folders of this repository at two commits. Each runs the run stages of the sample home's
experiments on TVM (its networks, one thread, sizes as its config says) beside a reference that is the same TVM, so that
every true ratio is 1, for so many minutes each; the order is another one in each round. A pair is one point in two
fresh processes. The table says for each side: pairs a minute by the wall clock, by the CPU time of all processes,
compilers included (which a busy machine disturbs less), and by what the samples take alone, which no run can exceed;
the CPU seconds of a side's samples in a pair, and of all else; the standard deviation of a pair's log ratio by the
clock that judges it, pooled over the points.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPOSITORY / "shared" / "python"), str(REPOSITORY)]

from tests import artifact_for_tests  # noqa: E402 - found from here on
from tvmdash.experiment.paired.pairs import CPU, is_of_reference, match_pairs  # noqa: E402
from tvmdash.measure.capture import Trial, read_trials  # noqa: E402

EXPERIMENTS = ("relax_opt", "pass_comparison")
SAMPLE_HOME = Path("sample-dashboard-home", "config", "experiments")
MANY = 1000


@dataclass
class Side:
    """What the runs of one checkout came to."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    timed_s: list[float] = field(default_factory=list)
    log_ratios: dict[str, list[float]] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        return sum(map(len, self.log_ratios.values()))

    @property
    def scatter(self) -> float:
        """The pooled standard deviation of the points' log ratios."""
        several = [ratios for ratios in self.log_ratios.values() if len(ratios) > 1]
        freedom = sum(len(ratios) - 1 for ratios in several)
        squares = sum(statistics.variance(ratios) * (len(ratios) - 1) for ratios in several)
        return math.sqrt(squares / freedom) if freedom else math.nan

    def add(self, trials: Sequence[Trial]) -> None:
        ours, theirs = ([t for t in trials if is_of_reference(t) is of] for of in (False, True))
        for name, pairs in match_pairs(ours, theirs).items():
            for pair in pairs:
                ratio = pair.log_ratio(CPU)
                if ratio is not None:
                    self.log_ratios.setdefault(name, []).append(ratio)
                self.timed_s += [
                    sum(s.elapsed_ns for s in half.samples) / 1e9 for half in (pair.tonight, pair.reference)
                ]


def run_stage(checkout: Path, experiment: str, minutes: float, seed: int, into: Side) -> None:
    """One run stage of the checkout, with all the pairs that fit into the minutes."""
    artifact = artifact_for_tests.find()
    assert artifact, "run tests/run.sh once; it fetches a TVM"
    own = json.loads((checkout / SAMPLE_HOME / experiment / "config.json").read_text(encoding="utf-8"))
    config = {**own, "active": True, "max_pairs": MANY, "pair_percent": 0}
    config["nightly"] = {**own["nightly"], "max_minutes": minutes}
    with tempfile.TemporaryDirectory(prefix="pairs-") as folder:
        root = Path(folder)
        (root / "config").mkdir()
        (root / "raw").mkdir()
        (root / "config" / "config.json").write_text(json.dumps(config), encoding="utf-8")
        folders = {name: [str(path) for path in getattr(artifact, name)] for name in ("pythonpath", "library_path")}
        named = {"schema_version": 1, "key": artifact.key, "version": artifact.version, "commit": None, "measured": {}}
        (root / "reference.json").write_text(json.dumps({**named, **folders}), encoding="utf-8")
        path = os.pathsep.join([str(checkout / "shared" / "python"), *folders["pythonpath"]])
        own_variables = {"TVMDASH_SEED": str(seed), "TVMDASH_JOB": experiment, "PYTHONPATH": path}
        variables = {**os.environ, **own_variables, "TVMDASH_REFERENCE": str(root / "reference.json")}
        cwd, begun, before = checkout / "experiments" / experiment, time.monotonic(), _cpu_s()
        argv = [sys.executable, f"{experiment}.py", "run", str(root / "config"), str(root / "raw")]
        done = subprocess.run(argv, cwd=cwd, env=variables, check=True, capture_output=True, text=True, timeout=3600)
        into.wall_s += time.monotonic() - begun
        into.cpu_s += _cpu_s() - before
        into.add(list(read_trials(root / "raw")))
        print(json.loads((root / "raw" / "status.json").read_text())["message"], done.stderr[-500:], file=sys.stderr)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(sides: dict[str, Side]) -> Iterable[str]:
    """In Markdown."""
    head = (
        "pairs",
        "points",
        "a minute",
        "a CPU minute",
        "by samples alone",
        "samples, CPU s a side",
        "beside them",
        "sd of a pair, %",
    )
    yield f"| | {' | '.join(head)} |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, side in sides.items():
        beside = (side.cpu_s - sum(side.timed_s)) / max(1, len(side.timed_s))
        timed = statistics.median(side.timed_s or [0.0])
        rates = [
            side.pairs / spent_s * 60 if spent_s else 0.0 for spent_s in (side.wall_s, side.cpu_s, sum(side.timed_s))
        ]
        numbers = [f"{rate:.1f}" for rate in rates] + [f"{timed:.2f}", f"{beside:.2f}", f"{side.scatter * 100:.2f}"]
        yield f"| {name} | {side.pairs} | {len(side.log_ratios)} | {' | '.join(numbers)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--experiments", nargs="+", default=list(EXPERIMENTS))
    asked = parser.parse_args()
    sides = {"before": Side(), "after": Side()}
    folders = {"before": asked.before.resolve(), "after": asked.after.resolve()}
    for number in range(asked.rounds):
        for experiment in asked.experiments:
            for name in sorted(sides, reverse=bool(number % 2)):
                run_stage(folders[name], experiment, asked.minutes, number, sides[name])
                print(*table(sides), sep="\n", file=sys.stderr)
    print(*table(sides), sep="\n")


if __name__ == "__main__":
    main()
