"""The archive of a home: nothing twice, nothing lost, nothing believed."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import inspect
import json
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dashboard.archive import objects
from dashboard.archive.archive import ArchiveResult, archive, archives, prune, restore, verify
from dashboard.archive.chain import read_manifest
from tests.dashboard.killed import in_a_child, killed_at
from tests.dashboard.strange_trees import go_down
from tvmdash.common.files import trees
from tvmdash.errors import DashboardError

Contents = dict[str, tuple[object, ...]]
DEEP = trees.Bounds(depth=2000)
SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "a home, ÄÖ"
    write(home / "config/config.json", '{"randomize": false}')
    write(home / "results/experiments/data/cnn/data_20260101T000000Z.json", '{"tvm_hash": "abc"}')
    write(home / "results/experiments/status/cnn/run.json", '{"success": true}')
    return home


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return tmp_path / "backup"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def save(home: Path, backup: Path, name: str) -> ArchiveResult:
    return archive(home, backup, name, exclude=())


def contents(folder: Path) -> Contents:
    """All below `folder`: files with content, mode and time, links with target, folders with mode."""
    found: Contents = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        where = str(path.relative_to(folder))
        if path.is_symlink():
            found[where] = ("link", os.readlink(path))
        elif path.is_dir():
            found[where] = ("folder", stat.S_IMODE(status.st_mode))
        elif path.is_file():
            found[where] = (path.read_bytes(), stat.S_IMODE(status.st_mode), status.st_mtime_ns)
    return found


def restored(backup: Path, name: str | None) -> Contents:
    with tempfile.TemporaryDirectory() as folder:
        restore(backup, name, Path(folder, "home"))
        return contents(Path(folder, "home"))


def object_files(backup: Path) -> list[Path]:
    return sorted(path for path in (backup / "objects").rglob("*") if path.is_file())


def forge(path: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Change the manifest in `path` and give it the checksum that fits."""
    value = json.loads(path.read_bytes())
    del value["checksum"]
    change(value)
    body = json.dumps(value).encode()
    path.write_bytes(b'{"checksum": "' + hashlib.sha256(body).hexdigest().encode() + b'", ' + body[1:])


def test_restore_brings_back_content_modes_times_links_and_empty_folders(home: Path, backup: Path) -> None:
    (home / "config/empty").mkdir(mode=0o750)
    (home / "config/latest").symlink_to("../results")
    (home / "config/dangling").symlink_to("/no/such/place")
    write(home / "config/private", "secret")
    (home / "config/private").chmod(0o600)
    os.utime(home / "config/private", ns=(1, 1_234_567_890_123_456_789))
    (home / "config").chmod(0o700)
    home.chmod(0o711)
    result = save(home, backup, "first")
    assert (result.new_files, result.total_files, result.skipped, result.complete) == (6, 6, (), True)
    restore(backup, None, backup.parent / "new/place")
    assert contents(backup.parent / "new/place") == contents(home)
    assert stat.S_IMODE((backup.parent / "new/place").stat().st_mode) == 0o711


def test_an_archive_of_a_restored_home_stores_nothing(home: Path, backup: Path, tmp_path: Path) -> None:
    save(home, backup, "first")
    restore(backup, "first", tmp_path / "again")
    assert save(tmp_path / "again", backup, "second").new_files == 0


def test_every_archive_stays_restorable_as_the_home_changes(home: Path, backup: Path) -> None:
    expected = {}
    for night in range(5):
        write(home / f"results/experiments/data/cnn/data_{night}.json", f"night {night}")
        write(home / "results/experiments/status/cnn/run.json", f"status {night}")
        (home / f"results/experiments/data/cnn/data_{night - 2}.json").unlink(missing_ok=True)
        save(home, backup, f"{night}-after")
        expected[f"{night}-after"] = contents(home)
    assert [info.name for info in archives(backup)] == list(expected)
    assert {name: restored(backup, name) for name in expected} == expected


def test_a_file_may_become_a_folder_and_a_link_and_back(home: Path, backup: Path) -> None:
    place = home / "config/thing"
    expected = {}
    makers: dict[str, Callable[[], None]] = {
        "file": lambda: write(place, "text"),
        "folder": lambda: write(place / "inner", "text"),
        "link": lambda: place.symlink_to("config.json"),
    }
    for name, make in makers.items():
        make()
        save(home, backup, name)
        expected[name] = contents(home)
        shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
    assert {name: restored(backup, name) for name in expected} == expected


def test_what_has_not_changed_is_not_stored_again(home: Path, backup: Path) -> None:
    for night in range(300):
        write(home / f"results/experiments/data/cnn/data_{night}.json", f"night {night}" * 50)
    save(home, backup, "first")
    before = object_files(backup)
    result = save(home, backup, "second")
    assert result.new_files == 0
    assert result.total_files == 303
    assert result.new_bytes < 500
    assert object_files(backup) == before


def test_a_touched_file_costs_a_line_and_no_content(home: Path, backup: Path) -> None:
    save(home, backup, "first")
    before = object_files(backup)
    os.utime(home / "config/config.json", ns=(5, 5))
    assert save(home, backup, "second").new_files == 1
    assert object_files(backup) == before
    assert restored(backup, "second") == contents(home)


def test_equal_contents_are_stored_once(home: Path, backup: Path) -> None:
    for name in ("a", "b", "c"):
        write(home / "config" / name, "the same")
    save(home, backup, "first")
    assert len(object_files(backup)) == 4


@pytest.mark.parametrize(
    "path",
    [
        "results/experiments/graph/cnn/plot.svg",
        "results/store.sqlite",
        "results/store.sqlite-wal",
        "config/.config.json.abc.tmp",
        "results/.site.x.new/page.html",
        "results/.site.x.old/page.html",
        "results/.night.lock",
        "home.lock",
        "results/subsystem/output/website/page.html",
    ],
)
def test_derived_files_are_not_archived(home: Path, backup: Path, path: str) -> None:
    expected = contents(home).keys()
    write(home / "results/subsystem/output/website/CACHEDIR.TAG", SIGNATURE)
    write(home / path, "derived")
    save(home, backup, "first")
    files = {where for where, what in restored(backup, None).items() if len(what) == 3}
    assert files == {where for where in expected if (home / where).is_file()}


@pytest.mark.parametrize(
    "path",
    [
        "results/experiments/data/graph/data.json",
        "config/store.sqlite",
        "config/poetry.lock",
        "config/.hidden",
        "results/notes.tmp",
        "results/experiments/graphs/x",
    ],
)
def test_what_only_looks_derived_is_archived(home: Path, backup: Path, path: str) -> None:
    write(home / path, "kept")
    save(home, backup, "first")
    assert path in restored(backup, None)


def test_a_cache_tag_counts_only_with_its_signature_and_never_for_the_whole_home(home: Path, backup: Path) -> None:
    write(home / "CACHEDIR.TAG", SIGNATURE)
    write(home / "config/CACHEDIR.TAG", "something else")
    (home / "results/CACHEDIR.TAG").symlink_to("../CACHEDIR.TAG")
    save(home, backup, "first")
    assert restored(backup, None) == contents(home)


def test_excluded_folders_and_the_backup_itself_are_left_out(home: Path) -> None:
    expected = contents(home)
    write(home / "tmp/raw.sqlite", "raw")
    backup = home / "backup"
    for name in ("first", "second"):
        archive(home, backup, name, exclude=[home / "tmp", home / "absent", home, home.parent])
    archived = restored(backup, None)
    archived.pop("backup")
    assert archived == expected


def test_a_folder_beside_the_home_is_archived_with_it_and_comes_back_inside(
    home: Path, backup: Path, tmp_path: Path
) -> None:
    shelf = tmp_path / "shelf" / "release"
    write(shelf / "site" / "tvm.py", "release")
    (shelf / "link").symlink_to("site")
    kept = {"references/release": shelf, "references/gone": tmp_path / "gone"}
    for name in ("first", "second"):
        done = archive(home, backup, name, exclude=(shelf.parent,), beside=kept)
    assert (done.new_files, done.complete, done.skipped) == (0, True, ())
    restore(backup, None, tmp_path / "new")
    assert contents(tmp_path / "new" / "references" / "release") == contents(shelf)
    assert sorted(path.name for path in (tmp_path / "new" / "references").iterdir()) == ["release"]
    verify(backup)
    again = archive(home, backup, "third", exclude=())
    restore(backup, None, tmp_path / "without")
    assert again.complete
    assert not (tmp_path / "without" / "references").exists()


def test_links_are_never_followed(home: Path, backup: Path, tmp_path: Path) -> None:
    write(tmp_path / "outside/secret", "secret")
    (home / "config/outside").symlink_to(tmp_path / "outside")
    (home / "config/round").symlink_to(".")
    save(home, backup, "first")
    assert "config/outside/secret" not in restored(backup, None)
    assert restored(backup, None)["config/round"] == ("link", ".")


@pytest.fixture
def short_stack() -> Iterator[int]:
    """How many calls deep Python may go from here: fewer than by default, so fewer folders show what recurses."""
    limit, calls = sys.getrecursionlimit(), 300
    sys.setrecursionlimit(len(inspect.stack(0)) + calls)
    yield calls
    sys.setrecursionlimit(limit)


def test_folders_in_folders_come_back_however_deep_they_are(
    home: Path, backup: Path, tmp_path: Path, short_stack: int
) -> None:
    levels = short_stack + 100
    go_down(home / "results", levels)
    go_down(home / "results", 60, "long" * 25)
    save(home, backup, "night")
    restore(backup, None, tmp_path / "restored")
    with trees.open_file(tmp_path / "restored", "results/" + "d/" * levels + "file") as file:
        assert file.read() == b"content"
    assert [entry.path for entry in trees.walk(tmp_path / "restored", DEEP).entries] == [
        entry.path for entry in trees.walk(home, DEEP).entries
    ]
    for folder in (home, tmp_path / "restored"):
        trees.remove(folder)  # pytest's own way recurses


def test_sockets_and_pipes_are_named_and_the_archive_is_complete(home: Path, backup: Path) -> None:
    os.mkfifo(home / "config/pipe")
    os.mkfifo(home / "results/CACHEDIR.TAG")
    with socket.socket(socket.AF_UNIX) as server:
        place = os.getcwd()
        os.chdir(home)
        try:
            server.bind("socket")
        finally:
            os.chdir(place)
    result = save(home, backup, "first")
    assert result.complete
    assert sorted(result.skipped) == [
        "config/pipe: is a named pipe; only files, folders and links are archived.",
        "results/CACHEDIR.TAG: is a named pipe; only files, folders and links are archived.",
        "socket: is a socket; only files, folders and links are archived.",
    ]


def test_names_of_any_bytes_come_back(home: Path, backup: Path) -> None:
    name = os.fsdecode(b'config/\xff\xfe new\nline \xf0\x9f\x98\x80 "quoted" \\')
    write(home / name, "odd")
    (home / "config/to odd").symlink_to(os.fsdecode(b"\xff\xfe"))
    save(home, backup, "first")
    save(home, backup, "second")
    assert restored(backup, None) == contents(home)


def run_unprivileged(check: Callable[[], None]) -> None:
    """Run `check` in a process without the right to read what its mode forbids; fail as it fails."""

    def unprivileged() -> None:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        check()

    assert in_a_child(unprivileged) == 0


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user reaches, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def test_unreadable_files_are_named_and_the_rest_is_kept(open_folder: Path) -> None:
    backup = open_folder / "backup"

    def check() -> None:
        home = open_folder / "home"
        write(home / "closed/inner", "unreachable")
        write(home / "secret", "unreadable")
        write(home / "plain", "kept")
        (home / "closed").chmod(0)
        (home / "secret").chmod(0)
        result = save(home, backup, "first")
        (home / "closed").chmod(0o700)
        assert not result.complete
        assert sorted(result.skipped) == [
            "closed: cannot be listed: Permission denied. It was left out of this archive.",
            "secret: cannot be read: Permission denied. It was left out of this archive.",
        ]

    run_unprivileged(check)
    assert {path for path, what in restored(backup, "first").items() if len(what) == 3} == {"plain"}
    assert [(info.complete, len(info.skipped)) for info in archives(backup)] == [(False, 2)]


def test_a_file_that_grows_while_it_is_read_is_stored_as_read_and_taken_again(
    home: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = home / "config/growing"
    write(growing, "before")
    read = objects._read

    def read_and_grow(source: object) -> bytes:
        piece = read(source)  # type: ignore[arg-type]
        if piece == b"before":
            write(growing, "before and after")
        return piece

    with monkeypatch.context() as patch:
        patch.setattr(objects, "_read", read_and_grow)
        save(home, backup, "first")
    verify(backup)
    assert restored(backup, "first")["config/growing"][0] == b"before and after"
    assert save(home, backup, "second").new_files == 1
    assert restored(backup, "second") == contents(home)


def test_large_files_pass_in_pieces(home: Path, backup: Path) -> None:
    with (home / "config/large").open("wb") as file:
        file.truncate(100 << 20)
        file.seek(50 << 20)
        file.write(os.urandom(1 << 20))

    def with_little_memory() -> None:
        status = Path("/proc/self/statm").read_text().split()
        limit = int(status[0]) * resource.getpagesize() + (30 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        save(home, backup, "first")
        restore(backup, "first", backup / "restored")

    assert in_a_child(with_little_memory) == 0
    assert contents(backup / "restored") == contents(home)


def test_a_name_is_used_once_and_cannot_lead_elsewhere(home: Path, backup: Path) -> None:
    for night in range(4):
        save(home, backup, f"{night}-after")
    prune(backup, 1)
    for name in ("3-after", "1-after", "base", "../x", "", "a/b", ".x"):
        with pytest.raises(DashboardError):
            save(home, backup, name)
    assert [info.name for info in archives(backup)] == ["3-after"]


def test_a_missing_home_or_backup_is_an_error_and_makes_no_archive(home: Path, backup: Path) -> None:
    with pytest.raises(DashboardError, match="no such home"):
        save(home / "absent", backup, "first")
    with pytest.raises(DashboardError, match="no archive found"):
        verify(backup)
    with pytest.raises(DashboardError, match="no archive found"):
        restore(backup, None, backup / "x")
    with pytest.raises(DashboardError, match="no archive found"):
        archives(backup)
    assert not backup.exists()


def test_restore_refuses_a_place_that_holds_something(home: Path, backup: Path, tmp_path: Path) -> None:
    save(home, backup, "first")
    write(tmp_path / "full/file", "mine")
    (tmp_path / "empty").mkdir()
    for target in (tmp_path / "full", tmp_path / "full/file"):
        with pytest.raises(DashboardError, match="not an empty folder"):
            restore(backup, "first", target)
    with pytest.raises(DashboardError, match=r"no such archive. The newest are: first"):
        restore(backup, "second", tmp_path / "new")
    restore(backup, "first", tmp_path / "empty")
    assert contents(tmp_path / "empty") == contents(home)
    assert (tmp_path / "full/file").read_text() == "mine"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-3]), "damaged|expected size"),
        (lambda path: path.write_bytes(path.read_bytes() + b"x"), "damaged"),
        (lambda path: path.write_bytes(b""), "damaged"),
        (lambda path: path.unlink(), "missing"),
        (lambda path: path.write_bytes(zlib.compress(b'{"randomize": FALSE}')), "does not match the hash"),
        (lambda path: path.write_bytes(zlib.compress(bytes(99 << 20))), "expected size"),
    ],
)
def test_a_broken_content_is_named_and_not_restored_and_the_next_archive_heals_it(
    home: Path, backup: Path, damage: Callable[[Path], None], words: str
) -> None:
    save(home, backup, "first")
    sha256 = hashlib.sha256((home / "config/config.json").read_bytes()).hexdigest()
    place = backup / "objects" / sha256[:2] / sha256
    damage(place)
    with pytest.raises(DashboardError, match=rf"config/config.json: .*{sha256}.*({words})"):
        verify(backup)
    with pytest.raises(DashboardError, match=sha256):
        restore(backup, "first", backup / "target")
    assert [path.name for path in backup.iterdir()].count("target") == 0
    assert not list(backup.glob(".target*"))
    place.unlink(missing_ok=True)
    save(home, backup, "second")
    verify(backup)
    assert restored(backup, "first") == contents(home)


def test_a_changed_file_of_known_but_damaged_content_is_stored_anew(home: Path, backup: Path) -> None:
    save(home, backup, "first")
    for path in object_files(backup):
        path.write_bytes(b"rot")
    for path in home.rglob("*.json"):
        os.utime(path, ns=(7, 7))
    save(home, backup, "second")
    verify(backup)


@pytest.mark.parametrize("name", ["parent", "parent_identity", "identity"])
def test_a_manifest_whose_parent_is_no_name_is_broken(home: Path, backup: Path, name: str) -> None:
    for night in range(2):
        write(home / "config/config.json", f"night {night}")
        save(home, backup, f"{night}-after")
    forge(backup / "archives/1-after.json", lambda value: value.update({name: ["0-after"]}))
    assert [(info.name, bool(info.broken)) for info in archives(backup)] == [("0-after", False), ("1-after", True)]


def test_a_broken_manifest_breaks_what_follows_and_nothing_before(home: Path, backup: Path) -> None:
    expected = {}
    for night in range(4):
        write(home / "config/config.json", f"night {night}")
        save(home, backup, f"{night}-after")
        expected[f"{night}-after"] = contents(home)
    place = backup / "archives/2-after.json"
    for damaged in (place.read_bytes().replace(b"complete", b"Complete"), b"", b"[]", b'{"checksum": "', None):
        place.write_bytes(damaged) if damaged is not None else place.unlink()
        for ask in (
            lambda: verify(backup),
            lambda: save(home, backup, "4-after"),
            lambda: prune(backup, 1),
            lambda: restore(backup, None, backup / "x"),
            lambda: restore(backup, "3-after", backup / "x"),
        ):
            with pytest.raises(DashboardError, match=r"(2|3)-after"):
                ask()
        verify(backup, "1-after")
        assert restored(backup, "1-after") == expected["1-after"]
        assert [info.name for info in archives(backup) if not info.broken] == ["0-after", "1-after"]


def test_a_manifest_put_in_another_ones_place_is_noticed(home: Path, backup: Path) -> None:
    for night in range(3):
        write(home / "config/config.json", f"night {night}")
        save(home, backup, f"{night}-after")
    shutil.copy(backup / "archives/1-after.json", backup / "archives/2-after.json")
    with pytest.raises(DashboardError, match=r"2-after cannot be restored: .*written as another file"):
        verify(backup)
    forge(backup / "archives/1-after.json", lambda value: value.update(removed=["config/config.json"]))
    (backup / "archives/2-after.json").unlink()
    verify(backup)
    save(home, backup, "3-after")
    forge(backup / "archives/1-after.json", lambda value: value.update(removed=[]))
    with pytest.raises(DashboardError, match="3-after cannot be restored: its parent, 1-after"):
        verify(backup)


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "a//b", "", "..", "a/", "./a", "a\0b", "\ud800"])
def test_paths_that_lead_out_of_the_home_are_refused(home: Path, backup: Path, path: str) -> None:
    save(home, backup, "first")

    def add(value: dict[str, object]) -> None:
        entries = value["entries"]
        assert isinstance(entries, dict)
        entries[path] = entries["config/config.json"]

    forge(backup / "archives/base.json", add)
    with pytest.raises(DashboardError, match=r"base.json: not a manifest"):
        restore(backup, None, backup / "target")


@pytest.mark.parametrize("link_first", [True, False])
def test_no_archived_link_leads_a_file_out_of_the_home(home: Path, backup: Path, *, link_first: bool) -> None:
    save(home, backup, "first")
    (backup / "outside").mkdir()

    def add(value: dict[str, object]) -> None:
        entries = value["entries"]
        assert isinstance(entries, dict)
        evil = {"x": {"link": str(backup / "outside")}, "x/file": entries["config/config.json"]}
        value["entries"] = {**evil, **entries} if link_first else {**entries, **dict(reversed(evil.items()))}

    forge(backup / "archives/base.json", add)
    with pytest.raises(DashboardError):
        restore(backup, None, backup / "target")
    assert not list((backup / "outside").iterdir())
    assert not (backup / "target").exists()


@pytest.mark.parametrize(
    "entry",
    [
        {"sha256": "../../../etc/passwd", "size_bytes": 1, "mode": 1, "mtime_ns": 1},
        {"sha256": "a" * 64, "size_bytes": -1, "mode": 1, "mtime_ns": 1},
        {"sha256": "a" * 64, "size_bytes": 1, "mode": 1 << 20, "mtime_ns": 1},
        {"sha256": "a" * 64, "size_bytes": 1, "mode": 1, "mtime_ns": 1 << 70},
        {"sha256": "a" * 64, "size_bytes": True, "mode": 1, "mtime_ns": 1},
        {"folder_mode": "x"},
        {"link": 7},
        {},
        [],
        None,
    ],
)
def test_entries_that_make_no_sense_are_refused(home: Path, backup: Path, entry: object) -> None:
    save(home, backup, "first")
    forge(backup / "archives/base.json", lambda value: value.update(entries={"x": entry}))
    with pytest.raises(DashboardError, match=r"base.json: not a manifest"):
        verify(backup)


def test_prune_waits_for_a_quarter_more_and_then_keeps_the_newest(home: Path, backup: Path) -> None:
    expected = {}
    for night in range(10):
        write(home / "config/config.json", f"night {night}")
        save(home, backup, f"{night}-after")
        expected[f"{night}-after"] = contents(home)
    assert prune(backup, 8) == ()
    assert len(archives(backup)) == 10
    assert prune(backup, 4) == tuple(f"{night}-after" for night in range(6))
    assert [info.name for info in archives(backup)] == [f"{night}-after" for night in range(6, 10)]
    assert {info.name: restored(backup, info.name) for info in archives(backup)} == dict(list(expected.items())[6:])
    save(home, backup, "10-after")
    verify(backup)
    with pytest.raises(DashboardError, match="Keep 1 or more"):
        prune(backup, 0)


def test_prune_removes_the_contents_that_no_archive_names(home: Path, backup: Path) -> None:
    for night in range(5):
        write(home / "config/config.json", f"night {night}")
        save(home, backup, f"{night}-after")
    assert len(object_files(backup)) == 7
    prune(backup, 2)
    assert len(object_files(backup)) == 4
    verify(backup)


def test_killed_before_any_step_every_archive_stays_restorable(home: Path, backup: Path, tmp_path: Path) -> None:
    """Each step of an archive and of a prune that changes the backup is where a run is killed once."""
    expected = {}
    for night in range(5):
        write(home / "config/config.json", f"night {night}")
        save(home, backup, f"{night}-after")
        expected[f"{night}-after"] = contents(home)
    write(home / "config/config.json", "night 5")
    write(home / "config/another", "another")
    expected["5-after"] = contents(home)
    kept = (*files_of(expected["4-after"]).values(), *files_of(expected["5-after"]).values())
    named = {hashlib.sha256(content).hexdigest() for content in kept}

    def work(at: Path) -> None:
        save(home, at, "5-after")
        prune(at, 2)

    for step in range(1000):
        copy = tmp_path / f"copy-{step}"
        shutil.copytree(backup, copy)
        code = in_a_child(functools.partial(killed_at, step, copy, functools.partial(work, copy)))
        verify(copy)
        standing = [info.name for info in archives(copy)]
        assert len(standing) >= 2
        assert standing == list(expected)[list(expected).index(standing[0]) :][: len(standing)]
        assert standing[-1] in ("4-after", "5-after")
        assert {name: restored(copy, name) for name in standing} == {name: expected[name] for name in standing}
        if "5-after" not in standing:
            save(home, copy, "5-after")
        prune(copy, 2)
        verify(copy)
        assert restored(copy, None) == expected["5-after"]
        assert [info.name for info in archives(copy)] == ["4-after", "5-after"]
        assert sorted(path.name for path in (copy / "archives").glob("*")) == [".lock", "5-after.json", "base.json"]
        assert {path.name for path in object_files(copy)} == named
        shutil.rmtree(copy)
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert step > 20


def test_what_a_killed_restore_left_is_removed_by_the_next_to_the_same_place(
    home: Path, backup: Path, tmp_path: Path
) -> None:
    save(home, backup, "first")
    parent = tmp_path / "restored"
    parent.mkdir()
    work = functools.partial(restore, backup, "first", parent / "again")
    assert in_a_child(functools.partial(killed_at, 4, parent, work)) == -signal.SIGKILL
    assert [path.suffix for path in parent.iterdir()] == [".new"]
    work()
    assert [path.name for path in parent.iterdir()] == ["again"]


def test_two_processes_do_not_write_one_backup_at_once(home: Path, backup: Path) -> None:
    save(home, backup, "first")
    with (backup / "archives/.lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(DashboardError, match="another process"):
            save(home, backup, "second")
        verify(backup)
    save(home, backup, "second")


def test_what_cannot_be_written_leaves_the_former_archives_and_nothing_else(home: Path, backup: Path) -> None:
    save(home, backup, "first")
    before = contents(backup)
    (home / "config/large").write_bytes(os.urandom(200_000))
    write(home / "config/small", "small")

    def with_short_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        with pytest.raises(DashboardError, match="Earlier archives are intact"):
            save(home, backup, "second")

    assert in_a_child(with_short_files) == 0
    assert files_of(contents(backup)) == files_of(before)
    verify(backup)


def files_of(found: Contents) -> dict[str, bytes]:
    return {path: what[0] for path, what in found.items() if isinstance(what[0], bytes)}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk needs the right to mount one: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.parametrize("size_bytes", [100_000, 2_000_000])
def test_a_full_disk_is_said_and_leaves_the_former_archives(home: Path, small_disk: Path, size_bytes: int) -> None:
    backup = small_disk / "backup"
    save(home, backup, "first")
    expected, before = contents(home), contents(backup)
    for index in range(6):
        (home / f"config/large {index}").write_bytes(os.urandom(size_bytes))
    with pytest.raises(DashboardError, match="the disk is full"):
        save(home, backup, "second")
    assert files_of(contents(backup)) == files_of(before)
    verify(backup)
    assert restored(backup, None) == expected


def test_a_manifest_is_read_back_as_it_was_written(home: Path, backup: Path) -> None:
    save(home, backup, "first")
    base = read_manifest(backup / "archives/base.json")
    value = json.loads((backup / "archives/base.json").read_text())
    assert value["name"] == base.name == "first"
    assert value["entries"]["config/config.json"].keys() == {"sha256", "size_bytes", "mode", "mtime_ns"}
    assert value["checksum"] == base.identity


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_among_the_contents_is_told_and_not_waited_for(
    home: Path, backup: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    save(home, backup, "20260101T000000Z-after")
    content = object_files(backup)[0]
    content.unlink()
    make(content)
    with pytest.raises(DashboardError, match=f"{content.name}: this stored file cannot be read"):
        verify(backup)
    with pytest.raises(DashboardError, match=f"{content.name}: this stored file cannot be read"):
        restore(backup, None, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_pipe_in_place_of_a_manifest_is_told_and_not_waited_for(home: Path, backup: Path) -> None:
    save(home, backup, "20260101T000000Z-after")
    pipe = backup / "archives" / "20260102T000000Z-after.json"
    os.mkfifo(pipe)
    with pytest.raises(DashboardError, match="cannot be read: not a regular file"):
        read_manifest(pipe)
    with pytest.raises(DashboardError, match="Archives up to 20260101T000000Z-after can still be restored"):
        save(home, backup, "20260103T000000Z-after")
