"""What a host measured travels as one archive: whole or not at all, once, and never into what is another's."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dashboard.hosts import parcels
from tests.dashboard import homes
from tvmdash.dashboard_info import COMPLETE, RUNNING, Home, JobResult, Night, StepResult
from tvmdash.errors import DashboardError

STAMP = "20261123T031500Z"
DATA = f"data/cnn~box/data_{STAMP}.json"


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
    parcel = parcels.take_in(pack(there), "box", STAMP, home, tmp_path / "tmp")
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
    parcels.take_in(pack(there), "box", STAMP, home, tmp_path / "tmp")
    before = {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()}
    again = parcels.take_in(pack(there), "box", STAMP, home, tmp_path / "tmp")
    assert (again.taken, again.kept) == ((), ())
    assert {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()} == before


def test_what_is_at_home_already_is_not_replaced_by_something_else(there: Home, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    homes.write(home.data_file("cnn~box", STAMP), {"value": 2.5})
    parcel = parcels.take_in(pack(there), "box", STAMP, home, tmp_path / "tmp")
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
        (add("data/rnn~box/data_20261122T031500Z.json"), "does not belong to the night"),
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
        parcels.take_in(file, "box", STAMP, home, tmp_path / "tmp")
    assert words in str(caught.value)
    assert "box: could not import the result archive" in str(caught.value)
    assert not home.root.exists()
    assert not any(path.is_file() for path in (tmp_path / "tmp").rglob("*"))
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("cut", [0, 100, 600, 1800])
def test_a_parcel_that_was_cut_is_refused(cut: int, there: Home, tmp_path: Path) -> None:
    file = pack(there)
    content = file.read_bytes()
    file.write_bytes(content[:cut])
    home = Home(tmp_path / "home")
    with pytest.raises(DashboardError, match="could not import the result archive"):
        parcels.take_in(file, "box", STAMP, home, tmp_path / "tmp")
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
