"""TVMs that hosts get as they are at home: real workers, reached by what stands in for ssh."""

from __future__ import annotations

import io
import platform
import tarfile
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import Artifact, ArtifactError, python_tag
from dashboard.hosts.bundle import Copies
from dashboard.worker import worker
from tests.dashboard import homes, host_homes
from tests.dashboard import remeasure_homes as labs
from tests.dashboard.homes import HomeForTests
from tests.dashboard.package_index import HEALTHY
from tvmdash.errors import DashboardError

SICK_THERE = """
import os
if "/hosts/box/" in os.path.abspath(__file__):
    raise OSError("version GLIBC_2.99 not found")
"""


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    """A home whose one experiment is measured on the host box, with a TVM."""
    made = homes.make_home(tmp_path, tmp_path / "artifacts")
    made.experiment("plain", config={"hosts": ["box"]})
    return made


def put_tvm(folder: Path, before: str = "") -> Artifact:
    """A healthy TVM, but for what the code `before` does."""
    artifact = labs.put_artifact(folder, "0.27.0")
    for name, text in (
        ("tvm/__init__.py", before + HEALTHY),
        ("tvm/_version.py", "__commit_id__ = None\n"),
        ("tvm_ffi/__init__.py", '__version__ = "0.1.14"\n'),
    ):
        file = artifact.pythonpath[0] / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return artifact


def shelf_there(home: HomeForTests) -> Path:
    return host_homes.folder(home, "box") / "home" / "artifacts"


def test_a_host_measures_the_tvm_that_is_at_home_and_one_that_needs_none_gets_none(home: HomeForTests) -> None:
    artifact = put_tvm(home.root / "artifacts")
    homes.write(home.experiment("small", config={"hosts": ["desk"]}) / "fields.json", {"needs_tvm": False})
    env = host_homes.add_hosts(home, "box", "desk")
    done = home.run_with(env)
    assert done.code == 0, done.output
    assert homes.read(home.home.data_file("plain~box", home.stamps()[-1]))["night"]["artifact"]["key"] == artifact.key
    copy = shelf_there(home) / artifact.key / "artifact.json"
    assert copy.read_bytes() == (artifact.path / "artifact.json").read_bytes()
    assert not list((host_homes.folder(home, "desk") / "home" / "artifacts").glob("wheel-*"))
    first = copy.stat().st_ino
    assert home.run_with(env).code == 0
    assert copy.stat().st_ino == first, "it was there already"
    assert not list((home.root / "tmp" / "hosts").glob("tvm-*"))


def test_a_tvm_that_is_not_healthy_on_a_host_is_told_with_the_host_and_is_not_measured_there(
    home: HomeForTests,
) -> None:
    artifact = put_tvm(home.root / "artifacts", SICK_THERE)
    done = home.run_with(host_homes.add_hosts(home, "box"))
    assert done.code == 1
    (note,) = (note for note in home.last()["notes"] if note.startswith("box: "))
    assert note.startswith(
        f"box: The home's TVM {artifact.key} could not be copied to this machine, so it is obtained again: "
    )
    assert "in step import: exit status 1: OSError: version GLIBC_2.99 not found" in note
    step = home.status("plain~box", "run")
    assert step["state"] == "blocked"
    assert step["message"].startswith("box: no TVM to measure: ")
    assert not (shelf_there(home) / artifact.key).exists()


def test_only_what_was_built_for_the_hosts_python_and_machine_is_offered(tmp_path: Path) -> None:
    artifact = put_tvm(tmp_path)
    copies = Copies([artifact], tmp_path)
    ours = copies.list_for([artifact.key], python_tag(), platform.machine())
    assert ours == {artifact.key: sum(file.stat().st_size for file in artifact.path.rglob("*") if file.is_file())}
    assert not copies.list_for([artifact.key], "cp399", platform.machine())
    assert not copies.list_for([artifact.key], python_tag(), "riscv64")
    with pytest.raises(DashboardError, match=r"'\.\./x' is not one of tonight's TVM artifacts"):
        copies.pack("../x")


def test_what_there_is_no_room_for_is_not_asked_for(tmp_path: Path) -> None:
    artifact = put_tvm(tmp_path)
    assert not list(worker.list_lacking({artifact.key: 1 << 60}, tmp_path)), "it is here"
    ((key, why), (other, no_why)) = worker.list_lacking({"large": 1 << 60, "small": 1}, tmp_path)
    assert (key, other, no_why) == ("large", "small", "")
    assert "MB free, but the copy needs" in why


def test_a_copy_that_is_not_what_it_says_is_not_taken_in(tmp_path: Path) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("other"), io.BytesIO())
    with pytest.raises(ArtifactError, match="does not contain this TVM"):
        worker.take_in("wheel-1", content, tmp_path / "shelf", tmp_path / "log")
    assert not list((tmp_path / "shelf").glob("[!.]*"))
