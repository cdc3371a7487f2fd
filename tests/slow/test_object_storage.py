"""A backup's copy in object storage, against a server of the S3 protocol: what is cut, refused, lost, and back again.

What that needs is installed into a folder of .test-cache, once for each of its pins: botocore's bounds do not fit the
environment of the tests (python-dateutil), though it runs in it.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dashboard.archive import archive
from dashboard.archive import remote as remote_module
from dashboard.archive.remote import RemoteBackup, pulled
from dashboard.upkeep import drill
from tests.dashboard.homes import HomeForTests, good, make_home, write
from tests.object_storage.server import BUCKET, ObjectStorage, object_storage
from tvmdash.common import structured
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

pytestmark = pytest.mark.slow
REPO = Path(__file__).resolve().parents[2]
PINS = (REPO / "requirements-s3.txt", REPO / "tests" / "object_storage" / "requirements.txt")
URL = f"s3://{BUCKET}/bench/home"


@pytest.fixture(scope="module")
def packages() -> Iterator[Path]:
    """The folder with s3fs and the server, which this process and those that it starts import."""
    key = hashlib.sha256(b"".join(path.read_bytes() for path in PINS)).hexdigest()[:12]
    cache = Path(os.environ.get("TVMDASH_TEST_CACHE") or REPO / ".test-cache")
    folder = cache / f"object-storage-{sys.version_info.minor}-{key}"
    if not (folder / ".complete").exists():
        names = [word for path in PINS for word in ("-r", str(path))]
        argv = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target", str(folder), *names]
        subprocess.run(argv, check=True, timeout=600)
        (folder / ".complete").touch()
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        patched.setenv("PYTHONPATH", os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(folder)))))
        yield folder


@pytest.fixture(scope="module")
def server(packages: Path) -> Iterator[ObjectStorage]:
    assert packages.is_dir()
    with object_storage() as started:
        yield started


@pytest.fixture
def storage(server: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> ObjectStorage:
    for key in server.list_keys():
        server.delete(key)
    for name, value in server.env.items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    root = tmp_path / "home"
    (root / "config").mkdir(parents=True)
    (root / "config" / "config.json").write_text("{}")
    (root / "a").write_text("first")
    return root


def add(home: Path, name: str, **files: str) -> Path:
    """Another archive, after these files changed."""
    for file, text in files.items():
        (home / file).write_text(text)
    backup = home.parent / "backup"
    archive.archive(home, backup, name, exclude=())
    return backup


def restored(target: Path, name: str | None = None) -> dict[str, str]:
    with pulled(URL) as folder:
        archive.restore(folder, name, target)
    return {path.name: path.read_text() for path in target.rglob("*") if path.is_file()}


def test_every_archive_can_be_restored_and_verified_from_there(
    home: Path, storage: ObjectStorage, tmp_path: Path
) -> None:
    remote = RemoteBackup(URL)
    remote.push(add(home, "one"))
    backup = add(home, "two", a="second", b="new")
    pushed = remote.push(backup)
    assert (pushed.files, pushed.removed) == (3, 0)
    assert remote.push(backup).files == 0
    assert restored(tmp_path / "first", "one") == {"config.json": "{}", "a": "first"}
    assert restored(tmp_path / "second") == {"config.json": "{}", "a": "second", "b": "new"}
    with pulled(URL) as folder:
        archive.verify(folder)


def test_what_was_squashed_is_removed_there_too(home: Path, storage: ObjectStorage, tmp_path: Path) -> None:
    remote = RemoteBackup(URL)
    for at in range(6):
        remote.push(add(home, f"n{at}", a=f"content {at}"))
    before = len(storage.list_keys())
    backup = home.parent / "backup"
    assert archive.prune(backup, 2)
    assert remote.push(backup).removed > 0
    assert len(storage.list_keys()) < before
    assert restored(tmp_path / "last")["a"] == "content 5"
    with pulled(URL) as folder:
        assert [info.name for info in archive.archives(folder)] == ["n4", "n5"]


@pytest.mark.parametrize("sent", range(4))
def test_an_upload_that_is_cut_leaves_the_archive_before_whole(
    home: Path, storage: ObjectStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: int
) -> None:
    remote = RemoteBackup(URL)
    remote.push(add(home, "one"))
    backup = add(home, "two", a="second", b="new")
    original, done = RemoteBackup._send, list[str]()

    def cut(self: RemoteBackup, source: Path, path: str) -> int:
        if len(done) == sent:
            raise ConnectionResetError("cut")
        done.append(path)
        return original(self, source, path)

    monkeypatch.setattr(RemoteBackup, "_send", cut)
    if sent < 3:
        with pytest.raises(DashboardError, match="the next night uploads what is missing"):
            remote.push(backup)
        assert restored(tmp_path / "then") == {"config.json": "{}", "a": "first"}
    monkeypatch.undo()
    for name, value in storage.env.items():
        monkeypatch.setenv(name, value)
    remote.push(backup)
    assert restored(tmp_path / "now") == {"config.json": "{}", "a": "second", "b": "new"}


def test_a_lost_object_is_named_and_sent_again(home: Path, storage: ObjectStorage, tmp_path: Path) -> None:
    remote = RemoteBackup(URL)
    backup = add(home, "one")
    remote.push(backup)
    lost = next(key for key in storage.list_keys() if "/objects/" in key)
    storage.delete(lost)
    with pulled(URL) as folder, pytest.raises(DashboardError, match=r"1 of 2 stored files are damaged.*is missing"):
        archive.verify(folder)
    assert remote.push(backup).files == 1
    assert restored(tmp_path / "home2")["a"] == "first"


def list_contents(storage: ObjectStorage) -> list[str]:
    return sorted(key for key in storage.list_keys() if "/objects/" in key)


def flip(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize("damage", [flip, lambda content: content[:-3], lambda content: b""])
@pytest.mark.parametrize("part", ["/objects/", "/archives/"])
def test_what_is_damaged_in_the_copy_is_replaced_by_the_next_push(
    home: Path, storage: ObjectStorage, tmp_path: Path, part: str, damage: Callable[[bytes], bytes]
) -> None:
    remote = RemoteBackup(URL)
    backup = add(home, "one")
    remote.push(backup)
    key = next(key for key in storage.list_keys() if part in key)
    storage.put(key, damage(storage.read(key)))
    assert remote.push(backup).files == 1
    assert remote.push(backup).files == 0
    assert restored(tmp_path / "whole")["a"] == "first"


def test_what_looks_well_in_the_copy_and_is_not_is_found_and_replaced_by_the_drill(
    home: Path, storage: ObjectStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote, backup = RemoteBackup(URL), add(home, "one")
    remote.push(backup)
    good = remote._list()
    key = list_contents(storage)[0]
    storage.put(key, flip(storage.read(key)))
    monkeypatch.setattr(RemoteBackup, "_list", lambda _: good)  # its sum is said to be what it was
    assert remote.push(backup).files == 0
    (home / "results").mkdir()
    drills = [
        drill.run_copy_drill(Home(home), URL, backup, tmp_path / "scratch", datetime.datetime.now(datetime.UTC))
        for _ in range(2)
    ]
    assert [(done.fault, done.mended) for done in drills] == [("", 1), ("", 0)]
    assert drill.read_drill(Home(home), drill.OF_COPY) == drills[-1]
    assert restored(tmp_path / "whole")["a"] == "first"


def test_the_drill_says_when_the_copy_cannot_be_restored(home: Path, storage: ObjectStorage, tmp_path: Path) -> None:
    backup = add(home, "one")
    RemoteBackup(URL).push(backup)
    for key in list_contents(storage):
        storage.delete(key)
    shutil.rmtree(backup / "objects")
    (home / "results").mkdir()
    now = datetime.datetime.now(datetime.UTC)
    assert "is missing" in drill.run_copy_drill(Home(home), URL, backup, tmp_path / "scratch", now).fault


@pytest.mark.parametrize("damage", [flip, lambda content: content[:-3], None])
def test_what_is_damaged_or_lost_here_is_neither_sent_over_the_copy_nor_removed_from_it(
    home: Path, storage: ObjectStorage, tmp_path: Path, damage: Callable[[bytes], bytes] | None
) -> None:
    remote, backup = RemoteBackup(URL), add(home, "one")
    remote.push(backup)
    path = next(path for path in (backup / "objects").rglob("*") if path.is_file())
    whole = path.read_bytes()
    path.unlink()
    if damage:
        path.write_bytes(damage(whole))
        with pytest.raises(DashboardError, match=r"not copied: .* this stored file "):
            remote.push(backup)
    else:
        assert remote.push(backup).removed == 0
    assert restored(tmp_path / "whole")["a"] == "first"


def test_the_copy_of_other_archives_is_left_as_it_is(home: Path, storage: ObjectStorage, tmp_path: Path) -> None:
    remote = RemoteBackup(URL)
    remote.push(add(home, "one"))
    shutil.rmtree(home.parent / "backup")
    with pytest.raises(DashboardError, match=r"another home, or of a backup_dir that was replaced \(as one\)"):
        remote.push(add(home, "two", a="second"))
    assert restored(tmp_path / "whole")["a"] == "first"


def test_a_file_of_many_parts_is_sent_once(home: Path, storage: ObjectStorage) -> None:
    (home / "large").write_bytes(random.Random(7).randbytes(33 << 20))
    remote, backup = RemoteBackup(URL), add(home, "one")
    assert remote.push(backup).files == 4
    assert remote.push(backup).files == 0


def test_where_the_sums_of_a_storage_are_none_of_ours_sizes_are_compared(
    home: Path, storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = remote_module._read_facts
    monkeypatch.setattr(remote_module, "_read_facts", lambda known: facts({**known, "ETag": "encrypted"}))
    remote, backup = RemoteBackup(URL), add(home, "one", b="x", c="y")
    remote.push(backup)
    assert RemoteBackup(URL).push(backup).files == 2  # the manifest, and the content by which that was found out
    cut = next(key for key in list_contents(storage) if storage.read(key) == zlib.compress(b"first"))
    storage.put(cut, b"")
    assert RemoteBackup(URL).push(backup).files == 3


def test_a_name_that_leads_elsewhere_is_not_fetched(home: Path, storage: ObjectStorage, tmp_path: Path) -> None:
    RemoteBackup(URL).push(add(home, "one"))
    storage.put("bench/home/archives/../../stray.json", b"stray")
    into = tmp_path / "a" / "b"
    into.mkdir(parents=True)
    RemoteBackup(URL).pull(into)
    assert not list(tmp_path.rglob("stray.json"))
    assert len(list((into / "archives").iterdir())) == 1


@contextlib.contextmanager
def endpoint(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """An endpoint that does this with each connection, which stays open else."""
    kept = list[socket.socket]()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    kept.append(server.accept()[0])
                    answer(kept[-1])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in kept:
                connection.close()


def test_a_storage_that_accepts_and_says_nothing_is_given_up(
    home: Path, storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = add(home, "one")
    with endpoint(lambda _: None) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", silent)
        with pytest.raises(DashboardError, match=r"did not finish within 0\.3 s\. The backup_dir is intact"):
            RemoteBackup(URL, limit_s=0.3).push(backup)


def test_one_limit_holds_for_all_that_a_push_asks(
    home: Path, storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote, backup = RemoteBackup(URL, limit_s=300), add(home, "one")
    send = RemoteBackup._send

    def send_until_late(self: RemoteBackup, source: Path, path: str) -> int:
        sent = send(self, source, path)
        self._end = 0.0
        return sent

    monkeypatch.setattr(RemoteBackup, "_send", send_until_late)
    with pytest.raises(DashboardError, match="did not finish within 5 min"):
        remote.push(backup)
    assert len(storage.list_keys()) == 1


def test_a_damaged_object_is_found(home: Path, storage: ObjectStorage) -> None:
    RemoteBackup(URL).push(add(home, "one"))
    key = next(key for key in storage.list_keys() if "/objects/" in key)
    storage.put(key, storage.read(key)[:-3] + b"rot")
    with pulled(URL) as folder, pytest.raises(DashboardError, match="1 of 2 stored files are damaged"):
        archive.verify(folder)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE", "(?i)access ?key|InvalidAccessKeyId|forbidden"),
        ("AWS_SECRET_ACCESS_KEY", "wrong-wrong-wrong", "(?i)signature|forbidden"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9", "(?i)connect"),
        ("AWS_ENDPOINT_URL", "127.0.0.1:9000", "Invalid endpoint"),
        ("AWS_ENDPOINT_URL", "http://[oops", "Invalid IPv6 URL"),
    ],
)
def test_wrong_credentials_and_no_server_are_told_without_the_secret(
    home: Path, storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(DashboardError, match=said) as told:
        RemoteBackup(URL).push(add(home, "one"))
    assert str(told.value).startswith(f"{URL}: ")
    assert storage.secret not in str(told.value)
    assert "wrong-wrong" not in str(told.value)


def test_a_bucket_or_folder_that_is_not_there_is_told(home: Path, storage: ObjectStorage) -> None:
    with pytest.raises(DashboardError):
        RemoteBackup("s3://nobodys/x").push(add(home, "one"))
    with pytest.raises(DashboardError, match="no archive found"), pulled(f"s3://{BUCKET}/elsewhere"):
        pass


def find_env(storage: ObjectStorage) -> dict[str, str]:
    """What a process needs to find the storage, and s3fs."""
    return {**storage.env, "PYTHONPATH": os.environ["PYTHONPATH"]}


def dashboard(*words: str) -> str:
    argv = [sys.executable, "-m", "dashboard", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.fixture
def nightly(tmp_path: Path, storage: ObjectStorage) -> HomeForTests:
    made = make_home(tmp_path, tmp_path / "artifacts", backup_copy=URL)
    made.subsystem()
    return made


def test_nights_copy_their_archives_and_a_home_comes_back_from_there(
    nightly: HomeForTests, storage: ObjectStorage, tmp_path: Path
) -> None:
    done = nightly.run_with(find_env(storage))
    assert done.code == 0, done.output
    assert f"copied the archives to {URL}: " in done.output
    target = tmp_path / "back"
    assert "Restored " in dashboard("restore", URL, str(target))
    assert (target / "config" / "config.json").read_text() == nightly.home.config_file.read_text()
    assert "all archives are intact." in dashboard("verify", URL)
    assert "2 archives." in dashboard("restore", URL)


def test_nothing_is_asked_of_the_storage_before_the_jobs_have_run(
    nightly: HomeForTests, storage: ObjectStorage
) -> None:
    nightly.subsystem(run=good("subsystem", f"touch {nightly.root}/measured"))
    measured = nightly.root / "measured"
    was_measured = list[bool]()

    def refuse(connection: socket.socket) -> None:
        was_measured.append(measured.exists())
        connection.close()

    with endpoint(refuse) as refusing:
        done = nightly.run_with({**find_env(storage), "AWS_ENDPOINT_URL": refusing})
    assert done.code == 1
    assert "Copying the archives failed" in done.output
    assert set(was_measured) == {True}


def test_a_night_mends_the_copy_and_tries_it_once_a_week(nightly: HomeForTests, storage: ObjectStorage) -> None:
    assert nightly.run_with(find_env(storage)).code == 0
    assert drill.read_drill(nightly.home, drill.OF_COPY) is None
    old = drill.Drill("20260101T000000Z", "x", 1, 1.0)
    write(nightly.home.root / "results" / drill.OF_COPY, {"schema_version": 1, **structured.to_json(old)})
    key = list_contents(storage)[0]
    storage.put(key, flip(storage.read(key)))
    done = nightly.run_with(find_env(storage))
    assert done.code == 0, done.output
    assert f"{URL}: 1 damaged file of the copy was replaced from backup_dir." in done.output
    tried = drill.read_drill(nightly.home, drill.OF_COPY)
    assert tried is not None
    assert (tried.fault, tried.mended) == ("", 0)
    assert tried.at > "20260101T000000Z"


def test_a_night_that_cannot_copy_says_so_and_the_next_one_does(nightly: HomeForTests, storage: ObjectStorage) -> None:
    done = nightly.run_with({**find_env(storage), "AWS_SECRET_ACCESS_KEY": "wrong-wrong-wrong"})
    assert done.code == 1
    assert f"Copying the archives failed: {URL}: " in done.output
    assert storage.list_keys() == []
    assert nightly.run_with(find_env(storage)).code == 0
    with pulled(URL) as folder:
        assert len(archive.archives(folder)) == 4
