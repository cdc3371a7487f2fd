"""The first judging of a history, and nights after it: `python tests/benchmarks/stat_alerts.py --nights 64 365 3650`.

The store is written directly. Prints the seconds of the first judging (no state), of one more night as a process of its
own, and what it spends them on (`--profile`). `--restless`: with slow nights, moves of the machine, sticky modes and
many more steps. The aims: 60 s of CPU time for the first judging of 365 nights of 240 series, and a night at 365 at
most 1.3 times one at 64.
"""

from __future__ import annotations

import argparse
import cProfile
import datetime
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

REPO = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPO / "shared" / "python"), str(REPO / "subsystem" / "stat_alerts")]
from tvmdash import common, records  # noqa: E402 - from the repository
from tvmdash.dashboard_info import Home, Night  # noqa: E402
from tvmdash.judge.history.noise import FloatArray  # noqa: E402
from tvmdash.series import packed as store_packed  # noqa: E402 - from the repository
from tvmdash.series import store  # noqa: E402 - from the repository

FIRST = datetime.datetime(2016, 1, 1, 3, 15, tzinfo=datetime.UTC)
METRICS = (("run_time", "ms", 0.006), ("compile_time", "ms", 0.01), ("code_size", "bytes", 0.0))


def stamp_of(night: int) -> str:
    return common.stamp_of(FIRST + datetime.timedelta(days=night))


def fill(home: Home, series: int, nights: int, *, restless: bool) -> None:
    """A store with `series` series of `nights` nights; with few steps, or many (`restless`)."""
    home.store_file.parent.mkdir(parents=True)
    home.data("relax_opt").mkdir(parents=True)
    rng = np.random.default_rng(1)
    machine = _machine(rng, nights) if restless else np.zeros(nights)
    stamps = [stamp_of(night) for night in range(nights)]
    with store.open_for_writing(home.store_file) as opened:
        for index, stamp in enumerate(stamps):
            opened._add_run("relax_opt", stamp, f"{index // 2:08x}")
        packed: list[list[store_packed.PackedPoint]] = [[] for _ in stamps]
        for index in range(series):
            metric, unit, sigma = METRICS[index % 3]
            labels = {"workload": f"network.w{index // 3}", "hw_model": "AMD EPYC", "env_name": "bench"}
            key = records.SeriesKey("relax_opt", metric, labels)
            point = records.PointValue(key, unit, direction="lower", value=0.0)
            number = opened._number(point)
            steps = rng.random(nights) < (0.004 if restless else 0.001)
            level = np.cumsum(0.05 * steps * rng.choice([-1, 1], nights))
            if sigma:
                level += machine + 0.03 * (np.cumsum(rng.random(nights) < 0.05) % 2) * (restless and index % 4 == 0)
            values = 10 * np.exp(level + sigma * rng.standard_normal(nights))
            code = [index * nights + night // 2 + 1 for night in range(nights)]
            for night, value in enumerate(values.tolist()):
                module = code[night] if metric == "run_time" else None
                packed[night].append(store_packed.PackedPoint(number, value, None, None, 0.02, 10, module))
        for stamp, points in zip(stamps, packed, strict=True):
            opened._put("relax_opt", stamp, points)
        opened.connection.commit()


def _machine(rng: np.random.Generator, nights: int) -> FloatArray:
    """What the machine does to all times: slow nights, and two moves that stay."""
    slow = (rng.random(nights) < 0.04) * rng.normal(0, 0.05, nights)
    moves = np.zeros(nights)
    for first in rng.integers(nights // 3, nights, 2):
        moves[first:] += 0.05 * rng.choice([-1, 1])
    return np.asarray(slow + moves)


def run(home: Home, night: int) -> str:
    """What the run stage of one night takes."""
    stamp = stamp_of(night)
    home.nights.mkdir(parents=True, exist_ok=True)
    common.write_json(home.night_file(stamp), Night(stamp, "running").to_json())
    config, output = home.config("subsystem", "stat_alerts"), home.output("stat_alerts")
    for folder in (config, output):
        folder.mkdir(parents=True, exist_ok=True)
    common.write_json(config / "config.json", {"active": True})
    environment = {**os.environ, "PYTHONPATH": str(REPO / "shared" / "python"), "TVMDASH_NIGHT": stamp}
    environment.pop("PYTHONSAFEPATH", None)
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    code = REPO / "subsystem" / "stat_alerts"
    begun, used = time.monotonic(), _cpu_s()
    subprocess.run([code / "run.sh", config, output, home.root], cwd=code, env=environment, check=True)
    return f"{time.monotonic() - begun:.2f} s, {_cpu_s() - used:.2f} s of CPU time"


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=240)
    parser.add_argument("--nights", type=int, nargs="+", default=[64, 365, 3650])
    parser.add_argument("--restless", action="store_true")
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    for nights in arguments.nights:
        with tempfile.TemporaryDirectory() as folder:
            home = Home(Path(folder))
            fill(home, arguments.series, nights, restless=arguments.restless)
            _measure(home, arguments.series, nights)
            if arguments.profile:
                _profile(home, nights - 1)


def _measure(home: Home, series: int, nights: int) -> None:
    size = home.store_file.stat().st_size / 1e6
    print(f"{series} series x {nights} nights, store {size:.0f} MB")
    print(f"without a state: {run(home, nights - 4)}")
    for night in range(nights - 3, nights):
        print(f"one night more: {run(home, night)}")
    state = (home.output("stat_alerts") / "state.json").stat().st_size / 1e6
    print(f"state.json {state:.2f} MB; {(home.output('stat_alerts') / 'report.json').read_text()[:300]}", flush=True)


def _profile(home: Home, night: int) -> None:
    import stat_alerts

    os.environ["TVMDASH_NIGHT"] = stamp_of(night)
    profile = cProfile.Profile()
    folders = [home.config("subsystem", "stat_alerts"), home.output("stat_alerts"), home.root]
    profile.runcall(stat_alerts.StatAlerts().main, [str(folder) for folder in folders])
    pstats.Stats(profile).sort_stats("cumulative").print_stats(30)


if __name__ == "__main__":
    main()
