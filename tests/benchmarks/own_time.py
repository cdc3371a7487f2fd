"""The dashboard's own costs beyond the bare scripts': no-op experiments with all their stages, and two subsystems.

`python tests/benchmarks/own_time.py [NIGHTS] [--experiments N] [--history N] [--real SUBSYSTEM ...]` prints,
for the same scripts started bare one after the other and for each night, what all its processes took together: wall
time, CPU seconds, bytes written by write(2) (`wchar` of /proc/PID/io, which Linux adds up over the children that were
waited for), and the memory of the largest process so far. `--profile` runs one more night under cProfile.
"""

from __future__ import annotations

import argparse
import datetime
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPO), str(REPO / "shared" / "python"), str(REPO / "tests" / "dashboard")]
os.environ.setdefault("SLURMD_NODENAME", socket.gethostname())
from tests.dashboard import homes  # noqa: E402 - from the tests' folder
from tests.slow import every_kind  # noqa: E402
from tvmdash.common import parse_stamp, stamp_of  # noqa: E402

SUBSYSTEMS = 2


@dataclass(frozen=True)
class Cost:
    """What a call and all that it started took; peak_mb is that of the largest process started so far."""

    wall_s: float
    cpu_s: float
    written_mb: float
    peak_mb: float

    def __str__(self) -> str:
        return (
            f"{self.wall_s:.2f} s, CPU {self.cpu_s:.2f} s, {self.written_mb:.1f} MB written, largest process "
            f"{self.peak_mb:.0f} MB"
        )


def measure(call: Callable[[], object]) -> Cost:
    """What `call` and the children that it waits for cost."""
    begun, cpu_s, written = time.monotonic(), _read_cpu_s(), _read_written_bytes()
    call()
    peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    written = _read_written_bytes() - written
    return Cost(time.monotonic() - begun, _read_cpu_s() - cpu_s, written / 1e6, peak_mb)


def _read_cpu_s() -> float:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)


def _read_written_bytes() -> int:
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(next(line.partition(":")[2] for line in lines if line.startswith("wchar")))


def fill(home: homes.HomeForTests, experiments: int) -> int:
    """Add the no-op jobs; how many stages they have."""
    for index in range(experiments):
        folder = home.experiment(f"e{index:04}", setup=homes.good("setup"))
        homes.write(folder / "fields.json", {"needs_tvm": False})
    for index in range(SUBSYSTEMS):
        home.subsystem(f"s{index}")
    return experiments * (len(homes.STAGES) + 1) + SUBSYSTEMS


def add_history(home: homes.HomeForTests, nights: int) -> None:
    """Repeat what the last night left as so many nights before it."""
    made = home.home
    last = made.night_stamps()[-1]
    for ago in range(1, nights + 1):
        stamp = stamp_of(parse_stamp(last) - datetime.timedelta(days=ago))
        files = [(made.night_file(last), made.night_file(stamp))]
        files += [(made.data_file(name, last), made.data_file(name, stamp)) for name in made.experiments_with_data()]
        for source, copy in files:
            copy.write_text(source.read_text().replace(last, stamp))


def run_bare(home: homes.HomeForTests) -> None:
    """Start the same scripts one after the other without any dashboard."""
    scratch = home.root / "bare"
    scratch.mkdir(exist_ok=True)
    env = {**os.environ, "TVMDASH_NIGHT": "x", "TVMDASH_JOB": "x"}
    for script in sorted(home.code.glob("*/[es][0-9]*/*.sh")):
        subprocess.run([script, scratch, scratch, scratch], env=env, check=False, capture_output=True)


def run_night(home: homes.HomeForTests, *profiler: str) -> None:
    """Run a night as cron would; with a profiler its output is shown."""
    argv = home.command("run", "--no-rebuild-tvm")
    argv[1:3] = [*profiler, "-m", "dashboard"]
    log = home.root / "night.log"
    with log.open("wb") as file:
        output = None if profiler else file
        code = subprocess.run(
            argv, env=homes.environment(), cwd="/", check=False, stdout=output, stderr=output
        ).returncode
    assert code == 0, log.read_text()[-4000:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nights", type=int, nargs="?", default=3)
    parser.add_argument("--experiments", type=int, default=20)
    parser.add_argument("--history", type=int, default=0, help="nights that the second one finds before the first")
    parser.add_argument("--real", nargs="+", default=[], help="subsystems of this repository that run as well")
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = homes.make_home(Path(folder), Path(folder) / "artifacts")
        stages = fill(home, arguments.experiments)
        for name in arguments.real:
            every_kind.add_real(home, name)
        bare = measure(lambda: run_bare(home))
        print(f"{stages} stages; bare scripts: {bare}", flush=True)
        for _ in range(arguments.nights):
            night = measure(lambda: run_night(home))
            own_ms = 1000 * (night.cpu_s - bare.cpu_s) / stages
            print(f"night: {night}; {own_ms:.1f} ms of CPU a stage beyond the bare scripts", flush=True)
            if arguments.history and len(home.stamps()) == 1:
                add_history(home, arguments.history)
        if arguments.profile:
            run_night(home, "-m", "cProfile", "-s", "tottime")


if __name__ == "__main__":
    main()
