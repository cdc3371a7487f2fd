"""What a host measured travels as one archive: whole or not at all, once, and never into what is another's."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from dashboard.hosts import parcels
from dashboard.hosts.parcels import AskedOfHost
from tests import fuzzing
from tests.dashboard import homes
from tests.fuzzing import the_same_each_time
from tvmdash import common, records
from tvmdash.dashboard_info import COMPLETE, RUNNING, Home, JobResult, Night, StepResult
from tvmdash.errors import DashboardError

STAMP = "20261123T031500Z"
DATA = f"data/cnn~box/data_{STAMP}.json"
ASKED = AskedOfHost("box", STAMP, ("cnn~box", "rnn~box"))


@pytest.fixture
def there(tmp_path: Path) -> Home:
    """The home of the host, after a night."""
    home = Home(tmp_path / "there")
    write_night(home, STAMP, 1.5)
    return home


def write_night(home: Home, stamp: str, value: float) -> None:
    steps = (StepResult("run", "ok", "done", stamp), StepResult("analyze", "ok", "done", stamp))
    night = Night(stamp, COMPLETE, jobs=(JobResult("experiment", "cnn~box", "box: cnn", "", steps),))
    homes.write(home.night_file(stamp), night.to_json())
    homes.write(home.data_file("cnn~box", stamp), {"value": value, "timestamp": stamp, "tvm_hash": "x"})
    homes.write(home.root / "results/experiments/telemetry/cnn~box" / f"telemetry_{stamp}.json", {})
    home.status("experiment", "cnn~box").mkdir(parents=True, exist_ok=True)
    (home.status("experiment", "cnn~box") / "run.log").write_text("what it printed\n")
    raw = home.root / "tmp/raw/cnn~box" / f"raw_{stamp}"
    raw.mkdir(parents=True)
    (raw / "samples.parquet").write_bytes(b"\0raw\xff")
    raw.with_name(f"raw_{stamp}.zip").write_bytes(b"zip")


def pack(home: Home, stamp: str = STAMP) -> Path:
    file = home.root / f"{stamp}.tar"
    name = parcels.pack(home, home.root / "tmp", stamp, file)
    return file.rename(home.root / f"{name}.tar")


def test_all_that_a_night_left_comes_home_byte_for_byte(there: Home, tmp_path: Path) -> None:
    write_night(there, "20261122T031500Z", 7.0)
    home = Home(tmp_path / "home")
    parcel = parcels.take_in(pack(there), ASKED, home, tmp_path / "tmp")
    assert (parcel.night.stamp, parcel.taken, parcel.kept) == (STAMP, ("cnn~box",), ())
    for name in (f"results/experiments/data/cnn~box/data_{STAMP}.json",):
        assert (home.root / name).read_bytes() == (there.root / name).read_bytes()
    assert (tmp_path / "tmp/raw/cnn~box" / f"raw_{STAMP}" / "samples.parquet").read_bytes() == b"\0raw\xff"
    assert (tmp_path / "tmp/raw/cnn~box" / f"raw_{STAMP}.zip").read_bytes() == b"zip"
    assert parcel.log("cnn~box", "run").read_text() == "what it printed\n"
    assert (home.root / "results/hosts/box/nights" / f"{STAMP}.json").read_bytes() == there.night_file(
        STAMP
    ).read_bytes()
    assert not list(home.root.rglob("*20261122*"))


def test_a_parcel_that_comes_twice_changes_nothing(there: Home, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    parcels.take_in(pack(there), ASKED, home, tmp_path / "tmp")
    before = {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()}
    again = parcels.take_in(pack(there), ASKED, home, tmp_path / "tmp")
    assert (again.taken, again.kept) == ((), ())
    assert {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()} == before


def test_what_is_at_home_already_is_not_replaced_by_something_else(there: Home, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    homes.write(home.data_file("cnn~box", STAMP), {"value": 2.5})
    parcel = parcels.take_in(pack(there), ASKED, home, tmp_path / "tmp")
    assert (parcel.taken, parcel.kept) == ((), ("cnn~box",))
    assert homes.read(home.data_file("cnn~box", STAMP)) == {"value": 2.5}


def add(name: str, content: bytes = b"{}", kind: bytes = tarfile.REGTYPE) -> Callable[[tarfile.TarFile], None]:
    def act(archive: tarfile.TarFile) -> None:
        member = tarfile.TarInfo(name)
        member.type, member.size, member.linkname = kind, len(content), "/etc/passwd"
        archive.addfile(member, io.BytesIO(content))

    return act


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (add("../../evil"), "it contains an unexpected entry, '../../evil'."),
        (add("/etc/evil"), "it contains an unexpected entry, '/etc/evil'."),
        (add(f"data/cnn/data_{STAMP}.json"), "it contains an unexpected entry, "),
        (add(f"data/cnn~other/data_{STAMP}.json"), "it contains an unexpected entry, "),
        (add(f"data/cnn~box/../data_{STAMP}.json"), "it contains an unexpected entry, "),
        (add("raw/cnn~box/raw/../../../../evil"), "it contains an unexpected entry, "),
        (add("status/cnn~box/.hidden"), "it contains an unexpected entry, "),
        (add("config/config.json"), "it contains an unexpected entry, "),
        (add("data/cnn~box/link", kind=tarfile.SYMTYPE, content=b""), "it contains an unexpected entry, "),
        (add("data/cnn~box/device", kind=tarfile.CHRTYPE, content=b""), "it contains an unexpected entry, "),
        (add("data/cnn~box/link", kind=tarfile.GNUTYPE_SPARSE, content=b""), "it contains an unexpected entry, "),
        (add("data/cnn~box/link", kind=tarfile.CONTTYPE, content=b""), "it contains an unexpected entry, "),
        (add("data/rnn~box/data_20261122T031500Z.json"), "it contains an unexpected entry, "),
        (add(f"data/unplanned~box/data_{STAMP}.json"), "it contains an unexpected entry, "),
        (add("telemetry/cnn~box/telemetry_20261122T031500Z.json"), "it contains an unexpected entry, "),
        (add("status/cnn~box/evil.log"), "it contains an unexpected entry, "),
        (add("raw/cnn~box/raw_20261122T031500Z/samples.parquet"), "it contains an unexpected entry, "),
        (add(f"raw/cnn~box/raw_{STAMP}"), "it contains an unexpected entry, "),
        (add(f"raw/cnn~box/raw_{STAMP}/{'d/' * 1000}x"), "it contains an unexpected entry, "),
        (add("machine.json", bytes(2 << 20)), "more than 1048576"),
        (add("machine.json", b"[]"), "machine.json"),
        (add(f"telemetry/rnn~box/telemetry_{STAMP}.json", b"[" * 100_000), "nested more than 100 levels deep"),
        (add(f"data/rnn~box/data_{STAMP}.json", b"{"), "not JSON"),
        (add(f"data/rnn~box/data_{STAMP}.json", b'{"value": NaN}'), "NaN"),
        (add("night.json", b"[]"), "could not import the result archive"),
    ],
)
def test_what_no_host_sends_is_refused_and_nothing_of_the_parcel_is_taken(
    act: Callable[[tarfile.TarFile], None], words: str, there: Home, tmp_path: Path
) -> None:
    file = pack(there)
    with tarfile.open(file, "a") as archive:
        act(archive)
    home = Home(tmp_path / "home")
    with pytest.raises(DashboardError) as caught:
        parcels.take_in(file, ASKED, home, tmp_path / "tmp")
    assert words in str(caught.value)
    assert "box: could not import the result archive" in str(caught.value)
    assert not home.root.exists()
    assert not any(path.is_file() for path in (tmp_path / "tmp").rglob("*"))
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stamp": "20261122T031500Z"}, "belongs to the night '20261122T031500Z', not "),
        ({"jobs": ({"name": "unplanned~box"},)}, "this home did not ask for 'unplanned~box'"),
        ({"jobs": ({"kind": "subsystem"},)}, "this home did not ask for "),
        ({"jobs": ({"steps": ({"state": "great"},)},)}, "has an invalid state, time or count"),
        ({"jobs": ({"steps": ({"elapsed_s": -1.0},)},)}, "has an invalid state, time or count"),
        ({"jobs": ({"steps": ({"elapsed_s": 1e999},)},)}, "Infinity is not valid JSON"),
        ({"jobs": ({"steps": ({"failed_points": -1},)},)}, "has an invalid state, time or count"),
        ({"jobs": ({"steps": ({"stamp": "tomorrow"},)},)}, "has an invalid state, time or count"),
    ],
)
def test_a_record_of_a_night_that_no_host_leaves_is_refused(
    change: dict[str, Any], words: str, there: Home, tmp_path: Path
) -> None:
    path = there.night_file(STAMP)
    path.write_text(json.dumps(overlay(homes.read(path), change)))
    file = there.root / "parcel.tar"
    with tarfile.open(file, "w") as archive:
        archive.add(path, "night.json")
    home = Home(tmp_path / "home")
    with pytest.raises(DashboardError) as caught:
        parcels.take_in(file, ASKED, home, tmp_path / "tmp")
    assert words in str(caught.value)
    assert not home.root.exists()


def overlay(value: Any, change: Any) -> Any:
    """The value with what `change` says of parts of it."""
    if isinstance(change, dict):
        return {**value, **{name: overlay(value.get(name), part) for name, part in change.items()}}
    if isinstance(change, tuple):
        return [overlay(item, part) for item, part in zip(value, change, strict=False)]
    return change


def test_a_night_that_the_home_did_not_ask_for_is_refused(there: Home, tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match=f"this home did not ask this host for the night {STAMP}"):
        parcels.take_in(pack(there), AskedOfHost("box", STAMP, ()), Home(tmp_path / "home"), tmp_path / "tmp")


@given(fuzzing.cases(lambda chance: chance))
@the_same_each_time(30, 1500)
def test_any_archive_is_taken_in_or_refused(tmp_path_factory: pytest.TempPathFactory, chance: random.Random) -> None:
    folder = tmp_path_factory.mktemp("any")
    there, home = Home(folder / "there"), Home(folder / "home")
    write_night(there, STAMP, 1.5)
    for path in (there.night_file(STAMP), there.data_file("cnn~box", STAMP)):
        path.write_bytes(fuzzing.make_file(chance, homes.read(path)) if chance.random() < 0.5 else path.read_bytes())
    file = folder / "parcel.tar"
    pack_unread(there, file)
    if chance.random() < 0.7:
        file.write_bytes(damage_headers(chance, file.read_bytes()))
    with contextlib.suppress(DashboardError):
        parcels.take_in(file, ASKED, home, folder / "tmp")
    for path in home.root.rglob("data_*.json"):
        records.check_data(common.read_json(path))
    assert {path.parent.name for path in home.root.rglob("data_*")} <= set(ASKED.jobs)
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 10 * file.stat().st_size + 100_000
    shutil.rmtree(folder)


def pack_unread(home: Home, file: Path, stamp: str = STAMP) -> None:
    """As `parcels.pack` does, whatever the record says."""
    results, raw = home.root / "results", home.root / "tmp"
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(home.night_file(stamp), "night.json")
        archive.add(home.data_file("cnn~box", stamp), f"data/cnn~box/data_{stamp}.json")
        telemetry, captured = f"experiments/telemetry/*/telemetry_{stamp}.json", f"raw/*/raw_{stamp}/*"
        for path in sorted([*results.glob(telemetry), *raw.glob(captured)]):
            below = path.relative_to(raw if path.is_relative_to(raw) else results / "experiments")
            archive.add(path, below.as_posix())


def damage_headers(chance: random.Random, raw: bytes) -> bytes:
    """The archive with other types, sizes, names and headers, mostly with a checksum that is right again."""
    blocks = [raw[at : at + 512] for at in range(0, len(raw), 512)]
    for at in [at for at, block in enumerate(blocks) if block[257:262] == b"ustar"]:
        if chance.random() < 0.3:
            block = bytearray(blocks[at])
            how = chance.choice(("type", "size", "name", "bits"))
            if how == "type":
                block[156] = chance.choice(b"01234567SLKxgVDMN\0A")
            elif how == "size":
                block[124:136] = chance.choice(
                    (b"77777777777\0", b"\xff" * 12, b"\x80" + b"\xff" * 11, b"-0000000005\0", b"            ")
                )
            elif how == "name":
                block[: len(b"../../x\0")] = b"../../x\0"
            else:
                block[chance.randrange(512)] ^= 1 << chance.randrange(8)
            if chance.random() < 0.8:
                block[148:156] = b" " * 8
                block[148:156] = b"%06o\0 " % sum(block)
            blocks[at] = bytes(block)
    whole = b"".join(blocks)
    return fuzzing.damage(chance, whole) if chance.random() < 0.2 else whole


@pytest.mark.parametrize("cut", [0, 100, 600, 1800])
def test_a_parcel_that_was_cut_is_refused(cut: int, there: Home, tmp_path: Path) -> None:
    file = pack(there)
    content = file.read_bytes()
    file.write_bytes(content[:cut])
    home = Home(tmp_path / "home")
    with pytest.raises(DashboardError, match="could not import the result archive"):
        parcels.take_in(file, ASKED, home, tmp_path / "tmp")
    assert not home.root.exists()


def test_what_was_not_acknowledged_is_offered_again_the_oldest_first(there: Home, tmp_path: Path) -> None:
    acknowledged = tmp_path / "acknowledged"
    acknowledged.mkdir()
    for day in ("20261120", "20261121", "20261122"):
        write_night(there, f"{day}T031500Z", 1.0)
    (acknowledged / "20261121T031500Z").touch()
    homes.write(there.night_file("20261124T031500Z"), Night("20261124T031500Z", RUNNING).to_json())
    stamps = parcels.list_unacknowledged(there, acknowledged)
    assert stamps == ["20261120T031500Z", "20261122T031500Z", STAMP]


def test_the_same_night_is_packed_under_the_same_id(there: Home) -> None:
    assert pack(there).name == pack(there).name


def test_a_parcel_is_a_plain_tar_archive(there: Home) -> None:
    with tarfile.open(pack(there)) as archive:
        names = archive.getnames()
        data = archive.extractfile(DATA)
        assert data is not None
        assert json.load(data)["value"] == 1.5
    assert set(names) == {
        "night.json", DATA, f"telemetry/cnn~box/telemetry_{STAMP}.json", "status/cnn~box/run.log",
        f"raw/cnn~box/raw_{STAMP}/samples.parquet", f"raw/cnn~box/raw_{STAMP}.zip",
    }  # fmt: skip
