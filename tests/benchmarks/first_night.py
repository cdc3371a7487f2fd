"""How long does the sample home's first night take after set-up, and how many pairs does each series have of it?

    tests/python.sh tests/benchmarks/first_night.py [--artifacts FOLDER]

It copies sample-dashboard-home and runs its night by run_dashboard.sh. Set-up is all before the first measurement:
environment and TVMs, which `--artifacts` copies from another home's folder. The line says the minutes from there to the
last subsystem's report, the CPU time of the whole night, the load before and after it, and of the points measured in
turn the fewest and the most pairs, and how many a minute its runs gave and its samples alone would give.
"""

from __future__ import annotations

import argparse
import datetime
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPOSITORY / "shared" / "python"), str(REPOSITORY)]

from tvmdash import records  # noqa: E402 - found from here on
from tvmdash.dashboard_info import Home  # noqa: E402

BEGUN, ENDED = ", run: started", "subsystem "


def moment(line: str) -> datetime.datetime:
    """When the night wrote the line of its log."""
    return datetime.datetime.fromisoformat(line[:23].replace(",", "."))


def count_pairs(home: Home, stamp: str) -> list[int]:
    """Of each time that was measured in turn, how many pairs."""
    nights = [records.read_data(home.data_file(name, stamp), name) for name in home.experiments_with_data()]
    return [value.samples or 0 for night in nights for value in night.values() if value.key.metric == "run_time_ratio"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--artifacts", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="first-night-") as folder:
        shutil.copytree(REPOSITORY / "sample-dashboard-home" / "config", Path(folder, "config"))
        if asked.artifacts:
            shutil.copytree(asked.artifacts, Path(folder, "artifacts"), symlinks=True)
        before = os.getloadavg()[0]
        argv = [str(REPOSITORY / "run_dashboard.sh"), folder]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line[:2] == "20"]
        begun = next(moment(line) for line in lines if BEGUN in line)
        ended = max(moment(line) for line in lines if ENDED in line)
        home = Home(Path(folder))
        (night,) = home.last_nights(1)
        pairs = count_pairs(home, night.stamp)
        print(
            f"{(ended - begun).total_seconds():.0f} s after set-up; {used.ru_utime + used.ru_stime:.0f} CPU s; load "
            f"{before:.1f} to {os.getloadavg()[0]:.1f}; {min(pairs)} to {max(pairs)} pairs of {len(pairs)} series, "
            f"{night.speed_of_pairs}"
        )


if __name__ == "__main__":
    main()
