"""In which order things reach the disk: contents, then names, then what relies on them. See also tests/slow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tvmdash import common
from tvmdash.common.files import sync, trees


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was written out, renamed and removed, in its order."""
    heard: list[str] = []
    fsync, replace, rename, syncfs, remove = os.fsync, os.replace, os.rename, sync.sync_filesystem, trees.remove

    def hear_fsync(descriptor: int) -> None:
        heard.append(f"fsync {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name}")
        fsync(descriptor)

    def hear_syncfs(path: Path) -> None:
        heard.append("syncfs")
        syncfs(path)

    def hear_remove(path: Path) -> bool:
        heard.append("remove")
        return remove(path)

    monkeypatch.setattr(os, "fsync", hear_fsync)
    monkeypatch.setattr(os, "replace", lambda a, b: (heard.append("rename"), replace(a, b)))
    monkeypatch.setattr(os, "rename", lambda a, b: (heard.append("rename"), rename(a, b)))
    monkeypatch.setattr(common, "_exchange", _hear_exchange(heard))
    monkeypatch.setattr(sync, "sync_filesystem", hear_syncfs)
    monkeypatch.setattr(trees, "remove", hear_remove)
    return heard


def _hear_exchange(heard: list[str]) -> object:
    exchange = common._exchange

    def hear(left: Path, right: Path) -> None:
        heard.append("exchange")
        exchange(left, right)

    return hear


def test_a_durable_files_content_is_written_out_before_its_name_and_its_name_before_the_return(
    tmp_path: Path, calls: list[str]
) -> None:
    common.write_json(tmp_path / "file.json", {})
    assert [call.partition(".file")[0] for call in calls] == ["fsync ", "rename", f"fsync {tmp_path.name}"]


def test_a_file_that_nobody_misses_costs_no_waiting_for_the_disk(tmp_path: Path, calls: list[str]) -> None:
    common.write_json(tmp_path / "file.json", {}, durable=False)
    assert calls == ["rename"]


def test_a_folder_is_swapped_in_once_it_is_on_the_disk_and_the_old_one_removed_once_the_swap_is(
    tmp_path: Path, calls: list[str]
) -> None:
    for content in ("old", "new"):
        calls.clear()
        with common.folder_beside(tmp_path / "site") as new:
            (new / "pages").mkdir()
            (new / "pages" / "index.html").write_text(content)
            name = new.name
    assert calls == ["fsync index.html", "fsync pages", f"fsync {name}", "exchange", f"fsync {tmp_path.name}", "remove"]


def test_a_folder_of_many_files_is_written_out_with_its_filesystem(tmp_path: Path, calls: list[str]) -> None:
    with common.folder_beside(tmp_path / "site") as new:
        for number in range(200):
            (new / str(number)).touch()
    assert calls == ["syncfs", "rename", f"fsync {tmp_path.name}"]


def test_links_pipes_and_files_that_nobody_may_read_do_not_stand_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0)
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    sync.sync_tree(tmp_path)


def test_a_folder_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        sync.sync_filesystem(tmp_path / "missing")
