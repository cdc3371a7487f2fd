"""What publishing the website costs: `python tests/benchmarks/website.py [--asv ASV]`.

A home of 500 series and 1,825 nights: a full build, a publish with nothing new, one with one new night, each as the
night runs it (run.sh, a process of its own), in wall and CPU seconds, and the sizes that a reader is sent. With --asv
(its program, as in VENV/bin/asv) the same numbers of 100 series and 1,000 nights are published by both, in turn.
Taking a night into the store is the night's own work and is not timed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPO / "tests"), str(REPO / "shared" / "python")]
import make_site_home  # noqa: E402 - from the repository
from site_transfer import sent, with_imports  # noqa: E402
from site_truth import LAST, Truth  # noqa: E402

from tvmdash import common  # noqa: E402 - from the repository
from tvmdash.dashboard_info import Home  # noqa: E402
from tvmdash.series import store  # noqa: E402

FILES = 40


@dataclass(frozen=True)
class Took:
    """Seconds of one process with all of its children."""

    wall_s: float
    cpu_s: float

    def __str__(self) -> str:
        return f"{self.wall_s:6.2f} s wall, {self.cpu_s:6.2f} s CPU"


def timed(argv: list[str], cwd: Path, environment: dict[str, str]) -> Took:
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{argv}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
    return Took(wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def publish(home: Home) -> Took:
    home.output("website").mkdir(parents=True, exist_ok=True)
    folder = REPO / "subsystem" / "website"
    argv = [str(folder / "run.sh"), str(home.config("subsystem", "website")), str(home.output("website")),
            str(home.root)]  # fmt: skip
    environment = {**make_site_home.environment(), "TVMDASH_NIGHT": home.night_stamps()[-1]}
    return timed(argv, folder, {**environment, "PYTHONPYCACHEPREFIX": str(home.root.parent / "compiled")})


def set_aside(site: Path) -> None:
    """Make room for a new site. Deleting it here would cost the next one: ext4 without a journal, as on many virtual
    machines, looks for a free inode past all those deleted in the last five minutes, 0.2 to 0.7 ms a file.
    """
    if site.exists():
        site.rename(site.with_name(f"{site.name}-{time.monotonic_ns()}"))


def build(home: Home) -> Took:
    """A full build: there is no site yet."""
    set_aside(home.output("website"))
    return publish(home)


def add_night(home: Home, truth: Truth) -> Truth:
    """The home one night later, everything but the website done."""
    later = Truth(truth.series, truth.nights + 1, truth.seed, truth.last + datetime.timedelta(days=1))
    old = truth.stamp(truth.nights - 1)
    night = common.read_json(home.night_file(old))
    common.write_json(home.night_file(old), {**night, "state": "complete", "ended": old})
    make_site_home.write_night(home, later, later.nights - 1, with_data=True)
    make_site_home.ingest(home, later)
    return later


def sizes(home: Home) -> None:
    site = home.output("website").resolve()
    pack = json.loads((site / "index.json").read_text(encoding="utf-8"))["series"]["pack"][0]
    shard, catalogue = sent(site / "series" / f"{pack}.js"), sent(site / "index.json")
    print(f"  index.json {catalogue / 1000:.1f} kB, a file of eight series {shard / 1000:.1f} kB, gzipped")
    for page in ("index", "explore", "compare", "receipt"):
        own = sum(map(sent, with_imports(site, page)))
        both = (own + shard + catalogue) / 1000
        print(f"  {page + '.html':14} {own / 1000:6.1f} kB with styles and scripts, {both:.1f} kB with both")
    whole = [path for path in site.rglob("*") if path.is_file()]
    print(f"  the whole site {len(whole)} files, {sum(path.stat().st_size for path in whole) / 1e6:.0f} MB")


def publishing(folder: Path, series: int, nights: int) -> None:
    truth = Truth(series, nights)
    home = make_site_home.make_home(folder / "home", truth, files=FILES, subsystems=False)
    with store.open_for_reading(home.store_file, folder, "x") as opened:
        known = sum(len(opened.outlines(name)) for name in truth.experiments())
    print(f"{known} series, {nights} nights")
    publish(home)  # compiles what Python keeps compiled
    for _ in range(3):
        print(f"  full build     {build(home)}")
        print(f"  nothing new    {publish(home)}")
        truth = add_night(home, truth)
        print(f"  one new night  {publish(home)}")
    sizes(home)


def against_asv(folder: Path, asv: Path, series: int, nights: int, rounds: int) -> None:
    """The same numbers by both, in turn; each builds all of its site each time."""
    truth = Truth(2 * series, nights, sizes=False)
    home = make_site_home.make_home(folder / "home", truth, files=FILES, subsystems=False)
    place = folder / "asv"
    benchmarks = _write_asv(home, truth, place)
    print(f"against asv: {benchmarks} benchmarks, {nights} commits")
    publish(home)
    ratios = []
    for _ in range(rounds):
        set_aside(place / "html")
        environment = {**os.environ, "PATH": f"{asv.parent}:{os.environ['PATH']}"}
        theirs = timed([str(asv), "publish"], place, environment)
        ours = build(home)
        ratios.append(f"{theirs.wall_s / ours.wall_s:.0f} times in wall, {theirs.cpu_s / ours.cpu_s:.0f} in CPU time")
        print(f"  asv publish    {theirs}\n  full build     {ours}   {ratios[-1]}")


def _write_asv(home: Home, truth: Truth, place: Path) -> int:
    """A git repository of a commit a night, and asv's results of each; how many benchmarks there are."""
    stamps = truth.stamps()
    (place / "results" / "bench-1").mkdir(parents=True)
    commits = dict(zip(stamps, _commits(place / "repo", stamps), strict=True))
    values: dict[str, dict[str, float]] = {stamp: {} for stamp in stamps}
    names = []
    for experiment in truth.experiments():
        with store.open_for_reading(home.store_file, home.data(experiment), experiment) as opened:
            for one in opened.series(experiment):
                names.append(f"{experiment}.time_{one.id}_{one.metric}")
                for stamp, value in zip(one.stamps, one.values, strict=True):
                    values[stamp][names[-1]] = value / 1000
    folders = {"repo": "repo", "results_dir": "results", "html_dir": "html"}
    config = {"version": 1, "project": "tvm", "project_url": "https://example.org", "branches": ["master"], **folders,
              "environment_type": "virtualenv", "pythons": ["3.11"]}  # fmt: skip
    common.write_json(place / "asv.conf.json", config)
    described = {name: {"name": name, "code": "", "param_names": [], "params": [], "type": "time", "unit": "seconds",
                        "version": "1", "timeout": 60.0} for name in names}  # fmt: skip
    common.write_json(place / "results" / "benchmarks.json", {"version": 2, **described})
    machine = {"arch": "x86_64", "cpu": "EPYC", "machine": "bench-1", "num_cpu": "2", "os": "Linux", "ram": "16GB"}
    common.write_json(place / "results" / "bench-1" / "machine.json", {**machine, "version": 1})
    columns = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25",
               "stats_q_75", "stats_number", "stats_repeat"]  # fmt: skip
    for stamp, commit in commits.items():
        when = round(common.parse_stamp(stamp).timestamp() * 1000)
        results = {name: [[value], [], "1", when, 1.0, [value * 0.99], [value * 1.01], [value], [value], [1], [10]]
                   for name, value in values[stamp].items()}  # fmt: skip
        told = {"commit_hash": commit, "env_name": "virtualenv-py3.11", "date": when,
                "params": {**machine, "python": "3.11"}, "python": "3.11", "requirements": {}, "env_vars": {},
                "result_columns": columns, "results": results, "durations": {}, "version": 2}  # fmt: skip
        file = place / "results" / "bench-1" / f"{commit[:8]}-virtualenv-py3.11.json"
        file.write_text(json.dumps(told), encoding="utf-8")
    return len(names)


def _commits(repository: Path, stamps: list[str]) -> list[str]:
    """A commit for each night, oldest first, in a new repository."""
    repository.mkdir()
    lines = []
    for number, stamp in enumerate(stamps, start=1):
        when = f"{round(common.parse_stamp(stamp).timestamp())} +0000"
        text = f"night {stamp}"
        lines += [f"commit refs/heads/master\nmark :{number}\ncommitter a <a@b> {when}\ndata {len(text)}\n{text}"]
        lines += [f"M 644 inline file\ndata {len(stamp)}\n{stamp}"]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}

    def git(*arguments: str, given: str = "") -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=repository,
            env=environment,
            input=given,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    git("init", "-q", "-b", "master")
    git("fast-import", "--quiet", given="\n".join(lines) + "\n")
    return git("rev-list", "--reverse", "master").split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=500)
    parser.add_argument("--nights", type=int, default=1825)
    parser.add_argument("--asv", type=Path, help="asv's program; without it, it is not compared with")
    parser.add_argument("--asv-series", type=int, default=100)
    parser.add_argument("--asv-nights", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only-asv", action="store_true")
    parsed = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}, last night {LAST:%Y-%m-%d}")
    if not parsed.only_asv:
        with tempfile.TemporaryDirectory() as folder:
            publishing(Path(folder), parsed.series, parsed.nights)
    if parsed.asv:
        with tempfile.TemporaryDirectory() as folder:
            against_asv(Path(folder), parsed.asv.absolute(), parsed.asv_series, parsed.asv_nights, parsed.rounds)


if __name__ == "__main__":
    main()
