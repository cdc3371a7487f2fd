"""Trees of others: whatever lies in them is handled or named, and nothing outside of them is touched."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.strange_trees import SHAPES, plant
from tvmdash.common.files import trees
from tvmdash.common.files.trees import Bounds, Fault

NOBODY = 65534


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """What is left in it is removed here: pytest's own way ends at the depth of a thousand folders."""
    yield tmp_path
    trees.remove(tmp_path)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_tree_of_any_shape_is_removed_and_what_it_links_to_stays(tmp_path: Path, shape: str) -> None:
    (tmp_path / "beside").touch()
    (tmp_path / "tree").mkdir()
    plant(tmp_path / "tree", shape)
    (tmp_path / "tree" / "to-beside").symlink_to("../beside")
    (tmp_path / "tree" / "to-all").symlink_to("..")
    assert trees.remove(tmp_path / "tree")
    assert os.listdir(tmp_path) == ["beside"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_tree_of_any_shape_is_copied_but_for_what_is_named(tmp_path: Path, shape: str) -> None:
    (tmp_path / "tree").mkdir()
    plant(tmp_path / "tree", shape)
    (tmp_path / "tree" / "last").write_text("content")
    tree = trees.walk(tmp_path / "tree")
    assert trees.copy(tree, tmp_path / "copy") == []
    assert (tmp_path / "copy" / "last").read_text() == "content"
    again = trees.walk(tmp_path / "copy")
    assert [(entry.path, entry.target) for entry in again.entries] == [(e.path, e.target) for e in tree.entries]
    assert [file.status.st_mtime_ns for file in again.files] == [file.status.st_mtime_ns for file in tree.files]
    expected = {"deep": Fault.DEEP, "pipe": Fault.SPECIAL, "socket": Fault.SPECIAL, "device": Fault.SPECIAL}
    unless_root = {Fault.UNREADABLE} if shape == "locked" and os.getuid() else set()
    found = {problem.fault for problem in tree.problems}
    assert found in ({expected[shape]} if shape in expected else unless_root, set() if shape == "device" else None)


def test_holes_stay_holes(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    with (tmp_path / "tree" / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(1 << 34)
        file.write(b"end")
    trees.copy(trees.walk(tmp_path / "tree"), tmp_path / "copy")
    with (tmp_path / "copy" / "sparse").open("rb") as file:
        assert (file.read(5), file.seek(1 << 34), file.read()) == (b"begin", 1 << 34, b"end")
    assert (tmp_path / "copy" / "sparse").stat().st_blocks * 512 < 1 << 20


@pytest.mark.parametrize(
    ("limits", "fault", "taken"),
    [
        (Bounds(depth=0), Fault.DEEP, [{"a", "b"}]),
        (Bounds(entries=2), Fault.MANY, [{"a", "b"}, {"a", "d"}, {"b", "d"}]),  # as the file system lists them
        (Bounds(size_bytes=6), Fault.LARGE, [{"a", "b", "d", "d/e"}]),
    ],
)
def test_beyond_a_limit_the_rest_is_named(tmp_path: Path, limits: Bounds, fault: Fault, taken: list[set[str]]) -> None:
    for name, text in (("a", "123"), ("b", "12"), ("d/c", "12"), ("d/e", "1")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    tree = trees.walk(tmp_path, limits)
    assert {entry.path for entry in tree.entries} in taken
    assert {problem.fault for problem in tree.problems} == {fault}


def test_only_links_that_lead_to_something_within_stay(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    deep = folder / "/".join("d" * 500)
    deep.mkdir(parents=True)
    (folder / "file").touch()
    targets = {"in": folder / "file", "over": "in", "out": "/etc/passwd", "nowhere": "/nowhere", "loop": "loop"}
    for name, target in targets.items():
        (deep / name).symlink_to(target)
        (folder / name).symlink_to(target)
    for shape in ("chain", "up", "long"):
        plant(folder, shape)
    trees.remove_doors(folder)
    assert sorted(os.listdir(folder)) == ["chain", "d", "file", "in", "longlong" * 12 + "long", "over"]
    assert sorted(os.listdir(deep)) == ["in", "over"]
    assert os.listdir(folder / "chain") == []


def test_a_packed_tree_is_the_same_unpacked(tmp_path: Path) -> None:
    (tmp_path / "tree" / "bin").mkdir(parents=True)
    (tmp_path / "tree" / "bin" / "run").write_text("content")
    (tmp_path / "tree" / "bin" / "run").chmod(0o755)
    (tmp_path / "tree" / "run").symlink_to("bin/run")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        trees.pack(trees.walk(tmp_path / "tree"), archive, "key")
    buffer.seek(0)
    with tarfile.open(fileobj=buffer) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Debian's 3.11 has none
        archive.extractall(tmp_path)
    assert (tmp_path / "key" / "run").read_text() == "content"
    assert os.access(tmp_path / "key" / "bin" / "run", os.X_OK)


def test_a_file_that_has_become_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="Not a regular file"):
        trees.open_file(tmp_path, "pipe")


@pytest.mark.parametrize("swapped", ["outer", "outer/inner"])
def test_a_folder_that_has_become_a_link_is_not_followed(tmp_path: Path, swapped: str) -> None:
    (tmp_path / "secret" / "inner").mkdir(parents=True)
    (tmp_path / "secret" / "inner" / "file").write_text("secret")
    (tmp_path / "secret" / "file").write_text("secret")
    (tmp_path / "tree" / "outer" / "inner").mkdir(parents=True)
    (tmp_path / "tree" / "outer" / "inner" / "file").write_text("public")
    tree = trees.walk(tmp_path / "tree")
    (tmp_path / "tree" / swapped).rename(tmp_path / "moved")
    (tmp_path / "tree" / swapped).symlink_to(tmp_path / "secret")
    (problem,) = trees.copy(tree, tmp_path / "copy")
    assert (problem.path, problem.fault) == ("outer/inner/file", Fault.UNREADABLE)
    assert not (tmp_path / "copy" / "outer" / "inner" / "file").exists()


def test_what_is_shown_of_a_path_is_short_and_harmless() -> None:
    assert trees.show(os.fsdecode(b"a\xff\x1b[31m\n")) == "a\\xff\ufffd[31m\ufffd"
    assert len(trees.show("x" * 5000)) == 101


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_a_user_without_rights_of_its_own_copes_with_what_it_locked_itself(tmp_path: Path) -> None:
    """Modes keep root from nothing, so what a user's nights do must be seen as a user."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    (tmp_path / "own" / "tree").mkdir(parents=True)
    for folder in (tmp_path / "own", tmp_path / "own" / "tree"):
        os.chown(folder, NOBODY, NOBODY)
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresuid(NOBODY, NOBODY, NOBODY)
        tree = tmp_path / "own" / "tree"
        for shape in SHAPES:
            plant(tree, shape)
        named = {problem.path for problem in trees.walk(tree).problems if problem.fault is Fault.UNREADABLE}
        os._exit(0 if named == {"locked"} and trees.remove(tree) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert os.listdir(tmp_path / "own") == []
