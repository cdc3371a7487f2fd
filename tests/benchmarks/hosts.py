"""One more night of a home that many machines measure for: `python tests/benchmarks/hosts.py --sizes 4x30x40 10x30x40`.

A size is hosts x series of each x nights. Years of nights are planted as their nights leave them (`fleet_home`); then
one more comes home, as parcels of its hosts. Printed are CPU seconds and the largest resident memory of each step,
each a process of its own: ingest (every host's parcel taken in and indexed), verdict (stat_alerts), publish (website),
and questions to the traces of the last nights. `--folder` keeps the home.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPO), str(REPO / "tests"), str(REPO / "shared" / "python"), str(REPO / "tests" / "benchmarks")]
import make_site_home  # noqa: E402 - from the repository
from fleet_home import Machines, plant, write_data, write_host_night, write_night  # noqa: E402

from dashboard.hosts import parcels  # noqa: E402
from dashboard.night import publish as publishing  # noqa: E402
from tvmdash import common  # noqa: E402
from tvmdash.dashboard_info import COMPLETE, RUNNING, Home, host_of  # noqa: E402
from tvmdash.machine import identity  # noqa: E402
from tvmdash.measure.capture import Capture  # noqa: E402
from tvmtraces import sealing  # noqa: E402

QUESTION = "SELECT count(*) AS calls, sum(duration) AS ns FROM kernels"
JUDGED = 12
"""So many planted nights are judged; what lies before is scanned."""


@dataclass(frozen=True)
class Took:
    """What one process took, with all of its children."""

    wall_s: float
    cpu_s: float
    memory_mb: float

    def __str__(self) -> str:
        return f"{self.cpu_s:8.2f} s CPU {self.wall_s:8.2f} s wall {self.memory_mb:7.0f} MB"


_METER = """import os, sys
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as file:
    file.write(f"{status} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}")
"""
"""Begun in between, as a process counts the memory of the one that forked it as its own."""


def run(argv: Sequence[str | Path], environment: Mapping[str, str], cwd: Path = REPO) -> Took:
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as output, tempfile.NamedTemporaryFile("r") as usage:
        metered = [sys.executable, "-S", "-c", _METER, usage.name, *map(str, argv)]
        subprocess.run(metered, cwd=cwd, env=environment, stdout=output, stderr=output, check=True)
        status, cpu_s, memory_kb = usage.read().split()
        if status != "0":
            output.seek(0)
            sys.exit(f"{argv}: {output.read()[-3000:].decode()}")
    return Took(time.perf_counter() - begin, float(cpu_s), float(memory_kb) / 1024)


def own(home: Home, *arguments: str | Path, stamp: str = "") -> Took:
    """A step that is a part of this file."""
    return run(
        [sys.executable, __file__, *arguments, home.root], {**make_site_home.environment(), "TVMDASH_NIGHT": stamp}
    )


def subsystem(home: Home, name: str, stamp: str) -> Took:
    """As the night runs it."""
    folder = REPO / "subsystem" / name
    home.output(name).mkdir(parents=True, exist_ok=True)
    compiled = {"PYTHONPYCACHEPREFIX": str(home.root.parent / "compiled")}
    argv = [folder / "run.sh", home.config("subsystem", name), home.output(name), home.root]
    return run(argv, {**make_site_home.environment(), "TVMDASH_NIGHT": stamp, **compiled}, folder)


def measure(folder: Path, machines: Machines, files: int, trace_nights: int) -> None:
    home = Home(folder / "home")
    last, tonight = (machines.truth.stamp(machines.nights - at) for at in (2, 1))
    if not home.root.exists():
        begin = time.process_time()
        plant(home.root, machines, files=files)
        common.write_json(
            home.config("subsystem", "stat_alerts") / "config.json", {"active": True, "confirm_seconds": 0}
        )
        for night in range(machines.nights - trace_nights, machines.nights - 1):
            for job in machines.every_job:
                seal(home.root / "tmp" / "raw", machines, job, night)
        print(f"  planted     {time.process_time() - begin:8.2f} s CPU", flush=True)
        print(f"  judged      {own(home, '--judge', stamp=last)}", flush=True)
        print(f"  full build  {subsystem(home, 'website', last)}", flush=True)
    tonights(folder, home, machines)
    print(f"  ingest      {own(home, '--take-in', folder / 'away', stamp=tonight)}", flush=True)
    print(f"  verdict     {subsystem(home, 'stat_alerts', tonight)}", flush=True)
    print(f"  publish     {subsystem(home, 'website', tonight)}", flush=True)
    for words, filters in questions(machines, tonight):
        argv = [sys.executable, "-m", "tvmtraces", "query", QUESTION, home.root / "tmp" / "raw", *filters]
        print(f"  traces      {run(argv, make_site_home.environment())}  {words}", flush=True)


def questions(machines: Machines, tonight: str) -> Iterator[tuple[str, list[str]]]:
    jobs, host = machines.truth.experiments(), machines.names[-1]
    yield "everything", []
    yield "one night", ["--night", tonight]
    yield "one experiment of one night on every host", ["--night", tonight, "--experiment", f"{jobs[0]}*"]
    yield "one host", ["--experiment", f"*~{host}"]
    yield "one job of one night", ["--night", tonight, "--experiment", machines.jobs(host)[0]]


def tonights(folder: Path, home: Home, machines: Machines) -> None:
    """What the hosts and this machine have measured tonight, before any of it comes home."""
    night = machines.nights - 1
    stamp = machines.truth.stamp(night)
    write_night(home, machines, night - 1, COMPLETE)
    write_night(home, machines, night, RUNNING)
    for job in machines.jobs(""):
        write_data(home, machines, job, night)
        seal(home.root / "tmp" / "raw", machines, job, night)
    for host in machines.names[1:]:
        away = Home(folder / "away" / host)
        write_host_night(away.night_file(stamp), machines, host, night)
        identity.write(away.machine_file, identity.MachineIdentity(host, stamp, "0" * 32, "AMD EPYC 9654 x 2"))
        for job in machines.jobs(host):
            write_data(away, machines, job, night)
            seal(away.root / "tmp" / "raw", machines, job, night)
        parcels.pack(away, away.root / "tmp", stamp, folder / "away" / f"{host}.tar")


def seal(raw: Path, machines: Machines, job: str, night: int) -> None:
    """The raw measurements of a job's night, captured and sealed as a night does it."""
    stamp = machines.truth.stamp(night)
    os.environ |= {"TVMDASH_NIGHT": stamp, "TVMDASH_JOB": job}
    with tempfile.TemporaryDirectory() as place:
        with Capture(Path(place), {"machine": {"host": f"bench-{host_of(job) or 'home'}"}}) as capture:
            for record in machines.data(job, night)["records"]:
                make_site_home._capture(capture, record, random.Random(night))
        sealing.seal([place], raw / job / f"raw_{stamp}")


def take_in(home: Home, away: Path) -> None:
    """What the night does with what its hosts hand in, and with what it has measured itself."""
    for file in sorted(away.glob("*.tar")):
        parcels.take_in(file, file.stem, os.environ["TVMDASH_NIGHT"], home, home.root / "tmp")
    publishing.index(home)


def judge_past(home: Home) -> None:
    """The verdict of a home whose nights were never judged, without all of them one after the other."""
    sys.path.insert(0, str(REPO / "subsystem" / "stat_alerts"))
    import nights
    import stat_alerts

    nights.MOST_REPLAYED = JUDGED
    output = home.output("stat_alerts")
    output.mkdir(parents=True, exist_ok=True)
    sys.exit(stat_alerts.StatAlerts().main([str(home.config("subsystem", "stat_alerts")), str(output), str(home.root)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=["4x30x40", "10x30x40"], metavar="HOSTSxSERIESxNIGHTS")
    parser.add_argument("--files", type=int, default=30, help="last nights with data files of their own")
    parser.add_argument("--trace-nights", type=int, default=3, help="last nights whose traces are there")
    parser.add_argument("--folder", type=Path, help="where the homes are made, and stay")
    parser.add_argument("--judge", type=Path, metavar="HOME", help=argparse.SUPPRESS)
    parser.add_argument("--take-in", type=Path, nargs=2, metavar=("AWAY", "HOME"), help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if parsed.judge:
        judge_past(Home(parsed.judge))
    elif parsed.take_in:
        take_in(Home(parsed.take_in[1]), parsed.take_in[0])
    else:
        for size in parsed.sizes:
            with tempfile.TemporaryDirectory() as folder:
                print(f"{size}: hosts x series x nights", flush=True)
                machines = Machines(*map(int, size.split("x")))
                measure((parsed.folder or Path(folder)) / size, machines, parsed.files, parsed.trace_nights)


if __name__ == "__main__":
    main()
