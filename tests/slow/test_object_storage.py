"""A backup's copy in object storage, against a server of the S3 protocol: what is cut, refused, lost, and back again.

What that needs is installed into a folder of .test-cache, once for each of its pins: botocore's bounds do not fit the
environment of the tests (python-dateutil), though it runs in it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.archive import archive
from dashboard.archive.remote import RemoteBackup, pulled
from tests.dashboard.homes import HomeForTests, make_home
from tests.object_storage.server import BUCKET, ObjectStorage, object_storage
from tvmdash.errors import DashboardError

pytestmark = pytest.mark.slow
REPO = Path(__file__).resolve().parents[2]
PINS = (REPO / "requirements-s3.txt", REPO / "tests" / "object_storage" / "requirements.txt")
URL = f"s3://{BUCKET}/bench/home"


@pytest.fixture(scope="module")
def packages() -> Iterator[Path]:
    """The folder with s3fs and the server, which this process and those that it starts import."""
    key = hashlib.sha256(b"".join(path.read_bytes() for path in PINS)).hexdigest()[:12]
    folder = REPO / ".test-cache" / f"object-storage-{sys.version_info.minor}-{key}"
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


def test_a_night_that_cannot_copy_says_so_and_the_next_one_does(nightly: HomeForTests, storage: ObjectStorage) -> None:
    done = nightly.run_with({**find_env(storage), "AWS_SECRET_ACCESS_KEY": "wrong-wrong-wrong"})
    assert done.code == 1
    assert "could not be copied: s3://" in done.output
    assert storage.list_keys() == []
    assert nightly.run_with(find_env(storage)).code == 0
    with pulled(URL) as folder:
        assert len(archive.archives(folder)) == 4
