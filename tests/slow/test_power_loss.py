"""Power cuts at random places of nights, on real filesystems: nothing lost, nothing half, the next night good."""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dashboard.archive import archive
from tests.dashboard import homes
from tests.dashboard.homes import REPO, HomeForTests
from tests.slow import logged_disk
from tests.slow.logged_disk import Cuts, LoggedDisk
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED

pytestmark = pytest.mark.slow
CUTS = int(os.environ.get("TVMDASH_CUTS", "6"))
"""How many cuts there are on each filesystem; with the real site a third of them."""
DISK_MB = {"ext4": 96, "xfs": 320, "btrfs": 192}
SITE = ("stat_alerts", "website")
NIGHTS = 3
EXPERIMENTS = ("shell", "toy")
TOY = """
import sys
from tvmdash.exp_templates import Axis, Engine, EngineFacts, Experiment, Point, Prepared
from tvmdash.trial_util import python_timer

class Toy(Experiment):
    engines = (Engine("python", facts=lambda: EngineFacts("3", tvm_hash="abc123")),)
    axes = (Axis("size", "workload_args"), Axis("threads", "runtime_config"))

    def points(self, config):
        return [Point("toy.sum", {"size": n, "threads": 1}, group=str(n), target="cpu", engine="python")
                for n in (10, 20)]

    def prepare(self, point, config, seed):
        data = list(range(point.values["size"]))
        return Prepared(timer=python_timer(lambda: sum(data)))

if __name__ == "__main__":
    sys.exit(Toy().main())
"""
GRAPHS = """
for i in 1 2 3 4 5 6 7 8; do
  yes "graph $i of $TVMDASH_NIGHT" | head -n "$((i * i * 40))" > "$3/graph$i.svg"
done
"""


@dataclass(frozen=True)
class Lived:
    """What the nights on the disk did, and when by the disk's log.

    begun: of each stage that began, its place in the log. ended: that of each night's end. data, sites: what was
    measured by experiment and stamp, and the site's files, as each night left them.
    """

    begun: dict[tuple[str, str, str], int]
    ended: dict[str, int]
    data: dict[tuple[str, str], bytes]
    sites: list[dict[str, str]]


@pytest.mark.parametrize("subsystems", [(), SITE], ids=["light", "site"])
@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs"])
def test_a_power_cut_loses_nothing_and_leaves_nothing_half(
    filesystem: str, subsystems: tuple[str, ...], tmp_path: Path
) -> None:
    disk = logged_disk.make_disk(tmp_path / "disk", filesystem, DISK_MB[filesystem])
    with disk.in_use():
        home = homes.make_home(disk.mounted / "root", disk.mounted / "artifacts")
        add_jobs(home, disk, tmp_path, subsystems)
        os.sync()
        first = disk.position()
        lived = live(home, disk)
    rng, image = random.Random(filesystem), tmp_path / "cut"
    places = sorted(rng.sample(disk.places_after(first), CUTS // 3 if subsystems else CUTS))
    phases: Counter[str] = Counter()
    cuts = Cuts(disk, rng)
    faults = []
    for place in places:
        unflushed = cuts.cut_at(place, image)
        phase = phase_at(lived, place)
        phases[phase] += 1
        begun = time.monotonic()
        with disk.after_cut(image):
            found = [*list_half(home, lived), *list_lost(home, lived, place)]
            found += list_faults_of_the_next_night(home, lived, place)
        print(f"{place} {phase} {unflushed} {time.monotonic() - begun:.1f} s {found}", flush=True)
        faults += [f"cut at {place} in {phase}, {unflushed} writes not flushed: {fault}" for fault in found]
    cuts.close()
    print(f"{filesystem}: {len(places)} cuts: {dict(phases)}; log: {disk.position() / 1e6:.1f} MB")
    assert faults == []


def add_jobs(home: HomeForTests, disk: LoggedDisk, outside: Path, subsystems: tuple[str, ...]) -> None:
    """Two experiments, a subsystem, and real ones; each stage notes where the disk's log is when it begins."""
    note = f'echo "$TVMDASH_JOB $TVMDASH_NIGHT $(stat -c %s {disk.log}) STAGE" >> {outside}/begun\n'
    shell = {stage: homes.good(stage, note.replace("STAGE", stage)) for stage in ("setup", *homes.STAGES)}
    shell["visualize"] = homes.good("visualize", note.replace("STAGE", "visualize") + GRAPHS)
    folder = home.experiment("shell", config={"rerun_setup": True}, **shell)
    homes.write(folder / "fields.json", {"needs_tvm": False})
    toy = {
        stage: f'{homes.BEGIN}{note.replace("STAGE", stage)}exec python3 toy.py {stage} "$@"\n'
        for stage in ("run", "analyze")
    }
    timing = {"number": 1, "repeat": 3, "processes": 1, "max_processes": 1}
    folder = home.experiment("toy", config=timing, **toy)
    (folder / "toy.py").write_text(TOY)
    homes.write(folder / "fields.json", {"include": ["timing"], "needs_tvm": False})
    home.subsystem("last", run=homes.good("subsystem", note.replace("STAGE", "subsystem")), config={"priority": -1})
    for name in subsystems:
        home.subsystem(name)
        (home.code / "subsystem" / name / "run.sh").unlink()
        (home.code / "subsystem" / name).rmdir()
        (home.code / "subsystem" / name).symlink_to(REPO / "subsystem" / name)


def live(home: HomeForTests, disk: LoggedDisk) -> Lived:
    ended, data, sites = {}, {}, []
    for _ in range(NIGHTS):
        home.night()
        stamp = home.stamps()[-1]
        ended[stamp] = disk.position()
        for name in EXPERIMENTS:
            data[name, stamp] = home.home.data_file(name, stamp).read_bytes()
        sites.append(hash_tree(home.home.output("website")))
        time.sleep(6)  # the filesystem writes out by itself what nobody asked it to
    begun = {}
    for line in (disk.folder.parent / "begun").read_text().splitlines():
        job, stamp, place, stage = line.split()
        begun[job, stamp, stage] = int(place)
    return Lived(begun, ended, data, sites)


def hash_tree(root: Path) -> dict[str, str]:
    """The site's files that readers see, by path."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def phase_at(lived: Lived, place: int) -> str:
    """The stage that had begun last at that place."""
    begun = [(at, stage) for (_, _, stage), at in lived.begun.items() if at <= place]
    ended = [(at, "after") for at in lived.ended.values() if at <= place]
    return max([*begun, *ended], default=(0, "before"))[1]


def list_half(home: HomeForTests, lived: Lived) -> Iterator[str]:
    """What people or programs read and is neither as it was nor as it was to be."""
    results = home.path / "results"
    for path in sorted(results.rglob("*.json")):
        if path.name.startswith(".") or any(part.startswith(".") for part in path.relative_to(results).parts):
            continue
        try:
            json.loads(path.read_bytes())
        except ValueError:
            yield f"{path.relative_to(results)} is half: {path.read_bytes()[:40]!r}"
    for (name, stamp), raw in lived.data.items():
        path = home.home.data_file(name, stamp)
        if path.exists() and path.read_bytes() != raw:
            yield f"{path.name} of {name} is not what was measured"
    graphs = home.home.graph("shell")
    stamps = set()
    for path in graphs.glob("graph[0-9].svg"):
        lines = path.read_text().splitlines()
        number = int(path.stem.removeprefix("graph"))
        if len(lines) != number * number * 40:
            yield f"{path.name} has {len(lines)} lines"
        stamps |= set(lines)
    if graphs.exists() and len(stamps) != 8:
        yield f"graphs are of {len(stamps)} kinds"
    site = hash_tree(home.home.output("website"))
    if site and site not in lived.sites:
        near = min(lived.sites, key=lambda other: len(set(other.items()) ^ set(site.items())))
        differ = sorted(set(dict(set(near.items()) ^ set(site.items()))))
        yield f"the site is none of any night: {len(differ)} differ: {differ[:3]}"


def list_lost(home: HomeForTests, lived: Lived, place: int) -> Iterator[str]:
    """What had been kept before the cut and is not there."""
    for stamp, end in lived.ended.items():
        if end > place:
            continue
        night = home.home.read_night(stamp) if home.home.night_file(stamp).exists() else None
        if night is None or night.state != COMPLETE:
            yield f"the record of {stamp}, which had ended, is {night.state if night else 'missing'}"
        for name in EXPERIMENTS:
            if not home.home.data_file(name, stamp).exists():
                yield f"what {name} measured in {stamp}, which had ended, is missing"
        try:
            archive.verify(home.root / "backup", f"{stamp}-after")
        except common.DashboardError as error:
            yield f"the archive of {stamp}: {error}"
    for (name, stamp, stage), at in lived.begun.items():
        if stage == "visualize" and at <= place and not home.home.data_file(name, stamp).exists():
            yield f"what {name} published in {stamp} is missing"


def list_faults_of_the_next_night(home: HomeForTests, lived: Lived, place: int) -> Iterator[str]:
    """What is not as it must be once another night has run."""
    done = home.run()
    if done.code != 0:
        yield f"the next night ended with {done.code}: {done.output[-1500:]}"
        return
    if "Traceback" in done.output:
        yield f"the next night: {done.output[-1500:]}"
    for (name, stamp, stage), at in lived.begun.items():
        if stage == "analyze" and at <= place and not home.home.data_file(name, stamp).exists():
            yield f"what {name} had measured in {stamp} was not saved: {home.last()['notes']}"
    for (name, stamp), raw in lived.data.items():
        path = home.home.data_file(name, stamp)
        if path.exists() and not is_alike(path.read_bytes(), raw):
            yield f"{path.name} of {name} is not what was measured"
    states = {stamp: home.home.read_night(stamp).state for stamp in home.stamps()}
    if set(states.values()) - {COMPLETE, INTERRUPTED}:
        yield f"nights are left open: {states}"
    left = [path.name for path in (home.root / "tmp").glob("2*")]
    if left:
        yield f"working folders are left: {left}"
    try:
        archive.verify(home.root / "backup")
    except common.DashboardError as error:
        yield f"the archives: {error}"
    yield from (f"{fault} after the next night" for fault in list_half_json(home))


def list_half_json(home: HomeForTests) -> Iterator[str]:
    for path in sorted((home.path / "results").rglob("*.json")):
        try:
            json.loads(path.read_bytes())
        except ValueError:
            yield f"{path} is half"


def is_alike(left: bytes, right: bytes) -> bool:
    """Whether two data files hold the same records; what was saved after a cut says so of itself."""
    values = [json.loads(raw) for raw in (left, right)]
    return all(values[0].get(field) == values[1].get(field) for field in ("records", "value"))
