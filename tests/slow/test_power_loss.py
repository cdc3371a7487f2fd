"""Power cuts at random places of nights, on real filesystems: nothing lost, nothing half, the next night good."""

from __future__ import annotations

import hashlib
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
from tests.dashboard.homes import HomeForTests
from tests.slow import every_kind, logged_disk
from tests.slow.logged_disk import Cuts, LoggedDisk
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED

pytestmark = pytest.mark.slow
CUTS = int(os.environ.get("TVMDASH_CUTS", "6"))
"""How many cuts there are on each filesystem; with the real site a third of them."""
DISK_MB = {"ext4": 96, "xfs": 320, "btrfs": 192}
SITE = ("stat_alerts", "website")
NIGHTS = 3


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
        every_kind.add_jobs(
            home, f'echo "$TVMDASH_JOB $TVMDASH_NIGHT $(stat -c %s {disk.log}) STAGE" >> {tmp_path}/begun\n'
        )
        for name in subsystems:
            every_kind.add_real(home, name)
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


def live(home: HomeForTests, disk: LoggedDisk) -> Lived:
    ended, data, sites = {}, {}, []
    for _ in range(NIGHTS):
        home.night()
        stamp = home.stamps()[-1]
        ended[stamp] = disk.position()
        for name in every_kind.EXPERIMENTS:
            data[name, stamp] = home.home.data_file(name, stamp).read_bytes()
        sites.append(hash_tree(home.home.output("website")))
        time.sleep(6)  # the filesystem writes out by itself what nobody asked it to
    begun = {}
    for line in (disk.folder.parent / "begun").read_text().splitlines():
        job, stamp, place, stage = line.split()
        begun[job, stamp, stage] = int(place)
    return Lived(begun, ended, data, sites)


def hash_tree(root: Path) -> dict[str, str]:
    """The site's files that readers see, by path; but what a night says of itself while it runs is of no night."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())
    files = (path for path in files if path != root / "live.js")
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def phase_at(lived: Lived, place: int) -> str:
    """The stage that had begun last at that place."""
    begun = [(at, stage) for (_, _, stage), at in lived.begun.items() if at <= place]
    ended = [(at, "after") for at in lived.ended.values() if at <= place]
    return max([*begun, *ended], default=(0, "before"))[1]


def list_half(home: HomeForTests, lived: Lived) -> Iterator[str]:
    """What people or programs read and is neither as it was nor as it was to be."""
    yield from every_kind.list_half_json(home)
    for (name, stamp), raw in lived.data.items():
        path = home.home.data_file(name, stamp)
        if path.exists() and path.read_bytes() != raw:
            yield f"{path.name} of {name} is not what was measured"
    graphs = home.home.graph("shell")
    yield from every_kind.list_half_graphs(graphs) if graphs.exists() else ()
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
        for name in every_kind.EXPERIMENTS:
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
        if path.exists() and not every_kind.is_alike(path.read_bytes(), raw):
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
    yield from (f"{fault} after the next night" for fault in every_kind.list_half_json(home))
