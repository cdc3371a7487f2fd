"""One night of stat_alerts on a home of 240 series and 3,650 nights: `python tests/benchmarks/stat_alerts.py`.

The store is written directly. Prints the seconds of the rebuild (no state), of one more night as a process of its own,
and what it spends them on (`--profile`). Less than 2 s a night is the aim.
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
from tvmdash import common, records, store  # noqa: E402 - from the repository
from tvmdash.dashboard_info import Home, Night  # noqa: E402

FIRST = datetime.datetime(2016, 1, 1, 3, 15, tzinfo=datetime.timezone.utc)
METRICS = (("run_time", "ms", 0.006), ("compile_time", "ms", 0.01), ("code_size", "bytes", 0.0))


def stamp_of(night: int) -> str:
    return common.stamp_of(FIRST + datetime.timedelta(days=night))


def fill(home: Home, series: int, nights: int) -> None:
    """A store with `series` series of `nights` nights; every tenth has a step now and then."""
    home.store_file.parent.mkdir(parents=True)
    home.data("relax_opt").mkdir(parents=True)
    rng = np.random.default_rng(1)
    stamps = [stamp_of(night) for night in range(nights)]
    with store.open_for_writing(home.store_file) as opened:
        connection = opened._connection
        rows = [("relax_opt", stamp, f"{index // 2:08x}", 0, None, "") for index, stamp in enumerate(stamps)]
        connection.executemany("INSERT INTO nights VALUES (?, ?, ?, ?, ?, ?)", rows)
        for index in range(series):
            metric, unit, sigma = METRICS[index % 3]
            labels = {"workload": f"network.w{index // 3}", "hw_model": "AMD EPYC", "env_name": "bench"}
            key = records.SeriesKey("relax_opt", metric, labels)
            point = records.PointValue(key, unit, lower_is_better=True, value=0.0)
            number = opened._number(point)
            level = np.cumsum(0.05 * (rng.random(nights) < 0.001) * rng.choice([-1, 1], nights))
            values = 10 * np.exp(level + sigma * rng.standard_normal(nights))
            code = [index * nights + night // 2 + 1 for night in range(nights)]
            points = [
                (number, stamp, float(value), 0.02, None, None, 10, code[night] if metric == "run_time" else None)
                for night, (stamp, value) in enumerate(zip(stamps, values, strict=True))
            ]
            connection.executemany("INSERT INTO points VALUES (?, ?, ?, ?, ?, ?, ?, ?)", points)
        connection.commit()


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
    parser.add_argument("--nights", type=int, default=3650)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        fill(home, arguments.series, arguments.nights)
        size = home.store_file.stat().st_size / 1e6
        print(f"{arguments.series} series x {arguments.nights} nights, store {size:.0f} MB")
        print(f"without a state: {run(home, arguments.nights - 4)}")
        for night in range(arguments.nights - 3, arguments.nights):
            print(f"one night more: {run(home, night)}")
        state = (home.output("stat_alerts") / "state.json").stat().st_size / 1e6
        print(f"state.json {state:.2f} MB; {(home.output('stat_alerts') / 'report.json').read_text()[:300]}")
        if arguments.profile:
            _profile(home, arguments.nights - 1)


def _profile(home: Home, night: int) -> None:
    import stat_alerts

    os.environ["TVMDASH_NIGHT"] = stamp_of(night)
    profile = cProfile.Profile()
    folders = [home.config("subsystem", "stat_alerts"), home.output("stat_alerts"), home.root]
    profile.runcall(stat_alerts.StatAlerts().main, [str(folder) for folder in folders])
    pstats.Stats(profile).sort_stats("cumulative").print_stats(30)


if __name__ == "__main__":
    main()
