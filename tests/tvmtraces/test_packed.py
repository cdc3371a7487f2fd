"""Databases in a night's zip, and in AMD's packages."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from tests.tvmtraces import rocpd_files
from tests.tvmtraces.traces_for_tests import files_below, write_raw
from tvmdash.errors import DashboardError
from tvmtraces import connect
from tvmtraces.sealing import seal

NIGHT = "raw_20261121T031500Z.zip"
COUNT = "SELECT count(*), sum(duration) FROM kernels"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A zip as nights write it of what could not be sealed: two raw databases and a log."""
    raw = tmp_path / "raw"
    for number in range(2):
        write_raw(raw / f"process_{number}", workload=f"network.{number}")
    (raw / "process_0" / "log.txt").write_text("words")
    folder = tmp_path / "kept" / "relax_opt"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / NIGHT, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(raw.rglob("*")):
            if path.is_file():
                packed.write(path, path.relative_to(raw))
    shutil.rmtree(raw)
    return folder / NIGHT


@pytest.mark.parametrize("how", ["itself", "its folder", "one of its files"])
def test_the_zip_of_a_night_is_read(archive: Path, how: str, tmp_path: Path) -> None:
    (first, _) = (path for path in zipfile.ZipFile(archive).namelist() if path.endswith(".db"))
    given = {"itself": archive, "its folder": tmp_path / "kept", "one of its files": archive / first}[how]
    before = files_below(tmp_path)
    with connect(given) as traces:
        assert traces.execute(COUNT).fetchone() == ((3, 170) if how == "one of its files" else (6, 340))
    assert files_below(tmp_path) == before


def test_a_zip_is_sealed(archive: Path, tmp_path: Path) -> None:
    run = seal([archive], tmp_path / "sealed")
    assert run.catalogue.source_bytes > 20_000
    with connect(run.path) as traces:
        assert traces.execute(COUNT).fetchone() == (6, 340)


def test_a_zip_that_holds_nothing_to_read_says_where_it_is(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / NIGHT, "w") as packed:
        packed.writestr("log.txt", "words")
    with pytest.raises(DashboardError, match=r"contains no database.*raw_20261121T031500Z in the same folder"):
        connect(tmp_path / NIGHT)
    write_raw(tmp_path / "process")
    with connect(tmp_path) as traces:
        assert traces.execute(COUNT).fetchone() == (3, 170), "among others it is passed over"


def test_a_database_and_its_zip_are_not_counted_twice(archive: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(archive).extractall(tmp_path / "unpacked")
    with pytest.raises(DashboardError, match=r"contains process .*, which is also in"):
        connect([archive, tmp_path / "unpacked"])
    with pytest.raises(DashboardError, match="given twice"):
        connect([archive, archive])


@pytest.mark.parametrize("damage", ["cut", "flipped", "no zip"])
def test_a_broken_zip_is_named(archive: Path, damage: str) -> None:
    content = bytearray(archive.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[200:220] = bytes(20)
    else:
        content[:] = b"no zip"
    archive.write_bytes(content)
    with (
        pytest.raises(DashboardError, match=rf"{NIGHT}.*(could not be unpacked|cannot be read)"),
        connect(archive) as traces,
    ):
        traces.execute("SELECT * FROM kernels").fetchall()


def test_what_has_no_room_is_not_unpacked(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = shutil.disk_usage(archive)._replace(free=5)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(DashboardError, match=r"has only 5 bytes free\. Free some space"):
        connect(archive)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package as `rocpd package` writes it: an index and two databases, and one beside that it does not name."""
    folder = tmp_path / "run.rpdb"
    folder.mkdir()
    for pid in (100, 200, 300):
        rows = rocpd_files.kernels(5, seed=pid, names=2)
        rocpd_files.write(folder / f"{pid}.db", rows, ["conv", "gemm"], pid=pid)
    write_index(folder, "    - 100.db\n    - 200.db")
    return folder


def write_index(folder: Path, files: str, version: str = "1.0") -> None:
    text = f"rocprofiler-sdk:\n  rocpd:\n    files:\n{files}\n    path: .\n    rocpd_package_version: '{version}'\n"
    (folder / "index.yaml").write_text(text)


@pytest.mark.parametrize("given", ["", "index.yaml"])
def test_a_package_is_what_its_index_names(package: Path, given: str) -> None:
    with connect(package / given) as traces:
        assert traces.execute("SELECT pid FROM processes ORDER BY pid").fetchall() == [(100,), (200,)]


def test_a_package_without_an_index_is_a_folder(package: Path) -> None:
    (package / "index.yaml").unlink()
    with connect(package) as traces:
        assert traces.execute("SELECT count(*) FROM processes").fetchone() == (3,)


@pytest.mark.parametrize(
    ("files", "version", "words"),
    [
        ("    - 100.db", "2.1", r"version '2\.1' of AMD's packages is not one that can be read"),
        ("    - 100.db", "", "version '' of AMD's packages"),
        ("    - ../../etc/passwd", "1.0", r"'\.\./\.\./etc/passwd' lies outside of the package"),
        ("    - /etc/passwd", "1.0", "lies outside"),
        ("    - 400.db", "1.0", "400.db"),
        ("    - [1]", "1.0", "is not a list of names"),
        ("  - {", "1.0", "not the index of a package"),
    ],
)
def test_a_package_of_another_kind_is_refused(package: Path, files: str, version: str, words: str) -> None:
    write_index(package, files, version)
    with pytest.raises(DashboardError, match=words):
        connect(package)
