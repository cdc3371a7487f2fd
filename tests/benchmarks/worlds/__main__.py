"""`python3 tests/benchmarks/worlds --judge module:factory --part quiet|steps|situations --seeds N`.

Planted worlds for a judge of evidence.py, and what it made of them as tables. The factory is called without arguments,
once for each home. Seeds 1000 to 1999 are for tuning. Those from 2000 on are held out: no judge was to see them
before its figures are stated (`--first-seed 2000`).
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "shared" / "python")]

from tests.benchmarks.worlds import parts, table  # noqa: E402 - the repository is found from here on
from tests.benchmarks.worlds.situations import ALL  # noqa: E402
from tests.benchmarks.worlds.world import Plan  # noqa: E402


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="worlds", description=__doc__)
    parser.add_argument("--judge", default="tests.benchmarks.worlds.standins:Naive", metavar="MODULE:FACTORY")
    parser.add_argument("--part", choices=("quiet", "steps", "situations", "list"), default="situations")
    parser.add_argument("--seeds", type=int, default=1, help="of each home of the grid, or of each situation")
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--series", default="48", help="15,48,200")
    parser.add_argument("--home", default="source,wheel")
    parser.add_argument("--reference", default="chain,fixed,moving")
    parser.add_argument("--luck", help="percent:share redrawn, as 0.5:0.5,1:0; the whole grid where absent")
    parser.add_argument("--again", type=float, default=3.0, help="pairs measured again a night, by series of the home")
    parser.add_argument("--relinks", type=int, default=3, help="relinked children that a night makes of a build")
    parser.add_argument("--situations", default="*", help="names with * and ?, separated by commas")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="name each fault and its seed")
    return parser.parse_args(arguments)


def _luck(text: str) -> tuple[float, float]:
    percent, _, redrawn = text.partition(":")
    return float(percent) / 100, float(redrawn or 1)


def _jobs(options: argparse.Namespace) -> list[parts.Job]:
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    lucks = [_luck(text) for text in options.luck.split(",")] if options.luck else list(parts.LUCKS)
    if options.part == "situations":
        names = [name for name in ALL if any(fnmatch.fnmatch(name, at) for at in options.situations.split(","))]
        luck, redrawn = lucks[0] if options.luck else (0.003, 1.0)
        return list(
            parts.situation_jobs(
                names, seeds, Plan(0, 32, luck=luck, redrawn=redrawn, again=options.again, relinks=options.relinks)
            )
        )
    grid = {
        "series": [int(count) for count in options.series.split(",")],
        "wheel": [home == "wheel" for home in options.home.split(",")],
        "reference": options.reference.split(","),
        "luck": lucks,
        "how": {"again": options.again, "relinks": options.relinks},
    }
    return list(parts.home_jobs(options.part, seeds, grid))


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    if options.part == "list":
        print("\n".join(f"{name}: {situation.words}" for name, situation in ALL.items()))
        return 0
    begun, run = time.process_time(), functools.partial(parts.run, judge=options.judge)
    jobs = _jobs(options)
    if options.jobs > 1:
        with ProcessPoolExecutor(options.jobs) as pool:
            results = list(pool.map(run, jobs, chunksize=1))
    else:
        results = [run(job) for job in jobs]
    if options.part == "situations":
        print("\n".join(table.format_situations(results, verbose=options.verbose)))
    else:
        print("\n".join(table.format_homes(results, steps=options.part == "steps")))
        if options.verbose:
            print("\n".join(table.faults_of(results)))
    print(f"\n{len(results)} worlds in {time.process_time() - begun:.1f} s of CPU time, without that of --jobs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
